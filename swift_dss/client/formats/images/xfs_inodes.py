"""Blocks of metadata that an inode of XFS has."""

from __future__ import annotations

import struct
from typing import Iterator, List, NamedTuple, Tuple

from swift_dss.client.formats.contract import BadFile, Reader
from swift_dss.client.formats.images.scattered import Scattered

_MAGIC = b'IN'
_KIND, _DIRECTORY, _LINK = 0xf000, 0x4000, 0xa000
_EXTENTS, _BTREE = 2, 3
_MAX_LEVELS = 10


class Layout(NamedTuple):
    """The numbers of a superblock.

    :param sector: bytes of one; the headers of a group have one each
    :param inode: bytes of one
    :param inode_log: how many a block has, as a power of two
    :param group_log: bits of a block's number in its group
    :param is_new: version 5, whose blocks describe themselves
    :param has_wide_counts: of extents
    """

    reader: Reader
    block: int
    sector: int
    inode: int
    inode_log: int
    group_log: int
    group_blocks: int
    is_new: bool
    has_wide_counts: bool

    def byte_of(self, number: int) -> int:
        """Where a block of the file system is."""
        group = number >> self.group_log
        inside = number & ((1 << self.group_log) - 1)
        return (group * self.group_blocks + inside) * self.block

    def note(self, scattered: Scattered, number: int, count: int,
             field: str) -> int:
        """Blocks are metadata; where they are.

        :raises BadFile: they are not in the file system
        """
        at = self.byte_of(number)
        self.reader.check(at, count * self.block, field)
        scattered.add(at, count * self.block)
        return at


def look(inode: bytes, at: int, layout: Layout,
         scattered: Scattered) -> None:
    """Note the blocks of metadata of one inode.

    :param at: of its first byte, for errors
    :raises BadFile: its trees contradict themselves
    """
    if inode[:2] != _MAGIC:
        return
    kind = struct.unpack_from('>H', inode, 2)[0] & _KIND
    start = 176 if inode[4] == 3 else 100
    attributes = start + inode[82] * 8 if inode[82] else len(inode)
    if attributes > len(inode):
        raise BadFile('XFS inode', 'has attributes past its end', at)
    if layout.has_wide_counts:
        count, attribute_count = struct.unpack_from('>Q', inode, 24)[0], \
            struct.unpack_from('>I', inode, 76)[0]
    else:
        count, attribute_count = struct.unpack_from('>IH', inode, 76)
    _fork(inode[start:attributes], (inode[5], count, at), layout, scattered,
          kind in (_DIRECTORY, _LINK))
    _fork(inode[attributes:], (inode[83], attribute_count, at), layout,
          scattered, True)


def _fork(raw: bytes, form: Tuple[int, int, int], layout: Layout,
          scattered: Scattered, is_metadata: bool) -> None:
    """Note the blocks of a fork.

    :param form: its kind, its extents, and where the inode is
    :param is_metadata: whether its data are noted; else only its tree
    """
    kind, count, at = form
    if kind == _EXTENTS and is_metadata:
        if count * 16 > len(raw):
            raise BadFile('XFS inode', 'claims %d extents' % count, at)
        _note_extents(raw, count, layout, scattered)
    elif kind == _BTREE and len(raw) >= 4:
        for leaf, extents in _leaves(raw, at, layout, scattered,
                                     is_metadata):
            _note_extents(leaf, extents, layout, scattered)


def _note_extents(raw: bytes, count: int, layout: Layout,
                  scattered: Scattered) -> None:
    for number in range(min(count, len(raw) // 16)):
        high, low = struct.unpack_from('>QQ', raw, number * 16)
        layout.note(scattered, (high & 0x1ff) << 43 | low >> 21,
                    low & 0x1fffff, 'XFS extent')


def _leaves(root: bytes, at: int, layout: Layout, scattered: Scattered,
            is_read: bool) -> Iterator[Tuple[bytes, int]]:
    """(extents, how many) of each leaf; no leaf unless ``is_read``."""
    header = 72 if layout.is_new else 24
    level, count = struct.unpack_from('>HH', root)
    left: List[Tuple[int, int]] = [
        (child, level) for child in _children(root, at, 4, count)]
    while left:
        number, above = left.pop()
        place = layout.note(scattered, number, 1, 'XFS extents')
        if above == 1 and not is_read:
            continue
        raw = layout.reader.exact(place, layout.block, 'XFS extents')
        level, count = struct.unpack_from('>HH', raw, 4)
        if level != above - 1 or level > _MAX_LEVELS:
            raise BadFile('XFS extents', 'have a block of level %d where %d '
                          'is expected' % (level, above - 1), place)
        if level:
            left += [(child, level) for child in _children(
                raw, place, header, count)]
        else:
            yield raw[header:], count


def _children(raw: bytes, at: int, header: int, count: int) -> List[int]:
    room = (len(raw) - header) // 16
    if count > room:
        raise BadFile('XFS extents', 'claim %d children' % count, at)
    return list(struct.unpack_from('>%dQ' % count, raw, header + room * 8))
