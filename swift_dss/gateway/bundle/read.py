"""Reading a bundle's index, and its members, out of S3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from swift_dss.core.errors import DamagedRecord, RemoteCorrupt
from swift_dss.core.limits import MAX_BUNDLE_BYTES, MAX_BUNDLE_INDEX_BYTES
from swift_dss.gateway.bundle import since
from swift_dss.gateway.bundle.book import Bundle, Member
from swift_dss.gateway.bundle.since import Since
from swift_dss.gateway.form import digests, metadata
from swift_dss.gateway.form.encrypt import KeyFile, opener
from swift_dss.gateway.link.client import S3Client
from swift_dss.wire import bundle
from swift_dss.wire.parsing import parsing

#: Folder of bundles under the prefix; no hash of Swift's looks like it.
FOLDER = 'bundles/'
#: First reads of either end: mostly all of head, and of index.
_HEAD_BYTES = 4096
_TAIL_BYTES = 65536


@dataclass(frozen=True)
class Index:
    """A bundle's head."""

    head: Dict[str, Any]
    sealed: bool
    entries: List[bundle.Entry]


def is_bundle(prefix: str, key: str) -> bool:
    """True if a key of the bucket is a bundle's."""
    return key.startswith(prefix + FOLDER) and not since.bundle_of(key)


def read_index(client: S3Client, key: str, size: int, keys: KeyFile,
               unwrap: Optional[bundle.Wrap] = None) -> Index:
    """The index of a bundle: two ranged GETs, seldom three.

    :param size: of the bundle, as S3 says
    :param keys: open it where it is sealed
    :param unwrap: opens it instead
    :raises DamagedRecord: it is no bundle, or not whole
    :raises S3Missing, RemoteUnavailable: S3 does not give it
    """
    if not bundle.TRAILER_BYTES < size <= MAX_BUNDLE_BYTES:
        raise DamagedRecord('%s has %d bytes' % (key, size))
    head, sealed, _ = read_head(client, key, size)
    if unwrap is None:
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
    """The fields that all members share; see ``wire.bundle.read_head``."""
    raw = _range(client, key, 0, min(size, _HEAD_BYTES))
    try:
        return bundle.read_head(raw)
    except DamagedRecord:
        if raw[:4] != bundle.MAGIC or size <= _HEAD_BYTES:
            raise
    return bundle.read_head(_range(client, key, 0, min(size, 70000)))


def read_proofs(client: S3Client, key: str, place: str, seal: str,
                keys: KeyFile) -> List[Tuple[bytes, int, int]]:
    """(identity, offset, number) of each member of a bundle: one ranged
    GET, of 20 bytes a member.

    :param place: what the bundle's user metadata says of them
    :raises DamagedRecord: there are none, or they cannot be read
    :raises S3Missing, RemoteUnavailable: S3 does not give it
    """
    with parsing('place of proofs'):
        start, length = map(int, place.split('-'))
        if not (0 < start < MAX_BUNDLE_BYTES
                and 0 < length < MAX_BUNDLE_INDEX_BYTES):
            raise ValueError('%r is no place' % place)
    return list(bundle.read_proofs(
        _range(client, key, start, start + length), opener(keys, seal)))


def read_whole(client: S3Client, key: str, size: int) -> bytes:
    """All bytes of a bundle."""
    if size > MAX_BUNDLE_BYTES:
        raise DamagedRecord('%s has %d bytes' % (key, size))
    return _range(client, key, 0, size)


class Source:
    """Members of a bundle out of S3, which is read once, if at all."""

    def __init__(self, client: S3Client, old: Bundle,
                 keys: KeyFile) -> None:
        self._client = client
        self._old = old
        self._keys = keys
        self._opened: Optional[bundle.Wrap] = None
        self._raw = b''
        self._entries: Dict[int, bundle.Entry] = {}
        self._since: Optional[Since] = None

    def members(self, group: str) -> List[Member]:
        """The index of the bundle.

        :raises S3Missing: the bundle is gone
        :raises DamagedRecord: the bundle has no sound index
        """
        self._read_index()
        members: List[Member] = []
        for number, entry in self._entries.items():
            record = metadata.of_record(entry.record)
            members.append(Member(
                record.version, '', 'live', group,
                record.content_length, record.etag, 0, number,
                entry.offset, entry.stored_bytes))
        return members

    def read(self, member: Member) -> Tuple[bundle.Record, bytes]:
        """Record and proven bytes of a member.

        :raises RemoteCorrupt: the bytes do not match the book
        """
        self._read_index()
        if not self._raw:
            self._raw = read_whole(self._client, self._old.key,
                                   self._old.size)
        entry = self._entries.get(member.number)
        if entry is None or entry.offset != member.offset:
            raise RemoteCorrupt('%s: member %d is not where it was' % (
                self._old.key, member.number))
        data = self._unwrap()('data', member.number, self._raw[
            entry.offset:entry.offset + entry.stored_bytes])
        if digests.md5(data).hexdigest() != member.etag:
            raise RemoteCorrupt('%s: member %d has a wrong MD5' % (
                self._old.key, member.number))
        return self.newest(member, entry.record), data

    def newest(self, member: Member, record: bundle.Record) -> bundle.Record:
        """A record of a member, updated by the notes beside the bundle.

        :raises DamagedRecord: a note is unreadable
        """
        if self._since is None:
            self._since = since.read_all(self._client, self._old.key,
                                         self._unwrap())
        return metadata.merged(record, self._since.records.get(
            member.number, record))

    def _read_index(self) -> None:
        if not self._entries:
            self._entries = {entry.number: entry for entry in read_index(
                self._client, self._old.key, self._old.size,
                self._keys, self._unwrap()).entries}

    def _unwrap(self) -> bundle.Wrap:
        # By the book's seal, which may be under a newer key than the one
        # in the bundle; and only if something is read.
        if self._opened is None:
            self._opened = opener(self._keys, self._old.seal)
        return self._opened


def _range(client: S3Client, key: str, start: int, end: int) -> bytes:
    body = client.get(key, start, end - start)
    try:
        return body.read(end - start)
    finally:
        body.close()
