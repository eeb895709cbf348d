"""Classes by format for what is written: ``classes={'*.parquet': 'auto'}``.

Of a file that comes piece by piece (for others see :mod:`whole`), the bytes
that open it are known when the last one is written. A file of one segment is
in memory then, and goes up with its ranges. Of a larger one the segments but
the last are stored already: the classifier reads back from them what it looks
at, and those that have hot bytes get their ranges by a POST, before the
manifest is published. So the object shows with its classes.

A file of no known format, a damaged one, and one whose library is missing are
stored all the same, without ranges: the log says why. A class that the
account may not give is an error, as any class that a program names.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from typing import Any, Callable, List, NamedTuple, Sequence, Tuple

from swift_dss.client.formats import known
from swift_dss.client.formats.contract import NoSuchFormat, Reader
from swift_dss.client.formats.plan import Limits, Range
from swift_dss.client.formats.readers import Cached
from swift_dss.client.fs.manifest import Row
from swift_dss.client.fs.store import Request, Store
from swift_dss.client.fs.writing.segments import Segment
from swift_dss.core.limits import MAX_RANGE_HEADER_BYTES
from swift_dss.core.spans import Span
from swift_dss.wire.headers import range_text

_LOGGER = logging.getLogger(__name__)
#: Bytes of segments that are kept while a file is looked at.
_KEPT_BYTES = 16 << 20
#: A hot range and the bytes around it.
_FEWEST_SPANS = 3


class Auto(NamedTuple):
    """What a file system's ``auto`` means.

    :param hot: the class id of the bytes that open a file
    :param max_spans: changes of class that the server takes
    """

    hot: int
    max_spans: int


class InMemory(Reader):
    """Bytes that a program holds."""

    def __init__(self, data: Any) -> None:
        self._data = memoryview(data).cast('B')
        super().__init__(len(self._data))

    def read(self, offset: int, length: int) -> bytes:
        """See :class:`Reader`."""
        return bytes(self._data[offset:offset + length])


class Written(Reader):
    """A file whose last segment is in memory, and the others are stored.

    Its reads block, and the event loop has to run meanwhile: they belong into
    a thread of their own.

    :param rows: of the segments that are stored, in order
    """

    def __init__(self, store: Store, rows: Sequence[Row],
                 last: Segment) -> None:
        super().__init__(last.offset + len(last))
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._last = InMemory(b''.join(last.pieces))
        self._last_at = last.offset
        self._places: List[Tuple[int, Row]] = []
        offset = 0
        for row in rows:
            self._places.append((offset, row))
            offset += row['size_bytes']
        self._stored = Cached(last.offset, self._fetch, _KEPT_BYTES)

    def read(self, offset: int, length: int) -> bytes:
        """See :class:`Reader`."""
        before = max(0, min(length, self._last_at - offset))
        raw = self._stored.read(offset, before) if before else b''
        return raw + self._last.read(offset + before - self._last_at,
                                     length - before)

    def _fetch(self, start: int, end: int) -> bytes:
        return b''.join(
            self._fetch_of(row, max(start - offset, 0),
                           min(end - offset, row['size_bytes']))
            for offset, row in self._places
            if offset < end and start < offset + row['size_bytes'])

    def _fetch_of(self, row: Row, start: int, end: int) -> bytes:
        container, _, name = row['path'].lstrip('/').partition('/')
        return asyncio.run_coroutine_threadsafe(self._store.send(Request(
            'GET', container, name, headers={
                'Range': 'bytes=%d-%d' % (start, end - 1)})),
            self._loop).result().body


async def hot_spans(reader: Reader, auto: Auto, given: Sequence[Span],
                    path: str) -> List[Span]:
    """The ranges of a file that are to be hot; none if it has no format.

    :param given: ranges that have a class already, sorted; they keep it. No
        other is hot if they are more than a HEAD shows
    :param path: for the log
    """
    # Both sides of a given range may be hot.
    spans = auto.max_spans - 4 * len(given)
    if not reader.size or spans < _FEWEST_SPANS or \
            len(range_text(given)) > MAX_RANGE_HEADER_BYTES:
        return []
    # Its own thread: the loop's are for resolving names, and reads of the
    # file wait for that.
    threads = ThreadPoolExecutor(1, thread_name_prefix='dss-auto')
    try:
        ranges = await asyncio.get_running_loop().run_in_executor(
            threads, _ranges, reader, Limits(spans), path)
    finally:
        threads.shutdown(wait=False)
    return [Span(offset, length, auto.hot)
            for offset, length in outside(ranges, given)]


def outside(ranges: Sequence[Range], given: Sequence[Span]) -> List[Range]:
    """The parts of ranges that are in no given one; all are sorted."""
    left: List[Range] = []
    first = 0
    for start, length in ranges:
        end = start + length
        while first < len(given) and given[first].end <= start:
            first += 1
        at = first
        while at < len(given) and given[at].offset < end:
            if start < given[at].offset:
                left.append((start, given[at].offset - start))
            start = given[at].end
            at += 1
        if start < end:
            left.append((start, end - start))
    return left


def merged(spans: Sequence[Span], others: Sequence[Span]) -> List[Span]:
    """Spans of both, in order; none overlap."""
    return sorted([*spans, *others], key=attrgetter('offset'))


def within(spans: Sequence[Span], offset: int, length: int) -> List[Span]:
    """The parts of spans in ``length`` bytes, counted from ``offset``."""
    end = offset + length
    return [Span(max(span.offset, offset) - offset,
                 min(span.end, end) - max(span.offset, offset),
                 span.class_id)
            for span in spans if span.offset < end and offset < span.end]


def _ranges(reader: Reader, limits: Limits, path: str) -> List[Range]:
    say: Callable[..., None] = _LOGGER.warning
    try:
        return known.classify(reader, limits=limits).plan.ranges
    except NoSuchFormat as err:
        say, reason = _LOGGER.info, str(err)
    except Exception as err:
        # Other people's classifiers and libraries raise what they like; the
        # file is worth more than where its bytes lie.
        reason = '%s: %s' % (type(err).__name__, ' '.join(str(err).split()))
    say('dss: dss://%s is not classified by its format: %s', path,
        reason[:300])
    return []
