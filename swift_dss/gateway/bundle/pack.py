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

import functools
import json
import os
import threading
import uuid
from dataclasses import dataclass
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import (
    DamagedRecord, RemoteCorrupt, TierUnavailable, VersionGone)
from swift_dss.core.limits import MAX_BUNDLE_MEMBERS
from swift_dss.core.residency import RemoteCopy
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Bundle, Member
from swift_dss.gateway.bundle.read import FOLDER, read_whole
from swift_dss.gateway.bundle.shelves import MemberRows, Shelves
from swift_dss.gateway.form import digests, encrypt, metadata, verify
from swift_dss.gateway.link.turns import Baton, Turns
from swift_dss.gateway.peers.ranks import Ranks, mark_of
from swift_dss.gateway.ports import (
    Arrival, LocalVersion, LocalVersions)
from swift_dss.io import steps
from swift_dss.strategy.bundling import Batch, Waiting
from swift_dss.wire import bundle

BOOK_FILE = 'bundles.db'
#: Records that are written, and rows that are marked, in one go.
RECORDED_AT_ONCE = 256
#: Members to pack before another thread gets the interpreter.
_PACKED_AT_ONCE = 512
#: A member that is away or damaged is looked at again after this.
AGAIN_SECONDS = 600.0
#: In a bundle's user metadata: where its proofs are, ``<offset>-<bytes>``.
PROOFS_META = 'dss-proofs'
#: And the mark of the node that packed it, if it is a primary of a member.
PACKER_META = 'dss-packer'


def group_of(local: LocalVersion, table: ClassTable,
             most_bytes: int) -> Optional[str]:
    """Which bundles a version may share: account, policy and classes; None
    if it gets a key of its own."""
    if local.content_length > most_bytes:
        return None
    class_ids = sorted(local.class_ids)
    if not all(table.spec(class_id).bundle for class_id in class_ids):
        return None
    parts = local.metadata.get('name', '').split('/', 3)
    if len(parts) != 4 or parts[0] or not all(parts[1:]):
        return None
    return group_name(parts[1], local.version.policy, tuple(class_ids))


@functools.lru_cache(maxsize=1024)
def group_name(account: str, policy: int,
               class_ids: Tuple[int, ...]) -> str:
    """The book's name of a group."""
    # Books of earlier releases have a container in the second place.
    return json.dumps((account, '', policy, class_ids),
                      separators=(',', ':'))


def batch_of(conf: GatewayConf) -> Batch:
    """When a bundle is full, as the configuration says."""
    return Batch(conf.bundle_bytes, MAX_BUNDLE_MEMBERS,
                 conf.bundle_age_seconds)


@dataclass
class Packed:
    """A bundle in memory, and its members."""

    builder: bundle.Builder
    seal: str
    placed: List[Tuple[str, int, int, int]]


class Claim(NamedTuple):
    """Members that a bundle was planned for."""

    bundle_id: int
    key: str
    group: str
    members: List[Member]


class Packer:
    """Builds, sends, proves and records one bundle, in any thread.

    :param rows: those of the members in the queue
    :param ranks: of this node's devices
    :param turns: the order of sending packed bundles
    """

    def __init__(self, around: Around, shelves: Shelves,
                 local: LocalVersions, rows: MemberRows, ranks: Ranks,
                 turns: Turns) -> None:
        self._conf = around.conf
        self._client = shelves.client
        self._local = local
        self._book = shelves.book
        self._metrics = around.metrics
        self._logger = around.logger
        self._clock = around.clock
        self._keys = shelves.keys
        self._rows = rows
        self._ranks = ranks
        self._turns = turns
        #: Held during many small steps, by one thread at a time; not
        #: reentrant.
        self.baton = Baton()
        #: Members of one bundle at a time are read: side by side they
        #: would hand the interpreter to one another at each system call,
        #: and the first would be as late as the last.
        self._packing = threading.Lock()
        #: Records of one bundle at a time are written: a rewrite must not meet
        #: a record that still names the old bundle.
        self._recording = threading.Lock()

    @property
    def is_late(self) -> bool:
        """True while the link has nothing and a bundle is being packed."""
        return self._packing.locked() and self._turns.all_free

    def claim(self, waiting: Waiting, batch: Batch) -> Optional[Claim]:
        """Claim the members of one bundle of a group, ``batch`` at most; no
        other thread takes them.

        The caller MUST :meth:`flush` the claim.
        """
        key = self.new_key()
        with self.baton.hold():
            bundle_id, members = self._book.plan(
                waiting.group, key, batch.bundle_bytes, batch.members,
                self._clock.wall())
        if not members:
            return None
        steps.reached('bundle.planned')
        return Claim(bundle_id, key, waiting.group, members)

    def flush(self, claim: Claim) -> int:
        """Build and send a bundle; how many versions it has. Its records
        are still to be written.

        :raises RemoteUnavailable, S3Rejected, RemoteCorrupt: S3's side;
            the members wait again
        """
        bundle_id, key, group, members = claim
        packed = self.begin(group)
        try:
            with self._packing:
                self._pack_all(packed, members)
            with self._turns.take():
                self.send(bundle_id, key, packed)
        except BaseException:
            # Also after foreign exceptions: nothing may stay planned.
            self._book.give_up(bundle_id)
            raise
        return len(packed.placed)

    def wrap(self, old: Bundle) -> bundle.Wrap:
        """The function that seals the note beside a bundle."""
        return self._keys.open(old.seal).wrap if old.seal else bundle.plain

    def unwrap(self, old: Bundle) -> bundle.Wrap:
        """The function that opens a bundle."""
        return encrypt.opener(self._keys, old.seal)

    def new_key(self) -> str:
        """A unique key that reveals nothing of its contents."""
        name = uuid.uuid4().hex
        return '%s%s%s/%016.5f-%s' % (
            self._conf.prefix, FOLDER, name[-3:], self._clock.wall(), name)

    def begin(self, group: str) -> Packed:
        """An empty bundle for a group."""
        if self._keys:
            seal = self._keys.new()
            return Packed(bundle.Builder(
                {'seal': seal.text, 'created': self._clock.wall()}, True,
                seal.wrap), seal.text, [])
        account, _, policy, class_ids = json.loads(group)
        head = {'account': account, 'policy': policy,
                'classes': class_ids, 'created': self._clock.wall()}
        return Packed(bundle.Builder(head), '', [])

    def _pack_all(self, packed: Packed, members: List[Member]) -> None:
        for at in range(0, len(members), _PACKED_AT_ONCE):
            with self.baton.hold():
                if not self._pack_some(packed,
                                       members[at:at + _PACKED_AT_ONCE]):
                    # Their metadata is unusually large.
                    placed = {key for key, _, _, _ in packed.placed}
                    self._book.wait_again(
                        member.version.key for member in members[at:]
                        if member.version.key not in placed)
                    return

    def _pack_some(self, packed: Packed, members: List[Member]) -> bool:
        """False if there is no room for all of them."""
        builder, placed = packed.builder, packed.placed
        contents = self._local.read_as_parked([
            (member.version, member.partition, member.size)
            for member in members])
        for member, data in zip(members, contents):
            if not builder.has_room(member.size):
                return False
            if data is None or not member.record or digests.md5(
                    data).hexdigest() != member.etag:
                self._pack(packed, member)
                continue
            at = builder.members
            try:
                offset, stored = builder.add_packed(
                    member.record, data, metadata.identity(
                        member.version, member.size, member.etag))
            except DamagedRecord:
                self._pack(packed, member)
                continue
            placed.append((member.version.key, at, offset, stored))
        return True

    def _pack(self, packed: Packed, member: Member) -> None:
        """Pack a member whose file must be read again."""
        try:
            local, data = self.read(member.version, member.partition)
            self.add(packed, member.version.key, metadata.record_of(local),
                     data)
        except (VersionGone, TierUnavailable, DamagedRecord,
                verify.LocalCorrupt) as err:
            self._metrics.count('gateway.bundle_skipped')
            self._book.unpark(member.version.key)
            if isinstance(err, VersionGone):
                # Overwritten, deleted or moved on: its own upload finds that
                # out, at once, and lets the row go.
                self._rows.single_out([member.version])
            else:
                # Its row says why.
                self._rows.put_off(member.version, AGAIN_SECONDS, err)

    def read(self, version: VersionId,
             partition: str) -> Tuple[LocalVersion, bytes]:
        """A small version and all its local bytes, proven.

        :raises LocalCorrupt: the bytes do not match the metadata
        """
        local, data = self._local.read_whole(version, partition)
        if local.content_length:
            verify.check_local(local, digests.md5(data).digest())
        return local, data

    def add(self, packed: Packed, key: str, record: bundle.Record,
            data: bytes) -> None:
        """One more member."""
        number = packed.builder.members
        said = metadata.of_record(record)
        offset, stored = packed.builder.add(record, data, metadata.identity(
            said.version, said.content_length, said.etag))
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
        said = {PROOFS_META: '%d-%d' % packed.builder.proofs_at}
        if packed.seal:
            said[encrypt.SEAL_META] = packed.seal
        marks = (mark_of(self._ranks, VersionId.of_key(row[0], ''))
                 for row in packed.placed)
        mark = next(filter(None, marks), '')
        if mark:
            said[PACKER_META] = mark
        self._client.put(key, raw, digest.digest(), said)
        steps.reached('bundle.sent')
        self._prove(key, raw, str(digest.hexdigest()))
        steps.reached('bundle.verified')
        # After this a crash finds the bundle good; before it, garbage.
        with self.baton.hold():
            self._book.seal(bundle_id, packed.seal, len(raw),
                            packed.placed, replaces)
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
        raise RemoteCorrupt('%s: S3 does not hold the upload' % key)

    def record(self, bundle_id: int) -> None:
        """Let residency records name a sealed bundle. Idempotent."""
        with self._recording:
            sealed = self._book.bundle(bundle_id)
            if sealed is None or sealed.state != 'sealed':
                return
            members = self._book.members(bundle_id, ('there',))
            for at in range(0, len(members), RECORDED_AT_ONCE):
                with self.baton.hold():
                    self._record_some(
                        sealed, members[at:at + RECORDED_AT_ONCE])
                steps.reached('bundle.recorded')
        steps.reached('bundle.done')

    def _record_some(self, sealed: Bundle, members: List[Member]) -> None:
        holders = self._book.holders(members)
        arrivals: List[Arrival] = []
        whole = {member.version.key: True for member in members}
        done: List[VersionId] = []
        now = self._clock.wall()
        for member in members:
            for version, partition in holders[member.version.key]:
                if member.size:
                    arrivals.append(_arrival(
                        self._conf, sealed, member, version, partition,
                        now))
                else:
                    # It has no byte that could be remote.
                    done.append(version)
        for sent, err in zip(arrivals, self._local.record_remotes(arrivals)):
            key = sent.version.key
            if err is None:
                done.append(sent.version)
            elif not isinstance(err, VersionGone):
                whole[key] = False
                self._metrics.count('gateway.%s' % err.counter)
                self._logger.warning('bundle: %s on %s: %s', key,
                                     sent.version.device, err)
            else:
                # Moved on, or replaced: no record here will name it. The other
                # replicas decide about its bytes.
                self._book.let_go(sent.version)
                done.append(sent.version)
        self._rows.settle(done)
        self._book.recorded(key for key in whole if whole[key])

    def point(self, sealed: Bundle, member: Member, version: VersionId,
              partition: str) -> None:
        """Have one record name its place in a bundle.

        :raises VersionGone: the version is not on the device any more
        """
        if not member.size:
            return  # an empty version has no byte that could be remote
        self._local.record_remote(*_arrival(
            self._conf, sealed, member, version, partition,
            self._clock.wall())[:3])


def _arrival(conf: GatewayConf, sealed: Bundle, member: Member,
             version: VersionId, partition: str, now: float) -> Arrival:
    return Arrival(version, partition, RemoteCopy(
        conf.endpoint, sealed.key, member.etag, now, member.offset,
        seal_of(sealed.seal, member.number)), member.size)


def seal_of(text: str, number: int) -> str:
    """The seal of a member of a bundle with the seal ``text``."""
    return '%s.%d' % (text, number) if text else ''


def keys_of(members: Iterable[Member]) -> Dict[str, Member]:
    """Members by version key."""
    return {member.version.key: member for member in members}


def book_path(folder: str) -> str:
    """Where the book of a node lies."""
    return os.path.join(folder, BOOK_FILE)
