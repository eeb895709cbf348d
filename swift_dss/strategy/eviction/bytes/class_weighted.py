"""Weighted eviction: whoever has most bytes for its weight gives.

Shares without walls: classes that all want room come to hold it in the
ratio of their weights, and what one does not use the others have. Floors,
caps and pins are those of class order; ranks do not count.
"""

from __future__ import annotations

from typing import Dict, List

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.bytes.class_ordered import ClassOrdered
from swift_dss.strategy.eviction.bytes.verbs import (
    Occupancies, Take, take_in_order, total)

#: Halvings of the interval in which the common level is looked for: as
#: many as bytes on a device have bits.
_HALVINGS = 64


class ClassWeighted(ClassOrdered):
    """Most bytes per weight first, the class's own order inside it.

    - The heaviest classes give until they are as heavy as the next.
    - A newcomer displaces nobody who would then have fewer bytes per weight
      than its own class will have; what is missing its own class gives.
    - Else as :class:`ClassOrdered`: pins, floors, caps, claims of a floor.
    """

    name = 'weighted'

    def _more(self, used: Dict[int, int], takable: Dict[int, int],
              table: ClassTable, need_bytes: int) -> List[Take]:
        """See :meth:`ClassOrdered._more`."""
        return _level(used, takable, table, need_bytes)

    def _exchange(self, occupancies: Occupancies, takable: Dict[int, int],
                  table: ClassTable, need_bytes: int,
                  class_id: int) -> List[Take]:
        """See :meth:`ClassOrdered._exchange`."""
        spec, own = table.spec(class_id), occupancies.get(class_id)
        will_have = (own.used_bytes if own else 0) + need_bytes
        others: Dict[int, int] = {}
        for other, occupancy in occupancies.items():
            weight = table.spec(other).weight
            above = occupancy.used_bytes * spec.weight - will_have * weight
            if other != class_id and above >= 0:
                # One more: of a class that is not lighter the next leaves.
                others[other] = min(takable[other],
                                    above // spec.weight + 1)
        takes = _level({other: occupancies[other].used_bytes
                        for other in others}, others, table, need_bytes)
        if own and not spec.pin:
            takes += take_in_order([class_id],
                                   {class_id: own.evictable_bytes},
                                   need_bytes - total(takes))
        return takes


def _level(used: Dict[int, int], takable: Dict[int, int],
           table: ClassTable, need_bytes: int) -> List[Take]:
    """Takes that leave the classes as level as may be."""
    class_ids = sorted(used, key=lambda one: (
        -used[one] / table.spec(one).weight, one))

    def above(level: float) -> Dict[int, int]:
        return {one: max(0, min(takable.get(one, 0), int(
            used[one] - level * table.spec(one).weight)))
            for one in class_ids}

    low, high = 0.0, max(
        (used[one] / table.spec(one).weight for one in class_ids),
        default=0.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if sum(above(middle).values()) >= need_bytes:
            low = middle
        else:
            high = middle
    # Above ``high`` there is too little by some bytes; the heaviest give
    # these.
    first = above(high)
    missing = need_bytes - sum(first.values())
    rest = above(low)
    for one in class_ids:
        more = max(0, min(missing, rest[one] - first[one]))
        first[one] += more
        missing -= more
    return take_in_order(class_ids, first, need_bytes)
