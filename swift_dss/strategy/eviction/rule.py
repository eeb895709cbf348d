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
    return sorted(accounts,
                  key=lambda account: (account.rank, account.class_ids))


def may_give(giver: Account, own: Optional[Account]) -> bool:
    """Whether its next object may leave for one of ``own``."""
    return giver.loose > 0 and (giver is own or giver.used > giver.floor)


def outweighs(giver: Account, own: Account, size: int) -> bool:
    """Not lighter than ``own`` would be with ``size`` more."""
    return giver is own or (own.used + size) * giver.weight <= \
        giver.used * own.weight


def heavier(account: Account, other: Account) -> bool:
    """More for its weight."""
    return account.used * other.weight > other.used * account.weight


def strict_giver(ranked: Iterable[Account], own: Account,
                 may: Callable[[Account], bool],
                 above: bool = False) -> Optional[Account]:
    """The lowest rank that may give, and does not rank above ``own``.

    :param may: whether one may give at all
    :param above: whether those above it give, too
    """
    for account in ranked:
        if account.rank > own.rank and not above:
            return None
        if may(account):
            return account
    return None


def sole_giver(ranked: Iterable[Account], own: Account, size: int,
               over: int) -> Optional[Account]:
    """The class from which alone a strict newcomer has all of its room.

    The answer of :class:`Entry` in one call, for callers that ask millions
    of times a minute: evict objects of this class until ``over`` are gone.

    :param over: that must leave, at least 1
    :returns: None: several classes give, or none, or ``own`` is over its cap;
        ask :class:`Entry`
    """
    used = own.used + size
    if used > own.cap or own.allocate is not Allocate.ALWAYS:
        return None
    claims_floor = used <= own.floor
    for giver in ranked:
        if giver is own:
            if claims_floor:
                continue
            spare = giver.loose
        elif giver.rank > own.rank and not claims_floor:
            return None
        else:
            spare = giver.used - giver.floor
            if spare > giver.loose:
                spare = giver.loose
        if spare > 0:
            return giver if spare >= over else None
    return None


def weighted_giver(ranked: Iterable[Account], own: Account, size: int,
                   may: Callable[[Account], bool],
                   above: bool = False) -> Optional[Account]:
    """The heaviest that may give, and outweighs ``own`` with ``size`` more.

    :param above: whether lighter ones give, too
    """
    best: Optional[Account] = None
    wanted, weight = own.used + size, own.weight
    for account in ranked:
        # outweighs() and heavier(), without a call a class: a replay comes
        # here at every miss.
        if (above or account is own
                or wanted * account.weight <= account.used * weight) \
                and may(account) \
                and (best is None or account.used * best.weight
                     > best.used * account.weight):
            best = account
    return best


def claims(accounts: Sequence[Account]) -> List[Tuple[Account, int]]:
    """Accounts below their floor, with the room that each may take from
    classes of any rank.
    """
    takable = sum(account.above_floor for account in accounts)
    short = [(account, min(takable - account.above_floor,
                           account.floor - account.used))
             for account in accounts]
    return [(account, length) for account, length in short if length > 0]


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
        # A class below its floor grows rather than exchange its own bytes.
        return strict_giver(
            self._ranked, own, lambda account: account is not own
            and self._may(account), above=True) or (own if own.loose else None)

    def _may(self, account: Account) -> bool:
        return may_give(account, self._own)

    @property
    def is_short(self) -> bool:
        """Fewer left than it takes: the newcomer would be above the room, or
        its class above its cap."""
        return self._over > 0 or self._over_cap > 0

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
            giver, [account for account in self._ranked
                    if account is not self._own
                    and may_give(account, self._own)]),
            math.floor(giver.used - least / self._own.weight) + 1))

    def left(self, giver: Account, amount: int) -> None:
        """So much of ``giver`` is gone; its account says so already."""
        if giver is self._own:
            self._over_cap -= amount
        self._over -= amount

    def _is_enough(self) -> bool:
        """Together they give what is needed, at least."""
        own, could = self._own, 0
        if self._over <= own.loose:
            return True
        for account in self._ranked:
            if self._strict and not self._claims and account.rank > own.rank:
                break
            could += self._givable(account)
            if could >= self._over:
                return True
        return False

    def _givable(self, account: Account) -> int:
        if account is self._own:
            return account.loose
        if self._strict:
            return account.above_floor
        if not outweighs(account, self._own, self._size):
            return 0
        least = ((self._own.used + self._size) * account.weight
                 / self._own.weight)
        return min(account.above_floor, int(account.used - least) + 1)


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
        for account in givers:
            if account.used > account.cap:
                return account
        if self._need is None or not givers:
            return None
        best = givers[0]
        if self._mode is Mode.WEIGHTED:
            for account in givers:
                if heavier(account, best):
                    best = account
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
        return [account for account in self._ranked if may_give(account, None)]


def _until_lighter(giver: Account, others: Sequence[Account]) -> int:
    """How much the heaviest class gives before another one is heavier."""
    most = giver.used
    before = True
    for account in others:
        if account is giver:
            before = False
            continue
        level = account.used * giver.weight / account.weight
        # Of two that are alike the first gives.
        most = min(most, math.ceil(giver.used - level) if before
                   else math.floor(giver.used - level) + 1)
    return most
