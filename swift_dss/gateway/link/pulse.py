"""When S3 last showed that it lives: see
:mod:`swift_dss.gateway.link.alarm`."""

from __future__ import annotations

from typing import Optional

from swift_dss.io.workers import CLOCK, Clock

#: Time-outs of the question: to connect, and to the first byte.
ASK_CONNECT_SECONDS = 2.0
ASK_READ_SECONDS = 2.0


class Pulse:
    """When S3 last showed that it lives. Thread-safe, costs nothing.

    :param clock: seconds; a jump only asks S3 too early or too late
    """

    def __init__(self, clock: Clock = CLOCK) -> None:
        self._clock = clock
        self._last = clock.monotonic()

    def alive(self) -> None:
        """There was a sign of life."""
        self._last = self._clock.monotonic()

    def is_silent_since(self, since: float) -> bool:
        """True if there was none after ``since``."""
        return self._last <= since

    def silent_seconds(self, since: Optional[float] = None) -> float:
        """Seconds since the last sign, at most since ``since``."""
        last = self._last
        return self._clock.monotonic() - (
            last if since is None else max(since, last))
