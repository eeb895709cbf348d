"""Shadows and chooser together: accesses in, the choice in force out."""

from __future__ import annotations

from typing import Optional

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.tuning import choices
from swift_dss.strategy.tuning.choices import Choice
from swift_dss.strategy.tuning.chooser import Chooser, Verdict
from swift_dss.strategy.tuning.shadows import ACCESS, Penalty, Shadows


class Tuner:
    """See the module. Not thread-safe, and owns no clock.

    :param own: the configured choice
    :param room: of the true cache, in bytes
    :param changes_a_day: see :class:`Chooser`
    :param strategy: the choice that was in force before; '': the configured
    """

    def __init__(self, own: Choice, room: int, table: ClassTable,
                 penalty: Penalty, changes_a_day: int = 0,
                 strategy: str = '') -> None:
        self.candidates = choices.candidates(own, table)
        names = [choice.strategy for choice in self.candidates]
        self.shadows = Shadows(self.candidates, room, table, penalty)
        self.chooser = Chooser(changes_a_day, names.index(strategy)
                               if strategy in names else 0)

    @property
    def current(self) -> Choice:
        """The choice in force."""
        return self.candidates[self.chooser.current]

    def hear(self, key: int, size: int, class_id: int, now: float,
             verb: int = ACCESS) -> Optional[Verdict]:
        """An access, or a removal; the change that it leads to.

        :param now: seconds
        """
        generation = self.shadows.generation
        batch = self.shadows.hear(key, size, class_id, verb)
        if batch is None:
            if generation != self.shadows.generation:
                self.chooser.restart()
            return None
        return self.chooser.judge(*batch, now)
