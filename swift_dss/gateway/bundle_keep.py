"""Bundles that lose members: saying so in S3, writing anew, dropping.

A member that was overwritten or deleted is dead. The bucket learns it from
``<bundle>.since``, so that a lost edge that is rebuilt from the bucket does
not bring deleted objects back. A bundle with
too many dead bytes is written anew without them; the old key goes
``delete_delay_seconds`` after every record of this node names the new one,
and only once no other node names it (``bundle_lean``).
"""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Tuple

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import (
    DamagedRecord, RemoteCorrupt, RemoteUnavailable, TierUnavailable,
    VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway import bundle_since, digests, metadata
from swift_dss.gateway.bundle_book import Book, Bundle, Member
from swift_dss.gateway.bundle_lean import Leaning
from swift_dss.gateway.bundle_pack import Packed, Packer, keys_of
from swift_dss.gateway.bundle_read import read_index, read_whole
from swift_dss.gateway.bundle_since import Since
from swift_dss.gateway.client import S3Client, S3Missing
from swift_dss.gateway.encrypt import KeyFile, opener
from swift_dss.gateway.ports import LocalVersions, Logger, Metrics
from swift_dss.io import steps
from swift_dss.strategy import bundling
from swift_dss.strategy.agreement import Verdict
from swift_dss.wire import bundle

#: A key that another node may need is asked about again after this.
_ASK_AGAIN_SECONDS = 600.0
#: Bundles whose dead members are looked at for one decision.
_LOOKED_AT = 1000


class Keeper:
    """Keeps bundles small and honest. Called by one thread at a time."""

    def __init__(self, conf: GatewayConf, client: S3Client,
                 local: LocalVersions, book: Book, packer: Packer,
                 metrics: Metrics, logger: Logger, keys: KeyFile,
                 now: Callable[[], float], leaning: Leaning) -> None:
        self._leaning = leaning
        self._keys = keys
        self._conf = conf
        self._client = client
        self._local = local
        self._book = book
        self._packer = packer
        self._metrics = metrics
        self._logger = logger
        self._now = now

    def recover(self) -> None:
        """After a restart: what was under way comes to its end."""
        for one in self._book.in_state('planned', limit=1 << 30):
            self._book.give_up(one.id)
        self.record_rest()

    def record_rest(self) -> None:
        """Records that could not be written, or not yet."""
        for bundle_id in self._book.unrecorded():
            self._packer.record(bundle_id)
        self.settle_replaced()

    def tell(self) -> None:
        """Have the bucket know which members are dead, and which have
        newer records.

        :raises RemoteUnavailable, S3Rejected: the rest another time
        """
        for one in self._book.untold():
            # What is said there stays said: the book may be younger than
            # the bundle.
            before = bundle_since.read(self._client, one.key,
                                       self._packer.unwrap(one))
            since = Since(
                before.dead | {member.number for member in
                               self._book.members(one.id,
                                                  ('dead', 'told'))},
                _merged(before.records, self._new_records(one)))
            data = bundle_since.encode(since, self._packer.wrap(one))
            self._client.put(one.key + bundle_since.SUFFIX, data,
                             digests.md5(data).digest())
            steps.reached('bundle.since_sent')
            self._book.tell(one.id, since.dead, since.records)
            steps.reached('bundle.since_told')

    def _new_records(self, one: Bundle) -> Dict[int, bundle.Record]:
        found: Dict[int, bundle.Record] = {}
        for member in self._book.renewed(one.id):
            try:
                found[member.number] = metadata.record_of(
                    self._local.describe(member.version, member.partition))
            except (VersionGone, TierUnavailable, DamagedRecord):
                continue  # dead soon, or said another time
        return found

    def drop(self) -> None:
        """Delete the keys of bundles that nobody needs.

        :raises RemoteUnavailable, S3Rejected: the rest another time
        """
        for one in self._book.in_state('leaving', self._now()):
            if not self._is_free(one):
                self._book.leave(one.id, self._now() + _ASK_AGAIN_SECONDS)
                self._metrics.count('gateway.bundles_held')
                continue
            # What lies beside it first: alone it would never be found.
            for key in (one.key + bundle_since.SUFFIX, one.key):
                self._client.delete(key)
                if self._client.head(key) is not None:
                    # Acknowledged and not done, or not everywhere yet.
                    raise RemoteUnavailable(
                        '%s is still there' % key,
                        self._conf.retry_after_seconds)
            steps.reached('bundle.dropped')
            self._book.forget(one.id)
            self._metrics.count('gateway.bundles_dropped')

    def _is_free(self, one: Bundle) -> bool:
        """No record of another node names the bundle, or will; members
        that some name are under keys of their own by now.

        The bundle itself says what is in it: the book has its members in
        another one by now.
        """
        if not one.size:
            return True  # it was never proven, so never named
        source = _Source(self._client, one, self._keys)
        dead = {member.number for member in self._book.members(
            one.id, ('dead', 'told'))}
        try:
            members = [member for member in source.members(one.group)
                       if member.number not in dead]
        except S3Missing:
            return True
        said = self._leaning.verdicts(one.key, members, True)
        self._send_apart(source, [
            member for member in members
            if said[member.version.key] is Verdict.NEEDED])
        # Silence counts for as long as with a key of its own.
        return Verdict.OPEN not in said.values() or self._book.replaced_at(
            one.id) + self._conf.reclaim_age_seconds < self._now()

    def _send_apart(self, source: _Source, members: List[Member]) -> None:
        for member in members:
            self._leaning.send_apart(member, *(
                self._from_here(member) or source.read(member)))
            self._metrics.count('gateway.bundle_sent_apart')
        steps.reached('bundle.sent_apart')

    def next_drop(self) -> Optional[float]:
        """When the first key is to go; None if none is."""
        found = self._book.in_state('leaving', float('inf'), 1)
        if not found:
            return None
        return self._book.drop_at(found[0].id)

    def rewrite(self) -> bool:
        """Write one bundle anew, or find that one has no live member;
        False if there was none to.

        :raises RemoteUnavailable, S3Rejected, RemoteCorrupt: another time
        """
        found = self._book.with_dead(_LOOKED_AT)
        for bundle_id, _, live in found:
            if not live:
                self._leave(bundle_id)
                return True
        chosen = bundling.rewrite([kept for _, kept, _ in found],
                                  self._conf.bundle_dead_share, 1)
        if not chosen:
            return False
        bundle_id = next(one_id for one_id, kept, _ in found
                         if kept.key == chosen[0].key)
        old = self._book.bundle(bundle_id)
        if old is not None and old.state == 'sealed':
            self.rewrite_one(old)
        return True

    def rewrite_one(self, old: Bundle) -> None:
        """Give the live members of a bundle a new one."""
        key = self._packer.new_key()
        new_id = self._book.plan_anew(old.group, key, self._now())
        steps.reached('compact.planned')
        packed = self._packer.begin(old.group)
        try:
            # A member that is still to be recorded would be pointed at the
            # old bundle after the new one.
            self._packer.record(old.id)
            self._copy(old, packed)
            self._packer.send(new_id, key, packed, old.id)
        except BaseException:
            self._book.give_up(new_id)
            raise
        steps.reached('compact.sealed')
        if not packed.placed:
            self._leave(old.id)  # all that lived has left this node
        self._packer.record(new_id)
        self.settle_replaced()
        steps.reached('compact.done')
        self._metrics.count('gateway.bundles_rewritten')

    def settle_replaced(self) -> None:
        """What every record has let go of may leave."""
        for bundle_id in self._book.replaced():
            self._leave(bundle_id)

    def _leave(self, bundle_id: int) -> None:
        # Readers and other nodes may still lean on the old key.
        self._book.leave(bundle_id, self._now()
                         + self._conf.delete_delay_seconds)

    def _copy(self, old: Bundle, packed: Packed) -> None:
        members = self._book.members(old.id, ('there', 'live'))
        here = self._book.holders(members)
        away = [member for member in members
                if not self._is_here(here[member.version.key])]
        self._let_go(old, away)
        wanted = keys_of(members)
        for member in away:
            del wanted[member.version.key]
        source = _Source(self._client, old, self._keys)
        for key, member in wanted.items():
            record, data = self._from_here(member) or source.read(member)
            self._packer.add(packed, key, self._newest_of(member) or record,
                             data)

    def _newest_of(self, member: Member) -> Optional[bundle.Record]:
        """What is to be said of a stub now: a POST may have come since."""
        try:
            return metadata.record_of(self._local.describe(
                member.version, member.partition))
        except (VersionGone, TierUnavailable, DamagedRecord):
            return None

    def _is_here(self, holders: List[Tuple[VersionId, str]]) -> bool:
        """Some device of this node has the version."""
        for version, partition in holders:
            try:
                if self._local.newest(version, partition) == \
                        version.timestamp:
                    return True
            except TierUnavailable:
                return True  # nobody can say: it is kept
        return False

    def _let_go(self, old: Bundle, away: List[Member]) -> None:
        """Members that left this node: nobody here will point at the new
        bundle for them. Where anybody may need them, they get keys of
        their own."""
        said = self._leaning.verdicts(old.key, away, False)
        by_key = keys_of(away)
        self._send_apart(_Source(self._client, old, self._keys), [
            by_key[key] for key, verdict in said.items()
            if verdict is not Verdict.DEAD])
        self._book.bury(by_key)

    def _from_here(self, member: Member
                   ) -> Optional[Tuple[bundle.Record, bytes]]:
        """The newest record and the local bytes, if they are here."""
        try:
            local, data = self._packer.read(member.version,
                                            member.partition)
        except (VersionGone, TierUnavailable, DamagedRecord,
                RemoteCorrupt):
            return None
        return metadata.record_of(local), data


class _Source:
    """Members of a bundle out of S3, which is read once, if at all."""

    def __init__(self, client: S3Client, old: Bundle,
                 keys: KeyFile) -> None:
        self._client = client
        self._old = old
        self._keys = keys
        self._unwrap = opener(keys, old.seal)
        self._raw = b''
        self._entries: Dict[int, bundle.Entry] = {}
        self._since = Since()

    def members(self, group: str) -> List[Member]:
        """What the bundle says is in it.

        :raises S3Missing: there is no such bundle any more
        :raises DamagedRecord: it does not say
        """
        self._read_index()
        found: List[Member] = []
        try:
            for number, entry in self._entries.items():
                record = metadata.of_record(entry.record)
                found.append(Member(
                    record.version, '', 'live', group,
                    record.content_length, record.etag, 0, number,
                    entry.offset, entry.stored_bytes))
        except (ValueError, KeyError, TypeError) as err:
            raise DamagedRecord('%s: %r' % (self._old.key, err)) from err
        return found

    def read(self, member: Member) -> Tuple[bundle.Record, bytes]:
        """Record and proven bytes of a member.

        :raises RemoteCorrupt: they are not what the book says
        """
        self._read_index()
        if not self._raw:
            self._raw = read_whole(self._client, self._old.key,
                                   self._old.size)
            self._since = bundle_since.read(self._client, self._old.key,
                                            self._unwrap)
        entry = self._entries.get(member.number)
        if entry is None or entry.offset != member.offset:
            raise RemoteCorrupt('%s: member %d is not where it was' % (
                self._old.key, member.number))
        data = self._unwrap('data', member.number, self._raw[
            entry.offset:entry.offset + entry.stored_bytes])
        if digests.md5(data).hexdigest() != member.etag:
            raise RemoteCorrupt('%s: member %d has a wrong MD5' % (
                self._old.key, member.number))
        return self._since.records.get(member.number, entry.record), data

    def _read_index(self) -> None:
        if not self._entries:
            self._entries = {one.number: one for one in read_index(
                self._client, self._old.key, self._old.size,
                self._keys).entries}


def _merged(before: Dict[int, bundle.Record],
            after: Dict[int, bundle.Record]) -> Dict[int, bundle.Record]:
    found = dict(before)
    found.update(after)
    return found
