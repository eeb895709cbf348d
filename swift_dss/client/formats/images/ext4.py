"""ext2, ext3 and ext4: what ``mount`` and ``e2fsck -n`` read.

Needed: the superblock, group descriptors and the blocks that are kept for
more of them, bitmaps, the used part of each inode table, the journal's first
block, the file of orphans; and by each inode in use its blocks of extents or
of block numbers, of extended attributes, of a directory, and of a long
symbolic link.

Inode tables are 1.6 % of a file system by mke2fs's defaults (256 bytes an
inode, one inode for 16 KiB), of which the unused part stays cold. An image
whose journal has to be replayed reads the journal too, which stays cold here.
"""

from __future__ import annotations

import struct
from typing import Dict, Iterator, NamedTuple

from swift_dss.client.formats.contract import BadFile, Hot, Reader
from swift_dss.client.formats.images.ext4_inodes import (
    ALL_BLOCKS, Blocks, look)
from swift_dss.client.formats.images.scattered import Scattered

_SUPER_AT, _SUPER_BYTES = 1024, 1024
_MAGIC = b'\x53\xef'
_META_BG, _WIDE, _CHECKSUMS = 0x10, 0x80, 0x10 | 0x400
_ORPHANS = 0x1000
_INODES_UNUSED = 1
#: Of a group; a block of bitmap has a bit for each.
_MAX_INODES = 1 << 19
_MAX_GROUPS = 1 << 20


class _Super(NamedTuple):
    """The superblock's numbers.

    :param described: bytes of a group's descriptor
    :param kept: of files of the file system's own, how many of their first
        blocks are metadata; by the number of their inode
    :param has_checksums: whether descriptors say which inodes are unused
    """

    block: int
    groups: int
    group_inodes: int
    inode: int
    first: int
    described: int
    reserved: int
    kept: Dict[int, int]
    has_checksums: bool
    is_wide: bool


def fits(reader: Reader) -> bool:
    """May this be such a file system?"""
    raw = reader.read(_SUPER_AT, _SUPER_BYTES)
    # Two bytes alone would fit one file of 65,536; the size of a block has
    # seven values.
    return raw[56:58] == _MAGIC and raw[24] < 7 and not any(raw[25:28])


def metadata(reader: Reader) -> Iterator[Hot]:
    """The ranges of its metadata.

    :raises BadFile: it contradicts itself
    """
    superblock = _superblock(reader)
    yield Hot(0, _SUPER_AT + _SUPER_BYTES)
    at = (superblock.first + 1) * superblock.block
    raw = reader.exact(at, superblock.groups * superblock.described,
                       'ext4 group descriptors')
    yield Hot(at, len(raw) + (superblock.reserved + 1) * superblock.block)
    scattered = Scattered()
    blocks = Blocks(reader, superblock.block, scattered)
    for group in range(superblock.groups):
        yield from _group(reader, superblock, group, raw[
            group * superblock.described:(group + 1) * superblock.described],
                          blocks)
    yield from scattered.hot()


def _superblock(reader: Reader) -> _Super:
    raw = reader.exact(_SUPER_AT, _SUPER_BYTES, 'ext4 superblock')

    def word(at: int) -> int:
        value: int = struct.unpack_from('<I', raw, at)[0]
        return value

    def half(at: int) -> int:
        value: int = struct.unpack_from('<H', raw, at)[0]
        return value
    features = word(96)
    if word(24) > 6 or not word(32) or features & _META_BG:
        raise BadFile('ext4 superblock', 'has groups or blocks of a kind '
                      'that is not read', _SUPER_AT)
    is_wide = bool(features & _WIDE)
    count = word(4) + (word(336) << 32 if is_wide else 0)
    has_sizes = word(76) > 0
    described = half(254) if is_wide else 32
    inode = half(88) if has_sizes else 128
    block = 1024 << word(24)
    groups = -(-max(0, count - word(20)) // word(32))
    if not 32 <= described <= block or not 128 <= inode <= block \
            or groups > _MAX_GROUPS or not 0 < word(40) <= _MAX_INODES \
            or (is_wide and described < 64):
        raise BadFile('ext4 superblock', 'has %d groups of %d inodes of %d '
                      'bytes' % (groups, word(40), inode), _SUPER_AT)
    reader.check(0, count * block, 'ext4 superblock')
    kept = {word(224): 1}
    if word(92) & _ORPHANS:
        kept[word(640)] = ALL_BLOCKS
    return _Super(block, groups, word(40), inode, word(20), described,
                  half(206), kept, bool(word(100) & _CHECKSUMS),
                  is_wide)


def _group(reader: Reader, superblock: _Super, group: int, raw: bytes,
           blocks: Blocks) -> Iterator[Hot]:
    low = struct.unpack_from('<IIIHHHHIHHHH', raw)
    high = struct.unpack_from('<IIIHHHH', raw, 32) if superblock.is_wide \
        else (0,) * 7
    for number in (low[0] | high[0] << 32, low[1] | high[1] << 32):
        reader.check(number * superblock.block, superblock.block,
                     'ext4 bitmap')
        yield Hot(number * superblock.block, superblock.block)
    used = superblock.group_inodes
    if superblock.has_checksums:
        unused = low[10] | high[6] << 16
        used = 0 if low[6] & _INODES_UNUSED else max(0, used - unused)
    at = (low[2] | high[2] << 32) * superblock.block
    table = reader.exact(at, used * superblock.inode, 'ext4 inode table')
    # Whole blocks are read.
    yield Hot(at, -(-len(table) // superblock.block) * superblock.block)
    for number in range(used):
        look(table[number * superblock.inode:(number + 1) * superblock.inode],
             at + number * superblock.inode, blocks, superblock.kept.get(
                 group * superblock.group_inodes + number + 1, 0))
