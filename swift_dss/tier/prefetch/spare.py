"""The pace of fetching ahead of readers.

Readers go first: their recent rate is subtracted from the measured rate of the
link, and the rest may be used. The operator's limit overrides this. Before the
first measurement only the number of fetches at a time bounds the pace.
"""

from __future__ import annotations

import threading
from typing import Optional

from swift_dss.gateway.link.throughput import Series
from swift_dss.io.workers import Clock

#: Seconds over which readers' bytes are averaged.
_WINDOW_SECONDS = 2.0
#: Least share of the link for prefetch: even if readers fill the link, their
#: next reads are better fetched now.
LEAST_SHARE = 0.1
#: Seconds of the rate that may be used at once.
_BURST_SECONDS = 1.0


class Spare:
    """Thread-safe.

    :param limit: bytes a second; 0: the spare rate of the link
    :param link: what came from S3; None where there is no remote tier
    """

    def __init__(self, limit: float, link: Optional[Series],
                 clock: Clock) -> None:
        self._limit = limit
        self._link = link
        self._clock = clock
        self._lock = threading.Lock()
        self._demand = 0.0
        self._at = clock.monotonic()
        self._credit = 0.0

    def demanded(self, length: int) -> None:
        """A reader took bytes from S3."""
        with self._lock:
            self._pass()
            self._demand += length / _WINDOW_SECONDS

    def rate(self) -> float:
        """Bytes a second; 0: not bounded."""
        if self._limit:
            return self._limit
        # 0 before the first measurement.
        carries = self._link.rate() if self._link is not None else 0.0
        with self._lock:
            self._pass()
            return max(carries * LEAST_SHARE, carries - self._demand)

    def wait_seconds(self, length: int) -> float:
        """Book ``length`` bytes; how long to wait before fetching them."""
        rate = self.rate()
        if not rate:
            return 0.0
        with self._lock:
            now = self._clock.monotonic()
            self._credit = max(self._credit, now - _BURST_SECONDS)
            wait = max(0.0, self._credit - now)
            self._credit += length / rate
            return wait

    def _pass(self) -> None:
        now = self._clock.monotonic()
        passed, self._at = now - self._at, now
        self._demand *= max(0.0, 1.0 - passed / _WINDOW_SECONDS)
