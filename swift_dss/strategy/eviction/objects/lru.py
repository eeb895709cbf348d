"""LRU: the object that was used longest ago leaves first.

The reference order: every access makes its object the youngest. One entry
an object; every verb is O(1).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Tuple

from swift_dss.strategy.eviction.objects.verbs import UNIT_COST, MappedOrder


class LruOrder(MappedOrder):
    """See above; the contract is :class:`Order`."""

    name = 'lru'

    def __init__(self, room_bytes: int = 0) -> None:
        self._queue: OrderedDict[int, int] = OrderedDict()
        super().__init__(room_bytes, self._queue)

    def touch(self, key: int, sequential: bool = False) -> bool:
        """See :meth:`Order.touch`."""
        if key in self._queue:
            self._queue.move_to_end(key)
            return True
        return False

    def insert(self, key: int, size: int, cost: float = UNIT_COST,
               sequential: bool = False) -> None:
        """See :meth:`Order.insert`."""
        self._queue[key] = size
        self.used_bytes += size

    def evict(self) -> Tuple[int, int]:
        """See :meth:`Order.evict`."""
        victim = self._queue.popitem(last=False)
        self.used_bytes -= victim[1]
        return victim

    def remove(self, key: int) -> int:
        """See :meth:`Order.remove`."""
        size = self._queue.pop(key, 0)
        self.used_bytes -= size
        return size
