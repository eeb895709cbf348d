"""S3-FIFO: new objects must pass through a small queue.

Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache
eviction", SOSP 2023, section 4. A tenth of the room is the small queue;
an object that leaves it with fewer than two hits is evicted, and a ghost queue
remembers its key; the others go on to the main queue, which is a clock with a
counter up to 3. An object that comes back while its key is remembered goes to
the main queue at once.

As libCacheSim has it since December 2024: until the first eviction, objects
that do not fit the small queue go to the main queue, and an object that would
fill the small queue alone does not come in.

If the order gets no room (a class's share has no fixed size), the small queue
is a tenth of the held bytes, and every size comes in.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import List, Optional, Tuple

from swift_dss.strategy.eviction.objects.verbs import UNIT_COST, Order

#: Shares of the room: section 4.2 of the paper.
SMALL_SHARE = 0.1
GHOST_SHARE = 0.9
#: Hits in the small queue that lead to the main one, and the most that the
#: main queue counts.
PROMOTE_HITS = 2
MAIN_HITS_MAX = 3

_SIZE, _HITS = 0, 1


class S3FifoOrder(Order):
    """See above; the contract is :class:`Order`.

    :param room_bytes: of the whole cache; 0: not known
    """

    name = 's3fifo'

    def __init__(self, room_bytes: int = 0) -> None:
        super().__init__(room_bytes)
        self._room = room_bytes
        self._small_room = int(room_bytes * SMALL_SHARE)
        self._small: OrderedDict[int, List[int]] = OrderedDict()
        self._main: OrderedDict[int, List[int]] = OrderedDict()
        self._ghost: OrderedDict[int, int] = OrderedDict()
        self._small_bytes = 0
        self._ghost_bytes = 0
        self._has_evicted = False
        #: Key of the last miss, if the ghost queue had it.
        self._back: Optional[int] = None

    def __len__(self) -> int:
        return len(self._small) + len(self._main)

    def __contains__(self, key: int) -> bool:
        return key in self._small or key in self._main

    def touch(self, key: int, sequential: bool = False) -> bool:
        """See :meth:`Order.touch`."""
        node = self._small.get(key) or self._main.get(key)
        if node is None:
            return False
        node[_HITS] += 1
        return True

    def miss(self, key: int, size: int, sequential: bool = False,
             asked: bool = True) -> bool:
        """See :meth:`Order.miss`."""
        ghost = self._ghost.pop(key, 0)
        self._ghost_bytes -= ghost
        self._back = key if ghost else None
        return not self._room or size < self._small_room or (
            size == self._small_room and ghost > 0)

    def insert(self, key: int, size: int, cost: float = UNIT_COST,
               sequential: bool = False) -> None:
        """See :meth:`Order.insert`."""
        self.used_bytes += size
        if key == self._back or (
                self._room and not self._has_evicted
                and self._small_bytes >= self._small_room):
            self._main[key] = [size, 0]
        else:
            self._small[key] = [size, 0]
            self._small_bytes += size
        self._back = None

    def evict(self) -> Tuple[int, int]:
        """See :meth:`Order.evict`."""
        self._has_evicted = True
        while True:
            if not self._small or self._main_is_over():
                return self._evict_main()
            victim = self._evict_small()
            if victim is not None:
                return victim

    def _main_is_over(self) -> bool:
        room = self._room or self.used_bytes
        return self.used_bytes - self._small_bytes > \
            room - int(room * SMALL_SHARE)

    def _evict_small(self) -> Optional[Tuple[int, int]]:
        while self._small:
            key, node = self._small.popitem(last=False)
            self._small_bytes -= node[_SIZE]
            if node[_HITS] < PROMOTE_HITS:
                self._remember(key, node[_SIZE])
                self.used_bytes -= node[_SIZE]
                return key, node[_SIZE]
            node[_HITS] = 0
            self._main[key] = node
        return None

    def _evict_main(self) -> Tuple[int, int]:
        while True:
            key, node = self._main.popitem(last=False)
            if not node[_HITS]:
                self.used_bytes -= node[_SIZE]
                return key, node[_SIZE]
            node[_HITS] = min(node[_HITS], MAIN_HITS_MAX) - 1
            self._main[key] = node

    def _remember(self, key: int, size: int) -> None:
        limit = int((self._room or self.used_bytes) * GHOST_SHARE)
        # It may have come in by a change of class, and not by a miss.
        self._ghost_bytes -= self._ghost.pop(key, 0)
        if size > limit:
            return
        while self._ghost_bytes + size > limit:
            self._ghost_bytes -= self._ghost.popitem(last=False)[1]
        self._ghost[key] = size
        self._ghost_bytes += size

    def remove(self, key: int) -> int:
        """See :meth:`Order.remove`."""
        self._ghost_bytes -= self._ghost.pop(key, 0)
        node = self._small.pop(key, None)
        if node is not None:
            self._small_bytes -= node[_SIZE]
        else:
            node = self._main.pop(key, None)
        if node is None:
            return 0
        self.used_bytes -= node[_SIZE]
        return node[_SIZE]
