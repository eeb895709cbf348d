"""The class rule: the share of a class, and which class gives room to which.

Ranks, floors, caps, weights, pins and ``allocate`` of the class table, over
quantities alone: bytes on the daemon's SSD, bytes of a replay's objects,
chunks of the kernel's cache. Nothing here knows an object, nor the order of
those of one class. Selective allocation and selective eviction are those of
Differentiated Storage Services (Mesnier et al., SOSP 2011, section 3.3), with
floors and caps: strict order alone starves low classes.

A newcomer first takes what is free. Else:

- A class that would pass its cap first gives its own objects, or the newcomer
  stays out.
- Strict: classes give in the order of their rank, and none that ranks above
  the newcomer's.
- Weighted: the class with most for its weight gives, unless it would then have
  less for its weight than the newcomer's class; ranks do not count.
- A class at or below its floor gives nothing to others; it may always exchange
  its own objects. Because objects are whole, the last one given may take the
  class below its floor by less than that object.
- A newcomer that keeps its class within its floor may take room from any class
  that is above its own floor, lowest rank first, and from its own class last.
  Otherwise a class could never regain a lost floor.
- A class with a pin has nothing loose, so it gives nothing.
- ``allocate = room`` takes only what is free, ``never`` nothing.
- All that is needed is given, or nothing.

Room without a newcomer comes first from classes over their caps, lowest rank
first, and then, as above, from all classes above their floors.

The engine asks for a giver, evicts the next object of that class, reports its
size, and asks again; a surplus counts for the next newcomer.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Callable, Iterable, List, Optional, Sequence, Tuple

from swift_dss.core.classes import Allocate, ClassSpec


class Mode(Enum):
    """Which class gives room to which."""

    STRICT = 'strict'
    WEIGHTED = 'weighted'


class Account:
    """The shares of a class, and its use of them.

    :param class_ids: one class; several that are one to the rule
    :param floor, cap: in the unit of ``used``
    :param used: all that is there; the caller keeps it up to date
    :param loose: the part of ``used`` that may leave: neither dirty nor pinned
    """

    __slots__ = ('class_ids', 'rank', 'floor', 'cap', 'weight', 'allocate',
                 'used', 'loose')

    def __init__(self, class_ids: Tuple[int, ...], rank: int, floor: int,
                 cap: int, weight: float = 1,
                 allocate: Allocate = Allocate.ALWAYS, used: int = 0,
                 loose: int = 0) -> None:
        self.class_ids = class_ids
        self.rank = rank
        self.floor = floor
        self.cap = cap
        self.weight = weight
        self.allocate = allocate
        self.used = used
        self.loose = loose

    def gave(self, amount: int) -> None:
        """So much left."""
        self.used -= amount
        self.loose -= amount

    @property
    def above_floor(self) -> int:
        """The most that it may give to other classes."""
        return max(0, min(self.loose, self.used - self.floor))


def account(class_id: int, spec: ClassSpec, room: int, used: int = 0,
            loose: int = 0) -> Account:
    """Of one class.

    :param room: the whole of which the class table gives shares
    """
    return Account((class_id,), spec.rank, int(spec.floor * room),
                   int(spec.cap * room), spec.weight, spec.allocate, used,
                   0 if spec.pin else loose)


def in_order(accounts: Iterable[Account]) -> List[Account]:
    """Lowest rank first, as all below wants them."""
    return sorted(accounts, key=lambda one: (one.rank, one.class_ids))


def may_give(giver: Account, own: Optional[Account]) -> bool:
    """Whether its next object may leave for one of ``own``."""
    return giver.loose > 0 and (giver is own or giver.used > giver.floor)


def outweighs(giver: Account, own: Account, size: int) -> bool:
    """Not lighter than ``own`` would be with ``size`` more."""
    return giver is own or (own.used + size) * giver.weight <= \
        giver.used * own.weight


def heavier(one: Account, other: Account) -> bool:
    """More for its weight."""
    return one.used * other.weight > other.used * one.weight


def strict_giver(ranked: Iterable[Account], own: Account,
                 may: Callable[[Account], bool],
                 above: bool = False) -> Optional[Account]:
    """The lowest rank that may give, and does not rank above ``own``.

    :param may: whether one may give at all
    :param above: whether those above it give, too
    """
    for one in ranked:
        if one.rank > own.rank and not above:
            return None
        if may(one):
            return one
    return None


def weighted_giver(ranked: Iterable[Account], own: Account, size: int,
                   may: Callable[[Account], bool],
                   above: bool = False) -> Optional[Account]:
    """The heaviest that may give, and outweighs ``own`` with ``size`` more.

    :param above: whether lighter ones give, too
    """
    best: Optional[Account] = None
    for one in ranked:
        if (above or outweighs(one, own, size)) and may(one) \
                and (best is None or heavier(one, best)):
            best = one
    return best


def claims(accounts: Sequence[Account]) -> List[Tuple[Account, int]]:
    """Accounts below their floor, with the room that each may take from
    classes of any rank.
    """
    takable = sum(one.above_floor for one in accounts)
    found = [(one, min(takable - one.above_floor, one.floor - one.used))
             for one in accounts]
    return [(one, length) for one, length in found if length > 0]


class Entry:
    """A newcomer on its way in.

    :param ranked: all accounts, :func:`in_order`
    :param own: that of the newcomer's class, one of them
    :param size: of the newcomer
    :param free: unused room; below 0: more is used than allowed
    :ivar is_refused: the newcomer stays out, and nothing leaves for it
    """

    __slots__ = ('_ranked', '_own', '_size', '_strict', '_claims',
                 '_over_cap', '_over', 'is_refused')

    def __init__(self, ranked: Sequence[Account], own: Account, size: int,
                 free: int, mode: Mode) -> None:
        self._ranked = ranked
        self._own = own
        self._size = size
        self._claims = own.used + size <= own.floor
        self._strict = self._claims or mode is Mode.STRICT
        self._over_cap = own.used + size - own.cap
        self._over = size - free
        self.is_refused = own.allocate is Allocate.NEVER or (
            (self._over_cap > 0 or self._over > 0)
            and (own.allocate is Allocate.ROOM
                 or self._over_cap > own.loose or not self._is_enough()))

    def next(self) -> Optional[Account]:
        """The class whose next object leaves; None if there is room.

        MUST NOT be called on a refused newcomer.
        """
        own = self._own
        if self._over_cap > 0 and own.loose > 0:
            return own
        if self._over <= 0:
            return None
        if not self._strict:
            return weighted_giver(self._ranked, own, self._size, self._may)
        if not self._claims:
            return strict_giver(self._ranked, own, self._may)
        # Who is below its floor grows rather than exchange its own.
        return strict_giver(
            self._ranked, own, lambda one: one is not own
            and self._may(one), above=True) or (own if own.loose else None)

    def _may(self, one: Account) -> bool:
        return may_give(one, self._own)

    def most(self, giver: Account) -> int:
        """So much may leave of ``giver`` before :meth:`next` says another:
        for callers that evict several at once."""
        if giver is self._own:
            return self._over_cap if self._over_cap > 0 else self._over
        most = min(self._over, giver.used - giver.floor)
        if self._strict:
            return most
        least = (self._own.used + self._size) * giver.weight
        return max(1, min(most, _until_lighter(
            giver, [one for one in self._ranked if one is not self._own
                    and may_give(one, self._own)]),
            math.floor(giver.used - least / self._own.weight) + 1))

    def left(self, giver: Account, amount: int) -> None:
        """So much of ``giver`` is gone; its account says so already."""
        if giver is self._own:
            self._over_cap -= amount
        self._over -= amount

    def _is_enough(self) -> bool:
        """Together they give what is needed, at least."""
        own, could = self._own, 0
        if self._over <= 0:
            return True
        for one in self._ranked:
            if self._strict and not self._claims and one.rank > own.rank:
                break
            could += self._givable(one)
        return could >= self._over

    def _givable(self, one: Account) -> int:
        if one is self._own:
            return one.loose
        if self._strict:
            return one.above_floor
        if not outweighs(one, self._own, self._size):
            return 0
        least = (self._own.used + self._size) * one.weight / self._own.weight
        return min(one.above_floor, int(one.used - least) + 1)


class Relief:
    """Room without a newcomer.

    :param ranked: all accounts, :func:`in_order`
    :param need: in the unit of accounts; None: only the excess over caps
    """

    __slots__ = ('_ranked', '_need', '_mode')

    def __init__(self, ranked: Sequence[Account], need: Optional[int],
                 mode: Mode) -> None:
        self._ranked = ranked
        self._need = need
        self._mode = mode

    def next(self) -> Optional[Account]:
        """The class whose next object leaves; None if no class gives, or there
        is room.
        """
        if self._need is not None and self._need <= 0:
            return None
        givers = self._givers()
        for one in givers:
            if one.used > one.cap:
                return one
        if self._need is None or not givers:
            return None
        best = givers[0]
        if self._mode is Mode.WEIGHTED:
            for one in givers:
                if heavier(one, best):
                    best = one
        return best

    def most(self, giver: Account) -> int:
        """As :meth:`Entry.most`."""
        over_cap = giver.used - giver.cap
        need = over_cap if self._need is None else self._need
        if over_cap > 0:
            return min(need, over_cap)
        most = min(need, giver.used - giver.floor)
        if self._mode is Mode.STRICT:
            return most
        return max(1, min(most, _until_lighter(giver, self._givers())))

    def left(self, giver: Account, amount: int) -> None:
        """As :meth:`Entry.left`."""
        if self._need is not None:
            self._need -= amount

    def _givers(self) -> List[Account]:
        return [one for one in self._ranked if may_give(one, None)]


def _until_lighter(giver: Account, others: Sequence[Account]) -> int:
    """How much the heaviest class gives before another one is heavier."""
    most = giver.used
    before = True
    for one in others:
        if one is giver:
            before = False
            continue
        level = one.used * giver.weight / one.weight
        # Of two that are alike the first gives.
        most = min(most, math.ceil(giver.used - level) if before
                   else math.floor(giver.used - level) + 1)
    return most
