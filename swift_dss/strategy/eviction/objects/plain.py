"""One order over all classes: the reference that class order is measured
against.
"""

from __future__ import annotations

from typing import Callable, Optional

from swift_dss.strategy.eviction.objects.verbs import (
    BYPASS, HIT, MISS, Held, ObjectCache, Order)


class PlainCache(ObjectCache):
    """Knows neither ranks nor floors nor caps.

    - An object that cannot fit beside the held ones stays out, and nothing
      leaves for it.
    - So does an object that the order or the doorkeeper rejects.

    :param order: made for ``capacity_bytes``
    """

    def __init__(self, order: Order, capacity_bytes: int,
                 cost: Optional[Callable[[int, int], float]] = None) -> None:
        super().__init__(capacity_bytes, cost)
        self._order = order

    def __len__(self) -> int:
        return len(self._order) + len(self._held)

    def __contains__(self, key: int) -> bool:
        return key in self._order or key in self._held

    def access(self, key: int, size: int, class_id: int = 0,
               sequential: bool = False) -> int:
        """See :meth:`ObjectCache.access`."""
        if self.doorkeeper is not None:
            self.doorkeeper.hear(key, size, class_id, sequential, False)
        if self._order.touch(key, sequential):
            return HIT
        if self._held and key in self._held:
            return HIT
        return self._bring_in(key, size, class_id, sequential)

    def bytes_of(self, class_id: int) -> int:
        """See :meth:`ObjectCache.bytes_of`."""
        return self.used_bytes

    def _bring_in(self, key: int, size: int, class_id: int,
                  sequential: bool, asked: bool = True) -> int:
        if self._kept_out(key, size, asked):
            return BYPASS
        order = self._order
        wanted = order.miss(key, size, sequential, asked)
        over = self.used_bytes + size - self.capacity_bytes
        if not wanted or over > order.used_bytes:
            return BYPASS
        if over > 0:
            self._make_room(over)
        order.insert(key, size, self._cost_of(size, class_id), sequential)
        self.used_bytes += size
        return MISS

    def _make_room(self, over: int) -> None:
        order = self._order
        while over > 0:
            key, size = order.evict()
            if self._leaves(key):
                self.used_bytes -= size
                over -= size
            else:
                order.insert(key, size, self._cost_of(size, 0))

    def _withdraw(self, key: int) -> Optional[Held]:
        size = self._order.remove(key)
        return Held(size, 0) if size else None

    def _return(self, key: int, held: Held) -> None:
        self._order.insert(key, held.size, self._cost_of(
            held.size, held.class_id))
