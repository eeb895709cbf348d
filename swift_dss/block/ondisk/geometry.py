"""Sizes and places that everything on the SSD follows from. Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple, Optional

from swift_dss.block.ondisk.blocks import BLOCK_BYTES, BLOCK_SECTORS
from swift_dss.core.errors import BadClassInput

DATA_ALIGN = 2048
SLOTS_MAX = 0x7fffffff
CHUNK_MIN, CHUNK_MAX = 8, 2048
GRAIN_MAX = 8
GRAINS_MAX = 256
HEAD = struct.Struct('<IIQQIHH')
RECORD = struct.Struct('<QIBBH')


@dataclass(frozen=True)
class Geometry:
    """Sizes that everything else follows from.

    :raises BadClassInput: sizes that cannot be
    """

    chunk_sectors: int
    grain_sectors: int

    def __post_init__(self) -> None:
        chunk, grain = self.chunk_sectors, self.grain_sectors
        if not CHUNK_MIN <= chunk <= CHUNK_MAX or chunk & (chunk - 1):
            raise BadClassInput('chunk', '%d sectors are not a power of two '
                                'of %d..%d' % (chunk, CHUNK_MIN, CHUNK_MAX))
        if not 1 <= grain <= min(GRAIN_MAX, chunk) or grain & (grain - 1) \
                or chunk // grain > GRAINS_MAX:
            raise BadClassInput(
                'grain', '%d sectors are not a power of two of 1..%d with at '
                'most %d in a chunk' % (grain, GRAIN_MAX, GRAINS_MAX))

    @property
    def grains(self) -> int:
        """Of a chunk."""
        return self.chunk_sectors // self.grain_sectors

    @property
    def bitmap_bytes(self) -> int:
        """Of one bit a grain."""
        return (self.grains + 7) // 8

    @property
    def record_bytes(self) -> int:
        """Of one slot in the table."""
        return (RECORD.size + 2 * self.bitmap_bytes + 7) // 8 * 8

    @property
    def per_region(self) -> int:
        """Records of a table block."""
        return (BLOCK_BYTES - HEAD.size) // self.record_bytes


class Segment(NamedTuple):
    """A part of the SSD: its table, then its slots."""

    table_sector: int
    data_sector: int
    first_slot: int
    nr_slots: int
    first_region: int
    nr_regions: int

    def end(self, geometry: Geometry) -> int:
        """The first sector behind it."""
        return self.data_sector + self.nr_slots * geometry.chunk_sectors


def plan_segment(geometry: Geometry, begin: int, end: int,
                 before: Optional[Segment] = None) -> Optional[Segment]:
    """Lay a segment out between two sectors, as the kernel does.

    :param before: the segment in front of it
    :returns: None if not one slot fits
    """
    first_slot = before.first_slot + before.nr_slots if before else 0
    first_region = before.first_region + before.nr_regions if before else 0
    most = max(0, end - begin) // geometry.chunk_sectors
    slots = min(most, SLOTS_MAX - first_slot)
    while slots:
        regions = -(-slots // geometry.per_region)
        data = -(-(begin + regions * 2 * BLOCK_SECTORS)
                 // DATA_ALIGN) * DATA_ALIGN
        if data + slots * geometry.chunk_sectors <= end:
            return Segment(begin, data, first_slot, slots, first_region,
                           regions)
        most = slots // 2 if data >= end else \
            (end - data) // geometry.chunk_sectors
        slots = min(slots, most + 1) - 1
    return None
