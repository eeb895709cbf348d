"""Reading a bundle's index, and its members, out of S3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import MAX_BUNDLE_BYTES
from swift_dss.gateway.client import S3Client
from swift_dss.gateway.encrypt import KeyFile, opener
from swift_dss.wire import bundle

#: Folder of bundles under the prefix; no hash of Swift's looks like it.
FOLDER = 'bundles/'
#: First reads of either end: mostly all of head, and of index.
_HEAD_BYTES = 4096
_TAIL_BYTES = 65536


@dataclass(frozen=True)
class Index:
    """What a bundle says of itself."""

    head: Dict[str, Any]
    sealed: bool
    entries: List[bundle.Entry]


def is_bundle(prefix: str, key: str) -> bool:
    """True if a key of the bucket is a bundle's."""
    return key.startswith(prefix + FOLDER) and not key.endswith('.since')


def read_index(client: S3Client, key: str, size: int,
               keys: KeyFile) -> Index:
    """The index of a bundle: two ranged GETs, seldom three.

    :param size: of the bundle, as S3 says
    :param keys: open it where it is sealed
    :raises DamagedRecord: it is no bundle, or not whole
    :raises S3Missing, RemoteUnavailable: S3 does not give it
    """
    if not bundle.TRAILER_BYTES < size <= MAX_BUNDLE_BYTES:
        raise DamagedRecord('%s has %d bytes' % (key, size))
    head, sealed, _ = read_head(client, key, size)
    unwrap = opener(keys, str(head.get('seal', ''))) if sealed \
        else bundle.plain
    tail = _range(client, key, max(0, size - _TAIL_BYTES), size)
    trailer = bundle.read_trailer(tail[-bundle.TRAILER_BYTES:], size)
    raw = tail[:-bundle.TRAILER_BYTES]
    if trailer.index_bytes > len(raw):
        raw = _range(client, key, trailer.index_offset,
                     trailer.index_offset + trailer.index_bytes)
    raw = raw[len(raw) - trailer.index_bytes:]
    return Index(head, sealed, bundle.read_index(raw, trailer, unwrap))


def read_head(client: S3Client, key: str,
              size: int) -> Tuple[Dict[str, Any], bool, int]:
    """What all members have in common; see ``wire.bundle.read_head``."""
    raw = _range(client, key, 0, min(size, _HEAD_BYTES))
    try:
        return bundle.read_head(raw)
    except DamagedRecord:
        if raw[:4] != bundle.MAGIC or size <= _HEAD_BYTES:
            raise
    return bundle.read_head(_range(client, key, 0, min(size, 70000)))


def read_whole(client: S3Client, key: str, size: int) -> bytes:
    """All bytes of a bundle."""
    if size > MAX_BUNDLE_BYTES:
        raise DamagedRecord('%s has %d bytes' % (key, size))
    return _range(client, key, 0, size)


def _range(client: S3Client, key: str, start: int, end: int) -> bytes:
    body = client.get(key, start, end - start)
    try:
        return body.read(end - start)
    finally:
        body.close()
