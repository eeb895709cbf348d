"""Find blocks that a disk changed in all local copies, and replace them.

A copy of a block is right if its checksum matches; without a known checksum,
if it can be read. If another tier has the right bytes, they replace the wrong
ones: on the SSD in a new inode, on the HDD in place. If only S3 has the right
bytes, the wrong ones are dropped, and the next read fetches them.

The caller MUST hold the version's lock. All functions block on both tiers.
"""

from __future__ import annotations

import contextlib
import os
from typing import Dict, Iterator, List, NamedTuple, Optional

from swift_dss.core.errors import TierUnavailable, VersionGone
from swift_dss.core.residency import Extent, RemoteCopy, Residency, Tier
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.io import classified, moves
from swift_dss.io.carriers import Carrier
from swift_dss.io.moves import LOCAL, PLAIN_IO, Range
from swift_dss.io.sums import blocks
from swift_dss.io.sums.blocks import BlockSums
from swift_dss.io.switch import LiveVersion, Place
from swift_dss.wire.records.blocks import BLOCK_BYTES, blocks_of


class Rot(NamedTuple):
    """Ranges of a version that are not as they were written, or cannot be
    read.

    :param ssd: those on the SSD that the HDD has right
    :param hdd: those on the HDD that the SSD has right
    :param in_s3: those that S3 alone can have right
    :param lost: those that no tier has right
    """

    ssd: List[Range]
    hdd: List[Range]
    in_s3: List[Range]
    lost: List[Range]

    @property
    def length(self) -> int:
        """Bytes of the ranges."""
        return sum(length for ranges in self for _, length in ranges)


def look(place: Place, io: Carrier = PLAIN_IO) -> Rot:
    """Read every copy of every block.

    Of a block without a checksum, and of one of which S3 alone has a part, it
    is judged whether it can be read.

    :raises VersionGone: the version was removed since
    :raises TierUnavailable: the HDD is not mounted
    """
    rot = Rot([], [], [], [])
    with LiveVersion(place, keep_foreign=True) as live, \
            contextlib.ExitStack() as closing:
        length = live.residency.content_length
        sums = blocks.load(live.fd, length)
        fds = {Tier.SSD: live.fd}
        # Of a file that is not there each block is wrong.
        if live.residency.tiers & Tier.HDD and not live.says_foreign:
            try:
                fds[Tier.HDD] = place.capacity.open_read(place.version)
                closing.callback(os.close, fds[Tier.HDD])
            except VersionGone:
                pass
            except TierUnavailable:
                # Only the file, if the HDD itself is there.
                place.capacity.check()
        for block in range(blocks_of(length)):
            extents = list(live.residency.split(
                block * BLOCK_BYTES,
                min(BLOCK_BYTES, length - block * BLOCK_BYTES)))
            if sums is not None and sums.expected(block) and all(
                    extent.tiers & LOCAL for extent in extents):
                _judge(sums, block, extents, fds, io, rot)
            else:
                for extent in extents:
                    _judge_unknown(extent, fds, io, rot)
    return rot


def fails(place: Place, tier: Tier, where: float,
          io: Carrier = PLAIN_IO) -> Optional[bool]:
    """Read one block of a version from one disk, past the page cache.

    :param where: from 0 to 1, exclusive: which of its blocks there
    :returns: True if it cannot be read, or has other bytes than were
        written; None if that disk has none of it
    :raises VersionGone, TierUnavailable: as :func:`look`, or its file on
        that disk is not there
    """
    with LiveVersion(place) as live, contextlib.ExitStack() as closing:
        extents = [extent for extent in live.residency.extents
                   if extent.tiers & tier and extent.length]
        if not extents:
            return None
        extent = extents[int(where * len(extents))]
        block = int(extent.offset + where * extent.length) // BLOCK_BYTES
        fd = live.fd
        if tier is Tier.HDD:
            fd = place.capacity.open_read(place.version)
            closing.callback(os.close, fd)
        length = live.residency.content_length
        offset = block * BLOCK_BYTES
        data = b''
        pieces = [part for part in live.residency.split(
            offset, min(BLOCK_BYTES, length - offset)) if part.tiers & tier]
        for part in pieces:
            classified.forget(fd, part.offset, part.length)
            piece = _read(io, fd, part) or b''
            if len(piece) != part.length:
                return True
            data += piece
        sums = blocks.load(live.fd, length)
        return sums is not None and bool(sums.expected(block)) and \
            len(data) == min(BLOCK_BYTES, length - offset) and \
            not sums.is_right(block, data)


def _judge(sums: BlockSums, block: int, extents: List[Extent],
           fds: Dict[Tier, int], io: Carrier, rot: Rot) -> None:
    copies = {tier: [_read(io, fds.get(tier), extent)
                     if extent.tiers & tier else None for extent in extents]
              for tier in (Tier.SSD, Tier.HDD)}
    right = next((candidate for candidate in _candidates(copies)
                  if sums.is_right(block, b''.join(candidate))), None)
    in_s3 = all(extent.tiers & Tier.REMOTE for extent in extents)
    for number, extent in enumerate(extents):
        where = extent.offset, extent.length
        if right is None:
            (rot.in_s3 if in_s3 else rot.lost).append(where)
            continue
        for tier, ranges in ((Tier.SSD, rot.ssd), (Tier.HDD, rot.hdd)):
            if extent.tiers & tier and copies[tier][number] != right[number]:
                ranges.append(where)


def _judge_unknown(extent: Extent, fds: Dict[Tier, int], io: Carrier,
                   rot: Rot) -> None:
    """Judge bytes without checksums: those that can be read are accepted."""
    unreadable = [tier for tier in (Tier.SSD, Tier.HDD)
                  if extent.tiers & tier and len(_read(
                      io, fds.get(tier), extent) or b'') != extent.length]
    where = extent.offset, extent.length
    if not unreadable:
        return
    if len(unreadable) < sum(bool(extent.tiers & tier)
                             for tier in (Tier.SSD, Tier.HDD)):
        (rot.ssd if unreadable == [Tier.SSD] else rot.hdd).append(where)
    else:
        (rot.in_s3 if extent.tiers & Tier.REMOTE else rot.lost).append(where)


def _candidates(copies: Dict[Tier, List[Optional[bytes]]]
                ) -> Iterator[List[bytes]]:
    ssd, hdd = copies[Tier.SSD], copies[Tier.HDD]
    for first, second in ((ssd, hdd), (hdd, ssd)):
        yield [block_bytes if block_bytes is not None else other or b''
               for block_bytes, other in zip(first, second)]


def _read(io: Carrier, fd: Optional[int],
          extent: Extent) -> Optional[bytes]:
    """None if it cannot be read: then it is wrong."""
    try:
        return None if fd is None else classified.read_exact(
            io, fd, extent.length, extent.offset, 0)
    except OSError:
        return None


def mend(place: Place, rot: Rot, class_map: ClassMap = UNCLASSIFIED_MAP,
         io: Carrier = PLAIN_IO,
         proven: Optional[RemoteCopy] = None) -> Residency:
    """Replace the blocks that :func:`look` found wrong; lost ones stay.

    :param proven: the copy that S3 was asked for again just now; without it,
        blocks that only S3 can have right stay
    :returns: the residency after it
    :raises RottenBytes: the disk has changed more blocks since
    :raises TierFull: no room for the right bytes, of which another tier has
        a copy
    """
    if rot.in_s3 and proven is not None:
        if place.capacity.configured:
            moves.drop_capacity(place, rot.in_s3, proven)
        moves.evict_ssd(place, rot.in_s3, class_map, io, proven)
    if rot.hdd:
        moves.drop_capacity(place, rot.hdd)
        moves.copy_to_capacity(place, rot.hdd, class_map, io)
    if rot.ssd:
        moves.evict_ssd(place, rot.ssd, class_map, io)
        moves.promote(place, rot.ssd, class_map, io)
    with LiveVersion(place) as live:
        return live.residency
