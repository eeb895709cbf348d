"""What an eviction strategy is asked, and how it answers.

A strategy is pure: it sees how many bytes of each class lie on the SSD and
how many of those may leave, never a single object, and answers with
classes and byte counts. The mechanism takes the bytes that are next in the
order of those classes: used longest ago, or as ``rows/orders`` have it.
Dirty and pinned bytes are not *evictable*, so no strategy can choose them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

from swift_dss.core.classes import ClassTable


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


class EvictionStrategy:
    """The verbs. All MUST be pure, and cost O(classes)."""

    name = ''
    #: The one order over all classes; '': each class has its own.
    order = ''

    def plan(self, occupancies: Occupancies, table: ClassTable,
             room_bytes: int, need_bytes: int) -> List[Take]:
        """What leaves so that ``need_bytes`` become free.

        :param room_bytes: what shares of the class table refer to
        :returns: takes in order; together fewer than ``need_bytes`` where
            no more may leave
        """
        raise NotImplementedError

    def make_way(self, occupancies: Occupancies, table: ClassTable,
                 room_bytes: int, need_bytes: int,
                 class_id: int) -> Optional[List[Take]]:
        """What leaves so that bytes of ``class_id`` may come in.

        :returns: takes of exactly ``need_bytes`` together, or None: the
            newcomer stays out and nothing leaves for it
        """
        raise NotImplementedError

    def surplus(self, occupancies: Occupancies, table: ClassTable,
                room_bytes: int, class_id: int) -> int:
        """Bytes that a class has above what it may take at most."""
        return 0

    def claims(self, occupancies: Occupancies, table: ClassTable,
               room_bytes: int) -> Dict[int, int]:
        """Class id to bytes that :meth:`make_way` gives it whoever ranks
        above it; without classes that it gives none."""
        return {}


def take_in_order(order: List[int], takable: Dict[int, int],
                  need_bytes: int) -> List[Take]:
    """Takes from classes in ``order``, as much of each as may go."""
    takes = []
    for class_id in order:
        length = min(need_bytes, takable.get(class_id, 0))
        if length > 0:
            takes.append(Take((class_id,), length))
            need_bytes -= length
    return takes


def total(takes: List[Take]) -> int:
    """Bytes of all takes."""
    return sum(take.length for take in takes)
