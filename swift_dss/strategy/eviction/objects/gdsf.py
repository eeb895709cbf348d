"""GDSF: objects stay if they are small, often used or dear to fetch.

Cherkasova: "Improving WWW Proxies Performance with Greedy-Dual-Size-
Frequency Caching Policy", HP Labs 1998, with the cost of GreedyDual (Cao
and Irani, USITS 1997): the class's weight times the predicted penalty of a
miss. The priority of an object is ``L + uses * cost / size``; the lowest
leaves, and ``L`` becomes its priority, so that a dear object grows old too.
Equal priorities leave in the order of their last use.

A heap with one entry an object: a hit only raises the priority that is
kept beside it, and an entry that turns out to be too low is put back when
it comes up. A hit is O(1), an eviction O(log n) amortised over hits.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Dict, List, Tuple

from swift_dss.strategy.eviction.objects.verbs import UNIT_COST, MappedOrder

_Entry = Tuple[float, int, int]
#: A heap is rebuilt when it has this many entries of removed objects, and
#: more of them than of others.
_STALE_MIN = 1000


class _Rank:
    """The state of an object."""

    __slots__ = ('priority', 'used_at', 'uses', 'size', 'cost')

    def __init__(self, priority: float, used_at: int, size: int,
                 cost: float) -> None:
        self.priority = priority
        self.used_at = used_at
        self.uses = 1
        self.size = size
        self.cost = cost


class GdsfOrder(MappedOrder):
    """See above; the contract is :class:`Order`."""

    name = 'gdsf'

    def __init__(self, room_bytes: int = 0) -> None:
        self._ranks: Dict[int, _Rank] = {}
        super().__init__(room_bytes, self._ranks)
        self._heap: List[_Entry] = []
        self._age = 0.0
        self._turn = 0

    def touch(self, key: int, sequential: bool = False) -> bool:
        """See :meth:`Order.touch`."""
        rank = self._ranks.get(key)
        if rank is None:
            return False
        self._turn += 1
        rank.uses += 1
        rank.used_at = self._turn
        rank.priority = self._age + rank.uses * rank.cost / rank.size
        return True

    def insert(self, key: int, size: int, cost: float = UNIT_COST,
               sequential: bool = False) -> None:
        """See :meth:`Order.insert`."""
        self._turn += 1
        priority = self._age + cost / size
        self._ranks[key] = _Rank(priority, self._turn, size, cost)
        heappush(self._heap, (priority, self._turn, key))
        self.used_bytes += size

    def evict(self) -> Tuple[int, int]:
        """See :meth:`Order.evict`."""
        heap = self._heap
        while True:
            _, used_at, key = heap[0]
            rank = self._ranks.get(key)
            if rank is None:
                heappop(heap)
            elif rank.used_at > used_at:
                heapreplace(heap, (rank.priority, rank.used_at, key))
            else:
                break
        heappop(heap)
        del self._ranks[key]
        self._age = rank.priority
        self.used_bytes -= rank.size
        return key, rank.size

    def remove(self, key: int) -> int:
        """See :meth:`Order.remove`."""
        rank = self._ranks.pop(key, None)
        if rank is None:
            return 0
        self.used_bytes -= rank.size
        if len(self._heap) > 2 * len(self._ranks) + _STALE_MIN:
            self._heap = [(entry.priority, entry.used_at, which)
                          for which, entry in self._ranks.items()]
            heapify(self._heap)
        return rank.size
