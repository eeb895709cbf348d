"""Class order over whole objects: rank, floors, caps, weights.

The rules of ``chunks/ordered`` (Mesnier et al., SOSP 2011, section 3.3,
with floors, caps and pins), for objects of any size and any order inside a
class:

- A miss of class *p* first takes what is free. Else classes give in the
  order of their rank, and none that ranks above *p*. If all together
  cannot make enough room, *p* stays out and nothing leaves for it.
- A class at or below its floor gives nothing to others; it may always
  exchange its own. As objects are whole, the last one that it gives may
  take it below by less than that object.
- A newcomer with which its class stays within its floor may have room from
  any class that is above its own, lowest rank first. Chunks of one size need
  no such rule: an exchange leaves nothing over. With objects of many sizes
  what an exchange leaves over goes to others, and a floor that could not be
  claimed again would shrink to nothing.
- A class that would pass its cap gives of its own first, or stays out.
- Weighted: whoever has most bytes per weight gives, and nobody who would
  then have fewer per weight than the newcomer.
- A pinned class is never a candidate. ``allocate = room`` takes only what
  is free, ``never`` nothing.
- A hit by another class moves the object there, unless that one is at its
  cap; an unclassified hit leaves it where it is.
"""

from __future__ import annotations

from enum import Enum
from typing import Callable, Dict, List, Mapping, Optional

from swift_dss.core.classes import Allocate, ClassTable
from swift_dss.core.limits import UNCLASSIFIED
from swift_dss.strategy.eviction.objects.verbs import (
    BYPASS, HIT, MISS, Held, ObjectCache, Order)


class GiveMode(Enum):
    """Who gives to whom."""

    STRICT = 'strict'
    WEIGHTED = 'weighted'


class _Class:
    """One class that has, or had, something here."""

    __slots__ = ('class_id', 'rank', 'floor', 'cap', 'weight', 'allocate',
                 'pin', 'order', 'used_bytes')

    def __init__(self, class_id: int, table: ClassTable, weight: float,
                 order: Order, capacity_bytes: int) -> None:
        spec = table.spec(class_id)
        self.class_id = class_id
        self.rank = spec.rank
        self.floor = int(spec.floor * capacity_bytes)
        self.cap = int(spec.cap * capacity_bytes)
        self.weight = weight
        self.allocate = spec.allocate
        self.pin = spec.pin
        self.order = order
        #: Candidates and held.
        self.used_bytes = 0

    def may_give(self, own: _Class) -> bool:
        """Whether its next candidate may leave for a newcomer to ``own``.
        """
        return self.order.used_bytes > 0 and (
            self is own or self.used_bytes > self.floor)

    def givable(self, own: _Class) -> int:
        """Bytes that it will give at least, if it has to."""
        if self is own:
            return self.order.used_bytes
        return max(0, min(self.order.used_bytes,
                          self.used_bytes - self.floor))

    def outweighs(self, own: _Class, size: int) -> bool:
        """Not lighter than ``own`` would be with ``size`` bytes more."""
        return self is own or (own.used_bytes + size) * self.weight <= \
            self.used_bytes * own.weight

    def givable_by_weight(self, own: _Class, size: int) -> int:
        """As :meth:`givable`, as long as it outweighs ``own``."""
        if self is own or not self.outweighs(own, size):
            return self.givable(own) if self is own else 0
        least = (own.used_bytes + size) * self.weight / own.weight
        return min(self.givable(own), int(self.used_bytes - least) + 1)


class ClassedCache(ObjectCache):
    """See above.

    :param make_order: class id to a new, empty order for it
    :param weights: class id to weight, the table's where it has none;
        for ``GiveMode.WEIGHTED``
    """

    def __init__(self, make_order: Callable[[int], Order],
                 capacity_bytes: int, table: ClassTable,
                 mode: GiveMode = GiveMode.STRICT,
                 weights: Optional[Mapping[int, float]] = None,
                 cost: Optional[Callable[[int, int], float]] = None) -> None:
        super().__init__(capacity_bytes, cost)
        self._make_order = make_order
        self._table = table
        self._mode = mode
        self._weights = dict(weights or {})
        self._classes: Dict[int, _Class] = {}
        #: Lowest rank first.
        self._ranked: List[_Class] = []
        self._where: Dict[int, _Class] = {}

    def __len__(self) -> int:
        return len(self._where) + len(self._held)

    def __contains__(self, key: int) -> bool:
        return key in self._where or key in self._held

    def bytes_of(self, class_id: int) -> int:
        """See :meth:`ObjectCache.bytes_of`."""
        found = self._classes.get(class_id)
        return found.used_bytes if found else 0

    def access(self, key: int, size: int, class_id: int = 0,
               sequential: bool = False) -> int:
        """See :meth:`ObjectCache.access`."""
        found = self._where.get(key)
        if found is not None:
            if class_id in (found.class_id, UNCLASSIFIED):
                found.order.touch(key, sequential)
            else:
                self._reclass(key, found, class_id, sequential)
            return HIT
        if self._held and key in self._held:
            return HIT
        return self._bring_in(key, size, class_id, sequential)

    def _reclass(self, key: int, found: _Class, class_id: int,
                 sequential: bool) -> None:
        found.order.touch(key, sequential)
        wanted = self._class(class_id)
        size = found.order.remove(key)
        if wanted.used_bytes + size > wanted.cap:
            wanted = found
        found.used_bytes -= size
        wanted.used_bytes += size
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

    def _bring_in(self, key: int, size: int, class_id: int,
                  sequential: bool, asked: bool = True) -> int:
        own = self._classes.get(class_id) or self._class(class_id)
        wanted = own.order.miss(key, size, sequential, asked)
        if not wanted or own.allocate is Allocate.NEVER:
            return BYPASS
        over_cap = own.used_bytes + size - own.cap
        over = self.used_bytes + size - self.capacity_bytes
        if (over_cap > 0 or over > 0) and (
                own.allocate is Allocate.ROOM
                or not self._make_room(own, over_cap, over, size)):
            return BYPASS
        own.used_bytes += size
        self.used_bytes += size
        self._join(key, size, own, sequential)
        return MISS

    def _make_room(self, own: _Class, over_cap: int, over: int,
                   size: int) -> bool:
        """All that is needed, or nothing."""
        if over_cap > own.order.used_bytes:
            return False
        claims = own.used_bytes + size <= own.floor
        strict = claims or self._mode is GiveMode.STRICT
        if over > 0:
            could = 0
            for one in self._ranked:
                if strict and not claims and one.rank > own.rank:
                    break
                could += one.givable(own) if strict else \
                    one.givable_by_weight(own, size)
            if could < over:
                return False
        if over_cap > 0:
            over -= self._take(own, over_cap)
        if strict:
            # Who is below its floor grows rather than exchange its own.
            givers = [one for one in self._ranked if one is not own] + [
                own] if claims else self._ranked
            for one in givers:
                while over > 0 and one.may_give(own):
                    over -= self._take(one, 1)
        else:
            while over > 0:
                over -= self._take(self._heaviest(own, size), 1)
        return True

    def _heaviest(self, own: _Class, size: int) -> _Class:
        best = own
        for one in self._ranked:
            if one.may_give(own) and one.outweighs(own, size) and (
                    not best.order.used_bytes or
                    one.used_bytes * best.weight
                    > best.used_bytes * one.weight):
                best = one
        return best

    def _take(self, giver: _Class, wanted: int) -> int:
        """Bytes that left: at least ``wanted``, unless all are given."""
        gone = 0
        while gone < wanted and giver.order.used_bytes:
            key, size = giver.order.evict()
            if not self._leaves(key):
                giver.order.insert(key, size, self._cost_of(
                    size, giver.class_id))
                continue
            del self._where[key]
            giver.used_bytes -= size
            self.used_bytes -= size
            gone += size
        return gone

    def _class(self, class_id: int) -> _Class:
        found = self._classes.get(class_id)
        if found is None:
            found = self._classes[class_id] = _Class(
                class_id, self._table, self._weights.get(
                    class_id, self._table.spec(class_id).weight),
                self._make_order(class_id), self.capacity_bytes)
            self._ranked = sorted(
                self._classes.values(),
                key=lambda one: (one.rank, one.class_id))
        return found

    def _withdraw(self, key: int) -> Optional[Held]:
        found = self._where.pop(key, None)
        if found is None:
            return None
        return Held(found.order.remove(key), found.class_id)

    def _return(self, key: int, held: Held) -> None:
        self._join(key, held.size, self._class(held.class_id), False)

    def _account(self, class_id: int, change: int) -> None:
        super()._account(class_id, change)
        self._class(class_id).used_bytes += change


#: A third reason to be held, beside dirt and a pin of the object's own.
_PIN_OF_CLASS = 4
