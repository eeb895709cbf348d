"""Which damaged copies counted, as far as the sound ones tell.

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

from __future__ import annotations

from typing import Optional

from swift_dss.block.ondisk.blocks import (
    BLOCK_BYTES, BLOCK_SECTORS, flip, flipped_bit)
from swift_dss.block.ondisk.findings import Examined, Kind, Place, Region
from swift_dss.block.ondisk.superblock import (
    SUPER, SUPER_MAGIC, Superblock, table_sum)


def judge_super(ssd: Examined, best: Optional[Superblock], copy: int,
                 block: bytes, mended: Optional[Superblock]) -> None:
    sector = copy * BLOCK_SECTORS
    if mended is not None:
        counts = best is None or mended.seq > best.seq
        ssd.super_places.append(Place(
            sector, block, flip(block, flipped_bit(block) or 0)))
        ssd.say(Kind.KNOWN if counts else Kind.SPARE, sector,
                'superblock copy %d%s: one flipped bit'
                % (copy, ', which counts' if counts else ''))
        if counts:
            ssd.refusals.append(
                'no sound superblock' if best is None else
                'an older superblock would count')
        return
    known = ssd.superblock
    ssd.super_places.append(Place(sector, block, bytes(BLOCK_BYTES)))
    fields = SUPER.unpack_from(block)
    magic, seq = fields[2], fields[5]
    if known.is_clean and not (
            magic == SUPER_MAGIC and 0 < seq <= known.seq):
        # Nothing was done since, if the older copy's sum of a clean stop still
        # holds for the whole table: seen when that was read.
        ssd.newer_super = sector
        return
    if magic == SUPER_MAGIC and 0 < seq <= known.seq:
        ssd.say(Kind.SPARE, sector, 'superblock copy %d is damaged; the '
                'other one counts' % copy)
        return
    _doubt_super(ssd, sector)


def _doubt_super(ssd: Examined, sector: int) -> None:
    ssd.super_in_doubt = True
    ssd.say(Kind.DOUBT, sector, 'superblock copy %d is damaged and may '
            'have been the one that counts: a failure of the SSD, a change '
            'of its size or of the class table may be forgotten'
            % (sector // BLOCK_SECTORS))


def note_super(ssd: Examined) -> None:
    superblock = ssd.superblock
    for class_id in superblock.bad_rows:
        ssd.say(Kind.SPARE, superblock.sector, 'the row of class %d is not '
                'one: the class is treated like class 0' % class_id)
    if superblock.has_failed:
        ssd.say(Kind.DOUBT, superblock.sector, 'the kernel gave this SSD '
                'up: the HDD may be ahead of it')
        ssd.refusals.append('this SSD failed before')
    elif not superblock.is_clean:
        ssd.say(Kind.NOTE, superblock.sector, 'in use when it was seen '
                'last: the next start is one after a crash')


def judge_table(ssd: Examined) -> None:
    """Which damaged copies counted?"""
    superblock = ssd.superblock
    for region in ssd.regions:
        _judge_flipped(ssd, region)
    clean = superblock.is_clean
    sum_holds = clean and table_sum(
        [region.best_seq for region in ssd.regions]
    ) == superblock.table_sum
    if ssd.newer_super is not None and sum_holds:
        ssd.say(Kind.SPARE, ssd.newer_super, 'superblock copy %d is '
                'damaged; nothing was done after the clean stop'
                % (ssd.newer_super // BLOCK_SECTORS))
    elif ssd.newer_super is not None:
        ssd.refusals.append('a table block is older than the clean stop')
        _doubt_super(ssd, ssd.newer_super)
        clean = False
    elif sum_holds and table_sum([
            region.seq for region in ssd.regions
    ]) != superblock.table_sum:
        ssd.refusals.append('a table block is older than the clean stop')
    newest = max([superblock.commit_seq] + [
        region.best_seq for region in ssd.regions])
    if _kernel_doubts(ssd):
        ssd.refusals.append('a damaged table block may be one that counts')
    for region in ssd.regions:
        for copy, claimed in region.lost:
            _judge_lost(ssd, region, copy, claimed, sum_holds,
                        None if clean else newest)
    if clean and not sum_holds:
        ssd.refusals.append('a table block is older than the clean stop')
        if not ssd.doubtful:
            ssd.say(Kind.DOUBT, superblock.sector, 'a table block is older '
                    'than the clean stop, and nothing says which one')
            ssd.doubtful += range(len(ssd.regions))


def _kernel_doubts(ssd: Examined) -> bool:
    """The answer of ``dss_lost_counts()`` of the target.

    The kernel mends no bit: for it each damaged copy is lost. After a clean
    stop it looks at the sum instead.
    """
    if ssd.superblock.is_clean:
        return False
    twin_seq = ssd.superblock.twin_seq
    newest = max([ssd.superblock.commit_seq] + [
        region.seq for region in ssd.regions])
    for region in ssd.regions:
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


def _judge_flipped(ssd: Examined, region: Region) -> None:
    if region.known is None:
        return
    counts = region.known.seq > region.seq
    sector = ssd.superblock.region_sector(
        region.number, region.known_copy)
    ssd.say(Kind.KNOWN if counts else Kind.SPARE, sector,
            'table block of region %d, copy %s%s: one flipped bit'
            % (region.number, 'AB'[region.known_copy],
               ', which counts' if counts else ''), region.number)
    if not counts:
        region.known = None


def _judge_lost(ssd: Examined, region: Region, copy: int,
                claimed: Optional[int], sum_holds: bool,
                newest: Optional[int]) -> None:
    """:param newest: the last commit that is known; None after a clean
    stop"""
    # long: the five cases of the module's text, each with its words.
    sector = ssd.superblock.region_sector(region.number, copy)
    where = 'table block of region %d, copy %s' % (
        region.number, 'AB'[copy])
    seq, twin_seq = region.best_seq, ssd.superblock.twin_seq
    if sum_holds or claimed is not None and claimed <= seq:
        ssd.say(Kind.SPARE, sector, '%s is damaged; it was the older one'
                % where, region.number)
        return
    if seq and newest is not None and (claimed or newest) <= twin_seq:
        ssd.say(Kind.SPARE, sector, '%s is damaged; the other one tells '
                'the same' % where, region.number)
        return
    if newest is not None and claimed is not None and \
            claimed >= newest and claimed > twin_seq:
        ssd.say(Kind.NOTE, sector, '%s: its write was cut off by the '
                'crash; the commit before it counts' % where,
                region.number)
        return
    if region.number not in ssd.doubtful:
        ssd.doubtful.append(region.number)
    if not seq:
        ssd.say(Kind.DOUBT, sector, '%s is damaged and there is no other: '
                'the contents of %d slots are unknown' % (
                    where, ssd.superblock.region_slots(
                        region.number)[1]), region.number)
        return
    ssd.say(Kind.DOUBT, sector, '%s is damaged and may have been the one '
            'that counts: the other one may be out of date' % where,
            region.number)
