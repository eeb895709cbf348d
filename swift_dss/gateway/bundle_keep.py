"""Bundles that lose members: saying so in S3, writing anew, dropping.

A member that was overwritten or deleted is dead. The bucket learns it from
``<bundle>.since``, so that a lost edge that is rebuilt from the bucket does
not bring deleted objects back. A bundle with
too many dead bytes is written anew without them; the old key goes
``delete_delay_seconds`` after every record names the new one.
"""

from __future__ import annotations

from typing import Callable, Dict, Optional, Tuple

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import (
    DamagedRecord, RemoteCorrupt, RemoteUnavailable, TierUnavailable,
    VersionGone)
from swift_dss.gateway import bundle_since, digests, metadata
from swift_dss.gateway.bundle_book import Book, Bundle, Member
from swift_dss.gateway.bundle_pack import Packed, Packer, keys_of
from swift_dss.gateway.bundle_read import read_index, read_whole
from swift_dss.gateway.bundle_since import Since
from swift_dss.gateway.client import S3Client
from swift_dss.gateway.encrypt import KeyFile, opener
from swift_dss.gateway.ports import LocalVersions, Logger, Metrics
from swift_dss.io import steps
from swift_dss.strategy import bundling
from swift_dss.wire import bundle

#: Bundles whose dead members are looked at for one decision.
_LOOKED_AT = 1000


class Keeper:
    """Keeps bundles small and honest. Called by one thread at a time."""

    def __init__(self, conf: GatewayConf, client: S3Client,
                 local: LocalVersions, book: Book, packer: Packer,
                 metrics: Metrics, logger: Logger, keys: KeyFile,
                 now: Callable[[], float]) -> None:
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
        wanted = keys_of(self._book.members(old.id, ('there', 'live')))
        source = _Source(self._client, old, self._keys)
        for key, member in wanted.items():
            record, data = self._from_here(member) or source.read(member)
            self._packer.add(packed, key, record, data)

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

    def read(self, member: Member) -> Tuple[bundle.Record, bytes]:
        """Record and proven bytes of a member.

        :raises RemoteCorrupt: they are not what the book says
        """
        if not self._raw:
            self._raw = read_whole(self._client, self._old.key,
                                   self._old.size)
            self._entries = {one.number: one for one in read_index(
                self._client, self._old.key, self._old.size,
                self._keys).entries}
        entry = self._entries.get(member.number)
        if entry is None or entry.offset != member.offset:
            raise RemoteCorrupt('%s: member %d is not where it was' % (
                self._old.key, member.number))
        data = self._unwrap('data', member.number, self._raw[
            entry.offset:entry.offset + entry.stored_bytes])
        if digests.md5(data).hexdigest() != member.etag:
            raise RemoteCorrupt('%s: member %d has a wrong MD5' % (
                self._old.key, member.number))
        return entry.record, data


def _merged(before: Dict[int, bundle.Record],
            after: Dict[int, bundle.Record]) -> Dict[int, bundle.Record]:
    found = dict(before)
    found.update(after)
    return found
