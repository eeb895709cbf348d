"""Read a cache that no kernel uses, and judge if it is sound.

:func:`examine` reads superblock and table as the kernel would when it starts.
It also reports facts that the kernel cannot: which copies are damaged, whether
a damaged one counted, and the possible loss of data.
:mod:`swift_dss.block.tools_repair` mends the damage.

A damaged copy of a table block is judged so:

- One flipped bit: the block is known, and with it whether it counted.
- After a clean stop the superblock has a sum over the versions that count.
  If the versions that can be read make that sum, no damaged copy counted.
- A power cut may cut off the write of the last commit, and of no earlier
  one: such a copy says that it is the newest of all.
- The superblock says up to which version the copies of every region are
  twins: of those either will do.
- Any other damaged copy may have counted. Then the older copy is *in doubt*:
  the SSD may have other bytes by now than it says, and no reader should get
  them before the operator has decided. The kernel does not start with it.
"""

# long: the reader, the findings and the judgement of each kind of block.

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from swift_dss.block.format import (
    BLOCK_SECTORS, SUPER, SUPER_MAGIC, DamagedBlock, Record, Superblock,
    TableBlock, claimed_seq, parse_block, parse_super, table_sum)
from swift_dss.block.format_crc import BLOCK_BYTES, flip, flipped_bit
from swift_dss.core.errors import DssError

#: Reads (sector, number of sectors); short only at the end of the device.
Read = Callable[[int, int], bytes]
Progress = Callable[[int, int], None]

#: Regions read at a time.
_READ_REGIONS = 64


class NotACache(DssError):
    """There is no superblock of dm-dss on the device."""

    exit_code = 8


class Kind(IntEnum):
    """How bad a finding is."""

    #: Nothing is wrong; said all the same.
    NOTE = 0
    #: Damage that costs nothing: no byte and no knowledge is lost.
    SPARE = 1
    #: The copy that counted is damaged but known: one flipped bit.
    KNOWN = 2
    #: Something has to be decided before the cache is used.
    DOUBT = 3


class Finding(NamedTuple):
    """Something that was found.

    :param sector: where on the SSD
    :param region: of the table; None for the superblock or all of it
    """

    kind: Kind
    sector: int
    region: Optional[int]
    text: str


class Place(NamedTuple):
    """A block on the SSD, and its right contents."""

    sector: int
    found: bytes
    wanted: bytes


class Chunk(NamedTuple):
    """A chunk of the origin that the SSD has."""

    slot: int
    record: Record


@dataclass
class Region:
    """A region of the table.

    :param seq: version of the copy that the kernel would take; 0: none
    :param copy: which that is
    :param known: the copy that counted, by what a flipped bit told
    """

    number: int
    seq: int = 0
    copy: int = 0
    block: Optional[TableBlock] = None
    known: Optional[TableBlock] = None
    known_copy: int = 0
    #: Of damaged copies that are no single flipped bit: copy, its own version.
    lost: List[Tuple[int, Optional[int]]] = field(default_factory=list)
    #: All damaged copies, in the same way.
    damaged: List[Tuple[int, Optional[int]]] = field(default_factory=list)
    #: Damaged copies as they are, and what to write there.
    places: List[Place] = field(default_factory=list)

    @property
    def best(self) -> Optional[TableBlock]:
        """A description of the damage."""
        return self.known or self.block

    @property
    def best_seq(self) -> int:
        """The version of that."""
        return self.best.seq if self.best else 0


@dataclass
class Examined:
    """All that is known of a cache.

    :param superblock: the copy that counts, as far as it is known
    :param super_places: damaged copies of it
    :param refusals: why the kernel would not start with it as it is
    """

    superblock: Superblock
    sectors: int
    regions: List[Region] = field(default_factory=list)
    findings: List[Finding] = field(default_factory=list)
    super_places: List[Place] = field(default_factory=list)
    refusals: List[str] = field(default_factory=list)
    #: Regions whose older copy is in doubt.
    doubtful: List[int] = field(default_factory=list)
    #: A newer superblock may have been lost.
    super_in_doubt: bool = False
    #: Sector of one that may have been newer than a clean stop.
    newer_super: Optional[int] = None
    #: Doubts that no decision about the table takes away.
    hopeless: List[str] = field(default_factory=list)
    #: Chunk of the origin to where it is.
    chunks: Dict[int, Chunk] = field(default_factory=dict)
    #: Slots that a newer commit replaced: the kernel drops their records.
    replaced: List[int] = field(default_factory=list)

    @property
    def worst(self) -> Kind:
        """The worst of all findings."""
        return max((finding.kind for finding in self.findings),
                   default=Kind.NOTE)

    @property
    def exit_code(self) -> int:
        """0: sound; 1: damage that repair mends; 4: to be decided."""
        return {Kind.NOTE: 0, Kind.SPARE: 1, Kind.KNOWN: 1,
                Kind.DOUBT: 4}[self.worst]

    @property
    def dirty(self) -> Dict[int, Chunk]:
        """Chunks of which the origin has older bytes."""
        return {oblock: chunk for oblock, chunk in self.chunks.items()
                if chunk.record.dirty}

    def say(self, kind: Kind, sector: int, text: str,
            region: Optional[int] = None) -> None:
        """Note a finding."""
        self.findings.append(Finding(kind, sector, region, text))


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


def examine_table(found: Examined, read: Read,
                  progress: Progress = lambda done, of: None) -> Examined:
    """Read the table that a superblock describes."""
    superblock, sectors = found.superblock, found.sectors
    if superblock.end > sectors:
        found.say(Kind.DOUBT, 0, 'the superblock describes %d sectors, the '
                  'SSD has %d' % (superblock.end, sectors))
        found.refusals.append('the SSD is smaller than its superblock says')
        found.hopeless.append(found.refusals[-1])
        return found
    for first in range(0, superblock.nr_regions, _READ_REGIONS):
        stop = min(superblock.nr_regions, first + _READ_REGIONS)
        for number in range(first, stop):
            at = superblock.region_sector(number, 0)
            found.regions.append(_region(
                found, number, read(at, 2 * BLOCK_SECTORS)))
        progress(stop, superblock.nr_regions)
    _judge(found)
    _collect(found)
    return found


# -- the superblock ----------------------------------------------------------

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
    found = Examined(known, sectors)
    for copy in (0, 1):
        if copies[copy] is not None or not any(blocks[copy]):
            continue
        _judge_super(found, best, copy, blocks[copy], mended.get(copy))
    _note_super(found)
    return found


def _judge_super(found: Examined, best: Optional[Superblock], copy: int,
                 block: bytes, mended: Optional[Superblock]) -> None:
    sector = copy * BLOCK_SECTORS
    if mended is not None:
        counts = best is None or mended.seq > best.seq
        found.super_places.append(Place(
            sector, block, flip(block, flipped_bit(block) or 0)))
        found.say(Kind.KNOWN if counts else Kind.SPARE, sector,
                  'superblock copy %d%s: one flipped bit'
                  % (copy, ', which counts' if counts else ''))
        if counts:
            found.refusals.append(
                'no sound superblock' if best is None else
                'an older superblock would count')
        return
    known = found.superblock
    found.super_places.append(Place(sector, block, bytes(BLOCK_BYTES)))
    fields = SUPER.unpack_from(block)
    magic, seq = fields[2], fields[5]
    if known.is_clean and not (
            magic == SUPER_MAGIC and 0 < seq <= known.seq):
        # Nothing was done since, if the older copy's sum of a clean stop still
        # holds for the whole table: seen when that was read.
        found.newer_super = sector
        return
    if magic == SUPER_MAGIC and 0 < seq <= known.seq:
        found.say(Kind.SPARE, sector, 'superblock copy %d is damaged; the '
                  'other one counts' % copy)
        return
    _doubt_super(found, sector)


def _doubt_super(found: Examined, sector: int) -> None:
    found.super_in_doubt = True
    found.say(Kind.DOUBT, sector, 'superblock copy %d is damaged and may '
              'have been the one that counts: a failure of the SSD, a change '
              'of its size or of the class table may be forgotten'
              % (sector // BLOCK_SECTORS))


def _note_super(found: Examined) -> None:
    superblock = found.superblock
    for class_id in superblock.bad_rows:
        found.say(Kind.SPARE, superblock.sector, 'the row of class %d is not '
                  'one: the class is treated like class 0' % class_id)
    if superblock.has_failed:
        found.say(Kind.DOUBT, superblock.sector, 'the kernel gave this SSD '
                  'up: the HDD may be ahead of it')
        found.refusals.append('this SSD failed before')
    elif not superblock.is_clean:
        found.say(Kind.NOTE, superblock.sector, 'in use when it was seen '
                  'last: the next start is one after a crash')


# -- the table ---------------------------------------------------------------

def _region(found: Examined, number: int, pair: bytes) -> Region:
    """Both copies of a region, as they are."""
    superblock = found.superblock
    region = Region(number)
    for copy in (0, 1):
        block = pair[copy * BLOCK_BYTES:(copy + 1) * BLOCK_BYTES]
        sector = superblock.region_sector(number, copy)
        if not any(block):
            continue
        try:
            parsed = parse_block(block, superblock, number)
        except DamagedBlock:
            _damaged(found, region, copy, block, sector)
            continue
        if parsed.seq > region.seq:
            region.block, region.seq, region.copy = parsed, parsed.seq, copy
    return region


def _damaged(found: Examined, region: Region, copy: int, block: bytes,
             sector: int) -> None:
    if len(block) == BLOCK_BYTES:
        region.damaged.append((copy, claimed_seq(
            block, found.superblock, region.number)))
    bit = flipped_bit(block)
    if bit is not None:
        try:
            mended = parse_block(flip(block, bit), found.superblock,
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


def _judge(found: Examined) -> None:
    """Which damaged copies counted?"""
    superblock = found.superblock
    for region in found.regions:
        _judge_flipped(found, region)
    clean = superblock.is_clean
    sum_holds = clean and table_sum(
        [region.best_seq for region in found.regions]
    ) == superblock.table_sum
    if found.newer_super is not None and sum_holds:
        found.say(Kind.SPARE, found.newer_super, 'superblock copy %d is '
                  'damaged; nothing was done after the clean stop'
                  % (found.newer_super // BLOCK_SECTORS))
    elif found.newer_super is not None:
        found.refusals.append('a table block is older than the clean stop')
        _doubt_super(found, found.newer_super)
        clean = False
    elif sum_holds and table_sum([
            region.seq for region in found.regions
    ]) != superblock.table_sum:
        found.refusals.append('a table block is older than the clean stop')
    newest = max([superblock.commit_seq] + [
        region.best_seq for region in found.regions])
    if _kernel_doubts(found):
        found.refusals.append('a damaged table block may be one that counts')
    for region in found.regions:
        for copy, claimed in region.lost:
            _judge_lost(found, region, copy, claimed, sum_holds,
                        None if clean else newest)
    if clean and not sum_holds:
        found.refusals.append('a table block is older than the clean stop')
        if not found.doubtful:
            found.say(Kind.DOUBT, superblock.sector, 'a table block is older '
                      'than the clean stop, and nothing says which one')
            found.doubtful += range(len(found.regions))


def _kernel_doubts(found: Examined) -> bool:
    """What ``dss_lost_counts()`` of the target answers.

    The kernel mends no bit: for it each damaged copy is lost. After a clean
    stop it looks at the sum instead.
    """
    if found.superblock.is_clean:
        return False
    twin_seq = found.superblock.twin_seq
    newest = max([found.superblock.commit_seq] + [
        region.seq for region in found.regions])
    for region in found.regions:
        for _copy, claimed in region.damaged:
            if not region.seq and (
                    len(region.damaged) > 1 or not claimed
                    or claimed <= twin_seq):
                return True
            if not claimed and newest > twin_seq:
                return True
            if claimed and max(region.seq, twin_seq) < claimed < newest:
                return True
    return False


def _judge_flipped(found: Examined, region: Region) -> None:
    if region.known is None:
        return
    counts = region.known.seq > region.seq
    sector = found.superblock.region_sector(
        region.number, region.known_copy)
    found.say(Kind.KNOWN if counts else Kind.SPARE, sector,
              'table block of region %d, copy %s%s: one flipped bit'
              % (region.number, 'AB'[region.known_copy],
                 ', which counts' if counts else ''), region.number)
    if not counts:
        region.known = None


def _judge_lost(found: Examined, region: Region, copy: int,
                claimed: Optional[int], sum_holds: bool,
                newest: Optional[int]) -> None:
    """:param newest: the last commit that is known; None after a clean
    stop"""
    # long: the five cases of the module's text, each with its words.
    sector = found.superblock.region_sector(region.number, copy)
    where = 'table block of region %d, copy %s' % (
        region.number, 'AB'[copy])
    seq, twin_seq = region.best_seq, found.superblock.twin_seq
    if sum_holds or claimed is not None and claimed <= seq:
        found.say(Kind.SPARE, sector, '%s is damaged; it was the older one'
                  % where, region.number)
        return
    if seq and newest is not None and (claimed or newest) <= twin_seq:
        found.say(Kind.SPARE, sector, '%s is damaged; the other one tells '
                  'the same' % where, region.number)
        return
    if newest is not None and claimed is not None and \
            claimed >= newest and claimed > twin_seq:
        found.say(Kind.NOTE, sector, '%s: its write was cut off by the '
                  'crash; the commit before it counts' % where,
                  region.number)
        return
    if region.number not in found.doubtful:
        found.doubtful.append(region.number)
    if not seq:
        found.say(Kind.DOUBT, sector, '%s is damaged and there is no other: '
                  'the contents of %d slots are unknown' % (
                      where, found.superblock.region_slots(
                          region.number)[1]), region.number)
        return
    found.say(Kind.DOUBT, sector, '%s is damaged and may have been the one '
              'that counts: the other one may be out of date' % where,
              region.number)


# -- chunks ------------------------------------------------------------------

def _collect(found: Examined) -> None:
    """The state of the table, as the kernel would assemble it."""
    superblock = found.superblock
    chunks = -(-superblock.origin_sectors // superblock.chunk_sectors)
    seqs: Dict[int, int] = {}
    for region in found.regions:
        if region.best is None:
            continue
        first, _count = superblock.region_slots(region.number)
        for number, record in enumerate(region.best.records):
            if record.oblock is None:
                continue
            slot, oblock = first + number, record.oblock
            if oblock >= chunks:
                _beyond(found, region, record, oblock)
                found.replaced.append(slot)
                continue
            other = found.chunks.get(oblock)
            if other is None or seqs[oblock] < region.best_seq:
                if other is not None:
                    found.replaced.append(other.slot)
                found.chunks[oblock] = Chunk(slot, record)
                seqs[oblock] = region.best_seq
            elif seqs[oblock] > region.best_seq:
                found.replaced.append(slot)
            else:
                _twice(found, region, oblock, other.slot, slot)


def _beyond(found: Examined, region: Region, record: Record,
            oblock: int) -> None:
    sector = found.superblock.region_sector(region.number, region.copy)
    found.say(Kind.DOUBT if record.dirty else Kind.SPARE, sector,
              'chunk %d is beyond the end of the origin%s' % (
                  oblock, ', and dirty' if record.dirty else ''),
              region.number)
    if record.dirty:
        found.refusals.append('chunk %d is dirty and beyond the end of the '
                              'origin' % oblock)
        found.hopeless.append(found.refusals[-1])


def _twice(found: Examined, region: Region, oblock: int, slot: int,
           other: int) -> None:
    sector = found.superblock.region_sector(region.number, region.copy)
    found.say(Kind.DOUBT, sector, 'one commit says that chunk %d is in slots '
              '%d and %d' % (oblock, slot, other), region.number)
    if region.number not in found.doubtful:
        found.doubtful.append(region.number)
    found.refusals.append('chunk %d is in two slots' % oblock)
