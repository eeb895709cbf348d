"""One order over all classes: the reference that classes are measured against.
"""

from __future__ import annotations

from typing import List

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.bytes.verbs import (
    EvictionStrategy, Occupancies, Take)
from swift_dss.strategy.eviction.rule import Account, Entry


_NO_CAP = 1 << 63


class ClassBlind(EvictionStrategy):
    """The next object leaves, of any class.

    Knows neither ranks nor floors nor caps; a pinned class stays.

    :param name: of the order
    """

    def __init__(self, name: str = 'lru') -> None:
        self.name = self.order = name

    def accounts(self, occupancies: Occupancies, table: ClassTable,
                 room_bytes: int) -> List[Account]:
        """See :meth:`EvictionStrategy.accounts`: one of all classes."""
        class_ids = tuple(sorted(
            class_id for class_id in {*occupancies, *table.specs}
            if not table.spec(class_id).pin))
        there = [occupancies[class_id] for class_id in class_ids
                 if class_id in occupancies]
        return [Account(class_ids, 0, 0, _NO_CAP, used=sum(
            occupancy.used_bytes for occupancy in there),
                        loose=sum(occupancy.evictable_bytes
                                  for occupancy in there))]

    def entry(self, occupancies: Occupancies, table: ClassTable,
              room_bytes: int, free_bytes: int, class_id: int,
              need_bytes: int) -> Entry:
        """See :meth:`EvictionStrategy.entry`."""
        own, = accounts = self.accounts(occupancies, table, room_bytes)
        own.allocate = table.spec(class_id).allocate
        return Entry(accounts, own, need_bytes, free_bytes, self.mode)

    def plan(self, occupancies: Occupancies, table: ClassTable,
             room_bytes: int, need_bytes: int) -> List[Take]:
        """See :meth:`EvictionStrategy.plan`."""
        account, = self.accounts(occupancies, table, room_bytes)
        length = min(need_bytes, account.loose)
        return [Take(account.class_ids, length)] if length > 0 else []
