"""Read names, metadata and classes from the bucket alone.

Needs neither the queue nor the index nor any local file: only the
configuration of the gateway. ``restore``, ``verify`` and ``ls`` read the
bucket through here.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from typing import (
    Any, Callable, Deque, Iterator, List, Mapping, Optional, Set, Tuple)

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DamagedRecord
from swift_dss.core.residency import RemoteCopy
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle import since as bundle_since
from swift_dss.gateway.bundle.pack import seal_of
from swift_dss.gateway.bundle.read import is_bundle, read_index
from swift_dss.gateway.form import metadata
from swift_dss.gateway.form.encrypt import (
    SEAL_META, KeyFile, WrongSeal, open_envelope, opener, sealed_length)
from swift_dss.gateway.form.metadata import RemoteRecord
from swift_dss.gateway.form.one_key import KeyFailures
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import S3Client, S3Listed, S3Missing
from swift_dss.gateway.restore import places
from swift_dss.io.workers import Pool, threads
from swift_dss.wire.layout import parse_remote_key

#: Keys that only say more of the one that they begin with.
_BESIDE = metadata.SUFFIXES
#: Requests at a time, and answers that may wait for a slow reader.
LOOKERS = 8
_AHEAD = 64


@dataclass(frozen=True)
class Held:
    """One version that the bucket holds.

    :param remote: where its bytes are, as a residency record has it
    :param number: of the member, if that is a bundle
    :param stored_bytes: of its data in the bundle
    :param bundle: the bundle's own head, and its size
    """

    record: RemoteRecord
    remote: RemoteCopy
    number: int = -1
    stored_bytes: int = 0
    bundle: Optional[Tuple[Mapping[str, Any], int]] = None

    @property
    def name(self) -> str:
        """``/account/container/object``."""
        return self.record.metadata.get('name', '')


@dataclass(frozen=True)
class Unreadable:
    """A key is malformed, or S3 does not give it."""

    key: str
    reason: str


def open_client(conf: GatewayConf) -> S3Client:
    """A client for a command; no daemon need run.

    :raises BadConfig: the secret cannot be used
    """
    client = S3Client(conf, Breaker(), LOOKERS + 1)
    client.check_secret()
    return client


class Catalog:
    """Walks the bucket.

    :param client: of the same bucket as ``conf``
    :param pool: runs the questions to S3
    """

    def __init__(self, conf: GatewayConf, client: S3Client,
                 pool: Pool = threads) -> None:
        self._conf = conf
        self._client = client
        self._pool = pool
        self._keys = KeyFile(conf.key_file)
        self._failures = KeyFailures()
        #: Keys seen, and the last one: where to go on another time.
        self.keys = 0
        self.last_key = ''

    def walk(self, after: str = '', wanted: Callable[[VersionId], bool]
             = lambda version: True) -> Iterator[object]:
        """Every version there is, in the order of keys: :class:`Held` and
        :class:`Unreadable`.

        :param after: go on behind this key
        :param wanted: False for a version whose own key need not be looked
            at, as the key says that it belongs elsewhere
        :raises RemoteUnavailable: S3 does not answer
        """
        pending: Deque[Tuple[str, Future[List[object]]]] = deque()
        with self._pool(LOOKERS, 'dss-catalog') as pool:
            try:
                for group in _groups(self._client.listing(
                        self._conf.prefix, after)):
                    pending.append((group[-1].key, pool.submit(
                        self._look, group, wanted)))
                    if len(pending) >= _AHEAD:
                        yield from self._landed(*pending.popleft())
                while pending:
                    yield from self._landed(*pending.popleft())
            finally:
                for _, future in pending:
                    future.cancel()

    def _landed(self, key: str,
                future: Future[List[object]]) -> Iterator[object]:
        yield from future.result()
        self.keys += 1
        self.last_key = key

    def _look(self, group: List[S3Listed],
              wanted: Callable[[VersionId], bool]) -> List[object]:
        """Read the keys of one version, or one bundle."""
        beside = {item.key for item in group}
        results: List[object] = []

        def skipped(key: str, why: str) -> None:
            results.append(Unreadable(key, why))

        for listed in group:
            key = listed.key
            if key.endswith(_BESIDE) or bundle_since.bundle_of(key) or key[
                    len(self._conf.prefix):].startswith(places.FOLDERS):
                continue
            with self._failures.of(key, skipped):
                parsed = parse_remote_key(self._conf.prefix, key)
                if is_bundle(self._conf.prefix, key):
                    results += self.members(listed, beside)
                elif parsed is None or wanted(parsed[0]):
                    results.append(self._version(listed, beside))
        return results

    def _version(self, listed: S3Listed, beside: Set[str]) -> Held:
        head = self._client.head(listed.key)
        if head is None:
            raise S3Missing(listed.key)
        side_car = listed.key + metadata.META_SUFFIX
        packed, seal = None, head.metadata.get(SEAL_META, '')
        if side_car in beside or metadata.has_sidecar(head.metadata):
            # Its seal may have been rewrapped since the upload.
            packed, newer = open_envelope(
                self._keys, self._client.get_small(
                    side_car, metadata.MAX_RECORD_BYTES))
            if seal and not newer:
                # A gateway that seals data seals every record of it.
                raise WrongSeal('%s is not sealed, and the data is'
                                % side_car)
            seal = seal and newer
        record = metadata.decode(
            head.metadata, packed, lambda raw: self._keys.open(
                seal).unwrap('record', 0, raw) if seal else raw)
        wanted = sealed_length(record.content_length) if seal \
            else record.content_length
        if head.size != wanted:
            raise DamagedRecord('%d bytes instead of %d' % (
                head.size, wanted))
        return Held(record, RemoteCopy(
            self._conf.endpoint, listed.key, head.etag, 0.0, 0, seal))

    def members(self, listed: S3Listed,
                beside: Set[str]) -> List[object]:
        """The members of a bundle that are not dead."""
        index = read_index(self._client, listed.key, listed.size,
                           self._keys)
        seal = str(index.head.get('seal', '')) if index.sealed else ''
        since = bundle_since.read_all(
            self._client, listed.key, opener(self._keys, seal), beside)
        results: List[object] = []
        for entry in index.entries:
            if entry.number in since.dead:
                continue
            try:
                newer = since.records.get(entry.number, entry.record)
                metadata.of_record(newer)
                record = metadata.of_record(metadata.merged(
                    entry.record, newer))
            except DamagedRecord as err:
                results.append(Unreadable('%s member %d' % (
                    listed.key, entry.number), str(err)))
                continue
            results.append(Held(record, RemoteCopy(
                self._conf.endpoint, listed.key, record.etag, 0.0,
                entry.offset, seal_of(seal, entry.number)),
                entry.number, entry.stored_bytes,
                (index.head, listed.size)))
        return results


def split(name: str) -> Tuple[str, str, str]:
    """Account, container and object of ``/account/container/object``.

    :raises DamagedRecord: it is no such name
    """
    parts = name.split('/', 3)
    if len(parts) != 4 or parts[0] or not all(parts[1:]):
        raise DamagedRecord('%r is not the name of an object' % name)
    return parts[1], parts[2], parts[3]


def _groups(listing: Iterator[S3Listed]) -> Iterator[List[S3Listed]]:
    """Keys that belong together: one, and those that it and a suffix
    make. The key of fragment 1 begins that of fragment 10 too."""
    group: List[S3Listed] = []
    for item in listing:
        if item.key.endswith('/'):
            continue  # a key that marks a folder
        if group and not item.key.startswith(group[0].key + '.'):
            yield group
            group = []
        group.append(item)
    if group:
        yield group
