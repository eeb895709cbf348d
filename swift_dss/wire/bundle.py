"""A bundle: many small versions of one container as one S3 object.

All numbers big endian. A bundle is written from front to back and may be
read from either end: a listing of its footer costs one ranged GET, and a
copy that was cut off still gives every member that is whole.

::

    head     'DSB1', flags u32 (bit 0: sealed), length u32, CRC-32 u32 of
             flags, length and text, then the text: a JSON object
    member   'DSBM', record bytes u32, data bytes u64, CRC-32 u32 of these
             two and the record, then the record, then the data
    ...
    proofs   (not in bundles of earlier releases) 20 bytes for each member, in
             order: the first 8 of an MD5 of what the record says the version
             is, then offset u64 and number u32 of its data; then the SHA-256
             of them as they lie there
    index    zlib of a JSON list, one [offset, data bytes, record] for each
             member, in order; offset is that of the member's data
    trailer  56 bytes: index offset u64, index bytes u64, members u32,
             'DSBE', SHA-256 of the index bytes as they lie there

A record is zlib of a JSON object; its ``length`` and ``etag`` (MD5) are
those of the data. In a sealed bundle the records, the data, the proofs and
the index are encrypted, each by itself, and the head's ``seal`` says how.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Tuple

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import (
    MAX_BUNDLE_BYTES, MAX_BUNDLE_INDEX_BYTES, MAX_BUNDLE_MEMBERS)

MAGIC = b'DSB1'
_MEMBER_MAGIC = b'DSBM'
_END_MAGIC = b'DSBE'
_HEAD = struct.Struct('>4sIII')
_MEMBER = struct.Struct('>4sIQI')
_MEMBER_FIELDS = struct.Struct('>IQ')
_HEAD_FIELDS = struct.Struct('>II')
_TRAILER = struct.Struct('>QQI4s32s')
_CRC = struct.Struct('>I')
_PROOF = struct.Struct('>8sQI')
_DIGEST_BYTES = 32
TRAILER_BYTES = _TRAILER.size
SEALED = 1
#: Text of the head; and the largest record.
_MAX_HEAD_BYTES = 65536
MAX_RECORD_BYTES = 1024 * 1024

#: Made once: that takes as long as a record does. ensure_ascii keeps names
#: that are not UTF-8 (surrogates) intact.
_encode = json.JSONEncoder(separators=(',', ':'), sort_keys=True).encode
#: Of an index: more would save 1/700 of a bundle of small members, and
#: take three times as long.
_INDEX_LEVEL = 1
_RECORD_LEVEL = 6
#: Window and memory of zlib, as powers of two, for texts that this window
#: holds: clearing the usual 256 KiB for each takes longer than the rest.
_SMALL_WINDOW, _SMALL_MEMORY = 12, 4

#: (part, number of the member, bytes) to bytes: how a sealed bundle is
#: closed or opened. Parts are ``record``, ``data``, ``proofs`` and ``index``.
Wrap = Callable[[str, int, bytes], bytes]
Record = Dict[str, Any]


def plain(part: str, number: int, data: bytes) -> bytes:
    """The wrap of a bundle that is not sealed."""
    return data


@dataclass(frozen=True)
class Trailer:
    """Where the index is."""

    index_offset: int
    index_bytes: int
    members: int
    digest: bytes


@dataclass(frozen=True)
class Entry:
    """One member, as the index has it.

    :param offset: of its data in the bundle
    :param stored_bytes: of its data, as they lie there
    """

    number: int
    offset: int
    stored_bytes: int
    record: Record


class Builder:
    """Builds one bundle in memory.

    :param head: the fields that all members share; JSON values
    :param wrap: seals bytes of the bundle
    """

    def __init__(self, head: Mapping[str, Any], sealed: bool = False,
                 wrap: Wrap = plain) -> None:
        self._wrap = wrap
        text = _json(dict(head))
        fields = _HEAD_FIELDS.pack(SEALED if sealed else 0, len(text))
        self._raw = bytearray(MAGIC + fields + _crc(fields + text) + text)
        self._rows: List[bytes] = []
        self._record_bytes = 0
        self._proofs: List[bytes] = []
        #: (offset, bytes) of the proofs of a finished bundle; (0, 0): none.
        self.proofs_at = (0, 0)

    def has_room(self, length: int) -> bool:
        """False if a member of so many bytes could make the bundle, or its
        index, larger than either may be."""
        return (len(self._rows) < MAX_BUNDLE_MEMBERS
                and len(self._raw) + length + self._record_bytes
                + 2 * MAX_RECORD_BYTES < MAX_BUNDLE_BYTES
                and self._record_bytes + MAX_RECORD_BYTES
                < MAX_BUNDLE_INDEX_BYTES // 2)

    @property
    def members(self) -> int:
        """How many there are so far."""
        return len(self._rows)

    @property
    def size(self) -> int:
        """Bytes so far, without index and trailer."""
        return len(self._raw)

    def add(self, record: Record, data: bytes,
            identity: bytes = b'') -> Tuple[int, int]:
        """Add one member; (offset, bytes) of its data.

        :param identity: 8 bytes by which it is found among the proofs; there
            are proofs if all members have one
        :raises ValueError: the bundle has all the members it may have
        """
        text = _json(record)
        return self._add(text, _deflated(text), data, identity)

    def add_packed(self, packed: bytes, data: bytes,
                   identity: bytes = b'') -> Tuple[int, int]:
        """The same with a record of :func:`pack_record`.

        :raises DamagedRecord: it is none; nothing was added
        :raises ValueError: the bundle has all the members it may have
        """
        return self._add(_inflate(packed, MAX_RECORD_BYTES, 'record'),
                         packed, data, identity)

    def _add(self, text: bytes, deflated: bytes, data: bytes,
             identity: bytes) -> Tuple[int, int]:
        rows = self._rows
        number = len(rows)
        if number >= MAX_BUNDLE_MEMBERS:
            raise ValueError('more than %d members' % MAX_BUNDLE_MEMBERS)
        self._record_bytes += len(text)
        packed = self._wrap('record', number, deflated)
        stored = self._wrap('data', number, data)
        length = len(stored)
        fields = _MEMBER_FIELDS.pack(len(packed), length)
        raw = self._raw
        raw += _MEMBER_MAGIC + fields + _CRC.pack(
            zlib.crc32(packed, zlib.crc32(fields))) + packed
        offset = len(raw)
        raw += stored
        rows.append(b'[%d,%d,%s]' % (offset, length, text))
        if identity:
            self._proofs.append(_PROOF.pack(identity, offset, number))
        return offset, length

    def finish(self) -> bytes:
        """The whole bundle; nothing may be added after it.

        :raises ValueError: larger than a bundle may be
        """
        index = self._wrap('index', 0, zlib.compress(
            b'[%s]' % b','.join(self._rows), _INDEX_LEVEL))
        if len(self._proofs) == len(self._rows):
            proofs = self._wrap('proofs', 0, b''.join(self._proofs))
            self.proofs_at = len(self._raw), len(proofs) + _DIGEST_BYTES
            self._raw += proofs + hashlib.sha256(proofs).digest()
        offset = len(self._raw)
        self._raw += index
        self._raw += _TRAILER.pack(
            offset, len(index), len(self._rows), _END_MAGIC,
            hashlib.sha256(index).digest())
        if len(self._raw) > MAX_BUNDLE_BYTES:
            raise ValueError('more than %d bytes' % MAX_BUNDLE_BYTES)
        return bytes(self._raw)


def read_head(raw: bytes) -> Tuple[Dict[str, Any], bool, int]:
    """(head, whether it is sealed, bytes that it takes).

    :param raw: the first bytes of a bundle
    :raises DamagedRecord: ``raw`` does not begin with a whole head
    """
    if len(raw) < _HEAD.size or raw[:4] != MAGIC:
        raise DamagedRecord('bundle: no DSB1 at its start')
    _, flags, length, crc = _HEAD.unpack_from(raw)
    if flags & ~SEALED or length > _MAX_HEAD_BYTES:
        raise DamagedRecord('bundle: flags %#x, head of %d bytes'
                            % (flags, length))
    text = raw[_HEAD.size:_HEAD.size + length]
    if len(text) != length or zlib.crc32(raw[4:12] + text) != crc:
        raise DamagedRecord('bundle: the head is cut off or damaged')
    head = _of_json(text, 'head')
    if not isinstance(head, dict):
        raise DamagedRecord('bundle: the head is no object')
    return head, bool(flags & SEALED), _HEAD.size + length


def read_trailer(raw: bytes, bundle_bytes: int) -> Trailer:
    """Where the index is.

    :param raw: the last ``TRAILER_BYTES`` of a bundle
    :param bundle_bytes: of the whole bundle
    :raises DamagedRecord: cut off, or it points elsewhere
    """
    if len(raw) != TRAILER_BYTES:
        raise DamagedRecord('bundle: a trailer of %d bytes' % len(raw))
    offset, length, members, magic, digest = _TRAILER.unpack(raw)
    if magic != _END_MAGIC:
        raise DamagedRecord('bundle: no DSBE at its end')
    if offset + length + TRAILER_BYTES != bundle_bytes \
            or members > MAX_BUNDLE_MEMBERS \
            or length > MAX_BUNDLE_INDEX_BYTES:
        raise DamagedRecord('bundle: %d members, index at %d with %d bytes '
                            'in a bundle of %d' % (
                                members, offset, length, bundle_bytes))
    return Trailer(offset, length, members, digest)


def read_index(raw: bytes, trailer: Trailer,
               unwrap: Wrap = plain) -> List[Entry]:
    """All members, in order.

    :param raw: the index as it lies there
    :raises DamagedRecord: digest, bounds, order or meaning is wrong
    """
    if len(raw) != trailer.index_bytes or \
            hashlib.sha256(raw).digest() != trailer.digest:
        raise DamagedRecord('bundle: the index has another digest')
    rows = _of_json(_inflate(unwrap('index', 0, raw),
                             MAX_BUNDLE_INDEX_BYTES, 'index'), 'index')
    if not isinstance(rows, list) or len(rows) != trailer.members:
        raise DamagedRecord('bundle: the index does not have %d members'
                            % trailer.members)
    entries: List[Entry] = []
    end = _HEAD.size
    for number, row in enumerate(rows):
        entries.append(_entry(number, row, end, trailer.index_offset))
        end = entries[-1].offset + entries[-1].stored_bytes
    return entries


def read_proofs(raw: bytes, unwrap: Wrap = plain
                ) -> Iterator[Tuple[bytes, int, int]]:
    """(identity, offset, number) of each member.

    :param raw: the proofs as they lie there
    :raises DamagedRecord: they are none, or not whole
    """
    proofs = raw[:-_DIGEST_BYTES]
    if hashlib.sha256(proofs).digest() != raw[-_DIGEST_BYTES:]:
        raise DamagedRecord('bundle: the proofs have another digest')
    plain_proofs = unwrap('proofs', 0, proofs)
    if len(plain_proofs) % _PROOF.size or \
            len(plain_proofs) > MAX_BUNDLE_MEMBERS * _PROOF.size:
        raise DamagedRecord('bundle: proofs of %d bytes' % len(plain_proofs))
    return _PROOF.iter_unpack(plain_proofs)


def scan(raw: bytes, unwrap: Wrap = plain) -> Iterator[Entry]:
    """Members from the front, without the index; ends at the first that
    is not whole. For a bundle whose end is lost.

    :raises DamagedRecord: not even the head is there
    """
    at = read_head(raw)[2]
    for number in range(MAX_BUNDLE_MEMBERS):
        if raw[at:at + 4] != _MEMBER_MAGIC or len(raw) < at + _MEMBER.size:
            return
        _, record_bytes, data_bytes, crc = _MEMBER.unpack_from(raw, at)
        start = at + _MEMBER.size
        packed = raw[start:start + record_bytes]
        offset = start + record_bytes
        if zlib.crc32(raw[at + 4:at + 16] + packed) != crc or \
                offset + data_bytes > len(raw):
            return
        yield Entry(number, offset, data_bytes,
                    read_record(unwrap('record', number, packed)))
        at = offset + data_bytes


def pack_record(record: Record) -> bytes:
    """A record as it lies in front of its member's data."""
    return _deflated(_json(record))


def read_record(packed: bytes) -> Record:
    """A record that :func:`pack_record` packed.

    :raises DamagedRecord: it is none
    """
    return _record(_of_json(
        _inflate(packed, MAX_RECORD_BYTES, 'record'), 'record'))


def _entry(number: int, row: Any, end: int, index_offset: int) -> Entry:
    if not isinstance(row, list) or len(row) != 3 or not all(
            type(value) is int and value >= 0 for value in row[:2]):
        raise DamagedRecord('bundle: member %d has no place' % number)
    offset, length = row[:2]
    if offset < end or offset + length > index_offset:
        raise DamagedRecord('bundle: member %d lies at %d with %d bytes, '
                            'outside %d to %d' % (
                                number, offset, length, end, index_offset))
    return Entry(number, offset, length, _record(row[2]))


def _record(fields: Any) -> Record:
    if not isinstance(fields, dict) or type(fields.get('length')) is not int \
            or fields['length'] < 0 or not isinstance(fields.get('etag'), str):
        raise DamagedRecord('bundle: a record without length and etag')
    return fields


def _inflate(packed: bytes, limit: int, part: str) -> bytes:
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(packed, limit)
    except zlib.error as err:
        raise DamagedRecord('bundle: %s: %s' % (part, err)) from err
    if not inflate.eof or inflate.unused_data:
        raise DamagedRecord('bundle: the %s is cut off, or has more than %d '
                            'bytes' % (part, limit))
    return raw


def _of_json(raw: bytes, part: str) -> Any:
    try:
        return json.loads(raw.decode('ascii'))
    except (ValueError, RecursionError) as err:
        raise DamagedRecord('bundle: %s: %s' % (part, err)) from err


def _deflated(text: bytes) -> bytes:
    if len(text) > 1 << _SMALL_WINDOW:
        return zlib.compress(text, _RECORD_LEVEL)
    deflate = zlib.compressobj(_RECORD_LEVEL, zlib.DEFLATED, _SMALL_WINDOW,
                               _SMALL_MEMORY)
    return deflate.compress(text) + deflate.flush()


def _json(value: Any) -> bytes:
    return _encode(value).encode('ascii')


def _crc(raw: bytes) -> bytes:
    return _CRC.pack(zlib.crc32(raw))
