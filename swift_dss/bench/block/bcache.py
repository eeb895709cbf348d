"""Superblocks of bcache: the output of its format tool.

Laid out as the kernel's ``bcache_ondisk.h`` says, so that a comparison
with bcache needs no program that this machine may not have. All numbers
are little endian; a superblock lies 4 KiB into its device.
"""

from __future__ import annotations

import struct
from typing import Tuple

SUPER_BYTES = 4096
_SECTOR = 512
_DATA_OFFSET = 16
_MAGIC = bytes.fromhex('c68573f64e1a45ca8265f57f48ba6d81')
_CACHE, _BACKING = 3, 1
#: csum offset version magic uuid set label flags seq features*3 pad*5
_HEAD = struct.Struct('<QQQ16s16s16s32sQQ24x40x')
_CACHE_PART = struct.Struct('<QHHHH')
_TAIL = struct.Struct('<IHH')
_LEAST_BUCKETS = 513
_POLYNOMIAL = 0x42f0e1eba9ea3693
_ONES = (1 << 64) - 1


def crc64(data: bytes) -> int:
    """bcache's checksum: CRC-64 of ECMA-182, ones before and after.

    >>> '%x' % crc64(b'123456789')
    '62ec59e3f1a4f00a'
    """
    crc = _ONES
    for byte in data:
        crc ^= byte << 56
        for _bit in range(8):
            crc = (crc << 1 ^ (_POLYNOMIAL if crc >> 63 else 0)) & _ONES
    return crc ^ _ONES


def _super(version: int, uuid: bytes, set_uuid: bytes, part: bytes,
           first_bucket: int) -> bytes:
    head = _HEAD.pack(0, SUPER_BYTES // _SECTOR, version, _MAGIC, uuid,
                      set_uuid, b'', 0, 0)
    body = (head + part + _TAIL.pack(0, first_bucket, 0))[8:]
    return struct.pack('<Q', crc64(body)) + body


def superblocks(cache_bytes: int, bucket_bytes: int,
                set_uuid: bytes) -> Tuple[bytes, bytes]:
    """Of a caching device and of a backing device that belong together.

    :raises ValueError: the caching device has too few buckets
    """
    buckets = cache_bytes // bucket_bytes
    if buckets < _LEAST_BUCKETS:
        raise ValueError('%d buckets: bcache wants at least %d'
                         % (buckets, _LEAST_BUCKETS))
    first = 23 * _SECTOR // bucket_bytes + 1
    cache_part = _CACHE_PART.pack(buckets, 1, bucket_bytes // _SECTOR, 1, 0)
    backing_part = struct.pack('<Q', _DATA_OFFSET) + struct.pack(
        '<HHHH', 1, 0, 0, 0)
    return (_super(_CACHE, b'dss-bench-cache!', set_uuid, cache_part,
                   first),
            _super(_BACKING, b'dss-bench-origin', set_uuid, backing_part,
                   0))
