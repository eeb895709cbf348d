"""The day's money: what fetching ahead may cost, and has."""

from __future__ import annotations

import logging
from typing import Dict

from swift_dss.io.workers import Clock

_DAY_SECONDS = 86400.0


class Daily:
    """A limit of dollars a day. Not thread-safe; its caller holds a lock.

    A day begins with the first question after the last one is over. A
    restart begins another day.

    :param limit: dollars; 0: no limit
    """

    def __init__(self, limit: float, clock: Clock,
                 logger: logging.Logger) -> None:
        self._limit = limit
        self._clock = clock
        self._logger = logger
        self._since = clock.monotonic()
        self._before = 0.0
        self._told = False

    def is_spent(self, dollars: float) -> bool:
        """True if no more may be spent today.

        :param dollars: that were spent since the start; never fall
        """
        now = self._clock.monotonic()
        if now - self._since > _DAY_SECONDS:
            self._since, self._before, self._told = now, dollars, False
        spent = bool(self._limit) and dollars - self._before >= self._limit
        if spent and not self._told:
            self._told = True
            self._logger.warning(
                'prefetch: no more is fetched ahead for %.0f minutes: the '
                'dollars_per_day of %g are spent',
                (self._since + _DAY_SECONDS - now) / 60, self._limit)
        return spent

    def status(self, dollars: float) -> Dict[str, float]:
        """Plain values; ``dollars`` as above."""
        self.is_spent(dollars)
        return {'dollars_today': dollars - self._before,
                'dollars_per_day': self._limit}
