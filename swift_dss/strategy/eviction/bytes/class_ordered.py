"""Class-ordered eviction: the lowest rank leaves first.

Selective allocation and selective eviction of Differentiated Storage
Services (Mesnier et al., SOSP 2011, section 3.3), with floors and caps:
strict order alone starves low classes.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Optional

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.bytes.verbs import (
    EvictionStrategy, Occupancies, Take, take_in_order, total)


class ClassOrdered(EvictionStrategy):
    """Lowest rank first, LRU inside a class.

    - A pinned class gives nothing.
    - No class is taken below its floor.
    - A class over its cap gives its surplus before anybody else gives.
    - A newcomer displaces classes of its own rank and below; at its cap it
      first displaces its own class. Its own class may give for it at its
      floor, as it gets as much back.
    - A newcomer displaces classes above its own only where its class stays
      within its floor: else a floor that was once lost, or never had, could
      not be had again.
    """

    name = 'class_ordered'

    def plan(self, occupancies: Occupancies, table: ClassTable,
             room_bytes: int, need_bytes: int) -> List[Take]:
        """See :meth:`EvictionStrategy.plan`."""
        order = _order(occupancies, table)
        takable = _takable(occupancies, table, room_bytes)
        surplus = {
            class_id: min(takable[class_id],
                          self.surplus(occupancies, table, room_bytes,
                                       class_id))
            for class_id in order}
        takes = take_in_order(order, surplus, need_bytes)
        left = {class_id: one.used_bytes
                for class_id, one in occupancies.items()}
        for take in takes:
            takable[take.class_ids[0]] -= take.length
            left[take.class_ids[0]] -= take.length
        return takes + self._more(left, takable, table,
                                  need_bytes - total(takes))

    def make_way(self, occupancies: Occupancies, table: ClassTable,
                 room_bytes: int, need_bytes: int,
                 class_id: int) -> Optional[List[Take]]:
        """See :meth:`EvictionStrategy.make_way`."""
        takable = _takable(occupancies, table, room_bytes)
        own = occupancies.get(class_id)
        used_bytes = own.used_bytes if own else 0
        if used_bytes + need_bytes <= int(
                table.spec(class_id).floor * room_bytes):
            takes = take_in_order(
                [other for other in _order(occupancies, table)
                 if other != class_id], takable, need_bytes)
        else:
            takes = self._exchange(occupancies, takable, table, need_bytes,
                                   class_id)
        return takes if total(takes) == need_bytes else None

    def _more(self, used: Dict[int, int], takable: Dict[int, int],
              table: ClassTable, need_bytes: int) -> List[Take]:
        """Takes beyond what is over caps.

        :param used: bytes by class, without what is over caps
        """
        return take_in_order(_order(used, table), takable, need_bytes)

    def _exchange(self, occupancies: Occupancies, takable: Dict[int, int],
                  table: ClassTable, need_bytes: int,
                  class_id: int) -> List[Take]:
        """Takes for a newcomer whose class is, or comes, above its floor.
        """
        spec, own = table.spec(class_id), occupancies.get(class_id)
        if own and not spec.pin:
            # It gets as much as it gives.
            takable[class_id] = own.evictable_bytes
        return take_in_order(
            [other for other in _order(occupancies, table)
             if table.spec(other).rank <= spec.rank], takable, need_bytes)

    def surplus(self, occupancies: Occupancies, table: ClassTable,
                room_bytes: int, class_id: int) -> int:
        """See :meth:`EvictionStrategy.surplus`."""
        found = occupancies.get(class_id)
        used_bytes = found.used_bytes if found else 0
        return max(0, used_bytes - int(table.spec(class_id).cap
                                       * room_bytes))

    def claims(self, occupancies: Occupancies, table: ClassTable,
               room_bytes: int) -> Dict[int, int]:
        """See :meth:`EvictionStrategy.claims`."""
        takable = _takable(occupancies, table, room_bytes)
        found = {}
        for class_id, spec in table.specs.items():
            own = occupancies.get(class_id)
            others = sum(takable.values()) - takable.get(class_id, 0)
            open_bytes = min(others, int(spec.floor * room_bytes)
                             - (own.used_bytes if own else 0))
            if open_bytes > 0:
                found[class_id] = open_bytes
        return found


def _order(class_ids: Iterable[int], table: ClassTable) -> List[int]:
    return sorted(class_ids,
                  key=lambda class_id: (table.spec(class_id).rank, class_id))


def _takable(occupancies: Occupancies, table: ClassTable,
             room_bytes: int) -> Dict[int, int]:
    takable = {}
    for class_id, occupancy in occupancies.items():
        spec = table.spec(class_id)
        above_floor = occupancy.used_bytes - int(spec.floor * room_bytes)
        takable[class_id] = 0 if spec.pin else max(
            0, min(occupancy.evictable_bytes, above_floor))
    return takable
