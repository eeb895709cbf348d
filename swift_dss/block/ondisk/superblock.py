"""dm-dss's superblock on the SSD: bytes to a typed object and back. Pure.

The Python side of ``kmod/dss_format.h``, field by field; a test holds the
constants and structures of both against one another. Lengths, bounds and the
checksum are checked before a field is used; a wrong one raises
:class:`DamagedBlock`.
"""

from __future__ import annotations

import dataclasses
import struct
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple

from swift_dss.block.ondisk.blocks import (
    BLOCK_BYTES, BLOCK_SECTORS, DamagedBlock, check_length, crc32c, is_sound,
    seal)
from swift_dss.block.ondisk.geometry import (
    SLOTS_MAX, Geometry, Segment, plan_segment)
from swift_dss.core.classes import Allocate
from swift_dss.core.errors import BadClassInput
from swift_dss.strategy.eviction.chunks import (
    ALLOCATE, CLASSES, PARTS, ChunkRow, Flag, Inner)

SUPER_SECTORS = 16
SEGMENTS = 16
SUPER_MAGIC = 0x316b6c6273736444
VERSION = 2
VERSION_MIN = 1
SUPER_CLEAN = 1
SUPER_FAILED = 2
SUPER_ORIGIN_SUM = 4
#: Blocks of the origin that its sum is made of: the first ones, then so many
#: spread over all of it.
SAMPLE_FIRST = 16
SAMPLE_SPREAD = 16
SEGMENT = struct.Struct('<QQIIII')
CLASS = struct.Struct('<IIIIIBBBB')
SUPER = struct.Struct('<IIQ16sQQQIIIIIIQ')
SUPER_TAIL = struct.Struct('<BBB5s')
SUPER_LAST = struct.Struct('<Q16sI')
#: By class, :data:`PARTS` less its dirty cap: zeroes are no cap.
NO_DIRTY = struct.Struct('<32I')
NO_ORIGIN_ID = bytes(16)
_ALLOCATE = {number: name for name, number in ALLOCATE.items()}
_WRITE_MODES = 3


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


def super_version(block: bytes) -> Optional[Tuple[int, bytes]]:
    """Version and UUID of a copy, of a version that this cannot read, too.

    :returns: None if it is no superblock, or damaged
    """
    if len(block) != BLOCK_BYTES:
        return None
    _csum, version, magic, uuid = SUPER.unpack_from(block)[:4]
    if magic != SUPER_MAGIC or not is_sound(block):
        return None
    return version, uuid


def parse_super(block: bytes) -> Superblock:
    """Decode a copy of the superblock.

    :param block: 4 KiB
    :raises DamagedBlock: names the impossible field
    """
    check_length(block, 'superblock')
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
    segments: List[Segment] = []
    begin, slots, regions = SUPER_SECTORS, 0, 0
    for number in range(count):
        segment = Segment(*SEGMENT.unpack_from(
            block, SUPER.size + number * SEGMENT.size))
        if segment.table_sector < begin or not segment.nr_slots or \
                segment.nr_slots > SLOTS_MAX - slots or \
                segment.first_slot != slots or \
                segment.first_region != regions or segment.nr_regions != \
                -(-segment.nr_slots // geometry.per_region) or \
                segment.data_sector < segment.table_sector + \
                segment.nr_regions * 2 * BLOCK_SECTORS:
            raise DamagedBlock('superblock: segment %d does not follow the '
                               'one before it' % number)
        begin = segment.end(geometry)
        slots += segment.nr_slots
        regions += segment.nr_regions
        segments.append(segment)
    return tuple(segments)


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


def build_super(superblock: Superblock) -> bytes:
    """The block of a superblock, with its checksum."""
    block = bytearray(BLOCK_BYTES)
    SUPER.pack_into(
        block, 0, 0, VERSION, SUPER_MAGIC, superblock.uuid,
        superblock.generation, superblock.seq, superblock.commit_seq,
        superblock.flags, superblock.table_sum,
        superblock.chunk_sectors, superblock.grain_sectors,
        superblock.geometry.record_bytes, len(superblock.segments),
        superblock.origin_sectors)
    at = SUPER.size
    for number, segment in enumerate(superblock.segments):
        SEGMENT.pack_into(block, at + number * SEGMENT.size, *segment)
    at += SEGMENTS * SEGMENT.size
    SUPER_TAIL.pack_into(block, at, superblock.meta_class, superblock.strategy,
                         superblock.mode, b'')
    at += SUPER_TAIL.size
    for class_id, row in superblock.classes.items():
        CLASS.pack_into(
            block, at + class_id * CLASS.size, row.rank, row.floor_parts,
            row.cap_parts, row.weight, row.cutoff_sectors,
            ALLOCATE[Allocate(row.allocate)], row.write_mode,
            int(row.flags), 1 | row.inner << 1)
    at += CLASSES * CLASS.size
    SUPER_LAST.pack_into(block, at, superblock.twin_seq, superblock.origin_id,
                         superblock.origin_sum)
    NO_DIRTY.pack_into(block, at + SUPER_LAST.size, *(
        PARTS - superblock.classes[class_id].dirty_cap_parts
        if class_id in superblock.classes else 0
        for class_id in range(CLASSES)))
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
