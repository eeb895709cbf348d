"""Shadows and chooser together: accesses in, the choice in force out."""

from __future__ import annotations

from collections import deque
from typing import Deque, List, NamedTuple, Optional, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.tuning import choices
from swift_dss.strategy.tuning.choices import Choice
from swift_dss.strategy.tuning.chooser import LONGEST, Chooser, Verdict
from swift_dss.strategy.tuning.guard import Guard, Lag
from swift_dss.strategy.tuning.shadows import (
    ACCESS, Batch, Penalty, Shadows)


class Earlier(NamedTuple):
    """How far another tuner was, which ended.

    :param strategy: its choice; '': the configured one
    :param home: the lag then, see :class:`Guard`
    :param held, left_at: see :class:`Chooser`
    """

    strategy: str = ''
    home: Optional[Lag] = None
    held: int = 0
    left_at: Tuple[float, ...] = ()


_NOTHING = Earlier()


class Tuner:
    """See the module. Not thread-safe, and owns no clock.

    :param own: the configured choice
    :param room: of the true cache, in bytes
    :param changes_a_day: see :class:`Chooser`
    :param earlier: to go on from
    :ivar names: of the candidates, the configured one first
    """

    def __init__(self, own: Choice, room: int, table: ClassTable,
                 penalty: Penalty, changes_a_day: int = 0,
                 earlier: Earlier = _NOTHING) -> None:
        self.candidates = choices.candidates(own, table)
        self.names = [choice.strategy for choice in self.candidates]
        self.shadows = Shadows(self.candidates, room, table, penalty)
        self.chooser = Chooser(
            changes_a_day, self.names.index(earlier.strategy)
            if earlier.strategy in self.names else 0, earlier.held,
            earlier.left_at)
        self.guard = Guard(earlier.home)
        #: The last ones with reads; the chooser knows how many count.
        self._batches: Deque[Batch] = deque(maxlen=LONGEST)

    @property
    def current(self) -> Choice:
        """The choice in force."""
        return self.candidates[self.chooser.current]

    def hit_shares(self) -> List[Tuple[float, float]]:
        """By candidate: the share of reads, and of their bytes, that it would
        have served in the batches that the chooser remembers; [] if nothing
        was read. An order may save more time and serve fewer bytes."""
        batches = list(self._batches)[
            len(self._batches) - self.chooser.batches:]
        number = sum(batch.reads.number for batch in batches)
        length = sum(batch.reads.bytes for batch in batches)
        if not number:
            return []
        return [(sum(batch.hits[choice].number for batch in batches) / number,
                 sum(batch.hits[choice].bytes for batch in batches) / length)
                for choice in range(len(self.candidates))]

    def hear(self, key: int, size: int, class_id: int, now: float,
             verb: int = ACCESS, is_hit: Optional[bool] = None
             ) -> Optional[Verdict]:
        """An access, or a removal; the change that it leads to.

        :param now: seconds
        :param is_hit: of the true cache; None if that is not known
        """
        generation = self.shadows.generation
        batch = self.shadows.hear(key, size, class_id, verb, is_hit)
        if batch is None:
            if generation != self.shadows.generation:
                self.chooser.restart()
                self.guard.restart()
            return None
        if batch.asked > 0:
            self._batches.append(batch)
        verdict = self._guarded(batch) or self.chooser.judge(
            batch.asked, batch.saved, now, batch.true is None
            or bool(self.chooser.current) or self.guard.lag() is not None)
        if verdict is None:
            return None
        if verdict.old:
            self.guard.changed()
        else:
            self.guard.left()
        return verdict

    def _guarded(self, batch: Batch) -> Optional[Verdict]:
        if batch.true is None or batch.asked <= 0:
            return None
        if self.shadows.is_warm:
            self.guard.hear(batch.asked, batch.saved[0], batch.true)
        loss = self.guard.loss() if self.chooser.current else None
        return None if loss is None else self.chooser.go_back(*loss)
