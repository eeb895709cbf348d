"""Class-ordered eviction of bytes: the lowest rank leaves first.

:mod:`~swift_dss.strategy.eviction.rule` is the rule.
"""

from __future__ import annotations

from typing import Dict, List, Sequence

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.bytes.verbs import (
    EvictionStrategy, Occupancies, Take, claimed)
from swift_dss.strategy.eviction.rule import Account


class ClassOrdered(EvictionStrategy):
    """Lowest rank first, the class's own order inside it."""

    name = 'class_ordered'

    def plan(self, occupancies: Occupancies, table: ClassTable,
             room_bytes: int, need_bytes: int) -> List[Take]:
        """See :meth:`EvictionStrategy.plan`."""
        accounts = self.accounts(occupancies, table, room_bytes)
        takes: List[Take] = []
        for account in accounts:
            length = min(need_bytes, account.above_floor,
                         account.used - account.cap)
            if length > 0:
                account.gave(length)
                need_bytes -= length
                takes.append(Take(account.class_ids, length))
        return takes + self._more(accounts, need_bytes)

    def _more(self, accounts: Sequence[Account],
              need_bytes: int) -> List[Take]:
        """Takes beyond the excess over caps."""
        takes = []
        for account in accounts:
            length = min(need_bytes, account.above_floor)
            if length > 0:
                need_bytes -= length
                takes.append(Take(account.class_ids, length))
        return takes

    def claims(self, occupancies: Occupancies, table: ClassTable,
               room_bytes: int) -> Dict[int, int]:
        """See :meth:`EvictionStrategy.claims`."""
        return claimed(self.accounts(occupancies, table, room_bytes))
