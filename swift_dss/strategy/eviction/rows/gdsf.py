"""GDSF on rows: see ``objects/gdsf`` for the algorithm and its source.

A priority is the candidate's own place, brought up to date with each use;
the front of the queue is the lowest.
"""

from __future__ import annotations

from typing import Optional

from swift_dss.strategy.eviction.objects.verbs import UNIT_COST
from swift_dss.strategy.eviction.rows.order import (
    FIRST, Candidates, Choice, Memory, Place, RowOrder, next_turn)

_AGE = 'age'


class RowGdsf(RowOrder):
    """See above; the contract is :class:`RowOrder`."""

    name = 'gdsf'

    def came(self, memory: Memory, before: Optional[Place], size: int,
             cost: float = UNIT_COST, sequential: bool = False) -> Place:
        """See :meth:`RowOrder.came`."""
        return self._rank(memory, 1, size, cost)

    def read(self, memory: Memory, place: Place, size: int,
             cost: float = UNIT_COST, sequential: bool = False) -> Place:
        """See :meth:`RowOrder.read`."""
        return self._rank(memory, place.uses + 1, size, cost)

    @staticmethod
    def _rank(memory: Memory, uses: int, size: int, cost: float) -> Place:
        return Place(FIRST, memory.get(_AGE, 0.0) + uses * cost
                     / max(1, size), next_turn(memory), uses)

    def step(self, memory: Memory,
             candidates: Candidates) -> Optional[Choice]:
        """See :meth:`RowOrder.step`."""
        entry = candidates.pop(FIRST)
        if entry is None:
            return None
        memory[_AGE] = max(memory.get(_AGE, 0.0), entry.place.at)
        return Choice(entry, True)
