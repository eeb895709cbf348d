"""Where files lie on a disk, and how far its arm goes from one to the next.

Asks the file system for the extents of files (FIEMAP). Blocks.
"""

from __future__ import annotations

import fcntl
import os
import struct
from typing import Iterable, List, NamedTuple, Optional, Tuple

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
    extents: List[Extent] = []
    fd = os.open(path, os.O_RDONLY)
    try:
        start = 0
        while True:
            flags = _LAST
            for extent, flags in _mapped(fd, start, (1 << 64) - 1 - start,
                                         _SYNC, _AT_ONCE):
                start = extent.offset + extent.length
                if not flags & (_UNKNOWN | _INLINE):
                    extents.append(extent)
            if flags & _LAST:
                return extents
    finally:
        os.close(fd)


def begins(fd: int) -> Optional[int]:
    """Where an open file's first extent is on the disk; None if it has none
    yet, or the file system does not say. Does not wait for the disk."""
    try:
        first = _mapped(fd, 0, 1, 0, 1)
    except OSError:
        return None
    return next((extent.at for extent, flags in first
                 if not flags & (_UNKNOWN | _INLINE)), None)


def _mapped(fd: int, start: int, length: int, how: int,
            most: int) -> List[Tuple[Extent, int]]:
    """Extents of a range of an open file, each with its flags.

    :param how: ``_SYNC``: once all of it has a place
    :param most: extents
    """
    said = bytearray(_HEAD.size + most * _EXTENT.size)
    _HEAD.pack_into(said, 0, start, length, how, 0, most, 0)
    fcntl.ioctl(fd, _FIEMAP, said)
    mapped = []
    for number in range(_HEAD.unpack_from(said)[3]):
        offset, at, size, _, _, flags, _, _, _ = _EXTENT.unpack_from(
            said, _HEAD.size + number * _EXTENT.size)
        mapped.append((Extent(offset, at, size), flags))
    return mapped


def way(files: Iterable[List[Extent]]) -> Way:
    """The arm's way through the extents of files."""
    number = counted = moves = moved = 0
    end = -1
    for extents in files:
        number += bool(extents)
        for extent in extents:
            counted += 1
            if end >= 0 and not 0 <= extent.at - end <= NEAR_BYTES:
                moves += 1
                moved += abs(extent.at - end)
            end = extent.at + extent.length
    return Way(number, counted, moves, moved / moves if moves else 0.0)
