"""One order over all classes: what classes are measured against."""

from __future__ import annotations

from typing import List, Optional

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.bytes.verbs import (
    EvictionStrategy, Occupancies, Take, total)


class ClassBlind(EvictionStrategy):
    """Whoever is next leaves, whatever its class.

    Knows neither ranks nor floors nor caps; a pinned class stays.

    :param name: of the order
    """

    def __init__(self, name: str = 'lru') -> None:
        self.name = self.order = name

    def plan(self, occupancies: Occupancies, table: ClassTable,
             room_bytes: int, need_bytes: int) -> List[Take]:
        """See :meth:`EvictionStrategy.plan`."""
        class_ids = tuple(sorted(
            class_id for class_id in occupancies
            if not table.spec(class_id).pin))
        length = min(need_bytes, sum(
            occupancies[class_id].evictable_bytes for class_id in class_ids))
        return [Take(class_ids, length)] if length > 0 else []

    def make_way(self, occupancies: Occupancies, table: ClassTable,
                 room_bytes: int, need_bytes: int,
                 class_id: int) -> Optional[List[Take]]:
        """See :meth:`EvictionStrategy.make_way`."""
        takes = self.plan(occupancies, table, room_bytes, need_bytes)
        return takes if total(takes) == need_bytes else None
