"""Read a cache that no kernel uses, and judge if it is sound.

:func:`examine` reads superblock and table as the kernel would when it starts.
It also reports facts that the kernel cannot: which copies are damaged, whether
a damaged one counted (:mod:`~swift_dss.block.ondisk.judging`), and the
possible loss of data. :mod:`~swift_dss.block.ondisk.repair` mends the damage.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from swift_dss.block.ondisk.blocks import (
    BLOCK_BYTES, BLOCK_SECTORS, DamagedBlock, flip, flipped_bit)
from swift_dss.block.ondisk.findings import (
    Chunk, Examined, Kind, NotACache, Place, Progress, Read, Region)
from swift_dss.block.ondisk.judging import judge_super, judge_table, note_super
from swift_dss.block.ondisk.superblock import Superblock, parse_super
from swift_dss.block.ondisk.table_block import Record, claimed_seq, parse_block

#: Regions read at a time.
_READ_REGIONS = 64


def read_superblocks(read: Read) -> Tuple[Optional[Superblock],
                                          List[Optional[Superblock]],
                                          List[bytes]]:
    """The copy that counts, both copies, and their bytes."""
    raw = read(0, 2 * BLOCK_SECTORS)
    if len(raw) != 2 * BLOCK_BYTES:
        raise NotACache('the device is smaller than a superblock')
    blocks = [raw[:BLOCK_BYTES], raw[BLOCK_BYTES:]]
    copies: List[Optional[Superblock]] = []
    for block in blocks:
        try:
            copies.append(parse_super(block))
        except DamagedBlock:
            copies.append(None)
    best = max((copy for copy in copies if copy),
               key=lambda copy: copy.seq, default=None)
    return best, copies, blocks


def examine(read: Read, sectors: int,
            progress: Progress = lambda done, of: None) -> Examined:
    """Read superblock and table.

    :param sectors: size of the SSD
    :raises NotACache: no superblock, nor a bit away from one
    """
    return examine_table(_superblock(read, sectors), read, progress)


def examine_table(ssd: Examined, read: Read,
                  progress: Progress = lambda done, of: None) -> Examined:
    """Read the table that a superblock describes."""
    superblock, sectors = ssd.superblock, ssd.sectors
    if superblock.end > sectors:
        ssd.say(Kind.DOUBT, 0, 'the superblock describes %d sectors, the '
                'SSD has %d' % (superblock.end, sectors))
        ssd.refusals.append('the SSD is smaller than its superblock says')
        ssd.hopeless.append(ssd.refusals[-1])
        return ssd
    for first in range(0, superblock.nr_regions, _READ_REGIONS):
        stop = min(superblock.nr_regions, first + _READ_REGIONS)
        for number in range(first, stop):
            at = superblock.region_sector(number, 0)
            ssd.regions.append(_region(
                ssd, number, read(at, 2 * BLOCK_SECTORS)))
        progress(stop, superblock.nr_regions)
    judge_table(ssd)
    _collect(ssd)
    return ssd


def _superblock(read: Read, sectors: int) -> Examined:
    best, copies, blocks = read_superblocks(read)
    mended: Dict[int, Superblock] = {}
    for copy in (0, 1):
        if copies[copy] is None and any(blocks[copy]):
            bit = flipped_bit(blocks[copy])
            if bit is not None:
                try:
                    mended[copy] = parse_super(flip(blocks[copy], bit))
                except DamagedBlock:
                    pass
    known = max([copy for copy in copies if copy] + list(mended.values()),
                key=lambda copy: copy.seq, default=None)
    if known is None:
        raise NotACache('no copy of the superblock can be read')
    ssd = Examined(known, sectors)
    for copy in (0, 1):
        if copies[copy] is not None or not any(blocks[copy]):
            continue
        judge_super(ssd, best, copy, blocks[copy], mended.get(copy))
    note_super(ssd)
    return ssd


def _region(ssd: Examined, number: int, pair: bytes) -> Region:
    """Both copies of a region, as they are."""
    superblock = ssd.superblock
    region = Region(number)
    for copy in (0, 1):
        block = pair[copy * BLOCK_BYTES:(copy + 1) * BLOCK_BYTES]
        sector = superblock.region_sector(number, copy)
        if not any(block):
            continue
        try:
            parsed = parse_block(block, superblock, number)
        except DamagedBlock:
            _damaged(ssd, region, copy, block, sector)
            continue
        if parsed.seq > region.seq:
            region.block, region.seq, region.copy = parsed, parsed.seq, copy
    return region


def _damaged(ssd: Examined, region: Region, copy: int, block: bytes,
             sector: int) -> None:
    if len(block) == BLOCK_BYTES:
        region.damaged.append((copy, claimed_seq(
            block, ssd.superblock, region.number)))
    bit = flipped_bit(block)
    if bit is not None:
        try:
            mended = parse_block(flip(block, bit), ssd.superblock,
                                 region.number)
        except DamagedBlock:
            pass
        else:
            region.places.append(Place(sector, block, flip(block, bit)))
            if region.known is None or mended.seq > region.known.seq:
                region.known, region.known_copy = mended, copy
            return
    region.places.append(Place(sector, block, bytes(BLOCK_BYTES)))
    if len(block) == BLOCK_BYTES:
        region.lost.append(region.damaged[-1])


def _collect(ssd: Examined) -> None:
    """The state of the table, as the kernel would assemble it."""
    superblock = ssd.superblock
    chunks = -(-superblock.origin_sectors // superblock.chunk_sectors)
    seqs: Dict[int, int] = {}
    for region in ssd.regions:
        if region.best is None:
            continue
        first, _count = superblock.region_slots(region.number)
        for number, record in enumerate(region.best.records):
            if record.oblock is None:
                continue
            slot, oblock = first + number, record.oblock
            if oblock >= chunks:
                _beyond(ssd, region, record, oblock)
                ssd.replaced.append(slot)
                continue
            other = ssd.chunks.get(oblock)
            if other is None or seqs[oblock] < region.best_seq:
                if other is not None:
                    ssd.replaced.append(other.slot)
                ssd.chunks[oblock] = Chunk(slot, record)
                seqs[oblock] = region.best_seq
            elif seqs[oblock] > region.best_seq:
                ssd.replaced.append(slot)
            else:
                _twice(ssd, region, oblock, other.slot, slot)


def _beyond(ssd: Examined, region: Region, record: Record,
            oblock: int) -> None:
    sector = ssd.superblock.region_sector(region.number, region.copy)
    ssd.say(Kind.DOUBT if record.dirty else Kind.SPARE, sector,
            'chunk %d is beyond the end of the origin%s' % (
                oblock, ', and dirty' if record.dirty else ''),
            region.number)
    if record.dirty:
        ssd.refusals.append('chunk %d is dirty and beyond the end of the '
                            'origin' % oblock)
        ssd.hopeless.append(ssd.refusals[-1])


def _twice(ssd: Examined, region: Region, oblock: int, slot: int,
           other: int) -> None:
    sector = ssd.superblock.region_sector(region.number, region.copy)
    ssd.say(Kind.DOUBT, sector, 'one commit says that chunk %d is in slots '
            '%d and %d' % (oblock, slot, other), region.number)
    if region.number not in ssd.doubtful:
        ssd.doubtful.append(region.number)
    ssd.refusals.append('chunk %d is in two slots' % oblock)
