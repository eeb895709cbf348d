"""The circuit breaker in front of S3.

``CLOSED``: work flows. After ``threshold`` failures in a row it is
``OPEN``: nothing is sent until a jittered, growing wait is over. Then it is
``HALF_OPEN``: exactly one request goes out as a probe; its success closes
the breaker, its failure opens it for longer. After closing, background
work returns slowly: :meth:`Breaker.background_slots` starts at one and
grows by one a success, so that an S3 that just came back is not hammered
with the whole backlog.

A server that acknowledges and does nothing, or refuses every request, still
answers: the breaker does not open, and the backlog would be sent again and
again. :class:`Trust` handles such a server.
"""

from __future__ import annotations

import random
import threading
from enum import Enum
from typing import Optional

from swift_dss.gateway.link.retry import Backoff
from swift_dss.io.workers import CLOCK, Clock

DEFAULT_THRESHOLD = 5
DEFAULT_BASE_SECONDS = 1.0
DEFAULT_CAP_SECONDS = 60.0


class BreakerState(Enum):
    """The states of the breaker."""

    CLOSED = 'closed'
    OPEN = 'open'
    HALF_OPEN = 'half_open'


class Breaker:
    """Shared by everything that talks to one endpoint. Thread-safe.

    """

    def __init__(self, threshold: int = DEFAULT_THRESHOLD,
                 base_seconds: float = DEFAULT_BASE_SECONDS,
                 cap_seconds: float = DEFAULT_CAP_SECONDS,
                 clock: Clock = CLOCK,
                 dice: Optional[random.Random] = None) -> None:
        self._threshold = threshold
        self._backoff = Backoff(base_seconds, cap_seconds,
                                dice or random.Random())
        self._clock = clock
        self._lock = threading.Lock()
        self._state = BreakerState.CLOSED
        self._failures = 0
        self._opened = 0
        self._probe_at = 0.0
        self._ramp: Optional[int] = None
        self.last_error = ''

    @property
    def state(self) -> BreakerState:
        """The state now; OPEN although a probe may be due."""
        with self._lock:
            return self._state

    def allow(self) -> bool:
        """May a request go out now? If the answer is yes its outcome MUST
        be told to :meth:`succeeded`, :meth:`failed` or :meth:`unknown`."""
        with self._lock:
            if self._state is BreakerState.CLOSED:
                return True
            if (self._state is BreakerState.OPEN
                    and self._clock.monotonic() >= self._probe_at):
                self._state = BreakerState.HALF_OPEN
                return True
            return False

    def succeeded(self) -> None:
        """S3 answered (also with 404: it is alive)."""
        with self._lock:
            self._failures = 0
            if self._state is BreakerState.CLOSED:
                if self._ramp is not None:
                    self._ramp += 1
                return
            self._state = BreakerState.CLOSED
            self._opened = 0
            self._ramp = 1
            self.last_error = ''

    def failed(self, error: str, for_sure: bool = False) -> None:
        """S3 refused, broke off, timed out or said 5xx.

        :param error: one line for status; never a secret
        :param for_sure: others need not fail too
        """
        with self._lock:
            self.last_error = error
            self._failures += self._threshold if for_sure else 1
            if (self._state is BreakerState.HALF_OPEN
                    or (self._state is BreakerState.CLOSED
                        and self._failures >= self._threshold)):
                self._state = BreakerState.OPEN
                self._opened += 1
                self._probe_at = self._clock.monotonic() + \
                    self._backoff.seconds(self._opened)

    def unknown(self) -> None:
        """The request ended without saying anything about S3 (its reader
        left, a local error): a probe slot is given back."""
        with self._lock:
            if self._state is BreakerState.HALF_OPEN:
                self._state = BreakerState.OPEN

    def ramp(self) -> None:
        """Let background work widen from one again."""
        with self._lock:
            self._ramp = 1

    def background_slots(self, limit: int) -> int:
        """How many uploads and deletes may run at once, 0..``limit``."""
        with self._lock:
            if self._state is not BreakerState.CLOSED:
                return 0
            if self._ramp is None:
                return limit
            if self._ramp >= limit:
                self._ramp = None
                return limit
            return self._ramp

    def seconds_until_probe(self) -> float:
        """0 while closed or when a probe is due."""
        with self._lock:
            if self._state is BreakerState.CLOSED:
                return 0.0
            return max(0.0, self._probe_at - self._clock.monotonic())


class Trust:
    """Judge if S3 keeps the uploads that it acknowledges. Thread-safe.

    After ``threshold`` uploads in a row that S3 refused, or took and then
    did not hold, only one goes out as a trial when a jittered, growing
    wait is over. The first upload that proves right ends that.

    """

    def __init__(self, threshold: int = DEFAULT_THRESHOLD,
                 base_seconds: float = DEFAULT_BASE_SECONDS,
                 cap_seconds: float = DEFAULT_CAP_SECONDS,
                 clock: Clock = CLOCK,
                 dice: Optional[random.Random] = None) -> None:
        self._threshold = threshold
        self._backoff = Backoff(base_seconds, cap_seconds,
                                dice or random.Random())
        self._clock = clock
        self._lock = threading.Lock()
        self._unproven = 0
        self._trial_at = 0.0

    @property
    def is_lost(self) -> bool:
        """Only trials go out."""
        with self._lock:
            return self._unproven >= self._threshold

    def proven(self) -> bool:
        """S3 holds an upload; True if trust had been lost."""
        with self._lock:
            was_lost = self._unproven >= self._threshold
            self._unproven = 0
            return was_lost

    def unproven(self) -> None:
        """S3 refused an upload, or lost one that it took."""
        with self._lock:
            self._unproven += 1
            trials = self._unproven - self._threshold + 1
            if trials > 0:
                self._trial_at = self._clock.monotonic() + \
                    self._backoff.seconds(trials)

    def slots(self, limit: int) -> int:
        """How many uploads may run at once, 0..``limit``."""
        with self._lock:
            if self._unproven < self._threshold:
                return limit
            return min(limit, int(self._clock.monotonic() >= self._trial_at))

    def seconds_until_trial(self) -> float:
        """0 while there is trust, or a trial is due."""
        with self._lock:
            if self._unproven < self._threshold:
                return 0.0
            return max(0.0, self._trial_at - self._clock.monotonic())
