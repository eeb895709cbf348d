"""Arrow IPC files, which are Feather's version 2: footer and batch headers.

Needed: the magic and the schema in front, the footer, and the magic behind
it. Optional: the header of each dictionary and record batch, and whole
dictionaries, which readers of any column want. The footer is a table of
FlatBuffers, of which two lists are read here.
"""

from __future__ import annotations

import struct
from typing import Iterator, Tuple

from swift_dss.client.formats.contract import BadFile, Format, Hot, Reader, \
    Wish

_MAGIC = b'ARROW1'
#: Length of the footer, and magic.
_END_BYTES = 10
#: Readers of a stream find the schema in front.
_FRONT_BYTES = 4096
#: Fields of the footer's table.
_DICTIONARIES, _BATCHES = 2, 3
_BLOCK = struct.Struct('<qi4xq')
_MAX_BATCHES = 1 << 20
_FIELD = 'Arrow footer'


def _fits(reader: Reader) -> bool:
    return reader.read(0, 6) == _MAGIC \
        and reader.read(reader.size - 6, 6) == _MAGIC


def _hot(reader: Reader, _: Wish) -> Iterator[Hot]:
    end = reader.size - _END_BYTES
    raw = reader.exact(end, _END_BYTES, 'Arrow footer length')
    length, = struct.unpack_from('<i', raw)
    if raw[4:] != _MAGIC or not 0 < length <= end:
        raise BadFile('Arrow footer length', 'is %d in a file of %d bytes'
                      % (length, reader.size), end)
    start = end - length
    yield Hot(0, _FRONT_BYTES)
    yield Hot(start, reader.size - start)
    footer = reader.exact(start, length, _FIELD)
    for field in (_DICTIONARIES, _BATCHES):
        for offset, header, body in _blocks(footer, field, start):
            size = header + (body if field == _DICTIONARIES else 0)
            reader.check(offset, size, 'Arrow block')
            yield Hot(offset, size, False)


def _blocks(footer: bytes, field: int,
            start: int) -> Iterator[Tuple[int, int, int]]:
    """(offset, bytes of the header, bytes of the body) of each block.

    :param start: of the footer in the file
    """
    try:
        table, = struct.unpack_from('<I', footer)
        fields = table - struct.unpack_from('<i', footer, table)[0]
        if fields < 0:
            raise BadFile(_FIELD, 'has a table in front of it', start)
        size, = struct.unpack_from('<H', footer, fields)
        place = 4 + 2 * field
        inside = struct.unpack_from('<H', footer, fields + place)[0] \
            if place + 2 <= size else 0
        if not inside:
            return
        at = table + inside
        at += struct.unpack_from('<I', footer, at)[0]
        count, = struct.unpack_from('<I', footer, at)
        if count > _MAX_BATCHES:
            raise BadFile(_FIELD, 'claims %d blocks' % count, start + at)
        for number in range(count):
            offset, header, body = _BLOCK.unpack_from(
                footer, at + 4 + number * _BLOCK.size)
            if min(offset, header, body) < 0:
                raise BadFile('Arrow block', 'has a negative place',
                              start + at)
            yield offset, header, body
    except struct.error as err:
        raise BadFile(_FIELD, 'names a place outside of it', start) from err


FORMAT = Format('arrow', _fits, _hot)
