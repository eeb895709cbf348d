"""dm-dss's format on the SSD: bytes to typed objects and back. Pure.

The Python side of ``kmod/dss_format.h``, field by field; a test holds the
constants and structures of both against one another. Lengths, bounds and the
checksum are checked before a field is used; a wrong one raises
:class:`DamagedBlock`.
"""

# long: three structures, each with its parse, its build and its checks.

from __future__ import annotations

import dataclasses
import struct
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from swift_dss.block.format_crc import (
    BLOCK_BYTES, crc32c, is_sound, seal)
from swift_dss.core.classes import Allocate
from swift_dss.core.errors import BadClassInput, DamagedRecord
from swift_dss.strategy.eviction.chunks.verbs import (
    ALLOCATE, CLASSES, PARTS, ChunkRow, Flag, Inner)

BLOCK_SECTORS = 8
SUPER_SECTORS = 16
DATA_ALIGN = 2048
SEGMENTS = 16
SUPER_MAGIC = 0x316b6c6273736444
TABLE_MAGIC = 0x62545344
VERSION = 2
VERSION_MIN = 1
SUPER_CLEAN = 1
SUPER_FAILED = 2
SUPER_ORIGIN_SUM = 4
#: Blocks of the origin that its sum is made of: the first ones, then so many
#: spread over all of it.
SAMPLE_FIRST = 16
SAMPLE_SPREAD = 16
NO_OBLOCK = (1 << 64) - 1
SLOTS_MAX = 0x7fffffff

CHUNK_MIN, CHUNK_MAX = 8, 2048
GRAIN_MAX = 8
GRAINS_MAX = 256

SEGMENT = struct.Struct('<QQIIII')
CLASS = struct.Struct('<IIIIIBBBB')
SUPER = struct.Struct('<IIQ16sQQQIIIIIIQ')
SUPER_TAIL = struct.Struct('<BBB5s')
SUPER_LAST = struct.Struct('<Q16sI')
#: By class, :data:`PARTS` less its dirty cap: zeroes are no cap.
NO_DIRTY = struct.Struct('<32I')
NO_ORIGIN_ID = bytes(16)
HEAD = struct.Struct('<IIQQIHH')
RECORD = struct.Struct('<QIBBH')

_ALLOCATE = {number: name for name, number in ALLOCATE.items()}
_WRITE_MODES = 3


class DamagedBlock(DamagedRecord):
    """A block on the SSD is damaged."""


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


@dataclass(frozen=True)
class Superblock:
    """The fields of a copy of the superblock.

    :param classes: rows of the class table; a row that the kernel would
        not take is not in it
    :param bad_rows: ids of those
    :param twin_seq: up to this version both copies of a region agree
    :param origin_id: the constructor's id of the origin; zeroes: nothing
    :param origin_sum: of the origin's sample at a clean stop, if the flags
        say so
    """

    uuid: bytes
    generation: int
    seq: int
    chunk_sectors: int
    grain_sectors: int
    origin_sectors: int
    segments: Tuple[Segment, ...]
    commit_seq: int = 0
    flags: int = 0
    table_sum: int = 0
    meta_class: int = 1
    strategy: int = 0
    mode: int = 0
    classes: Mapping[int, ChunkRow] = field(default_factory=dict)
    bad_rows: Tuple[int, ...] = ()
    twin_seq: int = 0
    origin_id: bytes = NO_ORIGIN_ID
    origin_sum: int = 0

    @property
    def geometry(self) -> Geometry:
        """Its sizes."""
        return Geometry(self.chunk_sectors, self.grain_sectors)

    @property
    def is_clean(self) -> bool:
        """Was the last stop a clean one?"""
        return bool(self.flags & SUPER_CLEAN)

    @property
    def has_failed(self) -> bool:
        """Did the kernel give this SSD up?"""
        return bool(self.flags & SUPER_FAILED)

    @property
    def knows_origin(self) -> bool:
        """Does the origin lie still, and is its sum known?"""
        return self.is_clean and bool(self.flags & SUPER_ORIGIN_SUM)

    @property
    def nr_slots(self) -> int:
        """Of all segments."""
        return sum(segment.nr_slots for segment in self.segments)

    @property
    def nr_regions(self) -> int:
        """Of all segments."""
        return sum(segment.nr_regions for segment in self.segments)

    @property
    def sector(self) -> int:
        """Where this copy lies."""
        return BLOCK_SECTORS if self.seq & 1 else 0

    @property
    def end(self) -> int:
        """The first sector behind all that it describes."""
        return self.segments[-1].end(self.geometry)

    def region_slots(self, region: int) -> Tuple[int, int]:
        """The first slot of a region, and how many it has."""
        segment = self._segment(region)
        offset = (region - segment.first_region) * self.geometry.per_region
        return segment.first_slot + offset, min(
            self.geometry.per_region, segment.nr_slots - offset)

    def region_sector(self, region: int, copy: int) -> int:
        """Where copy 0 (A) or 1 (B) of a region's block lies."""
        segment = self._segment(region)
        return segment.table_sector + BLOCK_SECTORS * (
            (region - segment.first_region) * 2 + copy)

    def slot_sector(self, slot: int) -> int:
        """Where the bytes of a slot lie."""
        for segment in self.segments:
            if slot < segment.first_slot + segment.nr_slots:
                return segment.data_sector + (
                    slot - segment.first_slot) * self.chunk_sectors
        raise IndexError('slot %d of %d' % (slot, self.nr_slots))

    def _segment(self, region: int) -> Segment:
        for segment in self.segments:
            if region < segment.first_region + segment.nr_regions:
                return segment
        raise IndexError('region %d of %d' % (region, self.nr_regions))


def parse_super(block: bytes) -> Superblock:
    """Decode a copy of the superblock.

    :param block: 4 KiB
    :raises DamagedBlock: names the impossible field
    """
    _check_length(block, 'superblock')
    if not is_sound(block):
        raise DamagedBlock('superblock: checksum')
    (_csum, version, magic, uuid, generation, seq, commit_seq, flags,
     table_sum, chunk, grain, record_bytes, nr_segments,
     origin_sectors) = SUPER.unpack_from(block)
    if magic != SUPER_MAGIC:
        raise DamagedBlock('superblock: magic number')
    if not VERSION_MIN <= version <= VERSION:
        raise DamagedBlock('superblock: version %d, this reads %d to %d'
                           % (version, VERSION_MIN, VERSION))
    try:
        geometry = Geometry(chunk, grain)
    except BadClassInput as err:
        raise DamagedBlock('superblock: %s' % err) from err
    if record_bytes != geometry.record_bytes:
        raise DamagedBlock('superblock: records of %d bytes, not %d'
                           % (record_bytes, geometry.record_bytes))
    if not seq:
        raise DamagedBlock('superblock: no sequence number')
    segments = _parse_segments(block, nr_segments, geometry)
    at = SUPER.size + SEGMENTS * SEGMENT.size
    meta_class, strategy, mode, _rest = SUPER_TAIL.unpack_from(block, at)
    classes, bad_rows = _parse_classes(block, at + SUPER_TAIL.size)
    # Version 1 has zeroes here.
    twin_seq, origin_id, origin_sum = SUPER_LAST.unpack_from(
        block, at + SUPER_TAIL.size + CLASSES * CLASS.size)
    return Superblock(
        uuid, generation, seq, chunk, grain, origin_sectors, segments,
        commit_seq, flags, table_sum, meta_class, strategy, mode, classes,
        bad_rows, twin_seq, origin_id, origin_sum)


def _parse_segments(block: bytes, count: int,
                    geometry: Geometry) -> Tuple[Segment, ...]:
    if not 1 <= count <= SEGMENTS:
        raise DamagedBlock('superblock: %d segments, of 1..%d'
                           % (count, SEGMENTS))
    found: List[Segment] = []
    begin, slots, regions = SUPER_SECTORS, 0, 0
    for number in range(count):
        one = Segment(*SEGMENT.unpack_from(
            block, SUPER.size + number * SEGMENT.size))
        if one.table_sector < begin or not one.nr_slots or \
                one.nr_slots > SLOTS_MAX - slots or \
                one.first_slot != slots or one.first_region != regions or \
                one.nr_regions != -(-one.nr_slots // geometry.per_region) or \
                one.data_sector < one.table_sector + \
                one.nr_regions * 2 * BLOCK_SECTORS:
            raise DamagedBlock('superblock: segment %d does not fit to what '
                               'is before it' % number)
        begin = one.end(geometry)
        slots += one.nr_slots
        regions += one.nr_regions
        found.append(one)
    return tuple(found)


def _parse_classes(block: bytes, at: int
                   ) -> Tuple[Dict[int, ChunkRow], Tuple[int, ...]]:
    rows: Dict[int, ChunkRow] = {}
    bad: List[int] = []
    no_dirty = NO_DIRTY.unpack_from(
        block, at + CLASSES * CLASS.size + SUPER_LAST.size)
    for class_id in range(CLASSES):
        (rank, floor, cap, weight, cutoff, allocate, write, flags,
         present) = CLASS.unpack_from(block, at + class_id * CLASS.size)
        if not present:
            continue
        if allocate not in _ALLOCATE or write >= _WRITE_MODES or \
                flags & ~_all_flags() or present >> 1 >= len(Inner):
            bad.append(class_id)
            continue
        row = ChunkRow(rank, floor, cap, weight, cutoff,
                       _ALLOCATE[allocate], write, Flag(flags),
                       PARTS - no_dirty[class_id], Inner(present >> 1))
        if row.fault():
            bad.append(class_id)
        else:
            rows[class_id] = row
    return rows, tuple(bad)


def _all_flags() -> int:
    return sum(int(flag) for flag in Flag)


def build_super(found: Superblock) -> bytes:
    """The block of a superblock, with its checksum."""
    block = bytearray(BLOCK_BYTES)
    SUPER.pack_into(
        block, 0, 0, VERSION, SUPER_MAGIC, found.uuid, found.generation,
        found.seq, found.commit_seq, found.flags, found.table_sum,
        found.chunk_sectors, found.grain_sectors,
        found.geometry.record_bytes, len(found.segments),
        found.origin_sectors)
    at = SUPER.size
    for number, segment in enumerate(found.segments):
        SEGMENT.pack_into(block, at + number * SEGMENT.size, *segment)
    at += SEGMENTS * SEGMENT.size
    SUPER_TAIL.pack_into(block, at, found.meta_class, found.strategy,
                         found.mode, b'')
    at += SUPER_TAIL.size
    for class_id, row in found.classes.items():
        CLASS.pack_into(
            block, at + class_id * CLASS.size, row.rank, row.floor_parts,
            row.cap_parts, row.weight, row.cutoff_sectors,
            ALLOCATE[Allocate(row.allocate)], row.write_mode,
            int(row.flags), 1 | row.inner << 1)
    at += CLASSES * CLASS.size
    SUPER_LAST.pack_into(block, at, found.twin_seq, found.origin_id,
                         found.origin_sum)
    NO_DIRTY.pack_into(block, at + SUPER_LAST.size, *(
        PARTS - found.classes[one].dirty_cap_parts
        if one in found.classes else 0 for one in range(CLASSES)))
    return seal(bytes(block))


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
    _check_length(block, where)
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


def build_block(found: TableBlock, geometry: Geometry) -> bytes:
    """The block of a region, with its checksum."""
    block = bytearray(BLOCK_BYTES)
    HEAD.pack_into(block, 0, 0, TABLE_MAGIC, found.generation, found.seq,
                   found.region, len(found.records), geometry.record_bytes)
    size = geometry.bitmap_bytes
    for number, record in enumerate(found.records):
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


def table_sum(seqs: List[int]) -> int:
    """The sum over the versions of all regions at a clean stop."""
    return crc32c(struct.pack('<%dQ' % len(seqs), *seqs))


def sample_sectors(origin_sectors: int) -> List[int]:
    """Where the blocks of the origin's sum begin, in their order."""
    places = [number * BLOCK_SECTORS for number in range(SAMPLE_FIRST)] + [
        origin_sectors // (SAMPLE_SPREAD + 1) * (number + 1)
        // BLOCK_SECTORS * BLOCK_SECTORS for number in range(SAMPLE_SPREAD)]
    return [place for place in places
            if place + BLOCK_SECTORS <= origin_sectors]


def origin_sum(blocks: List[bytes]) -> int:
    """The sum of a sample."""
    return crc32c(b''.join(blocks))


def fresh(geometry: Geometry, ssd_sectors: int, origin_sectors: int,
          uuid: bytes, generation: int,
          classes: Optional[Mapping[int, ChunkRow]] = None,
          origin_id: bytes = NO_ORIGIN_ID) -> Superblock:
    """The superblock of an empty cache; its table must be zeroes.

    :raises BadClassInput: the SSD is too small
    """
    segment = plan_segment(geometry, SUPER_SECTORS, ssd_sectors)
    if segment is None:
        raise BadClassInput('SSD', '%d sectors have no room for a chunk of '
                            '%d' % (ssd_sectors, geometry.chunk_sectors))
    made = Superblock(uuid, generation, 1, geometry.chunk_sectors,
                      geometry.grain_sectors, origin_sectors, (segment,),
                      flags=SUPER_CLEAN, classes=classes or {},
                      origin_id=origin_id)
    return dataclasses.replace(
        made, table_sum=table_sum([0] * segment.nr_regions))


def _check_length(block: bytes, where: str) -> None:
    if len(block) != BLOCK_BYTES:
        raise DamagedBlock('%s: %d bytes, not %d'
                           % (where, len(block), BLOCK_BYTES))
