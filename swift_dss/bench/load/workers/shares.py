"""Whose turns are whose, when processes are lost.

At a rate each turn has its time. Those of a process that is lost are given to
the processes that stay, from a moment on at which all of these have heard of
it; until then they are missing. In a closed loop a process has no times, and
nothing is given on.
"""

from __future__ import annotations

import math
from typing import Dict, List, Optional, Sequence

from swift_dss.bench.load.turns import Pace, Share
from swift_dss.bench.load.workers.worker import Worker

#: Processes look for words once a second.
_LEAD_SECONDS = 2.5


class Shares:
    """Of one run.

    :param users: of all processes: each has taken its next turn
    :param start: of the first turn
    """

    def __init__(self, pace: Pace, processes: int, users: int,
                 start: float) -> None:
        self._pace = pace
        self._users = users
        self._start = start
        self._of: Dict[int, List[Share]] = {
            number: [Share(number, processes)] for number in range(processes)}
        self._given: Dict[int, int] = {}

    def turns(self, number: int) -> Optional[int]:
        """Of one process, without those that it has given on; None: as many
        as it can."""
        counts = [self._pace.due(share) for share in self._of[number]]
        return None if None in counts else sum(
            count or 0 for count in counts) - self._given.get(number, 0)

    def is_given(self, number: int) -> bool:
        """Whether others have the turns of a process that was lost."""
        return number in self._given

    def give_on(self, workers: Sequence[Worker]) -> None:
        """Give the turns of those that were lost since the last call to
        those that stay."""
        for worker in workers:
            if worker.loss is not None and 'done' not in worker.words \
                    and worker.number not in self._given:
                self._give(worker, worker.loss.lost_at + _LEAD_SECONDS, [
                    other for other in workers
                    if other.loss is None and 'done' not in other.words])

    def _give(self, lost: Worker, at: float,
              others: Sequence[Worker]) -> None:
        pace = self._pace
        # Users whose last turns are ahead take no more.
        if not others or pace.rate is None or \
                at >= self._start + pace.length - self._users / pace.rate:
            return
        first = math.ceil((at - self._start) * pace.rate)
        rest = [share.from_turn(first) for share in self._of[lost.number]]
        self._given[lost.number] = sum(pace.due(share) or 0
                                       for share in rest)
        for rank, other in enumerate(others):
            parts = [share.part(rank, len(others)) for share in rest]
            self._of[other.number] += parts
            other.tell([tuple(part) for part in parts])
