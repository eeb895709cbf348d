"""ORC: the tail of the file, and the indexes of its stripes.

Needed: the magic, and the last 16 KiB, which readers ask for first, or the
tail (stripe statistics, footer, postscript) if it is longer. Optional: the
row indexes and the footer of each stripe, by which readers skip rows. pyarrow
reads the tail and unpacks it; the list of stripes in it is read here.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Tuple, Union

from swift_dss.client.formats.contract import (
    BadFile, Format, Hot, Reader, Wish, library, reason_of)
from swift_dss.client.formats.readers import AsFile

_MAGIC = b'ORC'
_TAIL_BYTES = 16 << 10
#: Fields of the tail, the footer and a stripe in Protocol Buffers.
_FOOTER, _STRIPES = 2, 3
_OFFSET, _INDEX, _DATA, _END = 1, 2, 3, 4
_MAX_STRIPES = 1 << 20
_FIELD = 'ORC footer'


def _fits(reader: Reader) -> bool:
    return reader.read(0, 3) == _MAGIC and reader.size > 16


def _hot(reader: Reader, _: Wish) -> Iterator[Hot]:
    opened = _opened(reader)
    # Of the postscript the length is one byte more.
    tail = opened.stripe_statistics_length + opened.file_footer_length \
        + opened.file_postscript_length + 1
    if not 0 < tail <= reader.size:
        raise BadFile(_FIELD, 'claims %d bytes in a file of %d'
                      % (tail, reader.size), reader.size)
    tail = min(reader.size, max(tail, _TAIL_BYTES))
    yield Hot(0, len(_MAGIC))
    yield Hot(reader.size - tail, tail)
    stripes = _stripes(opened.reader.serialized_file_tail())
    for number, stripe in enumerate(stripes):
        if number >= _MAX_STRIPES:
            raise BadFile(_FIELD, 'has more than %d stripes' % _MAX_STRIPES)
        start, index = stripe.get(_OFFSET, 0), stripe.get(_INDEX, 0)
        end = start + index + stripe.get(_DATA, 0)
        reader.check(start, index, 'ORC stripe')
        reader.check(end, stripe.get(_END, 0), 'ORC stripe')
        yield Hot(start, index, False)
        yield Hot(end, stripe.get(_END, 0), False)


def _opened(reader: Reader) -> Any:
    arrow = library('pyarrow', 'ORC')
    orc = library('pyarrow.orc', 'ORC')
    try:
        return orc.ORCFile(AsFile(reader))
    except (arrow.ArrowException, OSError, ValueError) as err:
        raise BadFile(_FIELD, reason_of(err), reader.size) from err


def _stripes(tail: bytes) -> Iterator[Dict[int, int]]:
    """The numbers of each stripe, by their field."""
    for field, footer in _fields(tail):
        if field == _FOOTER and isinstance(footer, bytes):
            for inner, stripe in _fields(footer):
                if inner == _STRIPES and isinstance(stripe, bytes):
                    yield {name: value for name, value in _fields(stripe)
                           if isinstance(value, int)}


def _fields(raw: bytes) -> Iterator[Tuple[int, Union[int, bytes]]]:
    """(number, value) of each field of a message."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(raw, at)
            yield key >> 3, value
        elif kind == 2:
            length, at = _varint(raw, at)
            if at + length > len(raw):
                raise BadFile(_FIELD, 'has a field of %d bytes' % length)
            yield key >> 3, raw[at:at + length]
            at += length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise BadFile(_FIELD, 'has a field of kind %d' % kind)


def _varint(raw: bytes, at: int) -> Tuple[int, int]:
    """(number, offset after it)."""
    value = 0
    for place in range(10):
        if at + place >= len(raw):
            break
        byte = raw[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise BadFile(_FIELD, 'has a number without an end')


FORMAT = Format('orc', _fits, _hot)
