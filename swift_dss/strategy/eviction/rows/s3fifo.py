"""S3-FIFO on rows: see ``object_s3fifo`` for the algorithm and its source.

The ghost queue is made of the rows of those that left: their bytes are on
a slower tier, and so their rows are still there.
"""

from __future__ import annotations

from typing import Optional

from swift_dss.strategy.eviction.objects.s3fifo import (
    GHOST_SHARE, MAIN_HITS_MAX, PROMOTE_HITS, SMALL_SHARE)
from swift_dss.strategy.eviction.objects.verbs import UNIT_COST
from swift_dss.strategy.eviction.rows.order import (
    FIRST, GONE, SECOND, Candidates, Choice, Memory, Place, RowOrder,
    next_turn)

_SMALL, _MAIN = FIRST, SECOND
#: The queue that is searched until it yields a victim; 0: undecided.
_PHASE = 'phase'
_IN_SMALL, _IN_MAIN = 1.0, 2.0


class RowS3Fifo(RowOrder):
    """See above; the contract is :class:`RowOrder`."""

    name = 's3fifo'

    def came(self, memory: Memory, before: Optional[Place], size: int,
             cost: float = UNIT_COST, sequential: bool = False) -> Place:
        """See :meth:`RowOrder.came`."""
        back = before is not None and before.queue == GONE
        return self._youngest(memory, _MAIN if back else _SMALL, 0)

    def read(self, memory: Memory, place: Place, size: int,
             cost: float = UNIT_COST, sequential: bool = False) -> Place:
        """See :meth:`RowOrder.read`."""
        return place._replace(uses=place.uses + 1)

    @staticmethod
    def _youngest(memory: Memory, queue: int, uses: int) -> Place:
        turn = next_turn(memory)
        return Place(queue, float(turn), turn, uses)

    def step(self, memory: Memory,
             candidates: Candidates) -> Optional[Choice]:
        """See :meth:`RowOrder.step`."""
        if not memory.get(_PHASE):
            main = candidates.used_bytes(_MAIN)
            used = main + candidates.used_bytes(_SMALL)
            memory[_PHASE] = _IN_MAIN if \
                main > used - int(used * SMALL_SHARE) else _IN_SMALL
        entry = None
        if memory[_PHASE] == _IN_SMALL:
            entry = candidates.pop(_SMALL)
            if entry is None:
                memory[_PHASE] = _IN_MAIN
            elif entry.place.uses >= PROMOTE_HITS:
                candidates.move(entry, self._youngest(memory, _MAIN, 0))
                return Choice(entry, False)
        if entry is None:
            entry = candidates.pop(_MAIN)
            if entry is None:
                # Only the small queue may be left.
                entry = candidates.pop(_SMALL)
                if entry is None:
                    return None
            elif entry.place.uses:
                candidates.move(entry, self._youngest(
                    memory, _MAIN,
                    min(entry.place.uses, MAIN_HITS_MAX) - 1))
                return Choice(entry, False)
        memory[_PHASE] = 0.0
        return Choice(entry, True)

    def left(self, memory: Memory, place: Place, size: int,
             candidates: Candidates) -> Optional[Place]:
        """See :meth:`RowOrder.left`."""
        if place.queue != _SMALL or place.uses >= PROMOTE_HITS:
            return None
        limit = int(GHOST_SHARE * (candidates.used_bytes(_SMALL)
                                   + candidates.used_bytes(_MAIN)))
        if size > limit:
            return None
        while candidates.used_bytes(GONE) + size > limit:
            oldest = candidates.pop(GONE)
            if oldest is None:
                break
            candidates.move(oldest, None)
        return self._youngest(memory, GONE, 0)
