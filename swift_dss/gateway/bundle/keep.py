"""Note dead members in S3, rewrite bundles, and drop them.

A member that was overwritten or deleted is dead. The bucket learns it from
``<bundle>.since``, so that a lost edge that is rebuilt from the bucket does
not bring deleted objects back. A bundle with too many dead bytes is rewritten
without them; the old key goes ``delete_delay_seconds`` after every record of
this node names the new one, and only once no other node names it (``lean``).
Members that others need and cannot find in the new bundle get keys of their
own, if that costs less than it frees; until then the bundle stays. A bundle
that fails is put off alone, and the work on the others goes on.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from functools import partial
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteUnavailable, TierUnavailable,
    VersionGone)
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle import since as bundle_since
from swift_dss.gateway.bundle.book import Bundle, Member
from swift_dss.gateway.bundle.lean import Leaning
from swift_dss.gateway.bundle.pack import Packed, Packer, keys_of
from swift_dss.gateway.bundle.read import Source
from swift_dss.gateway.bundle.replicas import Replicas
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.bundle.since import Since
from swift_dss.gateway.bundle.troubles import Troubles
from swift_dss.gateway.form import metadata
from swift_dss.gateway.link.client import S3Down, S3Missing
from swift_dss.gateway.ports import LocalVersions
from swift_dss.io import steps
from swift_dss.strategy import bundling
from swift_dss.strategy.agreement import Verdict
from swift_dss.wire import bundle

#: A key that another node may need is asked about again after this.
_ASK_AGAIN_SECONDS = 600.0
#: A rewrite that costs more than it frees is considered again after this.
_TOO_DEAR_SECONDS = 21600.0
#: Bundles whose dead members are looked at for one decision.
_LOOKED_AT = 1000


class Keeper:
    """Keeps bundles small and honest. Called by one thread at a time.

    :param troubles: is told why a bundle was put off
    """

    def __init__(self, around: Around, shelves: Shelves,
                 local: LocalVersions, packer: Packer, leaning: Leaning,
                 troubles: Troubles) -> None:
        self._leaning = leaning
        self._keys = shelves.keys
        self._conf = around.conf
        self._client = shelves.client
        self._local = local
        self._book = shelves.book
        self._packer = packer
        self._replicas = Replicas(local, packer.read)
        self._metrics = around.metrics
        self._troubles = troubles
        self._clock = around.clock
        #: When to try (work, bundle) again that failed.
        self._not_before: Dict[Tuple[str, int], float] = {}

    def recover(self) -> None:
        """After a restart: work under way ends."""
        for entry in self._book.in_state('planned', limit=1 << 30):
            self._book.give_up(entry.id)
        self.record_rest()

    def record_rest(self) -> None:
        """Records that could not be written, or not yet."""
        for bundle_id in self._book.unrecorded():
            self._alone('record', bundle_id,
                        partial(self._packer.record, bundle_id))
        self.settle_replaced()

    def tell(self) -> None:
        """Have the bucket know which members are dead, and which have
        newer records.

        :raises S3Down: the rest another time
        """
        for entry in self._book.untold(partial(self._is_due, 'tell')):
            self._alone('tell', entry.id, partial(self._tell, entry))

    def _tell(self, entry: Bundle) -> None:
        # Keep the dead members noted there: the book may be younger than the
        # bundle. Where S3 has spoilt it, only the book's knowledge is left.
        before = bundle_since.read_mine(
            self._client, bundle_since.path_of(entry.key),
            self._packer.unwrap(entry)) or Since()
        records, gone, unsaid = self._new_records(entry)
        # Earlier releases could note a member that is here.
        since = bundle_since.join((replace(
            before, dead=before.dead - set(records)), Since(
                {member.number for member in
                 self._book.members(entry.id, ('dead', 'told'))}, records)))
        if since != before:
            bundle_since.write(
                self._client, bundle_since.path_of(entry.key), since, before,
                self._packer.wrap(entry))
            steps.reached('bundle.since_sent')
        self._book.tell(entry.id, since.dead, set(records) | gone)
        steps.reached('bundle.since_told')
        if unsaid is not None:
            raise unsaid

    def _new_records(self, entry: Bundle) -> Tuple[
            Dict[int, bundle.Record], Set[int], Optional[DssError]]:
        """The records to say by number, the members that left this node,
        and why others cannot be said yet."""
        records: Dict[int, bundle.Record] = {}
        gone: Set[int] = set()
        unsaid: Optional[DssError] = None
        members = self._book.renewed(entry.id)
        holders = self._book.holders(members)
        for member in members:
            here: List[bundle.Record] = []
            away: Optional[DssError] = None
            for version, partition in holders[member.version.key]:
                try:
                    here.append(metadata.record_of(
                        self._local.describe(version, partition)))
                except VersionGone:
                    continue
                except (TierUnavailable, DamagedRecord) as err:
                    away = err
            if here:
                records[member.number] = functools.reduce(
                    metadata.merged, here)
            elif away is None:
                gone.add(member.number)
            unsaid = away or unsaid
        return records, gone, unsaid

    def drop(self) -> None:
        """Delete the keys of bundles that are not needed any more.

        :raises S3Down: the rest another time
        """
        for entry in self._book.in_state('leaving', self._clock.wall()):
            # Or a hundred that fail would be all that is ever looked at.
            again_at = self._alone(
                'drop', entry.id, partial(self._drop, entry))
            if again_at:
                self._book.leave(entry.id, again_at)

    def _drop(self, entry: Bundle) -> None:
        seconds = self._needed_for(entry)
        if seconds:
            self._book.leave(entry.id, self._clock.wall() + seconds)
            self._metrics.count('gateway.bundles_held')
            return
        # The notes after it: they keep others from relying on it.
        for key in (entry.key, *bundle_since.listed(self._client, entry.key)):
            self._client.delete(key)
            if self._client.head(key) is not None:
                # Acknowledged and not done, or not everywhere yet.
                raise RemoteUnavailable('%s is still there' % key,
                                        self._conf.retry_after_seconds)
        steps.reached('bundle.dropped')
        self._book.forget(entry.id)
        self._metrics.count('gateway.bundles_dropped')

    def _needed_for(self, entry: Bundle) -> float:
        """Seconds until it is asked again; 0: no record names the bundle, or
        will; members that some name are under keys of their own. A stub may
        have come to a drive of this node after the others were pointed at the
        new bundle.

        The bundle itself has its index: the book has its members in another
        one by now.
        """
        if not entry.size:
            return 0.0  # it was never proven, so never named
        source = Source(self._client, entry, self._keys)
        dead = {member.number for member in self._book.members(
            entry.id, ('dead', 'told'))}
        try:
            # An empty one has no byte that a record could need.
            members = [member for member in source.members(entry.group)
                       if member.size]
        except S3Missing:
            return 0.0
        said = self._leaning.leaned_on(entry.key, [
            member for member in members if member.number not in dead])
        said.update(self._leaning.buried(entry.key, [
            member for member in members if member.number in dead]))
        needed, again = ([
            member for member in members if (member.number in dead) is is_dead
            and said[member.version.key] is Verdict.NEEDED]
            for is_dead in (False, True))
        # The new bundle has these bytes as well; the others were sent apart
        # when they were taken out, and are mostly there.
        freed = entry.size - sum(member.stored for member in needed)
        # Silence counts for as long as with a key of its own.
        if not self._leaning.is_forgotten(self._book.replaced_at(entry.id)) \
                and (Verdict.OPEN in said.values()
                     or not self._pays(freed, needed)):
            return _ASK_AGAIN_SECONDS
        self._send_apart(source, needed + again)
        return 0.0 if self._are_told(entry, needed + again) else \
            max(1.0, self._conf.delete_delay_seconds)

    def _are_told(self, entry: Bundle, apart: Sequence[Member]) -> bool:
        """Whether the note beside the bundle said before that these places
        in it do not count: since then nobody takes a key of their own for a
        second copy. Says it.
        """
        numbers = {member.number for member in apart}
        if not numbers:
            return True
        path = bundle_since.path_of(entry.key)
        before = bundle_since.read_mine(
            self._client, path, self._packer.unwrap(entry))
        if before is not None and numbers <= before.dead:
            return True
        since = bundle_since.join((before or Since(), Since(numbers)))
        bundle_since.write(self._client, path, since, before or Since(),
                           self._packer.wrap(entry))
        steps.reached('bundle.apart_said')
        return False

    def _pays(self, freed_bytes: int, apart: Sequence[Member]) -> bool:
        return bundling.pays(freed_bytes, len(apart),
                             self._conf.bundle_put_bytes)

    def _send_apart(self, source: Source, members: List[Member]) -> None:
        for member in members:
            self._leaning.send_apart(
                member, *self._replicas.whole(source, member))
            self._metrics.count('gateway.bundle_sent_apart')
        steps.reached('bundle.sent_apart')

    def next_drop(self) -> Optional[float]:
        """When the first key is to go; None if none is."""
        leaving = self._book.in_state('leaving', float('inf'), 1)
        if not leaving:
            return None
        return self._book.drop_at(leaving[0].id)

    def rewrite(self) -> bool:
        """Rewrite one bundle, or find one without live members; False if there
        is none to do.

        :raises S3Down: another time
        """
        candidates = self._book.with_dead(
            partial(self._is_due, 'rewrite'), _LOOKED_AT)
        for bundle_id, _, live in candidates:
            if not live:
                self._leave(bundle_id)
                return True
        chosen = bundling.rewrite([kept for _, kept, _ in candidates],
                                  self._conf.bundle_dead_share, 1)
        if not chosen:
            return False
        bundle_id = next(one_id for one_id, kept, _ in candidates
                         if kept.key == chosen[0].key)
        old = self._book.bundle(bundle_id)
        if old is not None and old.state == 'sealed':
            self._alone('rewrite', old.id, partial(self._rewrite, old))
        return True

    def rekey(self) -> bool:
        """Rewrite some bundles that are not sealed under the active key; False
        if none is left, or all are put off.

        :raises S3Down: the rest another time
        """
        due = self._book.sealed_otherwise(
            self._keys.active_prefix, ('sealed',),
            partial(self._is_due, 'rewrite'))
        for entry in due:
            # The old key of the key file is to leave it.
            self._alone('rewrite', entry.id, partial(
                self._rewrite, entry, at_any_cost=True))
        return bool(due)

    def rewrap(self) -> None:
        """Have the active key open bundles that leave: they are read once
        more, and the key they were written under may be gone by then."""
        if not self._keys:
            return
        for entry in self._book.sealed_otherwise(
                self._keys.active_prefix, ('replaced', 'leaving'),
                partial(self._is_due, 'rewrap')):
            self._alone('rewrap', entry.id, partial(self._rewrap, entry))

    def _rewrap(self, entry: Bundle) -> None:
        self._book.reseal(entry.id, self._keys.rewrap(entry.seal))

    def _is_due(self, work: str, bundle_id: int) -> bool:
        return self._not_before.get(
            (work, bundle_id), 0.0) <= self._clock.wall()

    def _alone(self, work: str, bundle_id: int,
               do: Callable[[], None]) -> float:
        """Do one work on one bundle, unless it is put off; a failed bundle is
        put off, and logged.

        :returns: when to try again; 0 if it is done
        :raises S3Down: it is no use to try any other
        """
        if not self._is_due(work, bundle_id):
            return self._not_before[work, bundle_id]
        try:
            do()
        except S3Down:
            raise
        except DssError as err:
            self._troubles.note(err)
            now = self._clock.wall()
            wait = (err.retry_after_seconds
                    if isinstance(err, RemoteUnavailable)
                    else _ASK_AGAIN_SECONDS)
            self._not_before = {
                key: at for key, at in self._not_before.items() if at > now}
            self._not_before[work, bundle_id] = now + wait
            return now + wait
        return 0.0

    def _rewrite(self, old: Bundle, at_any_cost: bool = False) -> None:
        """Give the live members of a bundle a new one, unless it frees less
        than the members cost that no record here would name in it.
        """
        apart = self._apart(old)
        gone = self._book.members(old.id, ('dead', 'told'))
        if not at_any_cost and not self._pays(sum(
                member.stored for member in gone), apart):
            self._not_before['rewrite', old.id] = \
                self._clock.wall() + _TOO_DEAR_SECONDS
            self._metrics.count('gateway.bundles_too_dear')
            return
        self._send_apart(Source(self._client, old, self._keys), apart)
        self._book.bury(keys_of(apart))
        key = self._packer.new_key()
        new_id = self._book.plan_anew(old.group, key, self._clock.wall())
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
        """Let bundles leave that no record names any more."""
        for bundle_id in self._book.replaced():
            self._leave(bundle_id)

    def _leave(self, bundle_id: int) -> None:
        # Readers and other nodes may still lean on the old key.
        self._book.leave(bundle_id, self._clock.wall()
                         + self._conf.delete_delay_seconds)

    def _copy(self, old: Bundle, packed: Packed) -> None:
        members = self._book.members(old.id, ('there', 'live'))
        source = Source(self._client, old, self._keys)
        for key, member in keys_of(members).items():
            self._packer.add(packed, key,
                             *self._replicas.whole(source, member))

    def _apart(self, old: Bundle) -> List[Member]:
        """Members that left this node and that another one may need: no
        record here will name the new bundle for them. The others of those
        that left are dead.
        """
        members = self._book.members(old.id, ('there', 'live'))
        here = self._book.holders(members)
        away = keys_of(member for member in members if not
                       self._replicas.are_here(here[member.version.key]))
        said = self._leaning.verdicts(old.key, away.values())
        self._book.bury(key for key, verdict in said.items()
                        if verdict is Verdict.DEAD)
        return [away[key] for key, verdict in said.items()
                if verdict is not Verdict.DEAD]
