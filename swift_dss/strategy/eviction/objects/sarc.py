"""SARC: streams and the rest in two lists whose sizes adapt.

Gill and Modha: "SARC: Sequential Prefetching in Adaptive Replacement
Cache", USENIX ATC 2005, section 4. Objects of streams are in SEQ, the rest in
RANDOM, both in LRU order. The oldest part of each list, two per cent of the
cache, is watched: a hit there shows what a longer list would gain. Sequential
misses (``ratio``) measure the gain of SEQ, and hits at its old end that of
RANDOM; each eviction moves the target size of SEQ by half an object's bytes.

Where the order is told no room, its own bytes are meant. One entry an
object; every verb is O(1), amortised.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Tuple

from swift_dss.strategy.eviction.objects.verbs import UNIT_COST, Order

#: Share of the cache that is watched at the old end of each list.
WATCHED_SHARE = 0.02
#: Sequential misses outweigh hits in RANDOM so far that any hit at SEQ's
#: old end means that SEQ is too short.
LARGE_RATIO = 20.0

_Entry = Tuple[int, int]


class _Watched:
    """A list in LRU order whose oldest bytes are apart."""

    def __init__(self) -> None:
        self.young: OrderedDict[int, _Entry] = OrderedDict()
        self.old: OrderedDict[int, _Entry] = OrderedDict()
        self.young_bytes = 0
        self.old_bytes = 0

    def __len__(self) -> int:
        return len(self.young) + len(self.old)

    @property
    def used_bytes(self) -> int:
        return self.young_bytes + self.old_bytes

    def add(self, key: int, entry: _Entry) -> None:
        self.young[key] = entry
        self.young_bytes += entry[0]

    def take(self, key: int) -> Tuple[int, bool]:
        """(size, whether it was at the old end); size 0: not here."""
        entry = self.young.pop(key, None)
        if entry is not None:
            self.young_bytes -= entry[0]
            return entry[0], False
        entry = self.old.pop(key, None)
        if entry is None:
            return 0, False
        self.old_bytes -= entry[0]
        return entry[0], True

    def balance(self, watched_bytes: int) -> None:
        """As many whole objects at the old end as fit there."""
        while self.young:
            key, entry = self.young.popitem(last=False)
            if self.old_bytes + entry[0] > watched_bytes:
                self.young[key] = entry
                self.young.move_to_end(key, last=False)
                break
            self.young_bytes -= entry[0]
            self.old[key] = entry
            self.old_bytes += entry[0]
        while self.old_bytes > watched_bytes:
            key, entry = self.old.popitem()
            self.old_bytes -= entry[0]
            self.young[key] = entry
            self.young.move_to_end(key, last=False)
            self.young_bytes += entry[0]

    def oldest_use(self) -> int:
        first = self.old or self.young
        return first[next(iter(first))][1]

    def pop_oldest(self) -> _Entry:
        if self.old:
            key, entry = self.old.popitem(last=False)
            self.old_bytes -= entry[0]
        else:
            key, entry = self.young.popitem(last=False)
            self.young_bytes -= entry[0]
        return key, entry[0]


class SarcOrder(Order):
    """See above; the contract is :class:`Order`.

    :param room_bytes: of the whole cache; 0: not known
    :ivar desired_bytes: target size of SEQ
    """

    name = 'sarc'

    def __init__(self, room_bytes: int = 0) -> None:
        super().__init__(room_bytes)
        self._room = room_bytes
        self._seq = _Watched()
        self._random = _Watched()
        self._turn = 0
        self._adapt = 0.0
        self._ratio = 0.0
        self._seq_misses = 0
        self.desired_bytes = 0.0

    def __len__(self) -> int:
        return len(self._seq) + len(self._random)

    def __contains__(self, key: int) -> bool:
        return any(key in part for order in (self._seq, self._random)
                   for part in (order.young, order.old))

    @property
    def seq_bytes(self) -> int:
        """The bytes in SEQ now."""
        return self._seq.used_bytes

    def _watched_bytes(self) -> int:
        return int((self._room or self.used_bytes) * WATCHED_SHARE)

    def touch(self, key: int, sequential: bool = False) -> bool:
        """See :meth:`Order.touch`; objects that prove to belong to a stream
        move to SEQ.
        """
        size, at_old_end = self._random.take(key)
        if size:
            if at_old_end:
                self._random_gains()
        else:
            size, at_old_end = self._seq.take(key)
            if not size:
                return False
            sequential = True
            if at_old_end and self._ratio > LARGE_RATIO:
                self._adapt = 1.0
        self._add(key, size, sequential)
        return True

    def _random_gains(self) -> None:
        """``2 s dL / L`` against one hit at the old end of RANDOM."""
        self._ratio = 2.0 * self._seq_misses * self._watched_bytes() / max(
            1, self._seq.used_bytes)
        self._seq_misses = 0
        self._adapt = max(-1.0, min(1.0, self._ratio - 1.0))

    def _add(self, key: int, size: int, sequential: bool) -> None:
        self._turn += 1
        which = self._seq if sequential else self._random
        which.add(key, (size, self._turn))
        watched_bytes = self._watched_bytes()
        self._seq.balance(watched_bytes)
        self._random.balance(watched_bytes)

    def miss(self, key: int, size: int, sequential: bool = False,
             asked: bool = True) -> bool:
        """See :meth:`Order.miss`."""
        if sequential and asked:
            self._seq_misses += 1
        return True

    def insert(self, key: int, size: int, cost: float = UNIT_COST,
               sequential: bool = False) -> None:
        """See :meth:`Order.insert`."""
        self.used_bytes += size
        self._add(key, size, sequential)

    def evict(self) -> Tuple[int, int]:
        """See :meth:`Order.evict`."""
        key, size = self._giver().pop_oldest()
        self.used_bytes -= size
        self.desired_bytes = min(float(self._room or self.used_bytes), max(
            0.0, self.desired_bytes + self._adapt * size / 2))
        return key, size

    def _giver(self) -> _Watched:
        seq, random = self._seq, self._random
        if not len(seq) or not len(random):
            return seq if len(seq) else random
        watched_bytes = self._watched_bytes()
        if seq.used_bytes < watched_bytes or \
                random.used_bytes < watched_bytes:
            return seq if seq.oldest_use() < random.oldest_use() else random
        return seq if seq.used_bytes > self.desired_bytes else random

    def remove(self, key: int) -> int:
        """See :meth:`Order.remove`."""
        size, _ = self._random.take(key)
        if not size:
            size, _ = self._seq.take(key)
        self.used_bytes -= size
        return size
