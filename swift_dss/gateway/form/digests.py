"""Digests of a version: the expected ETag, and the check of each part.

A version up to ``part_bytes`` goes up in one PUT; its ETag in S3 is the
MD5 that Swift has in the data file's metadata, and every read of it back
fetches the whole and compares before the first byte is let out.

A larger version goes up in parts. Beside it lies ``<key>.sums``: the MD5 of
every part and a 16-byte BLAKE2b of every block (1 MiB or more), so that a
ranged read can be checked block by block *before* release. The part MD5s
are tied to the multipart ETag (MD5 of the part MD5s, ``-``, their number)
that the local residency record holds: a bucket cannot change them unseen.

Format, big endian: ``b'DSU1'``, SHA-256 of all that follows, content length
(u64), part bytes (u64), block bytes (u64), whole MD5 (16), then the part
MD5s and the block digests, 16 bytes each; numbers follow from the lengths.
"""

from __future__ import annotations

import functools
import hashlib
import re
import struct
from dataclasses import dataclass
from typing import Any, List, Tuple, Union

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import (
    DEFAULT_PART_BYTES, S3_MAX_PARTS, S3_MIN_PART_BYTES)

#: Least block that is checked at once: the delay before the first byte.
BLOCK_BYTES = 1024 * 1024
#: Blocks of one version: bounds the sidecar to 1 MiB.
MAX_BLOCKS = 65536
MAX_SUMS_BYTES = 16 * (MAX_BLOCKS + S3_MAX_PARTS) + 128

_MAGIC = b'DSU1'
_HEAD = struct.Struct('>QQQ16s')
_MD5_ETAG = re.compile(r'^[0-9a-f]{32}$')
_MULTIPART_ETAG = re.compile(r'^[0-9a-f]{32}-[1-9][0-9]{0,4}$')


def part_size(content_length: int,
              part_bytes: int = DEFAULT_PART_BYTES) -> int:
    """Bytes of each part of a version: the same on every replica.

    At least S3's minimum, and so large that 10,000 parts are enough;
    always a multiple of 1 MiB, so that blocks never straddle parts.
    """
    least = max(part_bytes, S3_MIN_PART_BYTES,
                -(-content_length // S3_MAX_PARTS))
    return -(-least // BLOCK_BYTES) * BLOCK_BYTES


def block_size(content_length: int, of_part: int) -> int:
    """Bytes of each checked block: the least divisor of a part that keeps
    the number of blocks under ``MAX_BLOCKS``."""
    mebis = of_part // BLOCK_BYTES
    for count in range(1, mebis + 1):
        if mebis % count == 0 and \
                content_length <= count * BLOCK_BYTES * MAX_BLOCKS:
            return count * BLOCK_BYTES
    return of_part


def is_md5_etag(etag: str) -> bool:
    """True if ``etag`` may be an MD5 or an MD5 of part MD5s."""
    return bool(_MD5_ETAG.match(etag) or _MULTIPART_ETAG.match(etag))


def multipart_etag(part_md5s: List[bytes]) -> str:
    """S3's ETag for parts with these digests."""
    return '%s-%d' % (md5(b''.join(part_md5s)).hexdigest(), len(part_md5s))


def md5(data: Union[bytes, memoryview] = b'') -> Any:
    """MD5 as a checksum (allowed where FIPS forbids it as a signature)."""
    return _md5(data)


try:
    _md5 = functools.partial(hashlib.md5, usedforsecurity=False)
    _md5()
except TypeError:  # Python < 3.9 knows no such switch
    _md5 = functools.partial(hashlib.md5)


def block_digest(data: Union[bytes, memoryview]) -> bytes:
    """16 bytes that stand for a block."""
    return hashlib.blake2b(data, digest_size=16).digest()


@dataclass(frozen=True)
class Sums:
    """All digests of one multipart version."""

    content_length: int
    part_bytes: int
    block_bytes: int
    md5: bytes
    parts: Tuple[bytes, ...]
    blocks: Tuple[bytes, ...]

    @property
    def etag(self) -> str:
        """The ETag that S3 must have for the data."""
        return multipart_etag(list(self.parts))

    def encode(self) -> bytes:
        """The sidecar's bytes."""
        body = _HEAD.pack(self.content_length, self.part_bytes,
                          self.block_bytes, self.md5)
        body += b''.join(self.parts) + b''.join(self.blocks)
        return _MAGIC + hashlib.sha256(body).digest() + body


def decode(raw: bytes) -> Sums:
    """The digests of a sidecar.

    :raises DamagedRecord: magic, checksum, length or meaning is wrong
    """
    if raw[:4] != _MAGIC or len(raw) < 36 + _HEAD.size:
        raise DamagedRecord('sums: no DSU1 at the start')
    body = raw[36:]
    if hashlib.sha256(body).digest() != raw[4:36]:
        raise DamagedRecord('sums: checksum does not match')
    length, of_part, of_block, whole = _HEAD.unpack_from(body)
    if not (0 < of_block <= of_part and of_part % of_block == 0
            and length > 0):
        raise DamagedRecord('sums: impossible sizes')
    parts, blocks = -(-length // of_part), -(-length // of_block)
    if (parts > S3_MAX_PARTS or blocks > MAX_BLOCKS
            or len(body) != _HEAD.size + 16 * (parts + blocks)):
        raise DamagedRecord('sums: wrong number of digests')
    digests = [body[at:at + 16] for at in range(_HEAD.size, len(body), 16)]
    return Sums(length, of_part, of_block, whole,
                tuple(digests[:parts]), tuple(digests[parts:]))


class SumsBuilder:
    """Digests of a version whose parts are shown to it in order."""

    def __init__(self, content_length: int, part_bytes: int) -> None:
        self._length = content_length
        self._part_bytes = part_bytes
        self._block_bytes = block_size(content_length, part_bytes)
        self._whole = md5()
        self._parts: List[bytes] = []
        self._blocks: List[bytes] = []

    def add_part(self, data: bytes) -> bytes:
        """Take the next whole part; its MD5."""
        self._whole.update(data)
        self._parts.append(md5(data).digest())
        view = memoryview(data)
        for at in range(0, len(data), self._block_bytes):
            self._blocks.append(
                block_digest(view[at:at + self._block_bytes]))
        return self._parts[-1]

    def finish(self) -> Sums:
        """The digests of everything that was added."""
        return Sums(self._length, self._part_bytes, self._block_bytes,
                    self._whole.digest(), tuple(self._parts),
                    tuple(self._blocks))
