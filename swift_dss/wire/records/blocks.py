"""Checksums of the blocks of a version, as the bytes of attributes.

A version is cut into blocks of ``BLOCK_BYTES``; the last may be shorter. The
sum of a block is the low half of its XXH3-64, and 1 where that is 0: 0 says
that the sum is not known. Sums stand in pages of ``PAGE_BLOCKS``, one
extended attribute each, as XFS holds 64 KiB in one.

A page, big endian: ``b'DSB1'``, CRC-32 of all that follows (u32), content
length of the version (u64), then the sums (u32 each).
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array

from swift_dss.core.errors import DamagedRecord

#: The unit of reading and proving: each end of a range reads less than one
#: unit too much.
BLOCK_BYTES = 65536
#: Sums in one attribute: 32 KiB, for 512 MiB of a version.
PAGE_BLOCKS = 8192
_MAGIC = b'DSB1'
_CRC = struct.Struct('>I')
_LENGTH = struct.Struct('>Q')
_HEAD_BYTES = len(_MAGIC) + _CRC.size
#: Both and what stands before them.
_START = struct.Struct('>4sIQ')


def blocks_of(content_length: int) -> int:
    """Number of blocks of a version."""
    return -(-content_length // BLOCK_BYTES)


def sums_on(page: int, content_length: int) -> int:
    """Number of sums that a page of a version has."""
    return max(0, min(PAGE_BLOCKS, -(-content_length // BLOCK_BYTES)
                      - page * PAGE_BLOCKS))


def encode_page(content_length: int, sums: array[int]) -> bytes:
    """A page's bytes.

    :param sums: at most ``PAGE_BLOCKS``
    """
    stored = sums
    if sys.byteorder != 'big':
        stored = sums[:]
        stored.byteswap()
    body = _LENGTH.pack(content_length) + stored.tobytes()
    return _MAGIC + _CRC.pack(zlib.crc32(body)) + body


def decode_page(raw: bytes, page: int, content_length: int) -> array[int]:
    """The sums that :func:`encode_page` was given.

    :param page: its number
    :param content_length: of the version that the page must be of
    :raises DamagedRecord: wrong magic, checksum or number of sums, or it is
        of another version
    """
    if raw[:4] != _MAGIC:
        raise DamagedRecord('block checksums: no DSB1 at their start')
    wanted = sums_on(page, content_length)
    if len(raw) != _START.size + 4 * wanted:
        raise DamagedRecord('block checksums: not %d of them' % wanted)
    _, crc, length = _START.unpack_from(raw)
    if zlib.crc32(raw[_HEAD_BYTES:]) != crc:
        raise DamagedRecord('block checksums: their own does not match')
    if length != content_length:
        raise DamagedRecord('block checksums: of another version')
    sums = array('I', raw[_START.size:])
    if sys.byteorder != 'big':
        sums.byteswap()
    return sums
