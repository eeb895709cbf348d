"""A node's local storage for gateway tests: folders and nothing else.

``FolderVersions`` keeps the promises of ``gateway.ports`` with the simplest
means (whole files, records replaced by rename) and survives kill -9, so
that a test's second process finds what its first one left. The judge is
``expected.json``, digests of what was acknowledged, which nothing of ours
reads.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import threading
from dataclasses import replace
from typing import (
    Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple)

from swift_dss.core.config import GatewayConf, NodeConf, TierConf
from swift_dss.core.errors import TierFull, VersionGone
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.primaries import (
    Primaries, Wanted, looks_at)
from swift_dss.gateway.ports import (
    Listed, LocalFill, LocalReader, LocalVersion, LocalVersions, Metrics, Sink)
from swift_dss.strategy.agreement import Answer
from swift_dss.wire import classmap
from swift_dss.wire.control import FetchReply
from swift_dss.wire.records import residency as record

DEVICE = 'sda'


def conf_for(server: Any, root: str, url: str = '',
             **gateway: Any) -> NodeConf:
    """A node's configuration that points at a test server, with time-outs
    that a test can wait for."""
    os.makedirs(root, exist_ok=True)
    secret = os.path.join(root, 's3-secret')
    secret_fd = os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(secret_fd, 'w') as out:
        out.write('access_key = %s\nsecret_key = %s\n' % (
            server.access_key, server.secret_key))
    options: Dict[str, Any] = {
        'enabled': True, 'url': url or server.url, 'bucket': 'dss-test',
        'prefix': 'p/', 'secret_file': secret, 'remote_after_seconds': 0.0,
        'delete_delay_seconds': 0.0, 'take_over_seconds': 0.0,
        'part_bytes': 5 * 1024 * 1024, 'connect_timeout_seconds': 1.0,
        'read_timeout_seconds': 2.0, 'deadline_seconds': 5.0,
        'retry_after_seconds': 7}
    options.update(gateway)
    return NodeConf(run_dir=root, tier=TierConf(index_dir=root),
                    gateway=GatewayConf(**options))


class FixedRanks:
    """Ranks without rings."""

    def __init__(self, ranks: Optional[Dict[str, int]] = None) -> None:
        self._ranks = ranks or {}

    def rank(self, version: VersionId) -> int:
        return self._ranks.get(version.device, 0)

    def partition(self, version: VersionId) -> str:
        return '7'

    def not_in_rings(self, names: Iterable[str]) -> List[str]:
        return []

    def primaries(self, policy: int, object_hash: str
                  ) -> Tuple[str, List[Dict[str, Any]]]:
        return '7', [{'device': DEVICE}]

    def is_here(self, node: Dict[str, Any]) -> bool:
        return True

    def is_primary(self, version: VersionId) -> bool:
        return True

    def shares(self, names: Iterable[str]) -> List[str]:
        return list(names)


class OnlyHere(Primaries):
    """The devices of one node are all primaries there are."""

    def __init__(self, *local: LocalVersions) -> None:
        self._local = local

    def ask(self, wanted: Sequence[Wanted],
            records: bool = False) -> List[List[Optional[Answer]]]:
        return [[
            looks_at(local)(replace(
                version, device=version.device or DEVICE), '7', True)
            for local in self._local] for version, _ in wanted]


class CountingMetrics(Metrics):
    """Counters that tests look at."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counters: Dict[str, int] = {}
        self.gauges: Dict[str, float] = {}

    def count(self, name: str, amount: int = 1) -> None:
        with self._lock:
            self.counters[name] = self.counters.get(name, 0) + amount

    def gauge(self, name: str, value: float) -> None:
        self.gauges[name] = value

    def timing(self, name: str, seconds: float) -> None:
        return


class Collector(Sink):
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.reply: Optional[FetchReply] = None
        self.pieces: List[bytes] = []

    def begin(self, reply: FetchReply) -> None:
        assert self.reply is None, 'two replies'
        self.reply = reply

    def write(self, data: bytes) -> None:
        assert self.reply is not None and self.reply.status == 200
        self.pieces.append(data)

    @property
    def data(self) -> bytes:
        return b''.join(self.pieces)


class FolderVersions(LocalVersions):
    """Local storage in a folder."""

    def __init__(self, root: str) -> None:
        self._root = os.path.join(root, 'local')
        self._lock = threading.RLock()
        self.room = True
        self._quarantined: Dict[str, str] = {}
        os.makedirs(self._root, exist_ok=True)

    # -- what a test does ------------------------------------------------

    def put(self, name: str, data: bytes,
            timestamp: str = '1700000000.00000', device: str = DEVICE,
            class_map: Optional[ClassMap] = None,
            frag_index: Optional[int] = None,
            metadata: Optional[Dict[str, str]] = None) -> VersionId:
        """Acknowledge a version."""
        version = VersionId(
            device, 0, hashlib.md5(name.encode()).hexdigest(), timestamp,
            frag_index)
        folder = self._folder(version)
        os.makedirs(folder, exist_ok=True)
        meta = {'name': '/a/c/' + name, 'Content-Type': 'text/plain',
                'Content-Length': str(len(data)), 'X-Timestamp': timestamp,
                'ETag': hashlib.md5(data).hexdigest()}
        meta.update(metadata or {})
        _replace(self._path(version, 'bytes'), data)
        _replace(self._path(version, 'meta'), json.dumps(
            {'meta': meta, 'map': classmap.encode(
                class_map or ClassMap.uniform(0))}).encode())
        _replace(self._path(version, 'residency'),
                 record.encode(Residency.whole(len(data))))
        self._expect(version, hashlib.md5(data).hexdigest())
        return version

    def post(self, version: VersionId, metadata: Dict[str, str]) -> None:
        """A POST: user metadata change, bytes do not."""
        with open(self._path(version, 'meta')) as source:
            record = json.load(source)
        record['meta'].update(metadata)
        if 'X-Timestamp' not in metadata:
            record['meta']['X-Timestamp'] = '%016.5f' % (
                float(record['meta']['X-Timestamp']) + 1)
        # As Swift's .meta: who was described before has changed.
        _replace(self._path(version, 'posted'), b'')
        _replace(self._path(version, 'meta'), json.dumps(record).encode())

    def tombstone(self, version: VersionId, timestamp: str) -> None:
        """The object is deleted at ``timestamp``."""
        os.makedirs(self._folder(version), exist_ok=True)
        _replace(os.path.join(self._folder(version), timestamp + '.ts'),
                 b'')
        self.unlink(version)

    def reclaim(self, version: VersionId, timestamp: str) -> None:
        """The tombstone of ``timestamp`` is older than Swift keeps one."""
        os.unlink(os.path.join(self._folder(version), timestamp + '.ts'))

    def unlink(self, version: VersionId) -> None:
        """The file leaves this device."""
        for kind in ('bytes', 'meta', 'residency', 'posted'):
            try:
                os.unlink(self._path(version, kind))
            except FileNotFoundError:
                pass
        self._expect(version, None)

    def quarantine(self, version: VersionId) -> None:
        """Swift takes the file out of its place."""
        self.unlink(version)
        self._quarantined[version.object_hash] = version.timestamp

    def empty_quarantine(self) -> None:
        """An operator has removed what was there."""
        self._quarantined.clear()

    def drop_local(self, version: VersionId) -> None:
        """What eviction does, if and only if it may."""
        with self._lock:
            residency = self._residency(version)
            residency = residency.drop(
                0, residency.content_length, Tier.SSD | Tier.HDD)
            _replace(self._path(version, 'residency'),
                     record.encode(residency))
            _replace(self._path(version, 'bytes'), b'')

    def lose(self, version: VersionId) -> None:
        """A disk has lost the bytes, and the metadata is there."""
        os.unlink(self._path(version, 'bytes'))

    def corrupt(self, version: VersionId) -> None:
        """Bit rot: one byte changes."""
        path = self._path(version, 'bytes')
        with open(path, 'r+b') as damaged:
            damaged.seek(1)
            byte = damaged.read(1)
            damaged.seek(1)
            damaged.write(bytes((byte[0] ^ 1,)))

    def raw(self, version: VersionId) -> bytes:
        """The local bytes, whatever the record says."""
        with open(self._path(version, 'bytes'), 'rb') as source:
            return source.read()

    def residency(self, version: VersionId) -> Residency:
        """As the record says."""
        with self._lock:
            return self._residency(version)

    def expected(self) -> Dict[str, str]:
        """Acknowledged and not deleted: version to MD5."""
        try:
            with open(os.path.join(self._root, 'expected.json')) as source:
                digests: Dict[str, str] = json.load(source)
                return digests
        except FileNotFoundError:
            return {}

    # -- the port --------------------------------------------------------

    def describe(self, version: VersionId, partition: str) -> LocalVersion:
        with self._lock:
            try:
                with open(self._path(version, 'meta')) as source:
                    record = json.load(source)
                residency = self._residency(version)
            except FileNotFoundError:
                raise VersionGone(version.key) from None
        return LocalVersion(version, partition, record['meta']['ETag'],
                            record['meta'], residency,
                            classmap.decode(record['map']))

    def open(self, version: VersionId, partition: str) -> LocalReader:
        try:
            return _Reader(open(self._path(version, 'bytes'), 'rb'),
                           self.residency(version))
        except FileNotFoundError:
            raise VersionGone(version.key) from None

    def read_as_parked(
            self, parked: Sequence[Tuple[VersionId, str, int]]
            ) -> Iterator[Optional[bytes]]:
        for version, _, length in parked:
            data = None
            if not os.path.exists(self._path(version, 'posted')):
                try:
                    with open(self._path(version, 'bytes'), 'rb') as source:
                        data = source.read()
                except FileNotFoundError:
                    pass
            yield data if data is not None and len(data) == length else None

    def newest(self, version: VersionId, partition: str) -> Optional[str]:
        try:
            names = os.listdir(self._folder(version))
        except FileNotFoundError:
            return None
        stamps = [name[:-3] for name in names if name.endswith('.ts')]
        stamps += [name.split('+')[0].split('#')[0] for name in names
                   if name.endswith('+meta')]
        return max(stamps) if stamps else None

    def newest_record(self, version: VersionId,
                      partition: str) -> Tuple[str, str, bool]:
        newest = self.newest(version, partition) or ''
        try:
            residency = self.residency(replace(version, timestamp=newest))
        except FileNotFoundError:
            return newest, '', False
        return (newest, residency.remote.key if residency.remote else '',
                residency.is_local)

    def newest_in_quarantine(self, version: VersionId) -> str:
        return self._quarantined.get(version.object_hash, '')

    def in_s3(self, after: int) -> List[Listed]:
        """Numbered by their order on the disk, two at a time."""
        rows: List[Listed] = []
        paths = sorted(glob.glob(os.path.join(self._root, '*', '*',
                                              '*+residency')))
        for row, path in enumerate(paths[after:], after + 1):
            with open(path, 'rb') as source:
                if record.decode(source.read()).remote is None:
                    continue
            top, object_hash, name = path.rsplit('/', 2)
            timestamp, _, frag = name[:-len('+residency')].partition('#')
            rows.append((row, VersionId(
                os.path.basename(top), 0, object_hash, timestamp,
                int(frag) if frag else None), '7'))
            if len(rows) == 2:
                break
        return rows

    def record_remote(self, version: VersionId, partition: str,
                      remote: RemoteCopy) -> None:
        with self._lock:
            try:
                residency = self._residency(version)
            except FileNotFoundError:
                raise VersionGone(version.key) from None
            _replace(self._path(version, 'residency'),
                     record.encode(residency.with_remote(remote)))

    def forget_remote(self, version: VersionId, partition: str) -> None:
        with self._lock:
            residency = self._residency(version)
            _replace(self._path(version, 'residency'), record.encode(
                residency.drop(0, residency.content_length, Tier.REMOTE)))

    def begin_fill(self, version: VersionId, partition: str, offset: int,
                   length: int, class_id: int) -> Optional[LocalFill]:
        return _Fill(self, version) if self.room else None

    def commit_fill(self, version: VersionId,
                    pieces: List[Tuple[int, bytes]]) -> None:
        with self._lock:
            try:
                residency = self._residency(version)
                bytes_fd = os.open(self._path(version, 'bytes'), os.O_RDWR)
            except FileNotFoundError:
                raise VersionGone(version.key) from None
            with os.fdopen(bytes_fd, 'r+b') as out:
                for offset, data in pieces:
                    out.seek(offset)
                    out.write(data)
                    residency = residency.add(offset, len(data), Tier.HDD)
                out.flush()
                os.fsync(out.fileno())
            _replace(self._path(version, 'residency'),
                     record.encode(residency))

    # -- inside ----------------------------------------------------------

    def _folder(self, version: VersionId) -> str:
        return os.path.join(self._root, version.device, version.object_hash)

    def _path(self, version: VersionId, kind: str) -> str:
        return os.path.join(self._folder(version), '%s+%s' % (
            version.key.rpartition('/')[2], kind))

    def _residency(self, version: VersionId) -> Residency:
        with open(self._path(version, 'residency'), 'rb') as source:
            return record.decode(source.read())

    def _expect(self, version: VersionId, digest: Optional[str]) -> None:
        with self._lock:
            digests = self.expected()
            name = '%s %s' % (version.device, version.key)
            if digest is None:
                digests.pop(name, None)
            else:
                digests[name] = digest
            _replace(os.path.join(self._root, 'expected.json'),
                     json.dumps(digests).encode())


class _Reader(LocalReader):

    def __init__(self, source: Any, residency: Residency) -> None:
        self._source = source
        self._residency = residency

    def read(self, offset: int, length: int) -> bytes:
        for extent in self._residency.split(offset, length):
            if not extent.tiers & (Tier.SSD | Tier.HDD):
                raise VersionGone('bytes at %d are not local' % offset)
        self._source.seek(offset)
        data = self._source.read(length)
        if len(data) != length:
            raise VersionGone('bytes at %d are not local' % offset)
        return bytes(data)

    def close(self) -> None:
        self._source.close()


class _Fill(LocalFill):

    def __init__(self, versions: FolderVersions,
                 version: VersionId) -> None:
        self._versions = versions
        self._version = version
        self._pieces: List[Tuple[int, bytes]] = []

    def write(self, offset: int, data: bytes) -> None:
        if not self._versions.room:
            raise TierFull('no room')
        self._pieces.append((offset, data))

    def commit(self) -> None:
        self._versions.commit_fill(self._version, self._pieces)

    def abort(self) -> None:
        self._pieces = []


def _replace(path: str, data: bytes) -> None:
    temporary = '%s.%d.tmp' % (path, threading.get_ident())
    with open(temporary, 'wb') as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    os.rename(temporary, path)
