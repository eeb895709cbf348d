"""Indexes of bundles, to prove or find a member.

A bundle is never rewritten under its key, so it is read once for all members.
Its *proofs* take 20 bytes a member and one ranged GET, at a place that the
bundle's HEAD tells. Where there are none, or where records count as well, its
index is read instead: two ranged GETs, some hundred bytes a member. The
presence of the bundle is checked again every few seconds, because members come
by the hundred.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.residency import RemoteCopy
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.pack import PROOFS_META, seal_of
from swift_dss.gateway.bundle.read import Index, read_index, read_proofs
from swift_dss.gateway.form import metadata
from swift_dss.gateway.form.encrypt import (
    SEAL_META, KeyFile, WrongSeal, sealed_length)
from swift_dss.gateway.link.client import S3Client, S3Head
from swift_dss.io.workers import Clock

#: A HEAD of a bundle counts for so long.
_HEAD_SECONDS = 5.0
#: Bundles, and members of all of them, that are remembered: about 250 bytes
#: a member.
_BUNDLES = 1024
_MEMBERS = 131072


class Entry(NamedTuple):
    """An index's entry of one member.

    :param changed_at: the X-Timestamp of its record; '' if only the proofs
        were read
    """

    offset: int
    number: int
    changed_at: str


@dataclass(frozen=True)
class _Known:
    at: float
    head: S3Head
    seal: str
    #: By identity.
    members: Dict[bytes, Entry]
    #: The index was read.
    is_whole: bool

    def place(self, version: VersionId, length: int,
              etag: str) -> Optional[Tuple[int, str]]:
        """(offset, seal) of a version; None if it is not there."""
        member = self.members.get(metadata.identity(version, length, etag))
        return None if member is None else (
            member.offset, seal_of(self.seal, member.number))


class BundleProofs:
    """Compares records with the indexes of bundles. Thread-safe."""

    def __init__(self, client: S3Client, keys: KeyFile,
                 clock: Clock) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._members = 0
        #: Questions to S3 under way, by key; True: the index is wanted too.
        self._asked: Dict[Tuple[str, bool], Future[Optional[_Known]]] = {}

    def head(self, key: str) -> Optional[S3Head]:
        """S3's answer about a bundle, seconds old; None if there is none.

        :raises DamagedRecord, DssError: as :meth:`has`
        """
        known = self._known_of(key)
        return None if known is None else known.head

    def has(self, version: VersionId, length: int, etag: str,
            remote: RemoteCopy) -> Optional[bool]:
        """True if the bundle of ``remote`` has this version there.

        :returns: None if there is no such bundle
        :raises DamagedRecord: the bundle cannot be read
        :raises DssError: it cannot be said now
        """
        known = self._known_of(remote.key)
        if known is None:
            return None
        return remote.etag == etag and (
            remote.offset, remote.seal) == known.place(version, length, etag)

    def find(self, version: VersionId, length: int, etag: str,
             key: str) -> Optional[Tuple[int, str]]:
        """(offset, seal) of a version in the bundle ``key``; None if the
        version is not there, or no such bundle.

        :raises DamagedRecord, DssError: as :meth:`has`
        """
        known = self._known_of(key)
        return None if known is None else known.place(version, length, etag)

    def entry(self, version: VersionId, length: int, etag: str,
              key: str) -> Optional[Entry]:
        """The entry of a version in the bundle ``key``; None if the version is
        not there, or no such bundle.

        :raises DamagedRecord, DssError: as :meth:`has`
        """
        known = self._known_of(key, True)
        return None if known is None else known.members.get(
            metadata.identity(version, length, etag))

    def _known_of(self, key: str, whole: bool = False) -> Optional[_Known]:
        with self._lock:
            known = self._recall(key)
            if known is not None and known.is_whole >= whole:
                return known
            asked = self._asked.get((key, whole))
            if asked is None:
                mine = self._asked[key, whole] = Future()
        if asked is not None:
            # Several sessions bring members at a time: one asks for all.
            return asked.result()
        try:
            mine.set_result(self._ask(key, whole))
        except BaseException as err:
            mine.set_exception(err)
        finally:
            with self._lock:
                del self._asked[key, whole]
        return mine.result()

    def _ask(self, key: str, whole: bool) -> Optional[_Known]:
        head = self._client.head(key)
        if head is None:
            self._forget(key)
            return None
        return self._look(key, head, whole)

    def _recall(self, key: str) -> Optional[_Known]:
        known = self._known.get(key)
        if known is not None and \
                abs(self._clock.wall() - known.at) < _HEAD_SECONDS:
            return known
        return None

    def _look(self, key: str, head: S3Head, whole: bool) -> _Known:
        with self._lock:
            known = self._known.get(key)
        if known is None or (known.head.size, known.head.etag) != (
                head.size, head.etag) or known.is_whole < whole:
            known = self._read(key, head, whole)
        members = known.members
        known = replace(known, at=self._clock.wall(), head=head)
        self._forget(key)
        with self._lock:
            self._known[key] = known
            self._members += len(members)
            while len(self._known) > 1 and (
                    len(self._known) > _BUNDLES or self._members > _MEMBERS):
                _, oldest = self._known.popitem(last=False)
                self._members -= len(oldest.members)
        return known

    def _read(self, key: str, head: S3Head, whole: bool) -> _Known:
        place = head.metadata.get(PROOFS_META, '')
        if place and not whole:
            seal = head.metadata.get(SEAL_META, '')
            try:
                return _Known(0.0, head, seal, {
                    identity: Entry(offset, number, '')
                    for identity, offset, number in read_proofs(
                        self._client, key, place, seal, self._keys)}, False)
            except (DamagedRecord, WrongSeal):
                pass  # the index says it as well
        index = read_index(self._client, key, head.size, self._keys)
        seal = str(index.head.get('seal', '')) if index.sealed else ''
        return _Known(0.0, head, seal, dict(_members(index, bool(seal))),
                      True)

    def _forget(self, key: str) -> None:
        with self._lock:
            known = self._known.pop(key, None)
            if known is not None:
                self._members -= len(known.members)


def _members(index: Index, sealed: bool
             ) -> Iterator[Tuple[bytes, Entry]]:
    for entry in index.entries:
        record = metadata.of_record(entry.record)
        length = record.content_length
        if entry.stored_bytes == (
                sealed_length(length) if sealed else length):
            timestamp = record.version.timestamp
            changed_at = metadata.changed_at(record.metadata)
            # Mostly these are the same, and there are many.
            yield metadata.identity(
                record.version, length, record.etag), Entry(
                entry.offset, entry.number, timestamp
                if changed_at == timestamp else changed_at)

