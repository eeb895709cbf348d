"""Where files lie on a disk, and how far its arm goes from one to the next.

Asks the file system for the extents of files (FIEMAP). Blocks.
"""

from __future__ import annotations

import fcntl
import os
import struct
from typing import Iterable, List, NamedTuple

_FIEMAP = 0xC020660B
_HEAD, _EXTENT = struct.Struct('=QQIIII'), struct.Struct('=QQQQQIIII')
_AT_ONCE = 64
_LAST, _UNKNOWN, _INLINE = 0x1, 0x2 | 0x4, 0x200
_SYNC = 0x1
#: A disk reads on over a gap of so many bytes: the arm stays on its track.
NEAR_BYTES = 1 << 20


class Extent(NamedTuple):
    """Bytes of a file that lie together.

    :param offset: in the file
    :param at: on the disk, in bytes
    """

    offset: int
    at: int
    length: int


class Way(NamedTuple):
    """The arm's way through files, in their order.

    :param files: that have bytes on the disk
    :param extents: of them
    :param moves: to an extent that is not near behind the one before
    :param mean_bytes: of a move
    """

    files: int
    extents: int
    moves: int
    mean_bytes: float


def extents(path: str) -> List[Extent]:
    """The extents of a file, by offset, once all of it has a place.

    :raises OSError: the file system does not say
    """
    found: List[Extent] = []
    fd = os.open(path, os.O_RDONLY)
    try:
        start = 0
        while True:
            said = bytearray(_HEAD.size + _AT_ONCE * _EXTENT.size)
            _HEAD.pack_into(said, 0, start, (1 << 64) - 1 - start, _SYNC, 0,
                            _AT_ONCE, 0)
            fcntl.ioctl(fd, _FIEMAP, said)
            count = _HEAD.unpack_from(said)[3]
            flags = _LAST
            for number in range(count):
                offset, at, length, _, _, flags, _, _, _ = \
                    _EXTENT.unpack_from(said, _HEAD.size
                                        + number * _EXTENT.size)
                start = offset + length
                if not flags & (_UNKNOWN | _INLINE):
                    found.append(Extent(offset, at, length))
            if flags & _LAST:
                return found
    finally:
        os.close(fd)


def way(files: Iterable[List[Extent]]) -> Way:
    """The arm's way through the extents of files."""
    number = counted = moves = moved = 0
    end = -1
    for some in files:
        number += bool(some)
        for one in some:
            counted += 1
            if end >= 0 and not 0 <= one.at - end <= NEAR_BYTES:
                moves += 1
                moved += abs(one.at - end)
            end = one.at + one.length
    return Way(number, counted, moves, moved / moves if moves else 0.0)
