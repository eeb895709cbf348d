"""The contracts of orders and caches of whole objects.

Two contracts. An :class:`Order` ranks the candidates of one class: LRU,
S3-FIFO, SIEVE, GDSF and SARC are orders, one file each. An
:class:`ObjectCache` decides which objects come in and which leave for them,
over one order (``plain``) or one order a class (``classes``).

Keys are whole numbers, sizes bytes. A strategy sees neither data nor time:
the replay drives it with a trace, and the engine that moves bytes obeys it.
Dirty and pinned objects are *held*: they are in no order, so no order can
evict them.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Tuple

from swift_dss.strategy.eviction.objects.doorkeeper import SecondTouch

#: The results of an access. A bypass is a miss that did not come in.
MISS, HIT, BYPASS = 0, 1, 2

#: The default cost of a miss: only ratios of costs count.
UNIT_COST = 1.0e6

_DIRTY, _PINNED = 1, 2


class Order:
    """Which candidate of one class leaves first.

    It knows no capacity: the caller calls :meth:`evict` until there is room.
    Every verb MUST cost O(1) or O(log n), amortised, and its memory MUST be
    O(candidates), including the memory of evicted ones.

    :param room_bytes: capacity of the cache, for orders that divide it; 0: not
        known
    :ivar used_bytes: of all candidates
    """

    name = ''

    def __init__(self, room_bytes: int = 0) -> None:
        self.used_bytes = 0

    def __len__(self) -> int:
        raise NotImplementedError

    def __contains__(self, key: int) -> bool:
        raise NotImplementedError

    def touch(self, key: int, sequential: bool = False) -> bool:
        """An access; False if ``key`` is no candidate (that is no error,
        and changes nothing)."""
        raise NotImplementedError

    def miss(self, key: int, size: int, sequential: bool = False,
             asked: bool = True) -> bool:
        """A missed object may come in. If it does, evictions and
        :meth:`insert` follow, with no other miss between.

        :param asked: False for a prefetched object
        :returns: False if the order rejects it
        """
        return True

    def insert(self, key: int, size: int, cost: float = UNIT_COST,
               sequential: bool = False) -> None:
        """A new candidate, just used.

        :param key: MUST NOT be a candidate
        :param size: at least 1
        :param cost: of a miss of it, above 0; for orders that weigh
        :param sequential: part of a stream; for orders that tell apart
        """
        raise NotImplementedError

    def evict(self) -> Tuple[int, int]:
        """(key, size) of the one that leaves; it is no candidate now.

        MUST be called only while there is a candidate.
        """
        raise NotImplementedError

    def remove(self, key: int) -> int:
        """A candidate goes for a reason that is not the order's: deleted,
        or held from now on.

        :returns: its size; 0 if it was no candidate
        """
        raise NotImplementedError


class MappedOrder(Order):
    """An order that has all of its candidates in one mapping.

    :param candidates: by key; the same one as long as the order lives
    """

    def __init__(self, room_bytes: int,
                 candidates: Mapping[int, object]) -> None:
        super().__init__(room_bytes)
        self._candidates = candidates

    def __len__(self) -> int:
        return len(self._candidates)

    def __contains__(self, key: int) -> bool:
        return key in self._candidates


class Held:
    """A dirty or pinned object."""

    __slots__ = ('size', 'class_id', 'bits')

    def __init__(self, size: int, class_id: int, bits: int = 0) -> None:
        self.size = size
        self.class_id = class_id
        self.bits = bits


class ObjectCache:
    """Objects on ``capacity_bytes``, and which one leaves for which.

    After every call ``used_bytes <= capacity_bytes`` MUST hold, an object
    MUST be there at most once, and nothing dirty or pinned MUST have left
    but by :meth:`remove`.

    :param capacity_bytes: at least 1
    :param cost: (size, class id) to the cost of its miss, above 0
    :ivar evicted: set it to a list to collect evicted keys, newest last; the
        caller empties it
    :ivar last_chance: called with a key before its eviction; True keeps it, as
        if just used. MUST NOT return True for a key twice in a row
    :ivar doorkeeper: keeps out some of what readers miss; None: nothing
    """

    def __init__(self, capacity_bytes: int,
                 cost: Optional[Callable[[int, int], float]] = None) -> None:
        if capacity_bytes < 1:
            raise ValueError('capacity_bytes: %d is not at least 1'
                             % capacity_bytes)
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        self.evicted: Optional[List[int]] = None
        self.last_chance: Optional[Callable[[int], bool]] = None
        self.doorkeeper: Optional[SecondTouch] = None
        self._cost = cost
        self._held: Dict[int, Held] = {}

    def __len__(self) -> int:
        raise NotImplementedError

    def __contains__(self, key: int) -> bool:
        raise NotImplementedError

    def access(self, key: int, size: int, class_id: int = 0,
               sequential: bool = False) -> int:
        """A request for all of an object; a miss brings it in if it may.

        :returns: ``HIT``, ``MISS`` or ``BYPASS``
        """
        raise NotImplementedError

    def write(self, key: int, size: int, class_id: int = 0,
              sequential: bool = False) -> int:
        """An access with bytes of a client, which no doorkeeper keeps out.

        :returns: ``HIT``, ``MISS`` or ``BYPASS``
        """
        doorkeeper, self.doorkeeper = self.doorkeeper, None
        if doorkeeper is not None:
            doorkeeper.hear(key, size, class_id, sequential, True)
        try:
            return self.access(key, size, class_id, sequential)
        finally:
            self.doorkeeper = doorkeeper

    def fill(self, key: int, size: int, class_id: int = 0,
             sequential: bool = False) -> bool:
        """Bring in an object that no reader has asked for yet; idempotent.

        :returns: whether it is there now
        """
        return key in self or self._bring_in(
            key, size, class_id, sequential, False) == MISS

    def bytes_of(self, class_id: int) -> int:
        """Bytes of a class; all bytes for class-blind caches."""
        raise NotImplementedError

    def set_dirty(self, key: int) -> bool:
        """It is the only copy from now on; False if it is not here."""
        return self._hold(key, _DIRTY)

    def set_clean(self, key: int) -> bool:
        """There is another copy now: a candidate again, just used, unless
        it is pinned."""
        return self._release(key, _DIRTY)

    def pin(self, key: int) -> bool:
        """It stays; False if it is not here."""
        return self._hold(key, _PINNED)

    def is_dirty(self, key: int) -> bool:
        """Whether it was set dirty and not clean since."""
        held = self._held.get(key)
        return bool(held and held.bits & _DIRTY)

    def is_pinned(self, key: int) -> bool:
        """Whether it stays."""
        held = self._held.get(key)
        return bool(held and held.bits & _PINNED)

    def held_bytes(self) -> int:
        """Dirty and pinned."""
        return sum(held.size for held in self._held.values())

    def remove(self, key: int) -> bool:
        """Deleted or overwritten, dirty and pinned or not."""
        if self.doorkeeper is not None:
            self.doorkeeper.removed(key)
        held = self._held.pop(key, None)
        if held is not None:
            self._account(held.class_id, -held.size)
            return True
        withdrawn = self._withdraw(key)
        if withdrawn is None:
            return False
        self._account(withdrawn.class_id, -withdrawn.size)
        return True

    # For caches to fill in.

    def _bring_in(self, key: int, size: int, class_id: int,
                  sequential: bool, asked: bool = True) -> int:
        """``MISS`` if the missed object came in, else ``BYPASS``."""
        raise NotImplementedError

    def _withdraw(self, key: int) -> Optional[Held]:
        """Out of its order but not out of the sums; None: not there."""
        raise NotImplementedError

    def _return(self, key: int, held: Held) -> None:
        """Back into its order."""
        raise NotImplementedError

    def _account(self, class_id: int, change: int) -> None:
        self.used_bytes += change

    # Inside

    def _hold(self, key: int, bit: int) -> bool:
        held = self._held.get(key)
        if held is None:
            held = self._withdraw(key)
            if held is None:
                return False
            self._held[key] = held
        held.bits |= bit
        return True

    def _release(self, key: int, bit: int) -> bool:
        held = self._held.get(key)
        if held is None or not held.bits & bit:
            return False
        held.bits &= ~bit
        if not held.bits:
            del self._held[key]
            self._return(key, held)
        return True

    def _kept_out(self, key: int, size: int, asked: bool) -> bool:
        """Whether the doorkeeper keeps out a missed object; what is
        fetched ahead of readers passes."""
        return asked and self.doorkeeper is not None and \
            not self.doorkeeper.admits(
                key, size, self.capacity_bytes - self.used_bytes)

    def _cost_of(self, size: int, class_id: int) -> float:
        return UNIT_COST if self._cost is None else self._cost(
            size, class_id)

    def _leaves(self, key: int) -> bool:
        """Whether a victim goes; notes it if so."""
        if self.last_chance is not None and self.last_chance(key):
            return False
        if self.evicted is not None:
            self.evicted.append(key)
        return True
