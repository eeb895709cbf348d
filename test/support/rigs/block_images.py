"""SSDs in memory with a cache on them, for the tests of the tools."""

from __future__ import annotations

import dataclasses
import functools
from typing import Dict, List, Mapping, Optional, Tuple

from swift_dss.block.ondisk import superblock as superblocks
from swift_dss.block.ondisk.geometry import Geometry
from swift_dss.block.ondisk.superblock import (
    SUPER_CLEAN, Superblock, build_super, table_sum)
from swift_dss.block.ondisk.table_block import Record, TableBlock, build_block
from swift_dss.strategy.eviction.chunks import ChunkRow

GEOMETRY = Geometry(8, 2)
SSD_SECTORS = 9216
ORIGIN_SECTORS = 1 << 20
GENERATION = 0x1122334455667788
ROWS = {0: ChunkRow(), 11: ChunkRow(rank=700, floor_parts=6554)}


class Ssd:
    """A device in memory."""

    def __init__(self, sectors: int = SSD_SECTORS) -> None:
        self.data = bytearray(sectors * 512)
        self.sectors = sectors

    def read(self, sector: int, count: int) -> bytes:
        return bytes(self.data[sector * 512:(sector + count) * 512])

    def write(self, sector: int, data: bytes) -> None:
        self.data[sector * 512:sector * 512 + len(data)] = data

    def flip(self, sector: int, bit: int) -> None:
        self.data[sector * 512 + bit // 8] ^= 1 << bit % 8


def fresh(geometry: Geometry = GEOMETRY) -> Superblock:
    return superblocks.fresh(geometry, SSD_SECTORS, ORIGIN_SECTORS, bytes(
        range(16)), GENERATION, ROWS)


def commit(ssd: Ssd, superblock: Superblock, region: int, seq: int,
           copy: int, records: Mapping[int, Record]) -> None:
    """Write a region as the kernel's commit does."""
    first, count = superblock.region_slots(region)
    rows = [records.get(first + at, Record(None)) for at in range(count)]
    ssd.write(superblock.region_sector(region, copy), build_block(
        TableBlock(GENERATION, seq, region, tuple(rows)),
        superblock.geometry))


def mark(ssd: Ssd, superblock: Superblock, flags: int,
         seqs: Optional[List[int]] = None) -> Superblock:
    """Write the next superblock."""
    after = dataclasses.replace(
        superblock, seq=superblock.seq + 1, flags=flags,
        table_sum=table_sum(
            seqs or [0] * superblock.nr_regions),
        commit_seq=max(seqs or [0]))
    ssd.write(after.sector, build_super(after))
    return after


def used(clean: bool = True) -> Tuple[Ssd, Superblock, Dict[int, Record]]:
    """A copy of its own of :func:`_used`."""
    made, superblock, records = _used(clean)
    ssd = Ssd(0)
    ssd.data, ssd.sectors = bytearray(made.data), made.sectors
    return ssd, superblock, dict(records)


@functools.lru_cache(maxsize=None)
def _used(clean: bool) -> Tuple[Ssd, Superblock, Dict[int, Record]]:
    """A cache with two commits of three regions, stopped or cut off.

    Region 0 was written three times (B, A, B), region 1 twice, region 2
    once; the others never.
    """
    ssd, superblock = Ssd(), fresh()
    ssd.write(superblock.sector, build_super(superblock))
    superblock = mark(ssd, superblock, 0)
    per = superblock.geometry.per_region
    old = {0: Record(40, 1, 11, 0b1111, 0b0010)}
    records = {
        0: Record(7, 3, 11, 0b1111, 0b0101), 1: Record(8, 1, 0, 0b0011),
        per - 1: Record(9, 2, 31, 0b1000, 0b1000),
        per: Record(100, 5, 11, 0b1111), per + 3: Record(101, 4, 2, 1, 1),
        2 * per + 5: Record(2000, 9, 5, 0b1111, 0b1111)}
    commit(ssd, superblock, 0, 5, 1, old)
    commit(ssd, superblock, 0, 6, 0, old)
    commit(ssd, superblock, 1, 5, 1, {per: Record(99, 1, 3, 1)})
    commit(ssd, superblock, 1, 6, 0, records)
    commit(ssd, superblock, 2, 6, 1, records)
    commit(ssd, superblock, 0, 7, 1, records)
    if clean:
        seqs = [7, 6, 6] + [0] * (superblock.nr_regions - 3)
        superblock = mark(ssd, superblock, SUPER_CLEAN, seqs)
    return ssd, superblock, records
