"""XFS: what ``mount`` and ``xfs_repair -n`` read.

Needed: of each allocation group its headers, the B-trees of free space,
inodes, owners and reference counts, and the chunks of inodes; the log; and by
each inode the B-tree of its extents, its attributes, and the blocks of a
directory or a symbolic link.

The log is 64 MiB at least by today's mkfs, so a file system below 4 GiB has
more than 2 % hot. A realtime device or an external log is not looked at.
"""

from __future__ import annotations

import struct
from typing import Iterator, List, NamedTuple, Tuple

from swift_dss.client.formats.contract import BadFile, Hot, Reader
from swift_dss.client.formats.images.scattered import Scattered
from swift_dss.client.formats.images.xfs_inodes import Layout, look

_MAGIC = b'XFSB'
_CHUNK = 64
_MAX_GROUPS = 1 << 16
_MAX_LEVELS = 10


class _Tree(NamedTuple):
    """A kind of B-tree.

    :param key: bytes of a key, of both where intervals overlap
    """

    field: str
    key: int


_SPACE = _Tree('XFS free space', 8)
_OWNERS = _Tree('XFS owners', 40)
_INODES = _Tree('XFS inodes', 4)
_SHARED = _Tree('XFS reference counts', 4)


def fits(reader: Reader) -> bool:
    """May this be such a file system?"""
    return reader.read(0, 4) == _MAGIC


def metadata(reader: Reader) -> Iterator[Hot]:
    """The ranges of its metadata.

    :raises BadFile: it contradicts itself
    """
    raw = reader.exact(0, 512, 'XFS superblock')
    layout, groups = _superblock(reader, raw)
    start, = struct.unpack_from('>Q', raw, 48)
    length, = struct.unpack_from('>I', raw, 96)
    if start:
        at = layout.byte_of(start)
        reader.check(at, length * layout.block, 'XFS log')
        yield Hot(at, length * layout.block)
    scattered = Scattered()
    for group in range(groups):
        yield from _group(reader, layout, group, scattered)
    yield from scattered.hot()


def _superblock(reader: Reader, raw: bytes) -> Tuple[Layout, int]:
    """(layout, allocation groups)."""
    block, blocks = struct.unpack_from('>IQ', raw, 4)
    group_blocks, groups = struct.unpack_from('>II', raw, 84)
    version, sector, inode = struct.unpack_from('>HHH', raw, 100)
    inode_log, group_log = raw[123], raw[124]
    is_new = version & 15 == 5
    wide = is_new and bool(struct.unpack_from('>I', raw, 216)[0] & 0x20)
    if block not in (1 << bits for bits in range(9, 17)) \
            or not 256 <= inode <= block or not 512 <= sector <= block \
            or block // inode != 1 << inode_log or group_log > 31 \
            or not 0 < group_blocks <= 1 << group_log \
            or not 0 < groups <= _MAX_GROUPS:
        raise BadFile('XFS superblock', 'has %d groups of %d blocks of %d '
                      'bytes' % (groups, group_blocks, block), 0)
    reader.check(0, blocks * block, 'XFS superblock')
    return Layout(reader, block, sector, inode, inode_log, group_log,
                  group_blocks, is_new, wide), groups


def _group(reader: Reader, layout: Layout, group: int,
           scattered: Scattered) -> Iterator[Hot]:
    start = group * layout.group_blocks * layout.block
    yield Hot(start, max(4 * layout.sector, layout.block))
    free = reader.exact(start + layout.sector, 96, 'XFS AGF')
    inodes = reader.exact(start + 2 * layout.sector, 336, 'XFS AGI')
    if free[:4] != b'XAGF' or inodes[:4] != b'XAGI':
        raise BadFile('XFS allocation group', '%d has no headers' % group,
                      start)
    roots = struct.unpack_from('>6I', free, 16)
    counts = struct.unpack_from('>II', free, 88)
    trees = [(_SPACE, roots[0], roots[3]), (_SPACE, roots[1], roots[4])]
    if layout.is_new:
        trees += [(_OWNERS, roots[2], roots[5]), (_SHARED, *counts),
                  (_INODES, *struct.unpack_from('>II', inodes, 328))]
    for kind, root, levels in trees:
        if root and levels:
            _leaves(reader, layout, start, kind, (root, levels), scattered)
    root, levels = struct.unpack_from('>II', inodes, 20)
    for leaf in _leaves(reader, layout, start, _INODES, (root, levels),
                        scattered):
        yield from _chunks(reader, layout, start, leaf, scattered)


def _leaves(reader: Reader, layout: Layout, start: int, kind: _Tree,
            top: Tuple[int, int], scattered: Scattered) -> List[int]:
    """Note the blocks of a B-tree; where its leaves are.

    :param start: of the allocation group
    :param top: the root's block in it, and how many levels there are
    """
    header = 56 if layout.is_new else 16
    room = (layout.block - header) // (kind.key + 4)
    leaves: List[int] = []
    left: List[Tuple[int, int]] = [top]
    while left:
        number, levels = left.pop()
        at = start + number * layout.block
        reader.check(at, layout.block, kind.field)
        scattered.add(at, layout.block)
        if levels == 1:
            leaves.append(at)
            continue
        raw = reader.exact(at, layout.block, kind.field)
        level, count = struct.unpack_from('>HH', raw, 4)
        if not 1 < levels <= _MAX_LEVELS or level != levels - 1 \
                or count > room:
            raise BadFile(kind.field, 'have a block of level %d and %d '
                          'entries where level %d is expected' % (
                              level, count, levels - 1), at)
        left += [(child, level) for child in struct.unpack_from(
            '>%dI' % count, raw, header + room * kind.key)]
    return leaves


def _chunks(reader: Reader, layout: Layout, start: int, leaf: int,
            scattered: Scattered) -> Iterator[Hot]:
    """The inodes that a leaf names, and what they have."""
    header = 56 if layout.is_new else 16
    records = reader.exact(leaf, layout.block, _INODES.field)
    level, count = struct.unpack_from('>HH', records, 4)
    if level or header + count * 16 > layout.block:
        raise BadFile(_INODES.field, 'have a leaf of level %d and %d entries'
                      % (level, count), leaf)
    length = _CHUNK * layout.inode
    for record in range(header, header + count * 16, 16):
        first, _, free = struct.unpack_from('>IIQ', records, record)
        at = start + (first >> layout.inode_log) * layout.block
        raw = reader.exact(at, length, 'XFS inode chunk')
        yield Hot(at, length)
        for number in range(_CHUNK):
            if not free >> number & 1:
                look(raw[number * layout.inode:(number + 1) * layout.inode],
                     at + number * layout.inode, layout, scattered)
