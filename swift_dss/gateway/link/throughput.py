"""Measure the rates of the link to S3 where the bytes pass.

Three series. ``up`` and ``down`` are payload bytes a second while a
transfer was under way, so that an idle link does not look like a slow one.
Admission uses ``drain``: bytes of versions that became safe to drop, over the
time of all requests to S3 except reads. Its time includes looks, proofs and
side cars; its bytes include versions that another replica had sent.

Each series is cut into samples of about two seconds of such time and goes
into a :class:`~swift_dss.strategy.bandwidth.Forecast`.

Requests are counted too, with their list price.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from swift_dss.io.workers import CLOCK, Clock
from swift_dss.strategy.bandwidth import Forecast, Outlook

#: Busy seconds that make a sample: in shorter ones the end of one request
#: more or less makes the figure.
SAMPLE_SECONDS = 2.0
#: Points of (time, measured, predicted) that a status page can draw.
TRAIL = 180
DIRECTIONS = ('up', 'down', 'drain')
#: US dollars for a request, S3 Standard's list price.
PUT_PRICE = 0.005 / 1000
GET_PRICE = 0.0004 / 1000
_GETS = frozenset(('get_object', 'head_object', 'head_bucket'))
_FREE = frozenset(('delete_object', 'abort_multipart_upload'))
_UP = frozenset(('put_object', 'upload_part'))


def price(operation: str) -> float:
    """The list price of one request."""
    if operation in _FREE:
        return 0.0
    return GET_PRICE if operation in _GETS else PUT_PRICE


class Series:
    """One direction. Thread-safe.

    """

    def __init__(self, clock: Clock,
                 sample_seconds: float = SAMPLE_SECONDS) -> None:
        self._clock = clock
        self._sample_seconds = sample_seconds
        self._lock = threading.Lock()
        self._forecast = Forecast()
        self._active = 0
        self._since = 0.0
        self._busy = 0.0
        self._bytes = 0
        self._total = 0
        self._last = 0.0
        self._trail: List[Tuple[float, float, float]] = []

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Something is under way; may be entered many times at once."""
        with self._lock:
            if not self._active:
                self._since = self._clock.monotonic()
            self._active += 1
        try:
            yield
        finally:
            with self._lock:
                self._tick()
                self._active -= 1
                self._sample()

    def moved(self, length: int) -> None:
        """That many bytes went by."""
        with self._lock:
            self._bytes += length
            self._total += length
            self._tick()
            self._sample()

    def outlook(self) -> Outlook:
        """The prediction of the next sample."""
        with self._lock:
            return self._forecast.outlook()

    def rate(self) -> float:
        """Predicted bytes a second; 0 before the first sample."""
        return self.outlook().value or 0.0

    def status(self) -> Dict[str, Any]:
        """Plain values."""
        with self._lock:
            outlook = self._forecast.outlook()
            errors = self._forecast.errors()
            return {
                'bytes': self._total, 'measured': self._last,
                'predicted': outlook.value, 'method': outlook.method,
                'mape': outlook.mape, 'shifts': outlook.shifts,
                'samples': outlook.samples,
                'mape_of': dict(errors), 'trail': list(self._trail)}

    def _tick(self) -> None:
        if self._active:
            now = self._clock.monotonic()
            self._busy += max(0.0, now - self._since)
            self._since = now

    def _sample(self) -> None:
        if self._busy < self._sample_seconds or not self._bytes:
            return
        self._last = self._bytes / self._busy
        said = self._forecast.outlook().value
        self._forecast.observe(self._last)
        self._trail.append((
            self._clock.monotonic(), self._last, said or self._last))
        del self._trail[:-TRAIL]
        self._busy = 0.0
        self._bytes = 0


class Throughput:
    """All series of one endpoint, and its requests. Thread-safe."""

    def __init__(self, clock: Clock = CLOCK,
                 sample_seconds: float = SAMPLE_SECONDS) -> None:
        self.up = Series(clock, sample_seconds)
        self.down = Series(clock, sample_seconds)
        self.drain = Series(clock, sample_seconds)
        self._lock = threading.Lock()
        self._operations: Dict[str, int] = {}

    @contextmanager
    def calling(self, operation: str, length: int) -> Iterator[None]:
        """One request, with the bytes that it sends.

        They count if it succeeds.
        """
        with self._lock:
            self._operations[operation] = \
                self._operations.get(operation, 0) + 1
        if operation == 'get_object':
            with self.down.busy():
                yield
            return
        with self.drain.busy():
            if operation in _UP and length:
                with self.up.busy():
                    yield
                    self.up.moved(length)
            else:
                yield

    def operations(self) -> Mapping[str, int]:
        """Requests by name."""
        with self._lock:
            return dict(self._operations)

    def status(self) -> Dict[str, Any]:
        """Plain values for status output."""
        operations = self.operations()
        totals: Dict[str, Any] = {
            name: getattr(self, name).status() for name in DIRECTIONS}
        for series in totals.values():
            del series['trail']
        totals['operations'] = dict(operations)
        totals['cost_dollars'] = sum(
            price(name) * count for name, count in operations.items())
        return totals
