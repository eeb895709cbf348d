"""The class section of a ``.dss`` object: its parts, and how to write one.

:mod:`swift_dss.wire.dssfile` describes the parts and reads them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from math import gcd
from typing import List, Optional, Tuple

from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import DEFAULT_MAX_DSS_SECTION_BYTES
from swift_dss.core.spans import ClassMap, Span

MAGIC = b'DS'
SECTOR_BYTES = 512
HEADER_BYTES = 16
#: The name of a request body in errors.
BODY_FIELD = 'X-DSS-Object-File body'
HEADER = struct.Struct('>2sBBIII')
COUNT = struct.Struct('>I')
RANGE = struct.Struct('>QQ')
CLASS_WIDTHS = (1, 2, 4)
_MAX_BLOCK_SECTORS = (1 << 32) - 1


class Form(Enum):
    """How the class section says what it says; the value is VER_ID."""

    BLOCK = 1
    RANGE = 2


@dataclass(frozen=True)
class Header:
    """The fixed part of a class section, as read.

    :param class_bytes: bytes of one class in the table
    :param block_bytes: size of a block; 0 in range form
    :param entries: blocks or ranges that the table has
    :param section_bytes: header and table together
    """

    form: Form
    class_bytes: int
    block_bytes: int
    entries: int
    section_bytes: int


def encode_section(class_map: ClassMap, size: int, form: str = 'auto',
                   block_bytes: Optional[int] = None) -> bytes:
    """The class section to put in front of ``size`` bytes of data.

    :param form: ``block``, ``range``, or ``auto`` for the shorter one
    :param block_bytes: size of a block, a multiple of 512; None takes the
        largest that fits every border between classes
    :raises BadClassInput: the map has no block form (a border is not on a
        block), or the section would pass the limit of readers
    """
    chosen, block_bytes = _choose(class_map, size, form, block_bytes)
    length = _length(chosen, class_map, size, block_bytes)
    if length > DEFAULT_MAX_DSS_SECTION_BYTES:
        raise BadClassInput(
            'class section', 'would be %d bytes, more than %d; take larger '
            'blocks or ranges' % (length, DEFAULT_MAX_DSS_SECTION_BYTES))
    if chosen is Form.RANGE:
        ranges = _ranges(class_map, size)
        parts = [HEADER.pack(MAGIC, Form.RANGE.value, 1, 0, 0, 0),
                 COUNT.pack(len(ranges)), bytes((class_map.rest,))]
        parts += [RANGE.pack(span.offset, span.length)
                  + bytes((span.class_id,)) for span in ranges]
        return b''.join(parts)
    blocks = -(-size // block_bytes)
    table = bytearray()
    for span in class_map.split(0, size):
        stop = -(-span.end // block_bytes)
        table += bytes((span.class_id,)) * (stop - len(table))
    return HEADER.pack(MAGIC, Form.BLOCK.value, 1,
                       block_bytes // SECTOR_BYTES, blocks,
                       0) + bytes(table)


def section_length(class_map: ClassMap, size: int, form: str = 'auto',
                   block_bytes: Optional[int] = None) -> int:
    """Bytes that :func:`encode_section` would give, without building it.

    :raises BadClassInput: see there
    """
    chosen, block_bytes = _choose(class_map, size, form, block_bytes)
    return _length(chosen, class_map, size, block_bytes)


def best_block_bytes(class_map: ClassMap, size: int) -> Optional[int]:
    """The largest block size on which every border lies, or None."""
    unit = 0
    for span in class_map.split(0, size):
        if span.end < size:
            unit = gcd(unit, span.end)
    if not unit:
        unit = -(-max(size, 1) // SECTOR_BYTES) * SECTOR_BYTES
    if unit % SECTOR_BYTES:
        return None
    sectors = unit // SECTOR_BYTES
    while sectors > _MAX_BLOCK_SECTORS and sectors % 2 == 0:
        sectors //= 2
    if sectors > _MAX_BLOCK_SECTORS:
        return None
    return sectors * SECTOR_BYTES


def _choose(class_map: ClassMap, size: int, form: str,
            block_bytes: Optional[int]) -> Tuple[Form, int]:
    if form not in ('auto', 'block', 'range'):
        raise ValueError('form %r' % form)
    if form == 'range':
        return Form.RANGE, 0
    usable = best_block_bytes(class_map, size)
    if block_bytes is not None:
        _check_block_bytes(class_map, size, block_bytes)
        usable = block_bytes
    if form == 'block':
        if usable is None:
            raise BadClassInput(
                'block form', 'classes change at a byte that is not a '
                'multiple of %d; use the range form' % SECTOR_BYTES)
        return Form.BLOCK, usable
    # An empty object has no block whose class could say the rest.
    if usable is not None and size and \
            _length(Form.BLOCK, class_map, size, usable) < \
            _length(Form.RANGE, class_map, size, 0):
        return Form.BLOCK, usable
    return Form.RANGE, 0


def _check_block_bytes(class_map: ClassMap, size: int,
                       block_bytes: int) -> None:
    sectors, odd = divmod(block_bytes, SECTOR_BYTES)
    if odd or not 0 < sectors <= _MAX_BLOCK_SECTORS:
        raise BadClassInput(
            'block size', '%d is not a multiple of %d, or is too large'
            % (block_bytes, SECTOR_BYTES))
    for span in class_map.split(0, size):
        if span.end < size and span.end % block_bytes:
            raise BadClassInput(
                'block form', 'classes change at byte %d, inside a block '
                'of %d' % (span.end, block_bytes))


def _length(form: Form, class_map: ClassMap, size: int,
            block_bytes: int) -> int:
    if form is Form.BLOCK:
        return HEADER_BYTES + -(-size // block_bytes)
    return (HEADER_BYTES + COUNT.size + 1
            + len(_ranges(class_map, size)) * (RANGE.size + 1))


def _ranges(class_map: ClassMap, size: int) -> List[Span]:
    return [span for span in class_map.split(0, size)
            if span.class_id != class_map.rest]
