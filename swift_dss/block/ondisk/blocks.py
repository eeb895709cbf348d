"""Blocks of dm-dss on the SSD: their checksum, and mending by it.

CRC32C over the 4,092 bytes after the checksum itself, begun with all ones
and not inverted at the end, as the kernel's ``crc32c(~0, ...)``. At this
length any two valid blocks differ in four bits or more, so a block with a
single flipped bit can be put right, and one with two flipped bits is never
taken for such a one.
"""

from __future__ import annotations

import array
import functools
import struct
import sys
from typing import Dict, List, Optional

from swift_dss.core.errors import DamagedRecord

BLOCK_BYTES = 4096
BLOCK_SECTORS = 8
_CSUM_BYTES = 4
_POLYNOMIAL = 0x82f63b78


class DamagedBlock(DamagedRecord):
    """A block on the SSD is damaged."""


@functools.lru_cache(maxsize=None)
def _byte_table() -> List[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


@functools.lru_cache(maxsize=None)
def _word_table() -> List[int]:
    """The table of the checksum for two bytes at once."""
    byte = _byte_table()
    return [(byte[value & 0xff] >> 8) ^ byte[
        (byte[value & 0xff] ^ (value >> 8)) & 0xff]
        for value in range(65536)]


def crc32c(data: bytes, crc: int = 0xffffffff) -> int:
    """The checksum of ``data``, going on from ``crc``.

    :param data: an even number of bytes
    """
    words = array.array('H', data)
    if sys.byteorder == 'big':
        words.byteswap()
    table = _word_table()
    for word in words:
        crc = (crc >> 16) ^ table[(crc ^ word) & 0xffff]
    return crc


def block_crc(block: bytes) -> int:
    """The checksum that belongs into a block."""
    return crc32c(block[_CSUM_BYTES:])


def is_sound(block: bytes) -> bool:
    """Does a block carry its checksum?"""
    return bool(struct.unpack_from('<I', block)[0] == block_crc(block))


def seal(block: bytes) -> bytes:
    """A block with its checksum put in."""
    return struct.pack('<I', block_crc(block)) + block[_CSUM_BYTES:]


@functools.lru_cache(maxsize=None)
def _syndromes() -> Dict[int, int]:
    """The change of the checksum by each flipped bit of a block."""
    bits = {1 << bit: bit for bit in range(32)}
    table = _byte_table()
    states = [table[1 << bit] for bit in range(8)]
    for at in range(BLOCK_BYTES - 1, _CSUM_BYTES - 1, -1):
        for bit in range(8):
            bits[states[bit]] = at * 8 + bit
            states[bit] = (states[bit] >> 8) ^ table[states[bit] & 0xff]
    return bits


def flipped_bit(block: bytes) -> Optional[int]:
    """The one bit that would make a damaged block sound.

    :returns: its number, from bit 0 of byte 0; None if it is not one bit
    """
    syndrome = struct.unpack_from('<I', block)[0] ^ block_crc(block)
    return _syndromes().get(syndrome)


def flip(block: bytes, bit: int) -> bytes:
    """The block with one bit turned over."""
    changed = bytearray(block)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def check_length(block: bytes, where: str) -> None:
    """:raises DamagedBlock: it is not a whole block"""
    if len(block) != BLOCK_BYTES:
        raise DamagedBlock('%s: %d bytes, not %d'
                           % (where, len(block), BLOCK_BYTES))
