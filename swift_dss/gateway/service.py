"""The gateway as the tier daemon sees it: one object with a few verbs.

Background work (uploads, deletes) is *pulled*: a dispatcher takes due rows
from the durable queue only while a worker is free, so the backlog stays on
disk. Reads never queue behind uploads: they have their own threads. All of
them share one breaker.
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional,
    Sequence, Set, Tuple, Union)

from swift_dss.core.classes import RemoteMode
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import (
    BadConfig, DssError, RemoteCorrupt, RemoteUnavailable)
from swift_dss.core.pressure import Link
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.follow import Follower
from swift_dss.gateway.bundle.lean import Leaning, own_copy
from swift_dss.gateway.bundle.pack import book_path
from swift_dss.gateway.bundle.proof import BundleProofs
from swift_dss.gateway.collect import keys
from swift_dss.gateway.collect.keys import Collector, plain, restore_state
from swift_dss.gateway.collect.rounds import Rounds
from swift_dss.gateway.down.fill import Filler
from swift_dss.gateway.down.source import Source
from swift_dss.gateway.form import verify
from swift_dss.gateway.form.cluster import cluster_id
from swift_dss.gateway.form.encrypt import KeyFile
from swift_dss.gateway.form.owner import WRITE_SECONDS, NotOurs, Owner
from swift_dss.gateway.link import wan
from swift_dss.gateway.link.alarm import Alarm
from swift_dss.gateway.link.breaker import Breaker, BreakerState, Trust
from swift_dss.gateway.link.client import Connect, S3Client, S3Down, S3Rejected
from swift_dss.gateway.link.outages import Outages
from swift_dss.gateway.link.pulse import Pulse
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.link.throughput import Throughput
from swift_dss.gateway.link.trusted_clock import TrustedClock
from swift_dss.gateway.looper import Looper
from swift_dss.gateway.mend.arrivals import Arrivals
from swift_dss.gateway.mend.aside import Asides
from swift_dss.gateway.mend.repair import Copy, Hands, Repaired, Repairer
from swift_dss.gateway.mend.scrub import Scrubber
from swift_dss.gateway.mend.scrub_ask import AskScrubber
from swift_dss.gateway.mend.witness import ASKERS, Asker, Remedies
from swift_dss.gateway.peers.primaries import (
    Primaries, RingPrimaries, looks_at)
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.gateway.ports import (
    LocalVersion, LocalVersions, Logger, Metrics, NotProven, Sink,
    TableSource)
from swift_dss.gateway.queue import DeleteJob, Queue, UploadJob, queue_path
from swift_dss.gateway.up.bundler import SENDERS, Bundler, Offer
from swift_dss.gateway.up.deletes import Agreement, Deleter
from swift_dss.gateway.up.park import Jobs, Parker
from swift_dss.gateway.up.upload import Outcome, Uploader
from swift_dss.io.workers import Pool, inline, threads
from swift_dss.strategy.pauses import Pauses
from swift_dss.strategy.wan import Flow, Turns, plenty
from swift_dss.wire.control import FetchReply, FetchRequest
from swift_dss.wire.layout import remote_key
from swift_dss.wire.records.proof import ProofReply, ProofRequest

#: Workers for deletes, apart from uploads so that neither starves.
_DELETES = 2
#: First and longest wait of a job that failed, seconds.
_RETRY_BASE_SECONDS = 2.0
_RETRY_CAP_SECONDS = 600.0
#: First wait of a replica that looks for another's upload.
_LOOK_SECONDS = 2.0
#: Least time between immediate retries of uploads that failed while S3 lied:
#: S3 may refuse some versions for good.
_AGAIN_SECONDS = 20.0
#: So many uploads in a row that S3 did not answer, on a link too slow for
#: them and yet not dead, are an outage as well.
_STRUGGLES = 3
#: A version that readers found missing is repaired at once, and not again
#: before so long; twice as long each time, and no longer than that. Each
#: version that is remembered takes 500 bytes.
_REPAIR_PAUSE_SECONDS = 30.0
_REPAIR_PAUSE_CAP_SECONDS = 600.0
_REPAIRS_REMEMBERED = 10000
#: A key that need not exist: 404 is as good an answer as 200.
_PROBE_KEY = '.dss-probe'
#: So long after its last upload a worker is kept for the highest class.
_KEEP_SECONDS = 300.0
#: For so long bundles are sent before they are full.
_HURRY_SECONDS = 60.0
#: The dispatcher looks at least this often (gauges, clock jumps).
_IDLE_SECONDS = 10.0
#: Gauges of the queue are at most so old.
_PUBLISH_SECONDS = 1.0
_Job = Union[UploadJob, DeleteJob]


class Upload(NamedTuple):
    """A version that S3 may lack.

    :param partition: '' if the ring knows it
    :param urgent: at once (classes with ``remote = through|only``), not
        when the version is ``remote_after_seconds`` old
    :param class_id: the class that it shares the link with
    """

    version: VersionId
    partition: str = ''
    urgent: bool = False
    class_id: int = 0


class Gateway:
    """S3 behind one node.

    :param table_source: gives the class table in force
    :param local: this node's devices
    :param ranks: by default from the rings of ``swift_dir``
    :param primaries: the nodes to ask before bytes go; by default those of the
        rings
    :param trust: in uploads; by default by the system's clock
    :param retry: waits of jobs that failed
    :param pool: runs the gateway's work
    :param connect: see :class:`S3Client`
    :param clock: monotonic seconds
    :raises BadConfig: from :meth:`start`, if the gateway cannot be used
    """

    # Over 40 lines: it only puts the parts together.
    def __init__(self, conf: NodeConf, table_source: TableSource,
                 local: LocalVersions, logger: Logger, metrics: Metrics,
                 ranks: Optional[Ranks] = None,
                 breaker: Optional[Breaker] = None,
                 trust: Optional[Trust] = None,
                 retry: Optional[Backoff] = None,
                 now: Callable[[], float] = time.time,
                 pool: Pool = threads,
                 connect: Optional[Connect] = None,
                 primaries: Optional[Primaries] = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        # long: the one place where the parts of the gateway meet.
        self._conf = conf.gateway
        self._table_source = table_source
        self._local = local
        self._logger = logger
        self._metrics = metrics
        self._now = now
        self._ranks = ranks or Ranks(conf.swift_dir, shard=conf.shard)
        self._breaker = breaker or Breaker()
        self._trust = trust or Trust()
        self._again_at = -math.inf
        self._unanswered = 0
        self._retry = retry or Backoff(
            _RETRY_BASE_SECONDS, _RETRY_CAP_SECONDS)
        self._queue = Queue(queue_path(conf))
        trusted = TrustedClock(now, clock)
        self._client = S3Client(
            self._conf, self._breaker,
            self._conf.uploads + self._conf.fills + _DELETES + SENDERS
            + ASKERS + 2, table_source, connect, Pulse(clock),
            trusted.hear)
        self._alarm = Alarm(
            self._client, self._breaker, self._conf.prefix + _PROBE_KEY,
            self._found, logger, pool)
        self._owner = self._owned(conf, now, clock)
        self._versioning = ''
        self._not_ours = ''
        self._stopping = threading.Event()
        self._keys = KeyFile(self._conf.key_file)
        self._primaries = primaries or RingPrimaries(
            self._ranks, looks_at(local),
            is_sound=functools.partial(verify.is_sound, local))
        self._uploader = Uploader(
            self._conf, self._client, local, self._queue, metrics,
            self._keys, self._is_cancelled, self._stopping.is_set, now)
        proofs = BundleProofs(self._client, self._keys, now)
        book = Book(book_path(conf.state_dir))
        follower = Follower(self._conf, self._primaries, proofs, local, book,
                            metrics, now)
        self._bundler = Bundler(
            self._conf, self._client, local, self._queue, book, metrics,
            logger, self._breaker, self._stopping, conf.swift_dir,
            self._keys, now, self._retry, pool,
            Leaning(self._conf, self._primaries, self._uploader.send_apart,
                    trusted.now),
            follower, proofs, self._ranks, self._notify)
        self._parker = Parker(
            Jobs(self._claim, self._release, self._described,
                 self._may_send, self._is_first, self._wanted_remote,
                 self._look_again_at, self._notify), self._queue,
            self._bundler, table_source, metrics, logger, self._stopping,
            now)
        self._agreement = Agreement(
            self._conf, local, self._queue, self._primaries, metrics,
            logger, self._retry, self._stopping, now, self._notify,
            trusted.now)
        self._deleter = Deleter(self._conf, self._client, local,
                                self._queue, metrics, self._ranks.rank)
        self.collector = Collector(
            self._conf, self._client, local, self._ranks, self._primaries,
            keys.Hands(self._deleter.remove, self.enqueue_deletes,
                       lambda version, bundle: self._arrivals.is_doubled(
                           version, bundle)),
            self._bundler.collector(self._ranks, self._primaries,
                                    self.enqueue_deletes, trusted.now),
            metrics, self._stopping, trusted.now,
            lambda: os.path.exists(restore_state(conf)))
        self.rounds = Rounds(
            self._conf, self.collector, self._queue.mark, self._queue.marked,
            book, self._is_up, logger, now)
        self._collecting = Looper('dss-collect', self._try_round,
                                  self._stopping)
        self._filler = Filler(
            self._conf, Source(self._conf, self._client, metrics,
                               self._stopping.wait, self._retry.dice),
            local, metrics, logger, table_source,
            lambda local: own_copy(self._conf, self._client, local),
            self._alarm.look, self._client.pulse.now, pool is inline)
        #: What lacks bytes goes into quarantine through these.
        self.asides = Asides(
            local, self._primaries, metrics,
            lambda key: self._client.head(key) is not None)
        self._repairer = Repairer(self._conf, self._client, local, Hands(
            self._filler.prove, self._uploader.resend, self._bundler.settle,
            self._bundler.take_out, self.enqueue_upload,
            self.asides.put_aside, follower.find, follower.take))
        self._filler.on_missing = self._mend_missing
        self._clock = clock
        self._repairs: Pauses[VersionId] = Pauses(
            _REPAIR_PAUSE_SECONDS, _REPAIR_PAUSE_CAP_SECONDS,
            _REPAIRS_REMEMBERED)
        self.scrubber = Scrubber(
            self._conf, self._filler, local, metrics, logger,
            lambda version, partition: self.repair([(version, partition)]),
            self._stopping)
        #: Is asked before the last local bytes of a version go.
        self.witness = Asker(
            self._conf, self._client, local, Remedies(
                lambda version, partition: self.repair(
                    [(version, partition)]),
                self._bundler.take_out, self._send_again,
                self._bundler.bundle_bytes, self._repairer.follow,
                self._require_for_proof),
            metrics, logger, pool, clock)
        self.ask_scrubber = AskScrubber(
            self._conf, local, self.witness,
            lambda version: self._ranks.rank(version), metrics,
            logger, self._stopping, now)
        self._arrivals = Arrivals(
            self._conf, self._client, self._keys, self._bundler.hold,
            metrics, proofs, now)
        self._turns = Turns()
        self._outages = Outages()
        self._top_upload_at = -math.inf
        self._publish_at = -math.inf
        self._wake = threading.Condition()
        self._poked = False
        #: When the dispatcher looks next; at work it may have just missed
        #: a row, so then everything pokes it.
        self._looks_at = math.inf
        self._running: Set[str] = set()
        self._uploading = 0
        self._deleting = 0
        self._cancelled: Set[str] = set()
        self._workers = pool(self._conf.uploads + _DELETES, 'dss-s3')
        self._dispatcher = threading.Thread(
            target=self._dispatch, name='dss-s3-dispatch', daemon=True)

    def _owned(self, conf: NodeConf, now: Callable[[], float],
               clock: Callable[[], float]) -> Optional[Owner]:
        """Whose prefix it is; None where no Swift is configured."""
        try:
            cluster = cluster_id(conf.swift_dir)
        except BadConfig as err:
            self._logger.warning('gateway: the prefix gets no mark of its '
                                 'owner: %s', err)
            return None
        made = Owner(self._conf, self._client, cluster, now, clock)
        self._client.guard = made.guard
        return made

    def _require_for_proof(self) -> None:
        """Require ownership: a copy that another cluster may delete proves
        nothing.
        """
        if self._owner is not None:
            try:
                self._owner.require(WRITE_SECONDS)
            except NotOurs as err:
                raise NotProven(
                    str(err), self._conf.retry_after_seconds) from err

    def require_ours(self) -> None:
        """:raises NotOurs: S3 says that the prefix belongs to another
        cluster"""
        try:
            if self._owner is not None:
                self._owner.require()
        except (RemoteUnavailable, S3Rejected) as err:
            # The client asks again before it changes anything.
            self._logger.warning('gateway: whose prefix it is: %s', err)

    def start(self) -> None:
        """Begin background work. Does not wait for S3.

        :raises BadConfig: no bucket, or the secret cannot be used
        """
        if not self._conf.bucket:
            raise BadConfig('[gateway] bucket is not set')
        self._client.check_secret()
        self._keys.check()
        if self._queue.damaged_path:
            self._logger.error(
                'gateway: the queue was damaged; it is now %s, and a new '
                'one was begun. Run a sweep for uploads; the gateway '
                'searches for pending deletes', self._queue.damaged_path)
            self._metrics.count('gateway.queue_damaged')
        if self._conf.url.startswith('http://'):
            self._logger.warning(
                'gateway: %s is not encrypted; use https outside a '
                'trusted network', self._conf.url)
        self._dispatcher.start()
        self._bundler.start()
        self._parker.start()
        self._agreement.start()
        self._collecting.start()

    def stop(self) -> None:
        """Finish or give up running work; the queue keeps the rest."""
        self._stopping.set()
        with self._wake:
            self._wake.notify_all()
        if self._dispatcher.is_alive():
            self._dispatcher.join()
        self._parker.stop()
        self._agreement.stop()
        self._collecting.stop()
        self._workers.shutdown(wait=True)
        self.witness.stop()
        self._alarm.stop()
        self._bundler.stop()
        self.scrubber.stop()
        self.ask_scrubber.stop()
        self._filler.stop()
        self._queue.close()

    def enqueue_upload(self, version: VersionId, partition: str = '',
                       urgent: bool = False) -> None:
        """See :meth:`enqueue_uploads`."""
        self.enqueue_uploads([Upload(version, partition, urgent)])

    def enqueue_uploads(self, wanted: Iterable[Upload]) -> None:
        """Note that S3 may lack these versions, in one transaction.
        Idempotent, durable.

        :raises TierUnavailable: the queue's disk is full; none was noted
        """
        now = self._now()
        rows = [(one.version, self._partition(one.version, one.partition),
                 self._due(one, now), one.class_id) for one in wanted]
        if rows:
            self._queue.add_uploads(rows, now)
            self._notify(min(row[2] for row in rows))
            self._parker.kick()

    def enqueue_delete(self, version: VersionId,
                       partition: str = '') -> None:
        """See :meth:`enqueue_deletes`."""
        self.enqueue_deletes([(version, partition)])

    def enqueue_deletes(
            self, obsolete: Iterable[Tuple[VersionId, str]]) -> None:
        """Note that these versions (and their partitions, or '') were
        overwritten or deleted, in one transaction. Idempotent, durable; an
        upload of one that is running ends.

        MUST NOT be called for a file that only left this device (an
        emptied handoff, a rebalance): its key is the primaries'.

        :raises TierUnavailable: the queue's disk is full; none was noted
        """
        now = self._now()
        asked = list(obsolete)
        if not asked:
            return
        due = now + self._conf.delete_delay_seconds
        # No other node marks members of this node's bundles.
        ours = self._bundler.known(version.key for version, _ in asked)
        self._queue.replace_uploads([
            (remote_key(self._conf.prefix, version), version,
             self._partition(version, partition), due + (
                 0.0 if version.key in ours else self._ranks.rank(version)
                 * self._conf.take_over_seconds))
            for version, partition in asked], now)
        with self._wake:
            self._cancelled.update(
                version.key for version, _ in asked
                if version.key in self._running)
        self._agreement.kick()

    def enqueue_renewals(
            self, changed: Iterable[Tuple[VersionId, str]]) -> None:
        """Note that the metadata of these versions (and their partitions,
        or '') changed after a PUT: the bucket's records follow. Idempotent,
        durable.

        :raises TierUnavailable: the disk is full; none was noted
        """
        self._bundler.renew(
            (version, self._partition(version, partition),
             self._ranks.rank(version)) for version, partition in changed)

    def hurry(self) -> None:
        """Let no version wait for its age any more."""
        self._queue.hurry(self._now())
        self._parker.kick()
        self._bundler.hurry(_HURRY_SECONDS)
        self._notify()

    def rekey(self, version: VersionId, partition: str) -> bool:
        """Have a version's copy be sealed under the active key; False if
        nothing had to be done.

        :raises DssError: it could not be done now
        """
        return self._bundler.rekey(self._local.describe(
            version, partition), partition)

    def repair(self, copies: Sequence[Copy]) -> Repaired:
        """Repair S3's copy of one version; see :class:`Repairer`.

        :raises RemoteCorrupt: it cannot be, from this node
        :raises DssError: it could not be said, or done, now
        """
        claimed = self._claim([UploadJob(version, partition, 0.0, 0.0)
                               for version, partition in copies[:1]])
        if copies and not claimed:
            raise RemoteUnavailable('it is on its way to S3 just now',
                                    self._conf.retry_after_seconds)
        try:
            found = self._repairer.repair(copies)
        finally:
            self._release(claimed)
        self._metrics.count('gateway.repair.%s' % found.value)
        return found

    def prove(self, local: LocalVersion) -> None:
        """Read all of a version from S3 while the link is idle.

        :raises RemoteCorrupt, S3Missing: S3 has it wrong or not at all
        :raises DssError: the answer is unknown
        """
        self._filler.prove(local)

    def _mend_missing(self, version: VersionId, partition: str) -> None:
        """A reader has found that S3 has not got a version."""
        if self._stopping.is_set():
            return
        with self._wake:
            may_try = self._repairs.may_try(version, self._clock())
        if may_try:
            self._workers.submit(self._try_repair, version, partition)
        else:
            self._metrics.count('gateway.repair_paused')

    def _try_repair(self, version: VersionId, partition: str) -> None:
        try:
            self._require_for_proof()
            found = self.repair([(version, partition)])
        except DssError as err:
            self._metrics.count('gateway.%s' % err.counter)
            return
        except Exception:
            self._logger.exception('gateway: repair of %s', version.key)
            return
        with self._wake:
            self._repairs.worked(version)
        self._logger.warning('gateway: %s on %s was missing in S3: %s',
                             version.key, version.device, found.value)

    def bundles_to_rekey(self) -> int:
        """Bundles that are still sealed under another key."""
        return self._bundler.bundles_to_rekey()

    def fetch(self, request: FetchRequest, sink: Sink) -> bool:
        """Serve bytes that a reader lacks, in the caller's thread.

        :returns: False if the caller must close the connection at once
        :raises OSError: what ``sink`` raised
        """
        if self._stopping.is_set():
            sink.begin(FetchReply(503, 'stopping',
                                  self._conf.retry_after_seconds))
            return False
        return self._filler.fetch(request, sink)

    def prove_arrival(self, request: ProofRequest) -> ProofReply:
        """Ask S3 for a version that another node says it has; in the
        caller's thread. See :class:`Arrivals`.

        :raises DssError: S3 has it not, or does not say
        """
        if self._stopping.is_set():
            raise RemoteUnavailable('stopping',
                                    self._conf.retry_after_seconds)
        return self._arrivals.prove(request)

    def reading(self) -> Tuple[int, int]:
        """(parts on their way from S3, parts in memory); costs nothing."""
        return self._filler.counts()

    @property
    def throughput(self) -> Throughput:
        """The rates of the link."""
        return self._client.throughput

    def not_in_rings(self, devices: Iterable[str]) -> List[str]:
        """Those of this node's devices that no ring places here."""
        return self._ranks.not_in_rings(devices)

    def link(self) -> Link:
        """S3 as it is now; costs nothing."""
        return Link(self.throughput.drain.rate(), self._is_up(),
                    max(self._breaker.seconds_until_probe(),
                        self._trust.seconds_until_trial()),
                    self._trust.is_lost)

    def backlog(self) -> int:
        """Uploads, deletes and records that wait."""
        counts = self._queue.counts()
        return int(counts['uploads']) + int(counts['deletes']) \
            + self._bundler.renewals()

    def status(self) -> Dict[str, Any]:
        """Plain values for status output; no secrets in it."""
        counts = self._queue.counts()
        flying, held = self._filler.counts()
        with self._wake:
            uploading, deleting = self._uploading, self._deleting
        now = self._now()
        for name in ('oldest_upload', 'oldest_delete'):
            since = counts.pop(name)
            counts[name + '_seconds'] = (
                None if since is None else max(0.0, now - since))
        return dict(
            counts, endpoint=self._conf.endpoint, bucket=self._conf.bucket,
            state=self._state(),
            last_error=self._breaker.last_error,
            owner=self._owner.status() if self._owner is not None else None,
            versioning=self._versioning or 'not asked yet',
            probe_in_seconds=self._breaker.seconds_until_probe(),
            uploading=uploading, deleting=deleting, reading=flying,
            read_buffers=held, bundles=self._bundler.status(),
            scrub=dict(self.scrubber.status(),
                       keys=self.ask_scrubber.status()),
            collect=dict(plain(self.collector.found),
                         reconciled=self.rounds.is_reconciled))

    def _send_again(self, local: LocalVersion) -> None:
        """Have a version be uploaded from this node now, whatever its
        rank: others may believe that S3 has it."""
        now = self._now()
        version, table = local.version, self._table_source()
        self._queue.add_uploads([(version, self._partition(
            version, local.partition), now, max(
                local.class_map.class_ids(local.content_length), default=0,
                key=lambda one: table.spec(one).rank))],
            now - self._turn_after(version)
            - self._outages.seconds(-math.inf, now))
        self._notify(now)
        self._parker.kick()

    def _try_round(self) -> float:
        try:
            return self.rounds.look()
        except Exception:
            # It is logged, and tried again.
            self._logger.exception('gateway: looking for dead keys')
            self._metrics.count('gateway.collect_errors')
            return _IDLE_SECONDS

    def _is_up(self) -> bool:
        """S3 answers. Reads and deletes need only this; ``Trust`` tells if it
        takes uploads.
        """
        return self._breaker.state is BreakerState.CLOSED

    def _state(self) -> str:
        state = self._breaker.state
        if state is BreakerState.CLOSED and self._trust.is_lost:
            return 'distrusted'
        return state.value

    def _partition(self, version: VersionId, partition: str) -> str:
        return partition or self._ranks.partition(version)

    def _due(self, one: Upload, now: float) -> float:
        if one.urgent:
            return now
        return max(now, float(one.version.timestamp.split('_')[0])
                   + self._conf.remote_after_seconds)

    def _notify(self, due: float = 0.0) -> None:
        """Have the dispatcher look, unless it will anyway by ``due``."""
        with self._wake:
            if due < self._looks_at:
                self._poked = True
                self._wake.notify_all()

    def _is_cancelled(self, key: str) -> bool:
        with self._wake:
            return key in self._cancelled

    def look(self) -> float:
        """Hand out everything that is due; seconds until there may be more.

        The threads of :meth:`start` do this by themselves. With an inline
        pool and without :meth:`start`, the caller's thread does the work.
        """
        return min(self._parker.look(), self._bundler.look(),
                   self._agreement.look(), self._dispatch_due())

    def _dispatch(self) -> None:
        while not self._stopping.is_set():
            try:
                wait_seconds = self._dispatch_due()
            except Exception:
                # A full disk or a locked database must not end uploads
                # for good; it is logged, and looked at again.
                self._logger.exception('gateway: cannot take jobs')
                self._metrics.count('gateway.dispatch_errors')
                wait_seconds = _IDLE_SECONDS
            with self._wake:
                # A job that came while we looked must not wait for the
                # next look.
                if not (self._stopping.is_set() or self._poked):
                    self._looks_at = self._now() + wait_seconds
                    self._wake.wait(wait_seconds)
                self._looks_at = math.inf
                self._poked = False

    def _dispatch_due(self) -> float:
        """Hand out due work; seconds until there may be more."""
        now = self._now()
        self._outages.saw(self._is_up(), now)
        if not self._is_up():
            return self._probe()
        self._alarm.beat()
        if not self._may_write():
            return _LOOK_SECONDS
        slots = self._breaker.background_slots(self._conf.uploads)
        with self._wake:
            upload_slots = self._trust.slots(slots) - self._uploading
            delete_slots = min(slots, _DELETES) - self._deleting
            busy = len(self._running)
        for delete in self._queue.due_deletes(
                now, max(0, delete_slots) and delete_slots + busy,
                agreed=True):
            if delete_slots > 0 and self._submit(delete):
                delete_slots -= 1
        if self._trust.is_lost:
            # A version that was never tried tells more than one that S3
            # may have its reasons to refuse.
            upload_slots = self._submit_fairly(
                now, upload_slots, busy, fresh=True)
        upload_slots = self._submit_fairly(now, upload_slots, busy)
        self._push_in_plenty(now, upload_slots, busy)
        self._publish()
        following = self._queue.next_due(now)
        wait_seconds = self._trust.seconds_until_trial() or _IDLE_SECONDS
        if following is not None:
            wait_seconds = min(wait_seconds, following - now)
        return min(_IDLE_SECONDS, max(0.01, wait_seconds))

    def _submit_fairly(self, now: float, slots: int, busy: int,
                       fresh: bool = False) -> int:
        """Fill the workers, class by class in fair turns, each class in
        the order in which its uploads became due; slots that are left.

        :param fresh: only with versions that were never tried
        """
        waiting: Dict[Flow, Iterator[UploadJob]] = {}
        table = self._table_source()
        if slots > 0:
            # The parker takes versions that may share an S3 object.
            found = {wan.upload(class_id): self._queue.due_uploads(
                now, slots + busy, class_id, fresh,
                True if table.spec(class_id).bundle else None)
                for class_id in self._queue.due_classes(now)}
            waiting = {flow: iter(jobs) for flow, jobs in found.items()
                       if jobs}
        if not waiting:
            self._turns.rest()
        top = {flow for flow in waiting if wan.is_highest(flow, table)}
        if top:
            self._top_upload_at = now
        with self._wake:
            # With one worker (the ramp after an outage) none is kept, or
            # nothing would ever succeed and widen it.
            several = slots + self._uploading > 1
        kept = int(several and now - self._top_upload_at < _KEEP_SECONDS)
        while slots > 0 and waiting:
            # The last free worker is for the highest class, while it has
            # something to send now and then.
            among = list(waiting) if slots > kept else [
                flow for flow in waiting if flow in top]
            if not among:
                break
            flow = self._turns.next(list(waiting), table, wan.RESERVE,
                                    among=among)
            if any(self._submit(job) for job in waiting[flow]):
                slots -= 1
            else:
                del waiting[flow]
        return slots

    def _push_in_plenty(self, now: float, slots: int, busy: int) -> None:
        """An idle link takes versions before their time has come."""
        after = self._conf.push_idle_after_seconds
        early = self._conf.remote_after_seconds - after
        if not after or early <= 0 or not plenty(
                0, busy + self._filler.counts()[0], self._conf.uploads,
                True):
            return
        for job in self._queue.due_uploads(now + early, max(0, slots),
                                           fresh=True):
            if self._submit(job):
                self._metrics.count('gateway.pushed_early')

    def plenty(self) -> bool:
        """True if the link has room for prefetching."""
        with self._wake:
            running = len(self._running)
        return plenty(
            len(self._queue.due_classes(self._now())),
            running + self._filler.counts()[0],
            self._conf.uploads + self._conf.fills, self._is_up())

    def _may_write(self) -> bool:
        """False if the prefix is not ours, or S3 does not say."""
        if self._owner is None:
            return True
        try:
            self._owner.require(WRITE_SECONDS)
        except DssError as err:
            self._say_not_ours(err)
            # Uploads that S3 refuses say so of themselves.
            return isinstance(err, S3Rejected)
        if self._not_ours:
            self._logger.info('gateway: the prefix is ours')
            self._not_ours = ''
        if not self._versioning:
            self._look_at_versioning()
        return True

    def _say_not_ours(self, err: DssError) -> None:
        """One line in the log for each reason, not one for each look."""
        text = str(err)
        if text != self._not_ours:
            level = self._logger.error if isinstance(err, NotOurs) \
                else self._logger.warning
            level('gateway: nothing is sent or deleted: %s', text)
            self._metrics.count('gateway.%s' % err.counter)
        self._not_ours = text

    def _look_at_versioning(self) -> None:
        try:
            self._versioning = self._client.versioning() or 'off'
        except DssError as err:
            self._versioning = 'unknown (%s)' % err
        if self._versioning not in ('off', 'unknown'):
            self._logger.warning(
                'gateway: bucket %s has versioning %s', self._conf.bucket,
                self._versioning + (
                    ': a deleted key stays as an old version, and is paid '
                    'for, until swift-dss gateway gc --versions or a '
                    'lifecycle rule removes it' if self._versioning in (
                        'Enabled', 'Suspended') else ''))

    def _found(self, alive: bool) -> None:
        """Handle a change of S3's state, found by a question."""
        if alive:
            self._is_back()
        else:
            self._filler.abandon()
        self._notify()

    def _is_back(self) -> None:
        self._logger.info('gateway: S3 answers again')
        self._queue.again(self._now())
        self._bundler.kick()

    def _probe(self) -> float:
        """While S3 is down, one small question when its time has come."""
        wait_seconds = self._breaker.seconds_until_probe()
        if wait_seconds <= 0:
            try:
                self._client.probe(self._conf.prefix + _PROBE_KEY)
            except DssError as err:
                self._logger.warning('gateway: probe: %s', err)
            if self._breaker.state is BreakerState.CLOSED:
                self._is_back()
                return 0.0
            wait_seconds = self._breaker.seconds_until_probe()
        self._publish()
        return max(0.05, min(wait_seconds, _IDLE_SECONDS))

    def _publish(self) -> None:
        now = time.monotonic()
        if now < self._publish_at:
            return
        # Counting rows costs more the more there are.
        self._publish_at = now + _PUBLISH_SECONDS
        counts = self._queue.counts()
        self._metrics.gauge('gateway.queued_uploads', counts['uploads'])
        self._metrics.gauge('gateway.queued_deletes', counts['deletes'])
        self._metrics.gauge('gateway.up', float(self.link().drains))

    def _submit(self, job: _Job) -> bool:
        """Run a job unless one of the same version runs already."""
        with self._wake:
            if job.version.key in self._running:
                if isinstance(job, DeleteJob):
                    self._cancelled.add(job.version.key)
                return False
            self._running.add(job.version.key)
            if isinstance(job, UploadJob):
                self._uploading += 1
            else:
                self._deleting += 1
        self._workers.submit(self._work, job)
        return True

    def _claim(self, jobs: Sequence[UploadJob]) -> List[UploadJob]:
        found: List[UploadJob] = []
        with self._wake:
            for job in jobs:
                if job.version.key not in self._running:
                    self._running.add(job.version.key)
                    found.append(job)
        return found

    def _release(self, jobs: Iterable[UploadJob]) -> None:
        with self._wake:
            waited = False
            for job in jobs:
                self._running.discard(job.version.key)
                waited = waited or job.version.key in self._cancelled
                self._cancelled.discard(job.version.key)
        if waited:
            self._notify()  # a delete could not run during it

    def _work(self, job: _Job) -> None:
        try:
            if isinstance(job, UploadJob):
                with wan.working_for(wan.upload(job.class_id)):
                    self._upload(job)
            else:
                self._delete(job)
                self._metrics.count('gateway.deletes')
        except DssError as err:
            self._failed(job, err)
        except Exception as err:
            self._logger.exception('gateway: %s failed', job.version.key)
            self._failed(job, DssError(type(err).__name__))
        finally:
            with self._wake:
                self._running.discard(job.version.key)
                self._cancelled.discard(job.version.key)
                if isinstance(job, UploadJob):
                    self._uploading -= 1
                else:
                    self._deleting -= 1
            self._notify()

    def _upload(self, job: UploadJob) -> None:
        may_send = self._may_send(job)
        outcome = None
        local = self._described(job)
        if local is not None:
            if not self._wanted_remote(local):
                self._queue.finish_upload(job.version)
                return
            outcome = self._bundler.takes(
                Offer(job, local, may_send, self._is_first(job)),
                self._table_source())
        if outcome is None:
            outcome = self._uploader.run(job, may_send)
            if outcome in (Outcome.UPLOADED, Outcome.FOUND):
                self._proven()
        self._metrics.count('gateway.upload.%s' % outcome.value)
        if outcome is Outcome.WAITING:
            self._queue.wait([(job.version, self._look_again_at(job))])
            return
        if outcome is Outcome.PARKED:
            return  # its row stays until the bundle is proven
        if outcome is Outcome.UPLOADED and local is not None:
            self._bundler.went_up(local)
            self._queue.look_now(job.version, self._now())
        if outcome is Outcome.OBSOLETE:
            self.enqueue_delete(job.version, job.partition)
        self._queue.finish_upload(job.version)

    def _proven(self) -> None:
        """S3 holds a version. If it lied until now, or left several uploads
        unanswered, the failed uploads are due in the order of their age.
        """
        with self._wake:
            unanswered, self._unanswered = self._unanswered, 0
        if self._trust.proven():
            self._logger.info('gateway: S3 keeps uploads again')
            self._breaker.ramp()
        elif unanswered < _STRUGGLES:
            return
        now = self._now()
        if now - self._again_at >= _AGAIN_SECONDS:
            self._again_at = now
            self._queue.again(now)

    def _may_send(self, job: UploadJob) -> bool:
        now, turn = self._now(), self._turn_after(job.version)
        return not turn or now - job.first_seen - self._outages.seconds(
            job.first_seen, now) >= turn

    def _is_first(self, job: UploadJob) -> bool:
        return self._turn_after(job.version) == 0

    def _turn_after(self, version: VersionId) -> float:
        """Seconds from when a version was seen until this device may send
        it, if no other has: the first primary begins when the version is
        old enough."""
        rank = self._ranks.rank(version)
        return rank and self._conf.remote_after_seconds \
            + rank * self._conf.take_over_seconds

    def _look_again_at(self, job: UploadJob) -> float:
        look = Backoff(_LOOK_SECONDS, max(
            _LOOK_SECONDS, self._conf.take_over_seconds / 4),
            self._retry.dice)
        return self._now() + look.seconds(job.attempts + 1)

    def _delete(self, job: DeleteJob) -> None:
        if not self._bundler.buries(job):
            self._deleter.run(job)
            self._bundler.let_go(job.version)
            return
        # It has no key of its own: a mark in its bundle is all there is.
        for upload in self._queue.uploads_of(job.version.key):
            self._queue.finish_upload(upload.version)
        self._queue.finish_delete(job.s3_key)

    def _described(self, job: UploadJob) -> Optional[LocalVersion]:
        try:
            return self._local.describe(job.version, job.partition)
        except DssError:
            return None  # the uploader handles the cause

    def _wanted_remote(self, local: LocalVersion) -> bool:
        """False if any byte is of a class that stays on this cluster.

        A copy in S3 is always a copy of the whole version, so one span
        that must not leave keeps all of it here.
        """
        table = self._table_source()
        return all(
            table.spec(class_id).remote is not RemoteMode.NEVER
            for class_id in local.class_map.class_ids(
                local.content_length) or {local.class_map.rest})

    def _failed(self, job: _Job, err: DssError) -> None:
        if self._stopping.is_set():
            return
        if isinstance(job, UploadJob) and isinstance(
                err, (RemoteCorrupt, S3Rejected)):
            self._trust.unproven()
        elif isinstance(job, UploadJob) and isinstance(
                err, RemoteUnavailable):
            with self._wake:
                self._unanswered += 1
        # A job that was not even sent (breaker open) did not fail.
        tried = not isinstance(err, S3Down)
        failures = (job.failures if isinstance(job, UploadJob)
                    else job.attempts)
        at = self._now() + self._retry.seconds(
            failures + 1 if tried else 1)
        text = '%s: %s' % (type(err).__name__, err)
        try:
            if isinstance(job, UploadJob):
                self._queue.retry_upload(job.version, at, text, tried)
            else:
                self._queue.retry_delete(job.s3_key, at, text)
        except DssError as queue_err:
            # The row is still due: this worker waits in its stead, or a
            # full disk would make us hammer S3.
            self._logger.error('gateway: %s', queue_err)
            self._stopping.wait(at - self._now())
        self._metrics.count('gateway.upload_failed' if isinstance(
            job, UploadJob) else 'gateway.delete_failed')
        self._metrics.count('gateway.%s' % err.counter)
        level = (self._logger.warning if isinstance(err, RemoteUnavailable)
                 else self._logger.error)
        level('gateway: %s of %s on %s: %s; next try in %.0f s',
              'upload' if isinstance(job, UploadJob) else 'delete',
              job.version.key, job.version.device, text, at - self._now())
