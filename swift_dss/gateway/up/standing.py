"""The fate of uploads, and the number of them that go out at a time."""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

from swift_dss.core.errors import DssError, RemoteCorrupt, RemoteUnavailable
from swift_dss.gateway.link.breaker import Breaker, BreakerState, Trust
from swift_dss.gateway.link.client import S3Rejected
from swift_dss.io.workers import Clock

#: Least time between immediate retries of uploads that failed while S3 lied:
#: S3 may refuse some versions for good.
_AGAIN_SECONDS = 20.0
#: So many uploads in a row that S3 did not answer, on a link too slow for
#: them and yet not dead, are an outage as well.
_STRUGGLES = 3


class Recovery(NamedTuple):
    """The states that ended with an upload that proved right.

    :param keeps_again: S3 lied until now
    :param retry_now: the uploads that failed are due now
    """

    keeps_again: bool
    retry_now: bool


class Standing:
    """S3 as uploads see it. Thread-safe.

    :param breaker: S3 answers
    :param trust: S3 keeps uploads that it acknowledges
    """

    def __init__(self, breaker: Breaker, trust: Trust,
                 clock: Clock) -> None:
        self.breaker = breaker
        self.trust = trust
        self._clock = clock
        self._lock = threading.Lock()
        self._unanswered = 0
        self._again_at = -math.inf

    @property
    def is_up(self) -> bool:
        """S3 answers. Reads and deletes need only this."""
        return self.breaker.state is BreakerState.CLOSED

    @property
    def state(self) -> str:
        """One word for status."""
        if self.is_up and self.trust.is_lost:
            return 'distrusted'
        return self.breaker.state.value

    def slots(self, limit: int) -> int:
        """How many uploads may run at once, 0..``limit``."""
        return self.trust.slots(limit)

    def failed(self, err: DssError) -> None:
        """An upload failed."""
        if isinstance(err, (RemoteCorrupt, S3Rejected)):
            self.trust.unproven()
        elif isinstance(err, RemoteUnavailable):
            with self._lock:
                self._unanswered += 1

    def proven(self) -> Recovery:
        """S3 holds an upload. Tells what ended with it.

        S3 lied until now, or left several uploads unanswered: the uploads that
        failed are due in the order of their age, though not again and again.
        """
        with self._lock:
            unanswered, self._unanswered = self._unanswered, 0
        kept = self.trust.proven()
        if kept:
            self.breaker.ramp()
        elif unanswered < _STRUGGLES:
            return Recovery(False, False)
        now = self._clock.wall()
        if now - self._again_at < _AGAIN_SECONDS:
            return Recovery(kept, False)
        self._again_at = now
        return Recovery(kept, True)
