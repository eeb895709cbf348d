"""The gateway as the tier daemon sees it: one object with a few verbs.

Background work is pulled from the durable queue (:mod:`.up.dispatch`). Reads
never queue behind uploads: they have their own threads. All of them share one
breaker.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Optional,
    Sequence,
    Tuple,
)

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, RemoteUnavailable
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
from swift_dss.gateway.form.owner import Owner
from swift_dss.gateway.form.prefix import Prefix
from swift_dss.gateway.link.alarm import Alarm
from swift_dss.gateway.link.breaker import Breaker, Trust
from swift_dss.gateway.link.client import Connect, S3Client
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
    Primaries,
    RingPrimaries,
    looks_at,
)
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.gateway.peers.succession import Succession
from swift_dss.gateway.ports import (
    LocalVersion,
    LocalVersions,
    Logger,
    Metrics,
    Sink,
    TableSource,
    Upload,
)
from swift_dss.gateway.queue import Queue, queue_path
from swift_dss.gateway.up.bundler import SENDERS, Bundler
from swift_dss.gateway.up.deletes import Agreement, Deleter
from swift_dss.gateway.up.dispatch import DELETES, Dispatcher
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.gateway.up.offers import Offers
from swift_dss.gateway.up.orders import Orders
from swift_dss.gateway.up.park import Parker
from swift_dss.gateway.up.repairs import Repairs
from swift_dss.gateway.up.standing import Standing
from swift_dss.gateway.up.upload import Uploader
from swift_dss.gateway.up.work import Worker
from swift_dss.io.workers import Clock, Pool, inline, threads
from swift_dss.wire.control import FetchReply, FetchRequest
from swift_dss.wire.records.proof import ProofReply, ProofRequest

#: First and longest wait of a job that failed, seconds.
_RETRY_BASE_SECONDS = 2.0
_RETRY_CAP_SECONDS = 600.0
#: A key that need not exist: 404 is as good an answer as 200.
_PROBE_KEY = '.dss-probe'
#: For so long bundles are sent before they are full.
_HURRY_SECONDS = 60.0
#: So long after a failure the collector looks again.
_IDLE_SECONDS = 10.0


class _Times(Clock):
    """The clocks that a caller gave."""

    def __init__(self, now: Callable[[], float],
                 clock: Callable[[], float]) -> None:
        self.wall = now  # type: ignore[method-assign]
        self.monotonic = clock  # type: ignore[method-assign]


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
        times = self._times = _Times(now, clock)
        self._stopping = threading.Event()
        self._breaker = breaker or Breaker()
        retry = retry or Backoff(_RETRY_BASE_SECONDS, _RETRY_CAP_SECONDS)
        self.line = Succession(
            self._conf, ranks or Ranks(conf.swift_dir, shard=conf.shard),
            retry, times)
        self._queue = Queue(queue_path(conf))
        self.jobs = Jobs(self._conf, self._queue, self.line, Standing(
            self._breaker, trust or Trust(), times), retry, times)
        trusted = TrustedClock(now, clock)
        self._client = S3Client(
            self._conf, self._breaker,
            self._conf.uploads + self._conf.fills + DELETES + SENDERS
            + ASKERS + 2, table_source, connect, Pulse(clock),
            trusted.hear)
        self._alarm = Alarm(
            self._client, self._breaker, self._conf.prefix + _PROBE_KEY,
            self._changed, logger, pool)
        self.prefix = Prefix(self._conf, self._client,
                             self._owned(conf, now, clock), metrics, logger)
        self._keys = KeyFile(self._conf.key_file)
        self._primaries = primaries or RingPrimaries(
            self.line.ranks, looks_at(local),
            is_sound=functools.partial(verify.is_sound, local))
        self._uploader = Uploader(
            self._conf, self._client, local, self._queue, metrics,
            self._keys, self.jobs, self._stopping, now)
        proofs = BundleProofs(self._client, self._keys, now)
        book = Book(book_path(conf.state_dir))
        follower = Follower(self._conf, self._primaries, proofs, local, book,
                            metrics, now)
        self._bundler = Bundler(
            self._conf, self._client, local, self._queue, book, metrics,
            logger, self._breaker, self._stopping, conf.swift_dir,
            self._keys, now, retry, pool,
            Leaning(self._conf, self._primaries, self._uploader.send_apart,
                    trusted.now),
            follower, proofs, self.line.ranks, self.jobs)
        #: Looks at versions that are to go up.
        self.offers = Offers(local, table_source, self.line)
        self._parker = Parker(
            self.jobs, self._queue, self._bundler, self.offers, metrics,
            logger, self._stopping, times)
        self._agreement = Agreement(
            self._conf, local, self._queue, self._primaries, metrics,
            logger, retry, self._stopping, now, self.jobs.due.ring,
            trusted.now)
        self._orders = Orders(self._conf, self.jobs, self.line,
                              self._bundler, self._agreement, times)
        deleter = Deleter(self._conf, self._client, local,
                          self._queue, self.jobs, metrics)
        self.collector = Collector(
            self._conf, self._client, local, self.line.ranks,
            self._primaries, keys.Hands(
                deleter.remove, self.enqueue_deletes,
                lambda version, bundle: self._arrivals.is_doubled(
                    version, bundle)),
            self._bundler.collector(self.line.ranks, self._primaries,
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
                               self._stopping.wait, retry.dice),
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
        self.dispatcher = Dispatcher(
            self._conf, self.jobs, self._queue, Worker(
                self.jobs, self._queue, self.offers, self._uploader,
                self._bundler, deleter, self._orders, times, metrics, logger,
                self._stopping),
            self.line, self.prefix, self._alarm, self._filler, self.offers,
            times, pool, metrics, logger, self._stopping)
        self.repairs = Repairs(
            self._conf, self.jobs, self._repairer, self.prefix,
            self.dispatcher.workers, times, metrics, logger, self._stopping)
        self._filler.on_missing = self.repairs.missed
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
                self.prefix.require_for_proof),
            metrics, logger, pool, clock)
        self.ask_scrubber = AskScrubber(
            self._conf, local, self.witness, self.line.rank, metrics,
            logger, self._stopping, now)
        self._arrivals = Arrivals(
            self._conf, self._client, self._keys, self._bundler.hold,
            metrics, proofs, now)

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

    def require_ours(self) -> None:
        """:raises NotOurs: S3 says that the prefix belongs to another
        cluster"""
        self.prefix.require_ours()

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
        self.dispatcher.start()
        self._bundler.start()
        self._parker.start()
        self._agreement.start()
        self._collecting.start()

    def stop(self) -> None:
        """Finish or give up running work; the queue keeps the rest."""
        self._stopping.set()
        self.dispatcher.stop()
        self._parker.stop()
        self._agreement.stop()
        self._collecting.stop()
        self.dispatcher.finish()
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
        self.jobs.enqueue(wanted)

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
        self._orders.delete(obsolete)

    def enqueue_renewals(
            self, changed: Iterable[Tuple[VersionId, str]]) -> None:
        """Note that the metadata of these versions (and their partitions,
        or '') changed after a PUT: the bucket's records follow. Idempotent,
        durable.

        :raises TierUnavailable: the disk is full; none was noted
        """
        self._bundler.renew(
            (version, self.line.partition(version, partition),
             self.line.rank(version)) for version, partition in changed)

    def hurry(self) -> None:
        """Let no version wait for its age any more."""
        self.jobs.hurry()
        self._bundler.hurry(_HURRY_SECONDS)

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
        return self.repairs.repair(copies)

    def prove(self, local: LocalVersion) -> None:
        """Read all of a version from S3 while the link is idle.

        :raises RemoteCorrupt, S3Missing: S3 has it wrong or not at all
        :raises DssError: the answer is unknown
        """
        self._filler.prove(local)

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
        return self.line.ranks.not_in_rings(devices)

    def link(self) -> Link:
        """S3 as it is now; costs nothing."""
        return Link(self.throughput.drain.rate(), self._is_up(),
                    max(self._breaker.seconds_until_probe(),
                        self.jobs.standing.trust.seconds_until_trial()),
                    self.jobs.standing.trust.is_lost)

    def backlog(self) -> int:
        """Uploads, deletes and records that wait."""
        counts = self._queue.counts()
        return int(counts['uploads']) + int(counts['deletes']) \
            + self._bundler.renewals()

    def status(self) -> Dict[str, Any]:
        """Plain values for status output; no secrets in it."""
        counts = self._queue.counts()
        flying, held = self._filler.counts()
        uploading, deleting = self.dispatcher.at_work()
        now = self._times.wall()
        for name in ('oldest_upload', 'oldest_delete'):
            since = counts.pop(name)
            counts[name + '_seconds'] = (
                None if since is None else max(0.0, now - since))
        return dict(
            counts, endpoint=self._conf.endpoint, bucket=self._conf.bucket,
            state=self.jobs.standing.state,
            last_error=self._breaker.last_error,
            **self.prefix.status(),
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
        table = self._table_source()
        self.jobs.insist(local.version, local.partition, max(
            local.class_map.class_ids(local.content_length), default=0,
            key=lambda one: table.spec(one).rank))

    def _try_round(self) -> float:
        try:
            return self.rounds.look()
        except Exception:
            # It is logged, and tried again.
            self._logger.exception('gateway: looking for dead keys')
            self._metrics.count('gateway.collect_errors')
            return _IDLE_SECONDS

    def _is_up(self) -> bool:
        return self.jobs.standing.is_up

    def plenty(self) -> bool:
        """True if the link has room for prefetching."""
        return self.dispatcher.plenty()

    def look(self) -> float:
        """Hand out everything that is due; seconds until there may be more.

        The threads of :meth:`start` do this by themselves. With an inline
        pool and without :meth:`start`, the caller's thread does the work.
        """
        return min(self._parker.look(), self._bundler.look(),
                   self._agreement.look(), self.dispatcher.look())

    def _changed(self, alive: bool) -> None:
        """Handle a change of S3's state, found by a question."""
        if alive:
            self._logger.info('gateway: S3 answers again')
            self.jobs.try_again()
            self._bundler.kick()
        else:
            self._filler.abandon()
        self.jobs.due.ring()
