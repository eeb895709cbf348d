"""The contract of a strategy that evicts bytes of classes.

A strategy is pure: it sees how many bytes of each class lie on the SSD and
how many of those may leave, never a single object. It answers with accounts
of the class rule (:mod:`~swift_dss.strategy.eviction.rule`), which says whose
bytes leave next. The mechanism takes the objects that are next in the order
of those classes: used longest ago, or as ``rows/orders`` have it. Dirty and
pinned bytes are not *evictable*, so no strategy can choose them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.rule import (
    Account, Entry, Mode, Relief, account, claims, in_order)


@dataclass(frozen=True)
class Occupancy:
    """One class on one device's SSD.

    :param used_bytes: all that it has there
    :param evictable_bytes: clean and not pinned; at most ``used_bytes``
    """

    used_bytes: int
    evictable_bytes: int


@dataclass(frozen=True)
class Take:
    """Evict ``length`` bytes.

    :param class_ids: one order over all of these classes
    """

    class_ids: Tuple[int, ...]
    length: int


#: Class id to its occupancy; a class that is missing has nothing there.
Occupancies = Mapping[int, Occupancy]
_NOTHING = Occupancy(0, 0)


class EvictionStrategy:
    """Decide which class gives room to which. All MUST be pure, and cost
    O(classes).

    :ivar order: the one order over all classes; '': each class has its own
    """

    name = ''
    order = ''
    mode = Mode.STRICT

    def accounts(self, occupancies: Occupancies, table: ClassTable,
                 room_bytes: int) -> List[Account]:
        """Of all classes that have something there, or may have, in order.

        :param room_bytes: the whole of which the class table gives shares
        """
        return in_order(
            account(class_id, table.spec(class_id), room_bytes,
                    occupancy.used_bytes, occupancy.evictable_bytes)
            for class_id, occupancy in (
                (class_id, occupancies.get(class_id, _NOTHING))
                for class_id in {*occupancies, *table.specs}))

    def entry(self, occupancies: Occupancies, table: ClassTable,
              room_bytes: int, free_bytes: int, class_id: int,
              need_bytes: int) -> Entry:
        """Bytes of ``class_id`` that want to come in.

        :param free_bytes: unused bytes
        """
        accounts = self.accounts(occupancies, table, room_bytes)
        own = next((account for account in accounts
                    if class_id in account.class_ids),
                   None)
        if own is None:
            own = account(class_id, table.spec(class_id), room_bytes)
            accounts = in_order([*accounts, own])
        return Entry(accounts, own, need_bytes, free_bytes, self.mode)

    def relief(self, occupancies: Occupancies, table: ClassTable,
               room_bytes: int, need_bytes: Optional[int]) -> Relief:
        """Make room without a newcomer; None: only bytes over caps."""
        return Relief(self.accounts(occupancies, table, room_bytes),
                      need_bytes, self.mode)

    def plan(self, occupancies: Occupancies, table: ClassTable,
             room_bytes: int, need_bytes: int) -> List[Take]:
        """The bytes of each class that would leave so that ``need_bytes``
        become free, if objects could be cut.

        :returns: takes in order; together fewer than ``need_bytes`` where
            no more may leave
        """
        raise NotImplementedError

    def claims(self, occupancies: Occupancies, table: ClassTable,
               room_bytes: int) -> Dict[int, int]:
        """Class id to the bytes that :meth:`entry` gives it from classes of
        any rank, because it is below its floor; leaves out classes with 0
        bytes.
        """
        return {}


def claimed(accounts: List[Account]) -> Dict[int, int]:
    """See :meth:`EvictionStrategy.claims`."""
    return {account.class_ids[0]: length
            for account, length in claims(accounts)}
