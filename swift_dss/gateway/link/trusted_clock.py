"""The time that ages are judged by, before S3 loses bytes.

A silent primary counts for ``reclaim_age`` and no longer, so a clock that is
a week ahead for one look, as at a boot before NTP, would have the key go that
a stub needs. S3 says its own time with every answer: ages are judged by the
earlier of that and this node's clock.
"""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime
from typing import Optional

from swift_dss.io.workers import CLOCK, Clock


class TrustedClock(Clock):
    """The earlier of S3's time and this node's. Thread-safe.

    :param clock: this node's
    """

    def __init__(self, clock: Clock = CLOCK) -> None:
        self._clock = clock
        #: S3's time at second 0 of the monotonic clock: nothing is old
        #: before S3 has answered.
        self._began_at = -math.inf

    def hear(self, date: str) -> None:
        """S3 has answered, with this Date header; one that sends none, or
        no date, leaves this node's clock alone."""
        try:
            said = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError):
            self._began_at = math.inf
        else:
            self._began_at = said - self._clock.monotonic()

    def ahead_seconds(self) -> Optional[float]:
        """How far this node's clock is ahead of S3's, to about a second; None
        if S3 has not said its time."""
        if math.isinf(self._began_at):
            return None
        return self._clock.wall() - self._clock.monotonic() - self._began_at

    def wall(self) -> float:
        """Seconds since the epoch; the beginning of time if S3 has not
        answered yet."""
        return min(self._clock.wall(),
                   self._began_at + self._clock.monotonic())

    def monotonic(self) -> float:
        """See :meth:`Clock.monotonic`."""
        return self._clock.monotonic()
