"""TIFF, BigTIFF and cloud-optimised GeoTIFF (COG): the directories.

Needed: the header, each image's directory (IFD), those under it (overviews,
EXIF, GPS), and the values of their tags, which are the offsets and lengths of
tiles and strips among others. Pixels stay cold. A file of very small tiles
has more than 2 % hot: each tile costs 8 to 16 bytes here.
"""

from __future__ import annotations

import struct
from typing import Iterator, List, NamedTuple, Set, Tuple

from swift_dss.client.formats.contract import BadFile, Format, Hot, Reader, \
    Wish

#: Bytes of a value, by its type.
_WIDTHS = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8,
           11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
#: Tags whose values are offsets of directories: SubIFDs, EXIF, GPS, and
#: EXIF's interoperability.
_POINTERS = frozenset((330, 34665, 34853, 40965))
_MAX_DIRECTORIES = 1 << 17
#: Directories under one; EXIF has one, a pyramid some dozens.
_MAX_UNDER = 4096


class _Layout(NamedTuple):
    """How numbers and entries of a file are written."""

    order: str
    is_big: bool

    def number(self, raw: bytes) -> int:
        """An offset, of 4 or 8 bytes."""
        value: int = struct.unpack(
            self.order + ('Q' if len(raw) == 8 else 'I'), raw)[0]
        return value

    @property
    def entries(self) -> struct.Struct:
        """The number of entries."""
        return struct.Struct(self.order + ('Q' if self.is_big else 'H'))

    @property
    def entry(self) -> struct.Struct:
        """Tag, type, count, and a value or where it is."""
        return struct.Struct(self.order + ('HHQ8s' if self.is_big
                                           else 'HHI4s'))

    @property
    def word(self) -> int:
        """Bytes of an offset."""
        return 8 if self.is_big else 4


def _fits(reader: Reader) -> bool:
    return reader.read(0, 4) in (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+')


def _hot(reader: Reader, _: Wish) -> Iterator[Hot]:
    layout, first = _header(reader)
    yield Hot(0, 16)
    left, seen = [first], {0}
    while left:
        at = left.pop()
        if at in seen:
            continue
        seen.add(at)
        if len(seen) > _MAX_DIRECTORIES:
            raise BadFile('TIFF directory', 'is one of more than %d'
                          % _MAX_DIRECTORIES, at)
        yield from _directory(reader, layout, at, left)


def _header(reader: Reader) -> Tuple[_Layout, int]:
    """(layout, offset of the first directory)."""
    raw = reader.exact(0, 8, 'TIFF header')
    layout = _Layout('<' if raw[:1] == b'I' else '>',
                     raw[2:4] in (b'+\0', b'\0+'))
    if not layout.is_big:
        return layout, layout.number(raw[4:8])
    return layout, layout.number(reader.exact(8, 8, 'TIFF header'))


def _directory(reader: Reader, layout: _Layout, at: int,
               left: List[int]) -> Iterator[Hot]:
    """The ranges of a directory.

    :param left: is told of the next one, and of those under it
    """
    count, = layout.entries.unpack(
        reader.exact(at, layout.entries.size, 'TIFF directory'))
    length = count * layout.entry.size
    start = at + layout.entries.size
    raw = reader.exact(start, length + layout.word, 'TIFF directory')
    yield Hot(at, layout.entries.size + len(raw))
    under: Set[int] = set()
    for number in range(count):
        place = number * layout.entry.size
        tag, kind, values, value = layout.entry.unpack_from(raw, place)
        size = values * _WIDTHS.get(kind, 0)
        if size > layout.word:
            where = layout.number(value)
            reader.check(where, size, 'TIFF tag %d' % tag)
            yield Hot(where, size)
            if tag in _POINTERS:
                under.update(_offsets(reader, layout, tag, kind, where,
                                      size))
        elif tag in _POINTERS and values == 1:
            under.add(layout.number(value))
    left += [layout.number(raw[length:]), *sorted(under)]


def _offsets(reader: Reader, layout: _Layout, tag: int, kind: int,
             where: int, size: int) -> Iterator[int]:
    width = _WIDTHS[kind]
    if width not in (4, 8) or size > _MAX_UNDER * width:
        raise BadFile('TIFF tag %d' % tag, 'has no offsets, or more than %d'
                      % _MAX_UNDER, where)
    raw = reader.exact(where, size, 'TIFF tag %d' % tag)
    for at in range(0, size, width):
        yield layout.number(raw[at:at + width])


FORMAT = Format('tiff', _fits, _hot)
