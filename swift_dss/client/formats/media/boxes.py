"""Boxes of ISO media files (MP4, MOV): a length, a kind, and what is in it.

Boxes inside of a box are read from memory; those of the file, one header at
a time.
"""

from __future__ import annotations

import struct
from typing import Iterator, List, NamedTuple

from swift_dss.client.formats.contract import BadFile, Reader

_HEADER = struct.Struct('>I4s')
_LONG = struct.Struct('>Q')
#: In one box: no file has as many tracks, nor tables in one.
_MAX_BOXES = 4096


class Box(NamedTuple):
    """One box of a file.

    :param offset: of its header
    :param length: of it all
    :param body: offset of what is in it
    """

    kind: bytes
    offset: int
    length: int
    body: int

    @property
    def name(self) -> str:
        """The box in an error."""
        return 'MP4 box %s' % ascii(self.kind)[2:-1]


def top_level(reader: Reader) -> Iterator[Box]:
    """The boxes of a file.

    :raises BadFile: one passes the end, or is shorter than its header
    """
    at = 0
    while at < reader.size:
        raw = reader.read(at, _HEADER.size + _LONG.size)
        if len(raw) < _HEADER.size:
            raise BadFile('MP4 box', 'the file ends in its header', at)
        box = _box(raw, at, reader.size)
        yield box
        at += box.length


class Moov:
    """A box that is held in memory, and the boxes in it.

    :param box: the outermost
    :raises BadFile: it is too large
    """

    def __init__(self, reader: Reader, box: Box) -> None:
        self.box = box
        self._raw = reader.exact(box.offset, box.length, box.name)

    def inside(self, outer: Box) -> Iterator[Box]:
        """The boxes in a box.

        :raises BadFile: one passes its end, or there are too many
        """
        at, end = outer.body, outer.offset + outer.length
        for _ in range(_MAX_BOXES):
            # Some writers end a box with a zero length.
            if end - at < _HEADER.size:
                return
            start = at - self.box.offset
            box = _box(self._raw[start:start + 16], at, end)
            yield box
            at += box.length
        raise BadFile(outer.name, 'holds more than %d boxes' % _MAX_BOXES, at)

    def all(self, outer: Box, kind: bytes) -> List[Box]:
        """The boxes of one kind in a box."""
        return [box for box in self.inside(outer) if box.kind == kind]

    def one(self, outer: Box, *kinds: bytes) -> Box:
        """The box at the end of a path.

        :raises BadFile: there is none
        """
        for kind in kinds:
            boxes = self.all(outer, kind)
            if not boxes:
                raise BadFile(outer.name, 'has no box %s'
                              % ascii(kind)[2:-1], outer.offset)
            outer = boxes[0]
        return outer

    def taken(self, box: Box, start: int, length: int) -> bytes:
        """Bytes of what is in a box.

        :raises BadFile: the box is shorter
        """
        at = box.body + start
        if at + length > box.offset + box.length:
            raise BadFile(box.name, 'claims %d bytes, and has %d' % (
                start + length, box.offset + box.length - box.body),
                box.offset)
        at -= self.box.offset
        return self._raw[at:at + length]


def _box(raw: bytes, at: int, end: int) -> Box:
    """:param end: of what the box lies in"""
    length, kind = _HEADER.unpack_from(raw)
    body = at + _HEADER.size
    if length == 1:
        if len(raw) < _HEADER.size + _LONG.size:
            raise BadFile('MP4 box', 'the file ends in its header', at)
        length, = _LONG.unpack_from(raw, _HEADER.size)
        body += _LONG.size
    elif length == 0:
        length = end - at
    box = Box(kind, at, length, body)
    if at + length > end or body > at + length:
        raise BadFile(box.name, 'claims %d bytes, and there are %d'
                      % (length, end - at), at)
    return box
