"""Histograms and counts by class, operation and tier.

HDR histograms in microseconds, with three digits, to one hour; a longer
request counts as an hour. Only requests that worked have a latency.
"""

from __future__ import annotations

import threading
import zlib
from typing import Any, Dict, List, NamedTuple, Tuple

_MOST_MICROSECONDS = 3600 * 10 ** 6
_DIGITS = 3
PERCENTILES = (50.0, 90.0, 99.0, 99.9)
#: In place of a class or tier that an object or answer does not have.
NONE = '-'

#: Class, operation, tier.
Key = Tuple[str, str, str]


class Counts(NamedTuple):
    """All that one process knows at one time.

    :param histograms: encoded
    :param bytes: by key, of requests that worked
    :param failures: by key and error
    :param skipped: operations without an object to do them on
    :param gone: reads of objects that were deleted at the same time
    :param wrong: reads of bytes that the run did not write there, as text
    :param stale: reads of a version that was replaced before the read began
    :param late_seconds: most that a request was sent after its turn
    :param last_sent: ``time.monotonic()`` of the last request
    """

    histograms: Dict[Key, bytes]
    bytes: Dict[Key, int]
    failures: Dict[Tuple[Key, str], int]
    skipped: int
    gone: int
    wrong: List[str]
    wrong_count: int
    stale: int
    late_seconds: float
    last_sent: float

    @property
    def operations(self) -> int:
        """All that had a turn."""
        worked: int = sum(decoded(histogram).get_total_count()
                          for histogram in self.histograms.values())
        return worked + self.skipped + self.gone + sum(
            self.failures.values())


#: Wrong reads that are told one by one.
MOST_TOLD = 20


def new_histogram() -> Any:
    """An empty one of hdrh."""
    from hdrh.histogram import HdrHistogram
    return HdrHistogram(1, _MOST_MICROSECONDS, _DIGITS)


def decoded(histogram: bytes) -> Any:
    """One of :class:`Counts`."""
    from hdrh.histogram import HdrHistogram
    return HdrHistogram.decode(histogram)


class Recorder:
    """Collects what the users of one process tell; any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._histograms: Dict[Key, Any] = {}
        self._bytes: Dict[Key, int] = {}
        self._failures: Dict[Tuple[Key, str], int] = {}
        self._skipped = self._gone = self._stale = self._wrong_count = 0
        self._wrong: List[str] = []
        self._late_seconds = self._last_sent = 0.0

    def worked(self, key: Key, seconds: float, count: int) -> None:
        """A request did, with ``count`` bytes."""
        value = min(max(1, round(seconds * 1e6)), _MOST_MICROSECONDS)
        with self._lock:
            histogram = self._histograms.get(key)
            if histogram is None:
                histogram = self._histograms[key] = new_histogram()
            histogram.record_value(value)
            self._bytes[key] = self._bytes.get(key, 0) + count

    def failed(self, key: Key, error: str) -> None:
        """A request did not work."""
        with self._lock:
            at = (key, error)
            self._failures[at] = self._failures.get(at, 0) + 1

    def skipped(self) -> None:
        """There was no object to do it on."""
        with self._lock:
            self._skipped += 1

    def gone(self) -> None:
        """The object was deleted while it was read."""
        with self._lock:
            self._gone += 1

    def stale(self) -> None:
        """An older version was read."""
        with self._lock:
            self._stale += 1

    def wrong(self, text: str) -> None:
        """Other bytes were read than were written."""
        with self._lock:
            self._wrong_count += 1
            if len(self._wrong) < MOST_TOLD:
                self._wrong.append(text)

    def sent(self, at: float, late_seconds: float) -> None:
        """A request was sent, so long after its turn."""
        with self._lock:
            self._last_sent = max(self._last_sent, at)
            self._late_seconds = max(self._late_seconds, late_seconds)

    def counts(self) -> Counts:
        """All of it, until now."""
        with self._lock:
            return Counts(
                {key: histogram.encode()
                 for key, histogram in self._histograms.items()},
                dict(self._bytes), dict(self._failures), self._skipped,
                self._gone, list(self._wrong), self._wrong_count,
                self._stale, self._late_seconds, self._last_sent)


def check(encoded: str) -> None:
    """:raises ValueError: it is no histogram"""
    from hdrh import codec
    try:
        decoded(encoded.encode('ascii'))
    except (codec.HdrCookieException, codec.HdrLengthException,
            codec.HdrHistogramSettingsException, zlib.error) as err:
        raise ValueError(str(err)) from err


def merged(parts: List[Counts]) -> Counts:
    """Of several processes."""
    histograms: Dict[Key, Any] = {}
    sent: Dict[Key, int] = {}
    failures: Dict[Tuple[Key, str], int] = {}
    for part in parts:
        for key, encoded in part.histograms.items():
            histograms.setdefault(key, new_histogram()).add(decoded(encoded))
        for key, count in part.bytes.items():
            sent[key] = sent.get(key, 0) + count
        for at, count in part.failures.items():
            failures[at] = failures.get(at, 0) + count
    return Counts(
        {key: histogram.encode() for key, histogram in histograms.items()},
        sent, failures, sum(part.skipped for part in parts),
        sum(part.gone for part in parts),
        [text for part in parts for text in part.wrong][:MOST_TOLD],
        sum(part.wrong_count for part in parts),
        sum(part.stale for part in parts),
        max((part.late_seconds for part in parts), default=0.0),
        max((part.last_sent for part in parts), default=0.0))
