"""A proxy's clock, as far as the object servers' say the same.

Rounds and restorations do things when they are due. A clock that is wrong by
days would end objects before their time, with time stamps that beat uploads of
the days to come. So a proxy whose clock differs from most of the servers'
leads nothing; and if its clock is moved while it leads, it goes on by the time
that has passed since the last comparison.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable, List, Optional

from swift_dss.proxy.wsgi import Env

#: Seconds by which clocks of one cluster may differ. Servers tell theirs to
#: the second, and late.
TOLERANCE_SECONDS = 30.0
#: Seconds until it is compared again.
_TRUSTED_SECONDS = 60.0
#: A clock that has moved by so much is compared at once.
_MOVED_SECONDS = 1.0


class Clock:
    """One process's.

    :param others: the clocks of some servers, of those that answer; None
        where there are none to ask
    """

    def __init__(self, others: Callable[[Env], Optional[List[float]]],
                 logger: Any, wall: Callable[[], float] = lambda: time.time(),
                 monotonic: Callable[[], float] = time.monotonic) -> None:
        self._others = others
        self._logger = logger
        self._wall = wall
        self._monotonic = monotonic
        #: Between both clocks, when it was compared.
        self._ahead = 0.0
        self._trusted_until = float('-inf')

    def now(self) -> float:
        """Seconds since the epoch: by the last comparison, if it is not long
        ago."""
        if self._monotonic() < self._trusted_until:
            return self._monotonic() + self._ahead
        return self._wall()

    def is_right(self, env: Env) -> bool:
        """Whether most of the servers agree. It asks them seldom."""
        ahead = self._wall() - self._monotonic()
        if self._monotonic() < self._trusted_until and \
                abs(ahead - self._ahead) < _MOVED_SECONDS:
            return True
        self._trusted_until = float('-inf')
        told = self._others(env)
        if told is not None:
            if not told:
                return False  # nobody answers, so nothing can be done either
            off = self._wall() - statistics.median(told)
            if abs(off) > TOLERANCE_SECONDS:
                self._logger.increment('dss.lifecycle.clock')
                self._logger.warning(
                    'dss: lifecycle: the clock is %d s %s those of the object '
                    'servers: this proxy does no rounds and restorations',
                    abs(off), 'ahead of' if off > 0 else 'behind')
                return False
        self._ahead = ahead
        self._trusted_until = self._monotonic() + _TRUSTED_SECONDS
        return True


class Every:
    """Tells whether some time has passed: since it was made, and then since
    it last said so.

    :param seconds: by the monotonic clock
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due = time.monotonic() + seconds

    def has_passed(self) -> bool:
        """True once, then not for another such time."""
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + self._seconds
        return True
