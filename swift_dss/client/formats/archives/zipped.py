"""The ZIP family: jar, wheel, docx, epub, npz and other ZIP archives.

Needed: the central directory and all that follows it, which is the list of
members; of an archive with a comment, the last 64 KiB, in which readers look
for its end. Members themselves stay cold, their local headers with them. The
end records are read here, for the directory itself may be long.
"""

from __future__ import annotations

import struct
from typing import Iterator, Tuple

from swift_dss.client.formats.contract import BadFile, Format, Hot, Reader, \
    Wish

_LOCAL = b'PK\3\4'
_END = b'PK\5\6'
_END_RECORD = struct.Struct('<4s4H2LH')
_LOCATOR = struct.Struct('<4sLQL')
_END_64 = struct.Struct('<4sQ2H2L4Q')
#: Python's zipfile looks for a comment of one byte more than there can be.
_MAX_COMMENT_BYTES = 65536
_UNSET_16, _UNSET_32 = 0xffff, 0xffffffff


def _fits(reader: Reader) -> bool:
    return reader.read(0, 4) in (_LOCAL, _END) or \
        reader.read(max(0, reader.size - _END_RECORD.size), 4) == _END


def _hot(reader: Reader, _: Wish) -> Iterator[Hot]:
    end = _end_record(reader)
    if end + _END_RECORD.size != reader.size:
        tail = max(0, reader.size - _END_RECORD.size - _MAX_COMMENT_BYTES)
        yield Hot(tail, reader.size - tail)
    length, before = _directory(reader, end)
    if length > before:
        raise BadFile('ZIP central directory', 'claims %d bytes, and there '
                      'are %d in front of its end' % (length, before), end)
    start = before - length
    if length and reader.exact(start, 4, 'ZIP central directory') \
            != b'PK\1\2':
        raise BadFile('ZIP central directory', 'does not begin with PK\\1\\2',
                      start)
    yield Hot(start, reader.size - start)


def _end_record(reader: Reader) -> int:
    """Offset of the end record; of several that fit, the last."""
    start = max(0, reader.size - _END_RECORD.size - _MAX_COMMENT_BYTES)
    tail = reader.read(start, reader.size - start)
    at = tail.rfind(_END, 0, max(0, len(tail) - _END_RECORD.size) + 4)
    if at < 0:
        raise BadFile('ZIP end record', 'is not in the last %d bytes'
                      % len(tail), start)
    return start + at


def _directory(reader: Reader, end: int) -> Tuple[int, int]:
    """(bytes of the directory, offset after it)."""
    fields = _END_RECORD.unpack(
        reader.exact(end, _END_RECORD.size, 'ZIP end record'))
    length = fields[5]
    at = end - _LOCATOR.size
    locator = reader.read(at, _LOCATOR.size) if at >= 0 else b''
    if not locator.startswith(b'PK\6\7'):
        if _UNSET_32 in fields[5:7] or fields[4] == _UNSET_16:
            raise BadFile('ZIP64 locator', 'is not in front of the end '
                          'record', end)
        return length, end
    # Readers take the record in front of the locator, wherever that says it
    # is: an archive may follow a program.
    at -= _END_64.size
    if at < 0:
        raise BadFile('ZIP64 end record', 'does not fit in the file', 0)
    record = _END_64.unpack(reader.exact(at, _END_64.size,
                                         'ZIP64 end record'))
    if record[0] != b'PK\6\6':
        raise BadFile('ZIP64 end record', 'is not in front of its locator',
                      at)
    return record[8], at


FORMAT = Format('zip', _fits, _hot)
