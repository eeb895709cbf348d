"""A block of dm-dss's table on the SSD: bytes to records and back. Pure.

As :mod:`~swift_dss.block.ondisk.superblock`, a test holds it against
``kmod/dss_format.h``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple, Optional, Tuple

from swift_dss.block.ondisk.blocks import (
    BLOCK_BYTES, DamagedBlock, check_length, crc32c, is_sound, seal)
from swift_dss.block.ondisk.geometry import HEAD, RECORD, Geometry
from swift_dss.block.ondisk.superblock import Superblock
from swift_dss.strategy.eviction.chunks import CLASSES

TABLE_MAGIC = 0x62545344
NO_OBLOCK = (1 << 64) - 1


class Record(NamedTuple):
    """A slot in the table.

    :param oblock: its chunk of the origin; None: the slot is free
    :param valid: bit n: the slot has the bytes of grain n
    :param dirty: bit n: the origin's are older
    """

    oblock: Optional[int]
    recency: int = 0
    class_id: int = 0
    valid: int = 0
    dirty: int = 0


#: One object for all of them: a table may have millions.
FREE = Record(None)
_FREE_BYTES = NO_OBLOCK.to_bytes(8, 'little')


@dataclass(frozen=True)
class TableBlock:
    """A copy of one region's part of the table."""

    generation: int
    seq: int
    region: int
    records: Tuple[Record, ...]


def head_check(block: bytes) -> int:
    """The checksum that proves the head of a damaged block."""
    return crc32c(block[4:HEAD.size]) & 0xffff


def claimed_seq(block: bytes, superblock: Superblock,
                region: int) -> Optional[int]:
    """The version that a damaged table block says it is.

    :returns: None if its head is not that of this region's block either
    """
    _oblock, _recency, _class, _flags, check = RECORD.unpack_from(
        block, HEAD.size)
    return _head_seq(block, superblock, region) \
        if check == head_check(block) else None


def _head_seq(block: bytes, superblock: Superblock,
              region: int) -> Optional[int]:
    _csum, magic, generation, seq, number, count, record_bytes = \
        HEAD.unpack_from(block)
    expected = (TABLE_MAGIC, superblock.generation, region,
                superblock.region_slots(region)[1],
                superblock.geometry.record_bytes)
    if (magic, generation, number, count, record_bytes) != expected:
        return None
    return int(seq)


def parse_block(block: bytes, superblock: Superblock,
                region: int) -> TableBlock:
    """A table block.

    :raises DamagedBlock: names the impossible field
    """
    where = 'table block of region %d' % region
    check_length(block, where)
    if not is_sound(block):
        raise DamagedBlock('%s: checksum' % where)
    seq = _head_seq(block, superblock, region)
    if not seq:
        raise DamagedBlock('%s: is not of this cache, region or size'
                           % where)
    geometry = superblock.geometry
    records = []
    for number in range(superblock.region_slots(region)[1]):
        records.append(_parse_record(
            block, HEAD.size + number * geometry.record_bytes, geometry,
            '%s: record %d' % (where, number)))
    return TableBlock(superblock.generation, seq, region, tuple(records))


def _parse_record(block: bytes, at: int, geometry: Geometry,
                  where: str) -> Record:
    if block.startswith(_FREE_BYTES, at):
        return FREE
    oblock, recency, class_id, _flags, _reserved = \
        RECORD.unpack_from(block, at)
    if class_id >= CLASSES:
        raise DamagedBlock('%s: class %d is not in 0..%d'
                           % (where, class_id, CLASSES - 1))
    at += RECORD.size
    size = geometry.bitmap_bytes
    mask = (1 << geometry.grains) - 1
    valid = int.from_bytes(block[at:at + size], 'little') & mask
    dirty = int.from_bytes(block[at + size:at + 2 * size], 'little')
    return Record(oblock, recency, class_id, valid, dirty & valid)


def build_block(table_block: TableBlock, geometry: Geometry) -> bytes:
    """The block of a region, with its checksum."""
    block = bytearray(BLOCK_BYTES)
    HEAD.pack_into(block, 0, 0, TABLE_MAGIC, table_block.generation,
                   table_block.seq,
                   table_block.region, len(table_block.records),
                   geometry.record_bytes)
    size = geometry.bitmap_bytes
    for number, record in enumerate(table_block.records):
        at = HEAD.size + number * geometry.record_bytes
        if record.oblock is None:
            RECORD.pack_into(block, at, NO_OBLOCK, 0, 0, 0, 0)
            continue
        RECORD.pack_into(block, at, record.oblock, record.recency,
                         record.class_id, 0, 0)
        at += RECORD.size
        block[at:at + size] = record.valid.to_bytes(size, 'little')
        block[at + size:at + 2 * size] = record.dirty.to_bytes(
            size, 'little')
    struct.pack_into('<H', block, HEAD.size + RECORD.size - 2,
                     head_check(bytes(block)))
    return seal(bytes(block))
