"""The class rule over whole objects of any size, in any order in a class.

:mod:`~swift_dss.strategy.eviction.rule` decides which class gives room to
which. A hit by another class moves the object to that class, unless the class
is at its cap; an unclassified hit does not move it.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional

from swift_dss.core.classes import Allocate, ClassTable
from swift_dss.core.limits import UNCLASSIFIED
from swift_dss.strategy.eviction.objects.verbs import (
    BYPASS, HIT, MISS, Held, ObjectCache, Order)
from swift_dss.strategy.eviction.rule import (
    Account, Entry, Mode, in_order, sole_giver)


class _Class(Account):
    """One class that has, or had, something here; dirty and pinned objects are
    in no order, so not loose.
    """

    __slots__ = ('class_id', 'pin', 'order')

    def __init__(self, class_id: int, table: ClassTable, weight: float,
                 order: Order, capacity_bytes: int) -> None:
        spec = table.spec(class_id)
        super().__init__(
            (class_id,), spec.rank, int(spec.floor * capacity_bytes),
            int(spec.cap * capacity_bytes), weight, spec.allocate)
        self.class_id = class_id
        self.pin = spec.pin
        self.order = order


class ClassedCache(ObjectCache):
    """See above.

    :param make_order: class id to a new, empty order for it
    :param weights: class id to weight, the table's where it has none;
        for ``Mode.WEIGHTED``
    """

    def __init__(self, make_order: Callable[[int], Order],
                 capacity_bytes: int, table: ClassTable,
                 mode: Mode = Mode.STRICT,
                 weights: Optional[Mapping[int, float]] = None,
                 cost: Optional[Callable[[int, int], float]] = None) -> None:
        super().__init__(capacity_bytes, cost)
        self._make_order = make_order
        self._table = table
        self._mode = mode
        self._weights = dict(weights or {})
        self._classes: Dict[int, _Class] = {}
        #: Lowest rank first.
        self._ranked: List[Account] = []
        self._where: Dict[int, _Class] = {}

    def __len__(self) -> int:
        return len(self._where) + len(self._held)

    def __contains__(self, key: int) -> bool:
        return key in self._where or key in self._held

    def bytes_of(self, class_id: int) -> int:
        """See :meth:`ObjectCache.bytes_of`."""
        part = self._classes.get(class_id)
        return part.used if part else 0

    def access(self, key: int, size: int, class_id: int = 0,
               sequential: bool = False) -> int:
        """See :meth:`ObjectCache.access`."""
        if self.doorkeeper is not None:
            self.doorkeeper.hear(key, size, class_id, sequential, False)
        part = self._where.get(key)
        if part is not None:
            if class_id in (part.class_id, UNCLASSIFIED):
                part.order.touch(key, sequential)
            else:
                self._reclass(key, part, class_id, sequential)
            return HIT
        if self._held and key in self._held:
            return HIT
        return self._bring_in(key, size, class_id, sequential)

    def _reclass(self, key: int, old: _Class, class_id: int,
                 sequential: bool) -> None:
        old.order.touch(key, sequential)
        wanted = self._class(class_id)
        size = old.order.remove(key)
        old.loose -= size
        if wanted.used + size > wanted.cap:
            wanted = old
        old.used -= size
        wanted.used += size
        self._join(key, size, wanted, sequential)

    def _join(self, key: int, size: int, into: _Class,
              sequential: bool) -> None:
        if into.pin:
            self._held[key] = Held(size, into.class_id, _PIN_OF_CLASS)
            self._where.pop(key, None)
            return
        self._where[key] = into
        into.order.insert(key, size, self._cost_of(size, into.class_id),
                          sequential)
        into.loose += size

    def _bring_in(self, key: int, size: int, class_id: int,
                  sequential: bool, asked: bool = True) -> int:
        if self._kept_out(key, size, asked):
            return BYPASS
        own = self._classes.get(class_id) or self._class(class_id)
        wanted = own.order.miss(key, size, sequential, asked)
        if not wanted or own.allocate is Allocate.NEVER:
            return BYPASS
        over = self.used_bytes + size - self.capacity_bytes
        if (over > 0 or own.used + size > own.cap) and \
                not self._make_room(own, size, over):
            return BYPASS
        own.used += size
        self.used_bytes += size
        self._join(key, size, own, sequential)
        return MISS

    def _make_room(self, own: _Class, size: int, over: int) -> bool:
        """All that is needed, or nothing."""
        if over > 0 and self._mode is Mode.STRICT:
            sole = sole_giver(self._ranked, own, size, over)
            if sole is not None:
                while over > 0:
                    over -= self._take_one(sole)
                return True
        entry = Entry(self._ranked, own, size, size - over, self._mode)
        if entry.is_refused:
            return False
        giver = entry.next()
        while giver is not None:
            entry.left(giver, self._take_one(giver))
            giver = entry.next()
        return True

    def _take_one(self, giver: Account) -> int:
        """Have the next object of a class leave; its size."""
        assert isinstance(giver, _Class)
        key, size = giver.order.evict()
        if not self._leaves(key):
            giver.order.insert(key, size, self._cost_of(
                size, giver.class_id))
            return 0
        del self._where[key]
        giver.used -= size
        giver.loose -= size
        self.used_bytes -= size
        return size

    def _class(self, class_id: int) -> _Class:
        part = self._classes.get(class_id)
        if part is None:
            part = self._classes[class_id] = _Class(
                class_id, self._table, self._weights.get(
                    class_id, self._table.spec(class_id).weight),
                self._make_order(class_id), self.capacity_bytes)
            self._ranked = in_order(self._classes.values())
        return part

    def _withdraw(self, key: int) -> Optional[Held]:
        part = self._where.pop(key, None)
        if part is None:
            return None
        size = part.order.remove(key)
        part.loose -= size
        return Held(size, part.class_id)

    def _return(self, key: int, held: Held) -> None:
        self._join(key, held.size, self._class(held.class_id), False)

    def _account(self, class_id: int, change: int) -> None:
        super()._account(class_id, change)
        self._class(class_id).used += change


#: A third reason to be held, beside dirt and a pin of the object's own.
_PIN_OF_CLASS = 4
