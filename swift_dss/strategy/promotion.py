"""Whether bytes that were read from a slower tier come back to the SSD."""

from __future__ import annotations

from swift_dss.core.classes import Allocate, ClassTable
from swift_dss.strategy.eviction.bytes.verbs import (
    EvictionStrategy, Occupancies)
from swift_dss.strategy.eviction.rule import Entry


def admit(strategy: EvictionStrategy, occupancies: Occupancies,
          table: ClassTable, room_bytes: int, used_bytes: int,
          low_bytes: int, high_bytes: int, class_id: int,
          need_bytes: int) -> Entry:
    """Find the classes to evict so that ``need_bytes`` of a class may come in.

    ``allocate = always`` may displace what the strategy lets it,
    ``room`` comes in only below the low watermark, ``never`` never.

    :param low_bytes: the low watermark
    :param high_bytes: the high watermark: nothing fills the SSD above it
    """
    most = low_bytes if table.spec(class_id).allocate is Allocate.ROOM \
        else high_bytes
    return strategy.entry(occupancies, table, room_bytes, most - used_bytes,
                          class_id, need_bytes)
