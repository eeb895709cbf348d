"""Where new bytes go: SSD or HDD, span by span. Pure.

Selective allocation after the CACS paper and hStorage-DB: a class says
whether it takes the SSD always, while there is room, or never. When the SSD is
over its high watermark, a class that takes it always may do so only if objects
of its own rank or below can be evicted. Otherwise its bytes bypass the SSD, so
that higher classes stay; but up to its floor a class may displace any other.

The daemon looks at intervals, and may be away. Where the file system of the
SSD has no room for what was placed there, all of it goes to the HDD.
"""

from __future__ import annotations

from typing import Dict, List, Optional

from swift_dss.core.classes import Allocate, ClassSpec, ClassTable, WriteMode
from swift_dss.core.pressure import Pressure
from swift_dss.core.residency import Extent, Tier
from swift_dss.core.spans import ClassMap


def place(spec: ClassSpec, pressure: Optional[Pressure],
          size: int, class_id: int) -> Tier:
    """The tiers that ``size`` new bytes of a class are written to.

    :param spec: of the class, which may be that of class 0
    :param pressure: the device as the daemon last saw it; None if unknown, and
        then each class gets its first choice
    :returns: SSD, HDD, or both for a class that writes through
    """
    if pressure is not None and not pressure.hdd_ready:
        return Tier.SSD
    if not _takes_ssd(spec, pressure, size, class_id):
        return Tier.HDD
    if spec.write is WriteMode.THROUGH:
        return Tier.SSD | Tier.HDD
    return Tier.SSD


def _takes_ssd(spec: ClassSpec, pressure: Optional[Pressure],
               size: int, class_id: int) -> bool:
    if spec.allocate is Allocate.NEVER:
        return False
    if pressure is None or spec.pin:
        return True
    after = pressure.ssd_used_bytes + size
    if after <= pressure.high_bytes:
        return True
    if spec.allocate is Allocate.ROOM or after > pressure.ssd_bytes:
        return False
    if size <= pressure.claims.get(class_id, 0):
        return True
    return (pressure.lowest_rank is not None
            and pressure.lowest_rank <= spec.rank)


def plan(class_map: ClassMap, size: Optional[int],
         pressure: Optional[Pressure], table: ClassTable,
         small_bytes: int) -> List[Extent]:
    """Place every span of one new version.

    :param size: of the version; None if it is not known yet
    :param small_bytes: versions up to this size go to the SSD whole: their
        inode takes as much room there as they do
    :returns: sorted, touching extents from byte 0; bytes past the last
        one go where the last one goes. Neighbours differ in tier.
    """
    if size is not None and size <= small_bytes:
        return [Extent(0, size, Tier.SSD)]
    end = class_map.end + 1 if size is None else size
    # Asked once a class and with all of its bytes: two spans of a class
    # must not land on two tiers because the first one took the last room.
    totals: Dict[int, int] = {}
    for span in class_map.split(0, end):
        totals[span.class_id] = totals.get(span.class_id, 0) + span.length
    tiers = {class_id: place(table.spec(class_id), pressure, total,
                             class_id)
             for class_id, total in totals.items()}
    placed: List[Extent] = []
    for span in class_map.split(0, end):
        tier = tiers[span.class_id]
        if placed and placed[-1].tiers == tier:
            last = placed.pop()
            placed.append(Extent(last.offset, last.length + span.length,
                                 tier))
        else:
            placed.append(Extent(span.offset, span.length, tier))
    return placed


def plan_past_ssd(class_map: ClassMap, size: Optional[int],
                  pressure: Optional[Pressure], table: ClassTable
                  ) -> List[Extent]:
    """Place a new version for which the SSD has no room.

    :param size: of the version; None if it is not known yet
    :returns: one extent on the HDD; none if it must be refused: the HDD does
        not take it, or some of its bytes are of a class that is pinned to
        the SSD
    """
    if pressure is not None and not pressure.hdd_ready:
        return []
    end = class_map.end + 1 if size is None else size
    if any(table.spec(span.class_id).pin
           for span in class_map.split(0, end)):
        return []
    return [Extent(0, size or 0, Tier.HDD)]
