"""Blocks of metadata that an inode of ext2, ext3 or ext4 has."""

from __future__ import annotations

import struct
from typing import Iterator, List, Tuple

from swift_dss.client.formats.contract import BadFile, Reader
from swift_dss.client.formats.images.scattered import Scattered

_KIND, _DIRECTORY, _LINK, _FILE = 0xf000, 0x4000, 0xa000, 0x8000
_EXTENTS, _INLINE = 0x80000, 0x10000000
_EXTENT_MAGIC = 0xf30a
_MAX_DEPTH = 5
#: Block numbers in an inode, and the first of them that is indirect.
_NUMBERS, _INDIRECT = 15, 12
_NO_FILE = b'\0\0'
#: More than a file has.
ALL_BLOCKS = 1 << 48


class Blocks:
    """Blocks of a file system, and where those of metadata are noted.

    :param block: bytes of one
    """

    def __init__(self, reader: Reader, block: int,
                 scattered: Scattered) -> None:
        self._reader = reader
        self._block = block
        self._scattered = scattered

    def note(self, number: int, count: int, field: str) -> None:
        """Blocks are metadata.

        :raises BadFile: they are not in the file system
        """
        self._reader.check(number * self._block, count * self._block, field)
        self._scattered.add(number * self._block, count * self._block)

    def read(self, number: int, field: str) -> bytes:
        """A block of metadata, which is noted."""
        self.note(number, 1, field)
        return self._reader.exact(number * self._block, self._block, field)


def look(inode: bytes, at: int, blocks: Blocks, kept: int) -> None:
    """Note the blocks of metadata of one inode.

    :param at: of its first byte, for errors
    :param kept: so many first blocks of a file are metadata too
    :raises BadFile: its trees contradict themselves
    """
    mode, links = inode[0:2], inode[26:28]
    if _NO_FILE in (mode, links):
        return
    kind = struct.unpack('<H', mode)[0] & _KIND
    flags, = struct.unpack_from('<I', inode, 32)
    attributes = struct.unpack_from('<I', inode, 104)[0] \
        | struct.unpack_from('<H', inode, 118)[0] << 32
    if attributes:
        blocks.note(attributes, 1, 'ext4 attributes')
    size, = struct.unpack_from('<I', inode, 4)
    if kind not in (_DIRECTORY, _LINK, _FILE) or flags & _INLINE \
            or (kind == _LINK and size < 60):
        return
    walk = _extents if flags & _EXTENTS else _numbers
    runs = walk(inode[40:100], at + 40, blocks, kind != _FILE or kept > 0)
    for start, count in runs:
        if kind != _FILE:
            blocks.note(start, count, 'ext4 directory')
        elif kept:
            count = min(count, kept)
            kept -= count
            blocks.note(start, count, 'ext4 journal or orphans')


def _extents(root: bytes, at: int, blocks: Blocks,
             is_wanted: bool) -> Iterator[Tuple[int, int]]:
    """(first block, blocks) of each extent.

    :param is_wanted: whether data count; else only the tree does
    """
    left: List[Tuple[bytes, int]] = [(root, _MAX_DEPTH + 1)]
    while left:
        raw, above = left.pop()
        magic, count, _, depth = struct.unpack_from('<HHHH', raw)
        if magic != _EXTENT_MAGIC or depth >= above \
                or 12 * (count + 1) > len(raw):
            raise BadFile('ext4 extents', 'of an inode are damaged', at)
        below: List[Tuple[bytes, int]] = []
        for number in range(1, count + 1):
            _, length, high, low = struct.unpack_from('<IHHI', raw,
                                                      12 * number)
            if not depth:
                # Longer ones are reserved and not written.
                yield high << 32 | low, length if length <= 32768 \
                    else length - 32768
                continue
            _, low, high = struct.unpack_from('<IIH', raw, 12 * number)
            block = high << 32 | low
            if is_wanted or depth > 1:
                below.append((blocks.read(block, 'ext4 extents'), depth))
            else:
                blocks.note(block, 1, 'ext4 extents')
        # The first is to be taken first.
        left += reversed(below)


def _numbers(body: bytes, _: int, blocks: Blocks,
             is_wanted: bool) -> Iterator[Tuple[int, int]]:
    """(block, 1) of each block that ext2's numbers name.

    :param is_wanted: whether data count; else only the tree does
    """
    numbers = struct.unpack('<%dI' % _NUMBERS, body)
    left = [(number, max(0, place - _INDIRECT + 1))
            for place, number in enumerate(numbers) if number]
    # The first is to be taken first.
    left.reverse()
    while left:
        number, depth = left.pop()
        if not depth:
            yield number, 1
        if not depth or (depth == 1 and not is_wanted):
            if depth:
                blocks.note(number, 1, 'ext4 block numbers')
            continue
        raw = blocks.read(number, 'ext4 block numbers')
        left += [(inner, depth - 1) for inner, in reversed(list(
            struct.iter_unpack('<I', raw))) if inner]
