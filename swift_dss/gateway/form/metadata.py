"""A version's metadata as S3 user metadata.

With names, metadata and class map in the bucket, the bucket alone is
enough to rebuild the objects. The record is JSON, zlib-compressed,
base64-encoded and cut over ``x-amz-meta-dss-0``, ``-1``, ...; a record
that does not fit S3's 2 KB goes to ``<key>.meta`` (the same JSON,
compressed) and ``x-amz-meta-dss-meta: sidecar`` says so. A record that
changed after the upload (a POST) lies in ``<key>.meta`` too, which goes
before the one in user metadata.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import MAX_FRAGMENT_INDEX, MAX_POLICY_INDEX
from swift_dss.core.version import VersionId
from swift_dss.gateway.form import digests
from swift_dss.gateway.ports import LocalVersion
from swift_dss.wire import classmap, registers
from swift_dss.wire.layout import remote_key
from swift_dss.wire.parsing import parsing

META_SUFFIX = '.meta'
SUMS_SUFFIX = '.sums'
SUFFIXES = (META_SUFFIX, SUMS_SUFFIX)

#: One value stays short enough for every S3 server's header limits.
CHUNK_BYTES = 256
#: S3 allows 2,048 bytes of user metadata, names included; a few are ours.
MAX_INLINE_CHUNKS = 7
#: Swift's own metadata limits keep the record far below this.
MAX_RECORD_BYTES = 1024 * 1024

_VERSION = 1
#: Members bundled beside the bucket have none: their name says where they
#: belong.
_HASH = re.compile(r'^([0-9a-f]{32})?\Z')


@dataclass(frozen=True)
class RemoteRecord:
    """The decoded record of one key."""

    version: VersionId
    content_length: int
    etag: str
    metadata: Mapping[str, str]
    class_map_text: str


def identity(version: VersionId, length: int, etag: str) -> bytes:
    """8 bytes of all that a residency record and a bundle must agree on."""
    frag = version.frag_index
    digest: bytes = digests.md5(('%d %s %s %s %d %s' % (
        version.policy, version.object_hash, version.timestamp,
        '-' if frag is None else frag, length, etag)).encode(
            'utf-8', 'surrogateescape')).digest()
    return digest[:8]


def merged(record: Dict[str, Any], other: Dict[str, Any]) -> Dict[str, Any]:
    """A record of one version that knows of each POST that either knows."""
    first: Any = record.get('metadata')
    second: Any = other.get('metadata')
    if first == second or not _has_time(second):
        return record
    if not _has_time(first):
        return other
    mine, theirs = registers.of_post(first), registers.of_post(second)
    newer_map = other if registers.has_newer_class(theirs, mine) else record
    return dict(record, map=newer_map.get('map'), metadata=dict(
        {name: first[name] for name in ('name', 'Content-Type')
         if name in first},
        **registers.to_metadata(registers.join(mine, theirs))))


def changed_at(metadata: Mapping[str, str]) -> str:
    """Of two records of a version, the later one may know of a POST that
    the other one has not heard of."""
    return str(metadata.get('X-Timestamp', ''))


def _has_time(metadata: Any) -> bool:
    return isinstance(metadata, dict) and 'X-Timestamp' in metadata


def own_key(prefix: str, version: VersionId) -> str:
    """The key of a version that is in no bundle."""
    return remote_key(prefix, version)


def record_of(local: LocalVersion) -> Dict[str, Any]:
    """A version's record for S3, as JSON values."""
    version = local.version
    return {
        'v': _VERSION, 'policy': version.policy,
        'hash': version.object_hash, 'timestamp': version.timestamp,
        'frag': version.frag_index, 'length': local.content_length,
        'etag': local.etag, 'metadata': dict(local.metadata),
        'map': classmap.encode(local.class_map)}


def pack(record: Dict[str, Any]) -> bytes:
    """The record as the bytes of a side car."""
    # ensure_ascii keeps names that are not UTF-8 (surrogates) intact.
    return zlib.compress(json.dumps(
        record, separators=(',', ':'), sort_keys=True).encode('ascii'), 9)


def unpack(packed: bytes) -> Dict[str, Any]:
    """The record that :func:`pack` packed.

    :raises DamagedRecord: it is cut off, too long or no record
    """
    with parsing('remote record'):
        inflate = zlib.decompressobj()
        raw = inflate.decompress(packed, MAX_RECORD_BYTES)
        if not inflate.eof or inflate.unused_data:
            raise DamagedRecord('remote record: cut off or too long')
        return dict(json.loads(raw))


def encode(local: LocalVersion,
           close: Callable[[bytes], bytes] = lambda packed: packed
           ) -> Tuple[Dict[str, str], Optional[bytes]]:
    """(user metadata of the key, sidecar's bytes or None).

    :param close: seals the record in user metadata
    """
    packed = pack(record_of(local))
    text = base64.b64encode(close(packed)).decode('ascii')
    if len(text) > CHUNK_BYTES * MAX_INLINE_CHUNKS:
        return {'dss-meta': 'sidecar'}, packed
    chunks = [text[at:at + CHUNK_BYTES]
              for at in range(0, len(text), CHUNK_BYTES)]
    return {'dss-%d' % i: chunk for i, chunk in enumerate(chunks)}, None


def has_sidecar(user_metadata: Mapping[str, str]) -> bool:
    """True if the record lies in ``<key>.meta``."""
    return user_metadata.get('dss-meta') == 'sidecar'


def decode(user_metadata: Mapping[str, str],
           sidecar: Optional[bytes] = None,
           unclose: Callable[[bytes], bytes] = lambda packed: packed
           ) -> RemoteRecord:
    """The record of a key.

    :param user_metadata: names in lower case, without ``x-amz-meta-``
    :param sidecar: the bytes of ``<key>.meta`` where there is one
    :param unclose: opens the record in user metadata
    :raises DamagedRecord: missing, cut off or not ours
    """
    if sidecar is not None:
        return of_record(unpack(sidecar))
    return of_record(_inline(user_metadata, unclose))


def inline(user_metadata: Mapping[str, str],
           unclose: Callable[[bytes], bytes] = lambda packed: packed
           ) -> Optional[Dict[str, Any]]:
    """The record in user metadata; None where it did not fit.

    :raises DamagedRecord: missing, cut off or not ours
    """
    if has_sidecar(user_metadata):
        return None
    return _inline(user_metadata, unclose)


def _inline(user_metadata: Mapping[str, str],
            unclose: Callable[[bytes], bytes]) -> Dict[str, Any]:
    with parsing('remote record'):
        chunks: List[str] = []
        while 'dss-%d' % len(chunks) in user_metadata:
            chunks.append(user_metadata['dss-%d' % len(chunks)])
        return unpack(unclose(base64.b64decode(''.join(chunks),
                                               validate=True)))


def of_record(record: Any) -> RemoteRecord:
    """The record that :func:`record_of` made.

    :raises DamagedRecord: it is not one
    """
    with parsing('remote record'):
        if record['v'] != _VERSION:
            raise ValueError('version %r' % record['v'])
        frag = record['frag']
        made = RemoteRecord(
            VersionId('', int(record['policy']), str(record['hash']),
                      str(record['timestamp']),
                      None if frag is None else int(frag)),
            int(record['length']), str(record['etag']),
            {str(name): str(value)
             for name, value in record['metadata'].items()},
            str(record['map']))
        # Rings and object servers take these as they are: an impossible one
        # would spoil a question about hundreds. The caller that trusts the
        # record judges its timestamp.
        version = made.version
        if not (_HASH.match(version.object_hash)
                and 0 <= version.policy <= MAX_POLICY_INDEX
                and 0 <= (version.frag_index or 0) <= MAX_FRAGMENT_INDEX
                and made.content_length >= 0):
            raise ValueError('no version of ours')
        return made
