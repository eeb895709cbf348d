"""When the users of one process begin their requests.

Closed loop: as soon as the user is free. Open loop: at times that the rate
gives, whether the server keeps up or not; a turn that no user is free for
waits, and its latency counts from its time and not from the request's
(Tene, "How NOT to measure latency": coordinated omission).
"""

from __future__ import annotations

import math
import threading
from typing import Callable, Iterable, NamedTuple, Optional


class Share(NamedTuple):
    """Each ``step``-th of all turns.

    :param first: its number
    """

    first: int
    step: int

    def from_turn(self, number: int) -> Share:
        """Those from a turn on."""
        missing = max(0, number - self.first)
        return self._replace(
            first=self.first + -(-missing // self.step) * self.step)

    def part(self, rank: int, count: int) -> Share:
        """One of ``count`` parts."""
        return Share(self.first + rank * self.step, self.step * count)


class Pace(NamedTuple):
    """How much is done, and how fast.

    :param rate: requests a second of all processes together; None: closed
    :param operations: of all processes together; None: no limit
    :param seconds: after which no turn begins; None: no limit
    """

    rate: Optional[float]
    operations: Optional[int]
    seconds: Optional[float]

    def due(self, share: Share) -> Optional[int]:
        """Turns of a share, if none is stopped; None: as many as it can."""
        most = self.operations
        if self.seconds is not None:
            due = None if self.rate is None else math.ceil(
                self.rate * self.seconds)
            most = due if most is None or due is None else min(most, due)
        return None if most is None else max(
            0, -(-(most - share.first) // share.step))

    @property
    def length(self) -> float:
        """Seconds from the first turn to the end of the last, at a rate."""
        assert self.rate is not None
        counted = math.inf if self.operations is None \
            else self.operations / self.rate
        return min(counted, math.inf if self.seconds is None
                   else self.seconds)


class Turns:
    """Turns of one process: each ``processes``-th of all, and those that it
    takes over.

    :param now: the clock; that of ``start``
    """

    def __init__(self, pace: Pace, process: int, processes: int,
                 start: float, now: Callable[[], float]) -> None:
        self._pace = pace
        self._shares = [Share(process, processes)]
        self._start = start
        self._now = now
        self._lock = threading.Lock()
        self._stopped = False

    def take(self) -> Optional[float]:
        """When the next request begins, or began; None: there is none."""
        pace = self._pace
        with self._lock:
            share = min(self._shares)
            number = share.first
            self._shares.remove(share)
            self._shares.append(share.part(1, 1))
            if self._stopped or (pace.operations is not None
                                 and number >= pace.operations):
                return None
        at = max(self._start, self._now()) if pace.rate is None else \
            self._start + number / pace.rate
        if pace.seconds is not None and at >= self._start + pace.seconds:
            return None
        return at

    def take_over(self, shares: Iterable[Share]) -> None:
        """Have more turns, at their times."""
        with self._lock:
            self._shares += shares

    def stop(self) -> None:
        """Give no more."""
        with self._lock:
            self._stopped = True
