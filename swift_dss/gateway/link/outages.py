"""The times in which this node got no answer from S3.

Replicas take over from one another after some time. While S3 is away none can
send, so that time tells nothing of the first primary. If it counted, all
replicas would send everything at once when S3 comes back.
"""

from __future__ import annotations

import math
from typing import Tuple

#: Outages that are remembered; older ones count as if S3 had been there.
_REMEMBERED = 100


class Outages:
    """Of one process. One thread calls :meth:`saw`, any the rest."""

    def __init__(self) -> None:
        #: (from, until) of each. Replaced at each change, because other
        #: threads read it.
        self._past: Tuple[Tuple[float, float], ...] = ()
        self._down_since = math.inf

    def saw(self, is_up: bool, now: float) -> None:
        """Note S3's present state; costs nothing."""
        if not is_up:
            self._down_since = min(self._down_since, now)
        elif self._down_since < math.inf:
            self._past = (*self._past, (self._down_since, now))[-_REMEMBERED:]
            self._down_since = math.inf

    def seconds(self, since: float, now: float) -> float:
        """How long S3 was away between the two."""
        return sum(max(0.0, min(end, now) - max(begin, since))
                   for begin, end in (*self._past, (self._down_since, now)))
