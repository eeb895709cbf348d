"""The class map as text for headers and metadata.

``encode`` gives ``<rest>`` for an object of one class (``"25"``), else
``"m1:" + base64(zlib(run lengths))``: pairs of (length as an unsigned
LEB128 number, class byte) from offset 0, then one ``0`` length whose class
byte is the class of the rest. Long texts are cut over numbered headers.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import zlib
from typing import Dict, List, Mapping, Optional, Tuple

from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.limits import (
    CLASS_ID_MAX, DEFAULT_MAX_SPANS, MAP_CHUNK_BYTES, MAX_MAP_CHUNKS,
    MAX_OBJECT_BYTES)
from swift_dss.core.spans import ClassMap, Span

_PREFIX = 'm1:'
_FIELD = 'class map'
#: Of a part of a map that is worth its text: each read has one.
_MOST_PIECES = 32
#: Ten LEB128 bytes and a class for each span: no map inflates past this.
_MAX_RAW_BYTES = 11 * (DEFAULT_MAX_SPANS + 1)


#: Nearly all objects have one of these.
_UNIFORM = tuple(map(ClassMap.uniform, range(CLASS_ID_MAX + 1)))


def encode(class_map: ClassMap) -> str:
    """Text form; ASCII without spaces."""
    if class_map.is_uniform:
        return str(class_map.rest)
    raw = bytearray()
    for span in class_map.spans:
        _append_leb128(raw, span.length)
        raw.append(span.class_id)
    raw += bytes((0, class_map.rest))
    packed = base64.b64encode(zlib.compress(bytes(raw), 9))
    return _PREFIX + packed.decode('ascii')


def encode_part(class_map: ClassMap, start: int, end: int) -> str:
    """Text form of a map that has the classes of a range; '' if the object
    has one class. Outside of the range it says nothing.

    Of a range with many spans it has as many bytes of each class, in a span
    each: each read waits for its text.
    """
    if class_map.is_uniform:
        return ''
    pieces = list(itertools.islice(
        class_map.split(start, end - start), _MOST_PIECES + 1))
    if len(pieces) > _MOST_PIECES:
        pieces = []
        for class_id, length in class_map.bytes_by_class(
                start, end - start).items():
            pieces.append(Span(start, length, class_id))
            start += length
    classes = {piece.class_id for piece in pieces}
    return str(classes.pop()) if len(classes) == 1 else encode(
        ClassMap.from_spans(pieces, class_map.rest))


def decode(text: str) -> ClassMap:
    """The map that :func:`encode` wrote.

    :raises BadClassInput: the text is not one; nothing is guessed
    """
    if not text.startswith(_PREFIX):
        if not (text.isascii() and text.isdigit() and len(text) <= 2
                and int(text) <= CLASS_ID_MAX):
            raise BadClassInput(_FIELD, 'not a class id: %r' % text[:32])
        return _UNIFORM[int(text)]
    try:
        packed = base64.b64decode(text[len(_PREFIX):], validate=True)
        inflate = zlib.decompressobj()
        raw = inflate.decompress(packed, _MAX_RAW_BYTES)
    except (binascii.Error, ValueError, zlib.error) as err:
        raise BadClassInput(_FIELD, 'cannot be unpacked: %s' % err) from err
    if not inflate.eof or inflate.unused_data:
        raise BadClassInput(_FIELD, 'is cut off or too long')
    return _decode_runs(raw)


def _decode_runs(raw: bytes) -> ClassMap:
    spans: List[Span] = []
    offset = position = 0
    while True:
        length, position = _read_leb128(raw, position)
        if position >= len(raw):
            raise BadClassInput(_FIELD, 'ends inside a run', position)
        class_id = raw[position]
        position += 1
        if class_id > CLASS_ID_MAX:
            raise BadClassInput(
                _FIELD, 'class id %d' % class_id, position - 1)
        if not length:
            break
        if len(spans) >= DEFAULT_MAX_SPANS:
            raise TooManySpans(
                _FIELD, 'more than %d spans' % DEFAULT_MAX_SPANS)
        if offset + length > MAX_OBJECT_BYTES:
            raise BadClassInput(_FIELD, 'a run ends past 2^63 - 1', position)
        spans.append(Span(offset, length, class_id))
        offset += length
    if position != len(raw):
        raise BadClassInput(_FIELD, 'bytes after the end', position)
    return ClassMap.from_spans(spans, class_id)


def to_headers(name: str, class_map: ClassMap) -> Dict[str, str]:
    """The map as ``name`` or, when long, ``name-0``, ``name-1``, ...

    :raises TooManySpans: it does not fit the header lines we may use
    """
    text = encode(class_map)
    if len(class_map.spans) > DEFAULT_MAX_SPANS:
        # However well it packs: decode() would refuse to read it back.
        raise TooManySpans(_FIELD, '%d spans are more than %d' % (
            len(class_map.spans), DEFAULT_MAX_SPANS))
    if len(text) <= MAP_CHUNK_BYTES:
        return {name: text}
    chunks = [text[at:at + MAP_CHUNK_BYTES]
              for at in range(0, len(text), MAP_CHUNK_BYTES)]
    if len(chunks) > MAX_MAP_CHUNKS:
        raise TooManySpans(_FIELD, '%d spans take %d lines, more than %d' % (
            len(class_map.spans), len(chunks), MAX_MAP_CHUNKS))
    return {'%s-%d' % (name, i): chunk for i, chunk in enumerate(chunks)}


def from_headers(name: str,
                 headers: Mapping[str, str]) -> Optional[ClassMap]:
    """The map under ``name`` in a case-insensitive mapping, or None.

    :raises BadClassInput: there is one and it is damaged
    """
    text = headers.get(name)
    if text is None:
        first = headers.get(name + '-0')
        if first is None:
            return None
        chunks = [first]
        for i in range(1, MAX_MAP_CHUNKS):
            chunk = headers.get('%s-%d' % (name, i))
            if chunk is None:
                break
            chunks.append(chunk)
        text = ''.join(chunks)
    return decode(text)


def _append_leb128(raw: bytearray, number: int) -> None:
    while number > 0x7f:
        raw.append(number & 0x7f | 0x80)
        number >>= 7
    raw.append(number)


def _read_leb128(raw: bytes, position: int) -> Tuple[int, int]:
    number = shift = 0
    while True:
        if position >= len(raw) or shift > 63:
            raise BadClassInput(_FIELD, 'bad run length', position)
        byte = raw[position]
        position += 1
        number |= (byte & 0x7f) << shift
        shift += 7
        if not byte & 0x80:
            return number, position
