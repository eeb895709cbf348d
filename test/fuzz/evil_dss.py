"""Malicious ``.dss`` streams, one row each: S05.

A row says what is wrong, the bytes, what the reader was told of them, and
the byte position at which it must refuse them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Tuple

from swift_dss.core.errors import BadClassInput
from swift_dss.wire.dssfile import Decoder

MAX = 0xffffffff
#: How the streams are cut: what is refused must not depend on it.
CHUNKINGS = (1, 7, 65536)


def block(sectors: int = 1, blocks: int = 2, table: bytes = b'\x19\x1a',
          data: bytes = bytes(1024), magic: bytes = b'DS', version: int = 1,
          class_bytes: int = 1, reserved: int = 0) -> bytes:
    """A block form; the defaults are a good one."""
    return struct.pack('>2sBBIII', magic, version, class_bytes, sectors,
                       blocks, reserved) + table + data


def ranges(*entries: Tuple[int, int, int], count: int = -1, rest: int = 0,
           data: bytes = bytes(1024), class_bytes: int = 1,
           reserved: bytes = bytes(12)) -> bytes:
    """A range form with ``entries`` of (offset, length, class)."""
    raw = b'DS\x02' + bytes((class_bytes,)) + reserved
    raw += struct.pack('>I', len(entries) if count < 0 else count)
    raw += rest.to_bytes(class_bytes, 'big')
    for offset, length, class_id in entries:
        raw += struct.pack('>QQ', offset, length)
        raw += class_id.to_bytes(class_bytes, 'big')
    return raw + data


GOOD_BLOCK = block()
GOOD_RANGE = ranges((0, 64, 25), (512, 32, 26))
GOOD_WIDE = ranges((0, 64, 25), (512, 32, 26), class_bytes=4)


@dataclass(frozen=True)
class Evil:
    """One malicious stream.

    :param position: where the error must say that it is
    :param told: what the reader knows in advance
    """

    name: str
    raw: bytes
    position: int
    told: Dict[str, Any] = field(default_factory=dict)


def _with_byte(raw: bytes, at: int, value: int) -> bytes:
    return raw[:at] + bytes((value,)) + raw[at + 1:]


EVILS: List[Evil] = [
    # The signature and the fixed fields.
    Evil('another magic', block(magic=b'PK'), 0),
    Evil('magic in the wrong byte order', block(magic=b'SD'), 0),
    Evil('magic in lower case', block(magic=b'ds'), 0),
    Evil('first byte alone is wrong', b'\x00S' + GOOD_BLOCK[2:], 0),
    Evil('a plain JPEG', b'\xff\xd8\xff\xe0' + bytes(200), 0),
    Evil('all zero', bytes(64), 0),
    Evil('all ones', b'\xff' * 64, 0),
    Evil('version 0', block(version=0), 2),
    Evil('version 3', block(version=3), 2),
    Evil('version 255', block(version=255), 2),
    Evil('CLS_BYTES 0', block(class_bytes=0), 3),
    Evil('CLS_BYTES 3', block(class_bytes=3), 3),
    Evil('CLS_BYTES 8', block(class_bytes=8), 3),
    Evil('CLS_BYTES 255', block(class_bytes=255), 3),
    Evil('CLS_BYTES 0 in range form',
         _with_byte(GOOD_RANGE, 3, 0), 3),
    Evil('reserved bytes of the block form', block(reserved=1), 12),
    Evil('reserved high byte', block(reserved=1 << 31), 12),
    Evil('first reserved byte of the range form',
         ranges((0, 4, 1), reserved=b'\x01' + bytes(11)), 4),
    Evil('last reserved byte of the range form',
         ranges((0, 4, 1), reserved=bytes(11) + b'\x01'), 15),
    Evil('a block table under the version of ranges',
         _with_byte(GOOD_BLOCK, 2, 2), 7),
    # Block sizes and counts.
    Evil('blocks of no size', block(sectors=0), 4),
    Evil('no blocks of no size', block(sectors=0, blocks=0, table=b''), 4),
    Evil('4 billion blocks', block(blocks=MAX), 8),
    Evil('4 billion blocks of 4 bytes of class',
         block(blocks=MAX, class_bytes=4), 8),
    Evil('one block more than a section may have',
         block(blocks=4 * 1024 * 1024 - 15), 8),
    Evil('blocks whose bytes pass 2^63',
         block(sectors=MAX, blocks=(1 << 22) + 2), 8),
    Evil('blocks whose bytes wrap 2^64 to a small number',
         block(sectors=1 << 31, blocks=(1 << 24) + 1), 8),
    Evil('more blocks than the whole stream has bytes',
         block(blocks=4096), 8, {'content_length': len(GOOD_BLOCK)}),
    Evil('one block too many', block(blocks=3, table=b'\1\2\3'), 8),
    Evil('one block too few', block(blocks=1, table=b'\1'), 529),
    Evil('one block too few, length known',
         block(blocks=1, table=b'\1'), 8, {'content_length': 17 + 1024}),
    Evil('no blocks but data', block(blocks=0, table=b''), 16),
    Evil('a block but no data', block(blocks=1, table=b'\1', data=b''), 8),
    Evil('one byte past the last block', block(data=bytes(1025)), 18 + 1024),
    Evil('last block has no byte', block(data=bytes(512)), 8),
    Evil('table of a larger object', block(), 8,
         {'content_length': 18 + 512}),
    # Classes.
    Evil('class 32 in the first block', block(table=b'\x20\x01'), 16),
    Evil('class 255 in the last block', block(table=b'\x01\xff'), 17),
    Evil('class 256 in two bytes',
         block(class_bytes=2, table=b'\x00\x01\x01\x00'), 18),
    Evil('class that fits only in its low byte',
         block(class_bytes=4, table=b'\x00\x00\x00\x01\x19\x00\x00\x19'), 20),
    Evil('little endian class',
         block(class_bytes=2, table=b'\x01\x00\x00\x01'), 16),
    Evil('class 32 in a range', ranges((0, 4, 32)), 21 + 16),
    Evil('class 255 in the second range',
         ranges((0, 4, 1), (8, 4, 255)), 21 + 17 + 16),
    Evil('rest class 32', ranges((0, 4, 1), rest=32), 20),
    Evil('rest class of high bytes',
         ranges((0, 4, 1), class_bytes=4, rest=1 << 24), 20),
    # Ranges: counts, lengths, offsets, sums, overlaps.
    Evil('4 billion ranges', ranges(count=MAX), 16),
    Evil('one range more than the limit', ranges(count=2049), 16),
    Evil('count that swallows the data',
         ranges((0, 4, 1), count=40), 16, {'content_length': 21 + 17 + 500}),
    Evil('a range more than there is', ranges((0, 4, 1), count=2), 38 + 8),
    Evil('empty range', ranges((0, 0, 1)), 21 + 8),
    Evil('empty range after a good one',
         ranges((0, 4, 1), (4, 0, 2)), 38 + 8),
    Evil('offset past 2^63', ranges((1 << 63, 1, 1)), 21),
    Evil('length past 2^63', ranges((0, 1 << 63, 1)), 21),
    Evil('the largest offset and length',
         ranges(((1 << 64) - 1, (1 << 64) - 1, 1)), 21),
    Evil('offset and length that wrap 2^64 to 0',
         ranges(((1 << 64) - 512, 512, 1)), 21),
    Evil('offset and length that wrap 2^63 to 0',
         ranges(((1 << 63) - 512, 512, 1)), 21),
    Evil('a range past the data', ranges((1000, 25, 1)), 21),
    Evil('a range past the data, length known',
         ranges((1000, 25, 1)), 21, {'content_length': 21 + 17 + 1024}),
    Evil('a range just behind the data', ranges((1024, 1, 1)), 21),
    Evil('second range past the data', ranges((0, 4, 1), (1020, 5, 2)), 38),
    Evil('same range twice', ranges((8, 8, 1), (8, 8, 1)), 38),
    Evil('ranges that overlap by one byte',
         ranges((8, 8, 1), (15, 8, 2)), 38),
    Evil('range inside the one before',
         ranges((0, 100, 1), (10, 10, 2)), 38),
    Evil('ranges out of order', ranges((100, 10, 1), (0, 10, 2)), 38),
    Evil('third range overlaps the first only',
         ranges((0, 100, 1), (100, 10, 2), (50, 10, 3)), 55),
    # A class section on its own, for an object that is there.
    Evil('section of another size of object',
         block(data=b''), 8, {'object_bytes': 512}),
    Evil('section of a smaller object',
         block(data=b''), 8, {'object_bytes': 1025}),
    Evil('section for an empty object',
         block(data=b''), 8, {'object_bytes': 0}),
    Evil('section with a range past the object',
         ranges((0, 600, 1), data=b''), 21, {'object_bytes': 512}),
    Evil('section with data behind it',
         block(data=b'x'), 18, {'object_bytes': 1024}),
    Evil('range section with data behind it',
         ranges((0, 4, 1), data=b'x'), 38, {'object_bytes': 1024}),
    # Streams that are not as long as they said.
    Evil('nothing', b'', 0),
    Evil('fifteen bytes, said in advance', GOOD_BLOCK[:15], 0,
         {'content_length': 15}),
    Evil('data cut off', GOOD_RANGE[:-1], len(GOOD_RANGE) - 1,
         {'content_length': len(GOOD_RANGE)}),
    Evil('data too long for Content-Length', GOOD_RANGE + b'x',
         len(GOOD_RANGE) + 1, {'content_length': len(GOOD_RANGE)}),
]

#: Class sections that are good up to their last byte.
SECTIONS = (('block', GOOD_BLOCK, 18), ('range', GOOD_RANGE, 21 + 34),
            ('wide range', GOOD_WIDE, 24 + 40))


def truncations() -> Iterator[Evil]:
    """Every class section cut off at every byte."""
    for name, raw, section_bytes in SECTIONS:
        for at in range(section_bytes):
            yield Evil('%s form cut off at byte %d' % (name, at), raw[:at],
                       at)


def alternating() -> Iterator[bytes]:
    """A 4 MiB block table, within limits, that changes class each block."""
    return _flood(b'\x01\x02' * 32768)


def monotone() -> Iterator[bytes]:
    """A 4 MiB block table of one class: large, and legal."""
    return _flood(b'\x19' * 65536)


def _flood(chunk: bytes) -> Iterator[bytes]:
    blocks = 4 * 1024 * 1024 - len(chunk)
    yield struct.pack('>2sBBIII', b'DS', 1, 1, 1, blocks, 0)
    for _ in range(blocks // len(chunk)):
        yield chunk


def refusal(evil: Evil, chunk_bytes: int,
            build: Callable[..., Any] = Decoder) -> Tuple[str, Any]:
    """(what became of it, position): ``refused``, ``taken`` or a type.

    :param build: the decoder under test
    """
    try:
        decoder = build(**evil.told)
        for at in range(0, len(evil.raw), chunk_bytes):
            decoder.feed(evil.raw[at:at + chunk_bytes])
        decoder.finish()
    except BadClassInput as err:
        return 'refused', err.position
    except Exception as err:  # whatever it is, the campaign names it
        return type(err).__name__, None
    return 'taken', None
