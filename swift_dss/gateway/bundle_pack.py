"""Small versions on their way to S3, many in one object.

The order is that of a single upload: local bytes are digested while they
are read and compared with each version's own ETag; the bundle is proven in
S3; only then do residency records name it. In between lies the book: a
bundle's key is durable there *before* S3 can have it (a crash leaves a key
that is known to be garbage), and its members' places are durable *before*
the first record names them (a crash leaves a bundle that is known to be
good). Every step may run twice.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteCorrupt, TierUnavailable, VersionGone)
from swift_dss.core.limits import MAX_BUNDLE_MEMBERS
from swift_dss.core.residency import RemoteCopy
from swift_dss.core.version import VersionId
from swift_dss.gateway import digests, encrypt, metadata, verify
from swift_dss.gateway.bundle_book import Book, Bundle, Member
from swift_dss.gateway.bundle_read import FOLDER, read_whole
from swift_dss.gateway.client import S3Client
from swift_dss.gateway.ports import (
    LocalVersion, LocalVersions, Logger, Metrics)
from swift_dss.io import steps
from swift_dss.strategy.bundling import Batch, Waiting
from swift_dss.wire import bundle

#: Rows of the book that one transaction marks as recorded.
_RECORDED_AT_ONCE = 256
#: A member that is away or damaged is looked at again after this.
AGAIN_SECONDS = 600.0


def group_of(local: LocalVersion, table: ClassTable,
             most_bytes: int) -> Optional[str]:
    """Which bundles a version may share: account, container and classes;
    None if it gets a key of its own."""
    if local.content_length > most_bytes:
        return None
    class_ids = sorted(local.class_map.class_ids(local.content_length)
                       or {local.class_map.rest})
    if not all(table.spec(class_id).bundle for class_id in class_ids):
        return None
    parts = local.metadata.get('name', '').split('/', 3)
    if len(parts) != 4 or parts[0] or not all(parts[1:]):
        return None
    return json.dumps([parts[1], parts[2], local.version.policy, class_ids],
                      separators=(',', ':'))


def batch_of(conf: GatewayConf) -> Batch:
    """When a bundle is full, as the configuration says."""
    return Batch(conf.bundle_bytes, MAX_BUNDLE_MEMBERS,
                 conf.bundle_age_seconds)


@dataclass
class Packed:
    """A bundle in memory, and what is in it."""

    builder: bundle.Builder
    seal: str
    placed: List[Tuple[str, int, int, int]]


class Packer:
    """Builds, sends, proves and records one bundle, in any thread.

    :param done: told of each version whose record names its bundle
    :param away: told of each version that could not be packed, and why
    """

    def __init__(self, conf: GatewayConf, client: S3Client,
                 local: LocalVersions, book: Book, metrics: Metrics,
                 logger: Logger, now: Callable[[], float],
                 keys: encrypt.KeyFile,
                 done: Callable[[VersionId], None],
                 away: Callable[[VersionId, DssError], None]) -> None:
        self._conf = conf
        self._client = client
        self._local = local
        self._book = book
        self._metrics = metrics
        self._logger = logger
        self._now = now
        self._keys = keys
        self._done = done
        self._away = away

    def flush(self, waiting: Waiting) -> int:
        """Send one bundle of a group; how many versions it has.

        :raises RemoteUnavailable, S3Rejected, RemoteCorrupt: S3's side;
            the members wait again
        """
        key = self.new_key()
        bundle_id, members = self._book.plan(
            waiting.group, key, self._conf.bundle_bytes, MAX_BUNDLE_MEMBERS,
            self._now())
        if not members:
            return 0
        steps.reached('bundle.planned')
        packed = self.begin(waiting.group)
        try:
            for number, member in enumerate(members):
                if not packed.builder.has_room(member.size):
                    # Their metadata is larger than anybody would think.
                    self._book.wait_again(
                        one.version.key for one in members[number:])
                    break
                self._pack(packed, member)
            self.send(bundle_id, key, packed)
        except BaseException:
            # Also what is no error of ours: nothing may stay planned.
            self._book.give_up(bundle_id)
            raise
        self.record(bundle_id)
        return len(packed.placed)

    def wrap(self, old: Bundle) -> bundle.Wrap:
        """What closes what lies beside a bundle."""
        return self._keys.open(old.seal).wrap if old.seal else bundle.plain

    def unwrap(self, old: Bundle) -> bundle.Wrap:
        """What opens a bundle."""
        return encrypt.opener(self._keys, old.seal)

    def new_key(self) -> str:
        """A key that nobody else has or can guess the meaning of."""
        name = uuid.uuid4().hex
        return '%s%s%s/%016.5f-%s' % (
            self._conf.prefix, FOLDER, name[-3:], self._now(), name)

    def begin(self, group: str) -> Packed:
        """An empty bundle for a group."""
        if self._keys:
            seal = self._keys.new()
            return Packed(bundle.Builder(
                {'seal': seal.text, 'created': self._now()}, True,
                seal.wrap), seal.text, [])
        account, container, policy, class_ids = json.loads(group)
        head = {'account': account, 'container': container,
                'policy': policy, 'classes': class_ids,
                'created': self._now()}
        return Packed(bundle.Builder(head), '', [])

    def _pack(self, packed: Packed, member: Member) -> None:
        try:
            local = self._local.describe(member.version, member.partition)
            data = self.read(local)
            self.add(packed, member.version.key, metadata.record_of(local),
                     data)
        except (VersionGone, TierUnavailable, DamagedRecord,
                verify.LocalCorrupt) as err:
            self._metrics.count('gateway.bundle_skipped')
            self._book.unpark(member.version.key)
            self._away(member.version, err)

    def read(self, local: LocalVersion) -> bytes:
        """All local bytes of a small version, proven.

        :raises LocalCorrupt: they are not what the metadata says
        """
        if not local.content_length:
            return b''
        with self._local.open(local.version, local.partition) as reader:
            data = reader.read(0, local.content_length)
        verify.check_local(local, digests.md5(data).digest())
        return data

    def add(self, packed: Packed, key: str, record: bundle.Record,
            data: bytes) -> None:
        """One more member."""
        number = packed.builder.members
        offset, stored = packed.builder.add(record, data)
        packed.placed.append((key, number, offset, stored))

    def send(self, bundle_id: int, key: str, packed: Packed,
             replaces: int = 0) -> None:
        """Send and prove a bundle, and note where its members are.

        :param replaces: the bundle that they were in before
        :raises RemoteUnavailable, S3Rejected, RemoteCorrupt: nothing was
            noted
        """
        if not packed.placed:
            self._book.give_up(bundle_id)
            return
        raw = packed.builder.finish()
        digest = digests.md5(raw)
        steps.reached('bundle.built')
        self._client.put(key, raw, digest.digest())
        steps.reached('bundle.sent')
        self._prove(key, raw, str(digest.hexdigest()))
        steps.reached('bundle.verified')
        # After this a crash finds the bundle good; before it, garbage.
        self._book.seal(bundle_id, packed.seal, len(raw), packed.placed,
                        replaces)
        steps.reached('bundle.sealed')
        self._metrics.count('gateway.bundles')
        self._metrics.count('gateway.bundled', len(packed.placed))
        self._metrics.count('gateway.uploaded_bytes', len(raw))

    def _prove(self, key: str, raw: bytes, etag: str) -> None:
        head = self._client.head(key)
        if head is not None and head.size == len(raw) and (
                head.etag == etag and self._conf.verify != 'readback'
                or read_whole(self._client, key, len(raw)) == raw):
            return
        self._metrics.count('gateway.verify_failed')
        raise RemoteCorrupt('%s: S3 does not hold what was sent' % key)

    def record(self, bundle_id: int) -> None:
        """Let residency records name a sealed bundle. Idempotent."""
        found = self._book.bundle(bundle_id)
        if found is None or found.state != 'sealed':
            return
        noted: List[str] = []
        for member in self._book.members(bundle_id, ('there',)):
            if self._record_one(found, member):
                noted.append(member.version.key)
            if len(noted) >= _RECORDED_AT_ONCE:
                self._book.recorded(noted)
                noted = []
            steps.reached('bundle.recorded')
        self._book.recorded(noted)
        steps.reached('bundle.done')

    def _record_one(self, found: Bundle, member: Member) -> bool:
        """False if some record could not be written."""
        whole = True
        for version, partition in self._book.holders(member):
            try:
                self.point(found, member, version, partition)
                self._done(version)
            except VersionGone:
                newest = self._local.newest(version, partition)
                if newest is not None and newest > version.timestamp:
                    self._book.bury([version.key])
                    return True
                # It only left this device: its bytes stay in the bundle.
                self._book.let_go(version)
                self._done(version)
            except (TierUnavailable, DamagedRecord) as err:
                whole = False
                self._metrics.count('gateway.%s' % err.counter)
                self._logger.warning('bundle: %s on %s: %s', version.key,
                                     version.device, err)
        return whole

    def point(self, found: Bundle, member: Member, version: VersionId,
              partition: str) -> None:
        """Have one record name its place in a bundle.

        :raises VersionGone: the version is not on the device any more
        """
        if not member.size:
            return  # an empty version has no byte that could be remote
        self._local.record_remote(version, partition, RemoteCopy(
            self._conf.endpoint, found.key, member.etag, self._now(),
            member.offset, seal_of(found.seal, member.number)))


def seal_of(text: str, number: int) -> str:
    """The seal of a member of a bundle with the seal ``text``."""
    return '%s.%d' % (text, number) if text else ''


def keys_of(members: Iterable[Member]) -> Dict[str, Member]:
    """Members by version key."""
    return {member.version.key: member for member in members}


def book_path(folder: str) -> str:
    """Where the book of a node lies."""
    return os.path.join(folder, 'bundles.db')
