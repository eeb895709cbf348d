"""The residency record as the bytes of one extended attribute.

Big endian: ``b'DSR1'``, CRC-32 of all that follows (u32), content length
(u64), number of extents (u16), each extent as length (u64) and tiers (u8)
(offsets follow from the lengths), then a flag byte: 0, or 1 and the remote
copy as verified_at (f64) and endpoint, key, etag, each u16 length + UTF-8;
or 2 and the same, followed by the offset under the key (u64) and the seal
(u16 length + UTF-8), for a copy that is in a bundle or encrypted.
"""

from __future__ import annotations

import functools
import struct
import zlib
from typing import List, Optional, Tuple

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import MAX_EXTENTS
from swift_dss.core.residency import Extent, RemoteCopy, Residency, Tier

_MAGIC = b'DSR1'
_HEAD = struct.Struct('>QH')
_EXTENT = struct.Struct('>QB')
_CRC = struct.Struct('>I')
_REMOTE = struct.Struct('>Bd')
_OFFSET = struct.Struct('>Q')
_LENGTH = struct.Struct('>H')
_PLACE = struct.Struct('>QH')
_SSD_AND_REMOTE = int(Tier.SSD | Tier.REMOTE)
_ALL_TIERS = int(Tier.SSD | Tier.HDD | Tier.REMOTE)


def encode(residency: Residency) -> bytes:
    """The record's bytes.

    :raises ValueError: more than ``MAX_EXTENTS`` extents
    """
    if len(residency.extents) > MAX_EXTENTS:
        raise ValueError('%d extents are more than %d'
                         % (len(residency.extents), MAX_EXTENTS))
    body = _HEAD.pack(residency.content_length, len(residency.extents))
    for extent in residency.extents:
        body += _EXTENT.pack(extent.length, extent.tiers.value)
    body += (b'\0' if residency.remote is None
             else _encode_remote(residency.remote))
    return _MAGIC + _CRC.pack(zlib.crc32(body)) + body


def encode_arrived(content_length: int, remote: RemoteCopy) -> bytes:
    """:func:`encode` of a version that the SSD has whole, and now S3.

    :param content_length: at least 1
    """
    # Members of one bundle differ in little, and come by the thousand.
    etag, seal = remote.etag.encode('utf-8'), remote.seal.encode('utf-8')
    special = bool(remote.offset or seal)
    body = _arrived(content_length, special, remote.verified_at,
                    remote.endpoint, remote.key) \
        + _LENGTH.pack(len(etag)) + etag
    if special:
        body += _PLACE.pack(remote.offset, len(seal)) + seal
    return _MAGIC + _CRC.pack(zlib.crc32(body)) + body


@functools.lru_cache(maxsize=256)
def _arrived(content_length: int, special: bool, verified_at: float,
             endpoint: str, key: str) -> bytes:
    body = _HEAD.pack(content_length, 1) + _EXTENT.pack(
        content_length, _SSD_AND_REMOTE) + _REMOTE.pack(
            2 if special else 1, verified_at)
    for raw in (endpoint.encode('utf-8'), key.encode('utf-8')):
        body += _LENGTH.pack(len(raw)) + raw
    return body


def _encode_remote(remote: RemoteCopy) -> bytes:
    # Records that earlier releases can read keep their form.
    special = remote.offset or remote.seal
    body = _REMOTE.pack(2 if special else 1, remote.verified_at)
    for text in (remote.endpoint, remote.key, remote.etag):
        raw = text.encode('utf-8')
        body += _LENGTH.pack(len(raw)) + raw
    if special:
        raw = remote.seal.encode('utf-8')
        body += _OFFSET.pack(remote.offset) + _LENGTH.pack(len(raw)) + raw
    return body


def decode(raw: bytes) -> Residency:
    """The record that :func:`encode` wrote.

    :raises DamagedRecord: wrong magic, checksum, length or meaning
    """
    if raw[:4] != _MAGIC or len(raw) < 8:
        raise DamagedRecord('residency record: no DSR1 at its start')
    body = raw[8:]
    if zlib.crc32(body) != _CRC.unpack(raw[4:8])[0]:
        raise DamagedRecord('residency record: checksum does not match')
    try:
        return _decode_body(body)
    except (struct.error, ValueError, IndexError) as err:
        raise DamagedRecord('residency record: %s' % err) from err


def _decode_body(body: bytes) -> Residency:
    content_length, count = _HEAD.unpack_from(body)
    position = _HEAD.size
    extents: List[Extent] = []
    offset = 0
    for _ in range(count):
        length, tiers = _EXTENT.unpack_from(body, position)
        position += _EXTENT.size
        if not length or not tiers or tiers & ~_ALL_TIERS:
            raise ValueError('empty extent or unknown tier')
        extents.append(Extent(offset, length, Tier(tiers)))
        offset += length
    if offset != content_length:
        raise ValueError('extents cover %d of %d bytes'
                         % (offset, content_length))
    remote, position = _decode_remote(body, position)
    if position != len(body):
        raise ValueError('bytes after the end')
    residency = Residency(content_length, tuple(extents), remote)
    if bool(residency.tiers & Tier.REMOTE) != (remote is not None):
        raise ValueError('remote extents and remote copy disagree')
    return residency


def _decode_remote(body: bytes,
                   position: int) -> Tuple[Optional[RemoteCopy], int]:
    flag = body[position]
    position += 1
    if flag > 2:
        raise ValueError('flag %d' % flag)
    if not flag:
        return None, position
    verified_at, = struct.unpack_from('>d', body, position)
    texts: List[str] = []
    position += 8
    for _ in range(3):
        text, position = _decode_text(body, position)
        texts.append(text)
    offset, seal = 0, ''
    if flag == 2:
        offset, = _OFFSET.unpack_from(body, position)
        seal, position = _decode_text(body, position + _OFFSET.size)
        if not offset and not seal:
            raise ValueError('neither in a bundle nor sealed')
    return RemoteCopy(texts[0], texts[1], texts[2], verified_at, offset,
                      seal), position


def _decode_text(body: bytes, position: int) -> Tuple[str, int]:
    length, = _LENGTH.unpack_from(body, position)
    position += _LENGTH.size
    raw = body[position:position + length]
    if len(raw) != length:
        raise ValueError('cut off')
    return raw.decode('utf-8'), position + length
