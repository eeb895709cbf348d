"""SARC on rows: see ``objects/sarc`` for the algorithm and its source.

The watched old end of a list is one number: the place of its youngest entry.
It is found again when an eighth of the watched bytes may have left it. Until
then the end is up to an eighth too short, which delays the adaptation and
changes no order.
"""

from __future__ import annotations

from typing import Optional

from swift_dss.strategy.eviction.objects.sarc import LARGE_RATIO, WATCHED_SHARE
from swift_dss.strategy.eviction.objects.verbs import UNIT_COST
from swift_dss.strategy.eviction.rows.order import (
    FIRST, SECOND, Candidates, Choice, Memory, Place, RowOrder, next_turn)

_RANDOM, _SEQ = FIRST, SECOND
_OLD = {_RANDOM: 'old_random', _SEQ: 'old_seq'}
#: Bytes that have left an old end since it was found, and what is watched.
_CONSUMED, _WATCHED = 'consumed', 'watched'
_ADAPT, _RATIO, _DESIRED = 'adapt', 'ratio', 'desired'
_SEQ_MISSES, _SEQ_BYTES = 'seq_misses', 'seq_bytes'
_STALE_SHARE = 0.125


class RowSarc(RowOrder):
    """See above; the contract is :class:`RowOrder`."""

    name = 'sarc'

    def came(self, memory: Memory, before: Optional[Place], size: int,
             cost: float = UNIT_COST, sequential: bool = False) -> Place:
        """See :meth:`RowOrder.came`."""
        turn = next_turn(memory)
        return Place(_SEQ if sequential else _RANDOM, float(turn), turn, 0)

    def read(self, memory: Memory, place: Place, size: int,
             cost: float = UNIT_COST, sequential: bool = False) -> Place:
        """See :meth:`RowOrder.read`."""
        if place.at <= memory.get(_OLD[place.queue], float('-inf')):
            memory[_CONSUMED] = memory.get(_CONSUMED, 0.0) + size
            if place.queue == _RANDOM:
                memory[_RATIO] = ratio = 2.0 * memory.get(
                    _SEQ_MISSES, 0.0) * memory.get(_WATCHED, 0.0) / max(
                        1.0, memory.get(_SEQ_BYTES, 0.0))
                memory[_SEQ_MISSES] = 0.0
                memory[_ADAPT] = max(-1.0, min(1.0, ratio - 1.0))
            elif memory.get(_RATIO, 0.0) > LARGE_RATIO:
                memory[_ADAPT] = 1.0
        return self.came(memory, None, size, cost,
                         sequential or place.queue == _SEQ)

    def missed(self, memory: Memory, sequential: bool) -> None:
        """See :meth:`RowOrder.missed`."""
        if sequential:
            memory[_SEQ_MISSES] = memory.get(_SEQ_MISSES, 0.0) + 1.0

    def begin(self, memory: Memory, candidates: Candidates) -> None:
        """Cost: O(watched), once for each eighth of that which left."""
        seq = candidates.used_bytes(_SEQ)
        watched = int((seq + candidates.used_bytes(_RANDOM))
                      * WATCHED_SHARE)
        memory[_SEQ_BYTES] = float(seq)
        if _WATCHED not in memory or memory.get(
                _CONSUMED, 0.0) >= watched * _STALE_SHARE:
            for queue, name in _OLD.items():
                memory[name] = candidates.within(queue, watched)
            memory[_CONSUMED] = 0.0
        memory[_WATCHED] = float(watched)

    def step(self, memory: Memory,
             candidates: Candidates) -> Optional[Choice]:
        """See :meth:`RowOrder.step`."""
        entry = candidates.pop(self._giver(memory, candidates))
        if entry is None:
            return None
        used = candidates.used_bytes(_SEQ) + candidates.used_bytes(_RANDOM)
        memory[_CONSUMED] = memory.get(_CONSUMED, 0.0) + entry.size
        memory[_DESIRED] = min(float(used), max(
            0.0, memory.get(_DESIRED, 0.0)
            + memory.get(_ADAPT, 0.0) * entry.size / 2))
        return Choice(entry, True)

    @staticmethod
    def _giver(memory: Memory, candidates: Candidates) -> int:
        seq, random = candidates.peek(_SEQ), candidates.peek(_RANDOM)
        if seq is None or random is None:
            return _RANDOM if seq is None else _SEQ
        seq_bytes = candidates.used_bytes(_SEQ)
        random_bytes = candidates.used_bytes(_RANDOM)
        watched = int((seq_bytes + random_bytes) * WATCHED_SHARE)
        if min(seq_bytes, random_bytes) < watched:
            return _SEQ if seq.place.turn < random.place.turn else _RANDOM
        return _SEQ if seq_bytes > memory.get(_DESIRED, 0.0) else _RANDOM
