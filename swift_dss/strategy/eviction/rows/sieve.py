"""SIEVE on rows: see ``objects/sieve`` for the algorithm and its source.

The queue is the order of arrival, a mark is a use that is counted, and the
hand is one number: where the next look begins.
"""

from __future__ import annotations

from typing import Optional

from swift_dss.strategy.eviction.objects.verbs import UNIT_COST
from swift_dss.strategy.eviction.rows.order import (
    FIRST, Candidates, Choice, Memory, Place, RowOrder, next_turn)

_HAND = 'hand'


class RowSieve(RowOrder):
    """See above; the contract is :class:`RowOrder`."""

    name = 'sieve'

    def came(self, memory: Memory, before: Optional[Place], size: int,
             cost: float = UNIT_COST, sequential: bool = False) -> Place:
        """See :meth:`RowOrder.came`."""
        turn = next_turn(memory)
        return Place(FIRST, float(turn), turn, 0)

    def read(self, memory: Memory, place: Place, size: int,
             cost: float = UNIT_COST, sequential: bool = False) -> Place:
        """See :meth:`RowOrder.read`."""
        return place._replace(uses=1)

    def begin(self, memory: Memory, candidates: Candidates) -> None:
        """See :meth:`RowOrder.begin`."""
        candidates.rewind(FIRST, memory.get(_HAND))

    def step(self, memory: Memory,
             candidates: Candidates) -> Optional[Choice]:
        """See :meth:`RowOrder.step`."""
        entry = candidates.pop(FIRST)
        if entry is None:
            candidates.rewind(FIRST)
            entry = candidates.pop(FIRST)
        if entry is None:
            return None
        marked = bool(entry.place.uses)
        if marked:
            candidates.move(entry, entry.place._replace(uses=0))
        following = candidates.peek(FIRST)
        if following is None:
            # Behind the youngest: the next look begins at the oldest.
            memory.pop(_HAND, None)
            candidates.rewind(FIRST)
        else:
            memory[_HAND] = following.place.at
        return Choice(entry, not marked)
