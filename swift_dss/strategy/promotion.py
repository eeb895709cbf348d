"""Whether bytes that were read from a slower tier come back to the SSD."""

from __future__ import annotations

from typing import List, Optional

from swift_dss.core.classes import Allocate, ClassTable
from swift_dss.strategy.eviction.bytes.verbs import (
    EvictionStrategy, Occupancies, Occupancy, Take)


def admit(strategy: EvictionStrategy, occupancies: Occupancies,
          table: ClassTable, room_bytes: int, used_bytes: int,
          low_bytes: int, high_bytes: int, class_id: int,
          need_bytes: int) -> Optional[List[Take]]:
    """What must leave so that ``need_bytes`` of a class may come in.

    ``allocate = always`` may displace what the strategy lets it,
    ``room`` comes in only below the low watermark, ``never`` never.

    :param low_bytes: the low watermark
    :param high_bytes: the high watermark: nothing fills the SSD above it
    :returns: the takes, empty if there is room; None: it stays out
    """
    allocate = table.spec(class_id).allocate
    if allocate is Allocate.NEVER or need_bytes > high_bytes:
        return None
    if allocate is Allocate.ROOM:
        return [] if used_bytes + need_bytes <= low_bytes else None
    remaining = dict(occupancies)
    takes: List[Take] = []
    own = remaining.get(class_id, Occupancy(0, 0))
    surplus = strategy.surplus(
        {class_id: Occupancy(own.used_bytes + need_bytes, 0)}, table,
        room_bytes, class_id)
    if surplus > own.evictable_bytes:
        return None
    if surplus:
        takes.append(Take((class_id,), surplus))
        remaining[class_id] = Occupancy(own.used_bytes - surplus,
                                        own.evictable_bytes - surplus)
    over = used_bytes - surplus + need_bytes - high_bytes
    if over <= 0:
        return takes
    more = strategy.make_way(remaining, table, room_bytes, over, class_id)
    return None if more is None else takes + more
