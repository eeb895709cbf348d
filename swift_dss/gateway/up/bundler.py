"""The bundler: parks small versions, and sends them many at a time.

One thread finds due work and keeps the bundles; a few workers build and send,
so that the next bundle is read while one is on the link; one more writes the
records of those that are proven. While the breaker is open nothing is sent,
and the members wait in the book.
"""

from __future__ import annotations

import functools
import json
import threading
import time
from dataclasses import replace
from typing import (
    Any,
    Callable,
    Container,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DssError, RemoteUnavailable, VersionGone
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book, Parked
from swift_dss.gateway.bundle.follow import Follower, Place
from swift_dss.gateway.bundle.keep import Keeper
from swift_dss.gateway.bundle.lean import Leaning
from swift_dss.gateway.bundle.pack import (
    AGAIN_SECONDS,
    Claim,
    Packer,
    batch_of,
    group_of,
)
from swift_dss.gateway.bundle.proof import BundleProofs
from swift_dss.gateway.bundle.say import Sayer
from swift_dss.gateway.bundle.twins import Twins
from swift_dss.gateway.collect.keys import Extra
from swift_dss.gateway.collect.members import BundleCollector, Shelves
from swift_dss.gateway.collect.regain import Regainer
from swift_dss.gateway.form import metadata
from swift_dss.gateway.form.encrypt import KeyFile, close_envelope
from swift_dss.gateway.form.own_record import OwnRecords
from swift_dss.gateway.link import wan
from swift_dss.gateway.link.breaker import Breaker, BreakerState
from swift_dss.gateway.link.client import S3Client, S3Down
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.link.turns import Baton, Turns
from swift_dss.gateway.looper import Looper
from swift_dss.gateway.peers.primaries import Primaries
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.gateway.ports import (
    LocalVersion,
    LocalVersions,
    Logger,
    Metrics,
)
from swift_dss.gateway.queue import DeleteJob, Queue, UploadJob
from swift_dss.gateway.restore.catalog import Catalog
from swift_dss.gateway.restore.places import Places, Servers, ring_there
from swift_dss.gateway.restore.renew import Renewer
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.gateway.up.offers import Offer
from swift_dss.gateway.up.upload import Outcome
from swift_dss.io import steps
from swift_dss.io.workers import Pool
from swift_dss.strategy import bundling
from swift_dss.wire import bundle

#: Bundles on their way at a time: one is built and one proven while another
#: has the link.
SENDERS = 3
#: The bundler looks at least this often.
_IDLE_SECONDS = 10.0
_RETRY_BASE_SECONDS = 1.0
_RETRY_CAP_SECONDS = 120.0
#: Interval of following rewritten bundles of other nodes.
_FOLLOW_SECONDS = 600.0
#: Upload rows of parked versions come back after this many ages: if the book
#: was lost, they are parked again.
_AGES = 3
#: How long parking lets a late bundle go first, and how often it asks.
_LATE_SECONDS, _LATE_STEP_SECONDS = 1.0, 0.005


class Bundler:
    """Bundles of one node. Thread-safe.

    :param stopping: set when the daemon ends
    :param jobs: is told what becomes of rows of the queue
    :param leaning: judges members before a bundle goes
    :param follower: finds members that others have packed
    :param proofs: the indexes of bundles
    :param ranks: tells which bundles of a lost book were this node's
    """

    # long: puts packer, keeper and book together.
    def __init__(self, conf: GatewayConf, client: S3Client,
                 local: LocalVersions, queue: Queue, book: Book,
                 metrics: Metrics, logger: Logger, breaker: Breaker,
                 stopping: threading.Event, swift_dir: str, keys: KeyFile,
                 now: Callable[[], float], retry: Backoff,
                 pool: Pool, leaning: Leaning, follower: Follower,
                 proofs: BundleProofs, ranks: Ranks, jobs: Jobs) -> None:
        self._jobs = jobs
        self._follower = follower
        self._conf = conf
        self._local = local
        self._book = book
        self._metrics = metrics
        self._logger = logger
        self._breaker = breaker
        self._stopping = stopping
        self._now = now
        self._keys = keys
        baton = Baton()
        #: Held while parking; not reentrant.
        self.baton = baton.hold
        self._packer = Packer(conf, client, local, book, metrics, logger,
                              now, keys, jobs.settle, self._away,
                              Turns(breaker, SENDERS, stopping), baton)
        self._keeper = Keeper(conf, client, local, book, self._packer,
                              metrics, self._note, keys, now, leaning)
        self._renewer = Renewer(conf, client, local, queue, book, metrics,
                                now, OwnRecords(client, keys), Sayer(
                                    client, proofs, keys, metrics,
                                    book.writer).say, self._note)
        self._twins = Twins(conf, book, follower, leaning, local, metrics,
                            now)
        self._places = Places(conf, client, book, Servers(swift_dir),
                              metrics, now, self._close_place, self._note)
        shelves = Shelves(book, Catalog(conf, client), client, keys)
        self._regainer = Regainer(conf, shelves, local, ranks, metrics,
                                  logger, now)
        self._shelves = shelves
        self._leaning = leaning
        self._has_rings = ring_there(swift_dir)
        self._counting = threading.Lock()
        self._sending = 0
        self._recording = 0
        self._hurry_until = 0.0
        #: Classes that more is to be parked of at once.
        self.coming: FrozenSet[int] = frozenset()
        self._failures: Dict[str, int] = {}
        self._not_before: Dict[str, float] = {}
        self._keep_at = 0.0
        self._follow_at = 0.0
        self._was_down = False
        self._rekeying = False
        self.last_error = ''
        self._workers = pool(SENDERS, 'dss-bundle')
        self._recorder = pool(1, 'dss-bundle-records')
        self._looper = Looper('dss-bundler', self.look, stopping)
        #: Begins; the remains of a crash are settled first, in the background.
        self.start = self._looper.start
        #: Has it look now.
        self.kick = self._looper.kick
        self._recovered = False
        self._backoff = Backoff(_RETRY_BASE_SECONDS, _RETRY_CAP_SECONDS,
                                retry.dice)

    def stop(self) -> None:
        """Let running bundles end. ``stopping`` MUST be set."""
        self._looper.stop()
        self._workers.shutdown(wait=True)
        self._recorder.shutdown(wait=True)
        self._book.close()

    def hurry(self, seconds: float) -> None:
        """For so long nothing waits for its bundle to fill."""
        self._hurry_until = self._now() + seconds
        self.kick()

    def let_late_go_first(self) -> None:
        """Wait while the link has nothing and a bundle is being packed, for
        a second at most."""
        until = time.monotonic() + _LATE_SECONDS
        while self._packer.is_late and time.monotonic() < until and \
                not self._stopping.wait(_LATE_STEP_SECONDS):
            pass

    # -- for the gateway ---------------------------------------------------

    def takes(self, offer: Offer, table: ClassTable) -> Optional[Outcome]:
        """:meth:`take_all` for one."""
        return self.take_all([offer], table)[0]

    def take_all(self, offers: Sequence[Offer],
                 table: ClassTable) -> List[Optional[Outcome]]:
        """Park versions that go into a bundle, settle those that are in a
        proven one already, here or of another node; None for those that need a
        key of their own, or have left the device."""
        groups = [None if one.job.alone
                  or one.local.residency.remote is not None else
                  group_of(one.local, table, self._conf.bundle_member_bytes)
                  for one in offers]
        keys = [one.job.version.key for one, group in zip(offers, groups)
                if group is not None]
        known = self._book.find_all(keys)
        taken_out = self._book.buried(keys)
        elsewhere = self._elsewhere(offers, groups)
        said: List[Optional[Outcome]] = []
        parked: List[Tuple[Offer, str]] = []
        for one, group in zip(offers, groups):
            outcome = None if group is None or \
                one.job.version.key in taken_out \
                else self._judge(one, known, elsewhere)
            said.append(outcome)
            if group is not None and outcome is Outcome.PARKED:
                parked.append((one, group))
        if parked:
            self._park(parked)
        return said

    def _elsewhere(self, offers: Sequence[Offer],
                   groups: Sequence[Optional[str]]
                   ) -> Dict[VersionId, Place]:
        """Where other nodes have those that it is another's turn for."""
        others = [one.local for one, group in zip(offers, groups)
                  if group is not None and not one.is_first
                  and one.local.content_length]
        here = self._book.known(local.version.key for local in others)
        wanted = [local for local in others
                  if local.version.key not in here]
        return self._follower.lean(wanted) if wanted else {}

    def _judge(self, one: Offer, known: Container[str],
               elsewhere: Mapping[VersionId, Place]) -> Optional[Outcome]:
        if one.job.version.key in known:
            try:
                if self._settled(one.job, one.local):
                    return Outcome.FOUND
            except VersionGone:
                return None
        place = elsewhere.get(one.job.version)
        if place is None:
            return Outcome.PARKED if one.may_send else Outcome.WAITING
        if place.alone:
            return None
        return Outcome.WAITING if place.remote is None else Outcome.FOUND

    def _park(self, some: List[Tuple[Offer, str]]) -> None:
        now = self._now()
        before = {waiting.group for waiting in self._book.waiting()}
        new = self._book.park([Parked(
            one.job.version, one.job.partition, group,
            one.local.content_length, one.local.etag,
            bundle.pack_record(metadata.record_of(one.local)))
            for one, group in some], now)
        self._jobs.park([one.job for one, _ in some], now + max(
            60.0, _AGES * self._conf.bundle_age_seconds))
        for (one, _), is_new in zip(some, new):
            if is_new:
                self.went_up(one.local)
        part = batch_of(self._conf).part
        if any(waiting.group not in before or part.is_full(waiting)
               for waiting in self._book.waiting()):
            self.kick()

    def _settled(self, job: UploadJob, local: LocalVersion) -> bool:
        found = self._book.find(job.version.key)
        while found is not None:
            member, where = found
            if (member.size, member.etag) != (local.content_length,
                                              local.etag):
                return False
            # Before its record names the bundle: a rewrite of the bundle must
            # know this device.
            self._book.hold(job.version, job.partition)
            self._packer.point(where, member, job.version, job.partition)
            found = self._book.find(job.version.key)
            if found is not None and found[1].id == where.id:
                return True
        return False

    def hold(self, version: VersionId, partition: str,
             bundle_key: str) -> None:
        """A device's record is about to name a bundle, maybe another
        node's; durable.

        :raises TierUnavailable: the book's disk is full
        """
        self._book.hold(version, partition, bundle_key)

    def let_go(self, version: VersionId) -> None:
        """A version is obsolete here, and in no bundle of this node."""
        self._book.let_go(version)

    def went_up(self, local: LocalVersion) -> None:
        """Something of its account and container is in S3 now."""
        self._places.note(local.metadata.get('name', ''))

    def renew(self, some: Iterable[Tuple[VersionId, str, int]]) -> None:
        """The metadata of these changed: (version, partition, rank of this
        device). Durable, idempotent.

        :raises TierUnavailable: the book's disk is full; nothing was noted
        """
        now = self._now()
        rows = [(version, partition, now
                 + (not self._book.knows(version.key) and rank)
                 * self._conf.take_over_seconds)
                for version, partition, rank in some]
        if rows:
            self._book.add_renewals(rows)
            self._keep_at = 0.0
            self.kick()

    def rekey(self, local: LocalVersion, partition: str) -> bool:
        """Put a version's seal under the active key; False if it is already,
        or if there is none. A bundle is rewritten a while later; for a key of
        its own only the seal changes. Idempotent.

        :raises RemoteUnavailable, S3Rejected, RemoteCorrupt: another time
        """
        remote = local.residency.remote
        if remote is None or not remote.seal or not self._keys or \
                remote.seal.startswith(self._keys.active_prefix):
            return False
        if remote.in_bundle:
            self._rekeying = True
            self.kick()
            return True
        made = replace(remote, seal=self._keys.rewrap(remote.seal))
        # In the bucket first: a lost edge must find the newer seal there.
        self._renewer.write(remote.key, replace(
            local, residency=replace(local.residency, remote=made)),
            partition)
        steps.reached('rekey.sent')
        self._local.record_remote(local.version, partition, made)
        return True

    def bundles_to_rekey(self) -> int:
        """Bundles that another key than the active one must open yet,
        those that leave, and those of other nodes that records here name,
        among them: some, if many."""
        if not self._keys:
            return 0
        return len(self._book.sealed_otherwise(
            self._keys.active_prefix, ('sealed', 'replaced', 'leaving'))
            ) or self._follower.sealed_otherwise(self._keys.active_prefix)

    def known(self, keys: Iterable[str]) -> Set[str]:
        """Those that wait, or are in a bundle of this node."""
        return self._book.known(keys)

    def buries(self, job: DeleteJob) -> bool:
        """Mark an obsolete version that is in a bundle, or waits for one;
        False if it is in none, or may have a key of its own as well.
        Idempotent.

        :raises TierUnavailable: it is unknown if it is obsolete
        """
        if not self._book.knows(job.version.key) or \
                self._book.buried([job.version.key]):
            return False
        if self._local.newest(job.version, job.partition) == \
                job.version.timestamp:
            # Timestamps only grow: this can only be a false order.
            self._metrics.count('gateway.deletes_refused')
            return True
        self._book.bury([job.version.key])
        steps.reached('bundle.buried')
        self._metrics.count('gateway.bundle_dead')
        return True

    def take_out(self, version: VersionId) -> None:
        """A version is to have a key of its own: its members in bundles are
        dead from now on. Durable, idempotent.
        """
        self._book.bury([version.key])
        self.kick()

    def settle(self, version: VersionId, partition: str,
               local: LocalVersion) -> bool:
        """Have a record name the proven bundle that the version is in;
        False if it is in none."""
        return self._settled(UploadJob(version, partition, 0.0, 0.0), local)

    def bundle_bytes(self, key: str) -> Optional[int]:
        """Size of a bundle; None if the book does not know it."""
        return self._book.size_of(key)

    def collector(self, ranks: Ranks, primaries: Primaries,
                  requeue: Callable[[List[Tuple[VersionId, str]]], None],
                  trusted: Callable[[], float]) -> Extra:
        """The examiner of bundles in a pass over the bucket.

        :param trusted: see ``TrustedClock``
        """
        made = BundleCollector(
            self._conf, self._shelves, self._local, ranks, primaries,
            self._leaning, requeue, self._stopping, trusted)
        return Extra(made.own, made.folder, made.part)

    def renewals(self) -> int:
        """See :meth:`Book.renewals`."""
        return self._book.renewals()

    def status(self) -> Dict[str, Any]:
        """Plain values for status output."""
        with self._counting:
            sending = self._sending + self._recording
        return dict(self._book.counts(), sending=sending,
                    last_error=self.last_error)

    # -- inside ----------------------------------------------------------

    def _close_place(self, key: str, data: bytes) -> bytes:
        if not self._keys:
            return data
        return close_envelope(self._keys.new(key.encode(
            'utf-8', 'surrogatepass') + data), data)

    def _away(self, version: VersionId, err: DssError) -> None:
        """A version could not be packed: its upload row says why."""
        if isinstance(err, VersionGone):
            # Overwritten, deleted or moved on: its own upload finds that
            # out, at once, and lets the row go.
            self._jobs.single_out([version])
        else:
            self._jobs.put_off(version, AGAIN_SECONDS, err)

    def look(self) -> float:
        """Do the due sending and keeping; seconds until there may be more.

        Logs failures, and never raises.
        """
        try:
            if not self._recovered:
                self._keeper.recover()
                self._recovered = True
            return self._look()
        except DssError as err:
            self._note(err)
            return self._backoff.seconds(2)
        except Exception:
            # It is logged, and looked at again: bundles must go on.
            self._logger.exception('bundler')
            self._metrics.count('gateway.bundle_errors')
            return _IDLE_SECONDS

    def _look(self) -> float:
        """Do the due sending and keeping; seconds until there may be more."""
        if self._breaker.state is not BreakerState.CLOSED:
            self._was_down = True
            return 1.0
        if self._was_down:
            # Retry at once the work that failed while S3 was down.
            self._was_down = False
            self._failures.clear()
            self._not_before.clear()
        now = self._now()
        batch = batch_of(self._conf)
        if now < self._hurry_until:
            batch = bundling.Batch(batch.bundle_bytes, batch.members, 0.0)
        waiting = self._waiting(now)
        while self._has_slot():
            size = self._size(batch)
            due = bundling.due(waiting, size, now)
            if not due or not self._submit(due[0], size(due[0])):
                break
            waiting = self._waiting(now)
        following = [bundling.next_due(waiting, batch),
                     min(self._not_before.values(), default=None)]
        if now >= self._keep_at:
            following.append(self._keep(now))
        following.append(self._keep_at)
        return max(0.05, min([_IDLE_SECONDS] + [
            at - now for at in following if at is not None and at > now]))

    def _waiting(self, now: float) -> List[bundling.Waiting]:
        return [one for one in self._book.waiting()
                if self._not_before.get(one.group, 0.0) <= now]

    def _size(self, batch: bundling.Batch
              ) -> Callable[[bundling.Waiting], bundling.Batch]:
        with self._counting:
            under_way = self._sending
        return lambda one: bundling.next_size(
            one, batch, under_way, _class_of(one.group) in self.coming)

    def _has_slot(self) -> bool:
        with self._counting:
            return self._sending < SENDERS

    def _submit(self, one: bundling.Waiting,
                batch: bundling.Batch) -> bool:
        if not bundling.saves(one):
            self._jobs.single_out(self._book.send_alone(one.group))
            return True
        claim = self._packer.claim(one, batch)
        if claim is None:
            return False
        with self._counting:
            self._sending += 1
        self._workers.submit(self._flush, claim)
        return True

    def _flush(self, claim: Claim) -> None:
        try:
            try:
                claim = self._without_twins(claim)
            except BaseException:
                self._book.give_up(claim.bundle_id)
                raise
            with wan.working_for(wan.bundle(_class_of(claim.group))):
                self._packer.flush(claim)
            self._failures.pop(claim.group, None)
            self._not_before.pop(claim.group, None)
            self.last_error = ''
            with self._counting:
                self._recording += 1
            self._recorder.submit(self._record, claim.bundle_id)
        except DssError as err:
            self._fail(claim.group, err)
        except Exception as err:
            self._logger.exception('bundle of %s', claim.group)
            self._fail(claim.group, DssError(type(err).__name__))
        finally:
            with self._counting:
                self._sending -= 1
            self.kick()

    def _without_twins(self, claim: Claim) -> Claim:
        """A claim without members that others have packed since. Blocks, a few
        seconds a server, where something is late.
        """
        late = self._twins.late(claim.members)
        if not late:
            return claim
        # Before S3 has it: a node that records later finds it.
        self._book.contest(claim.bundle_id, self._now())
        places = self._follower.lean(late)
        there = [version for version, place in places.items()
                 if place.remote is not None]
        alone = [version for version, place in places.items() if place.alone]
        self._book.settled(version.key for version in there + alone)
        self._jobs.single_out(alone)
        gone = {version.key for version in there + alone}
        return claim._replace(members=[
            member for member in claim.members
            if member.version.key not in gone])

    def _record(self, bundle_id: int) -> None:
        try:
            self._packer.record(bundle_id)
            if self._twins.is_late(self._book.oldest_of(bundle_id)):
                # On its way for long: another one may have begun meanwhile.
                self._book.contest(bundle_id, self._now())
        except DssError as err:
            self._note(err)  # the keeping writes the rest
        except Exception:
            self._logger.exception('records of bundle %d', bundle_id)
        finally:
            with self._counting:
                self._recording -= 1

    def _fail(self, group: str, err: DssError) -> None:
        failures = self._failures.get(group, 0) + (
            not isinstance(err, S3Down))
        self._failures[group] = failures
        self._not_before[group] = self._now() + self._backoff.seconds(
            max(1, failures))
        self._metrics.count('gateway.bundle_failed')
        self._note(err)

    def _note(self, err: DssError) -> None:
        self.last_error = '%s: %s' % (type(err).__name__, err)
        level = (self._logger.warning if isinstance(err, RemoteUnavailable)
                 else self._logger.error)
        level('gateway: bundles: %s', self.last_error)

    def _keep(self, now: float) -> Optional[float]:
        """The keeping, at most so often; when the next key is to go."""
        self._keep_at = now + min(30.0, max(
            0.2, self._conf.bundle_age_seconds))
        with self._counting:
            busy = self._sending or self._recording
        if not busy:
            self._by_itself(self._keeper.record_rest)
        for work in (self._renewer.run, self._twins.look, self._keeper.drop,
                     self._keeper.tell, self._keeper.rewrap):
            self._by_itself(work)
        if self._has_rings:
            self._by_itself(self._places.run)
        if (now >= self._follow_at or self._rekeying) and \
                not self._by_itself(self._follower.keep_up):
            self._follow_at = now + min(
                _FOLLOW_SECONDS, self._conf.delete_delay_seconds / 4)
        more = self._by_itself(self._regainer.look)
        anew = self._rekeying and self._by_itself(self._keeper.rekey)
        self._rekeying = self._rekeying and bool(self.bundles_to_rekey())
        if anew or self._by_itself(self._keeper.rewrite) or more:
            self._keep_at = now
        return self._keeper.next_drop()

    def _by_itself(self, work: Callable[[], Optional[bool]]) -> bool:
        """One part of the keeping: a failure does not stop the others.

        :raises S3Down: it is no use to try any other
        """
        try:
            return bool(work())
        except S3Down:
            raise
        except DssError as err:
            self._note(err)
        except Exception:
            self._logger.exception('keeping of bundles')
            self._metrics.count('gateway.bundle_errors')
        return False


@functools.lru_cache(maxsize=1024)
def _class_of(group: str) -> int:
    """The class that a group's bundles share the link with."""
    class_ids = json.loads(group)[3]
    return int(max(class_ids, default=0))
