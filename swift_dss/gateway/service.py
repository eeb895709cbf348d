"""The gateway as the tier daemon sees it: one object with a few verbs.

Background work is pulled from the durable queue (:mod:`.up.dispatch`). Reads
never queue behind uploads: they have their own threads. All of them share one
breaker.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import (
    Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple)

from swift_dss.core.config import GatewayConf, NodeConf
from swift_dss.core.errors import BadConfig, RemoteUnavailable
from swift_dss.core.pressure import Link
from swift_dss.core.residency import Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.collect.keys import Collected, Wish, plain
from swift_dss.gateway.link.throughput import Throughput
from swift_dss.gateway.mend.repair import Copy, Repaired
from swift_dss.gateway.parts import Outside, assembled
from swift_dss.gateway.ports import (
    LocalVersion, LocalVersions, Logger, Metrics, Sink, TableSource, Upload)
from swift_dss.wire.control import FetchReply, FetchRequest
from swift_dss.wire.records.proof import ProofReply, ProofRequest

#: For so long bundles are sent before they are full.
_HURRY_SECONDS = 60.0


def require_bucket(conf: GatewayConf) -> None:
    """:raises BadConfig: there is no bucket to go to"""
    if not conf.bucket:
        raise BadConfig('[gateway] bucket is not set')


class Gateway:
    """S3 behind one node.

    :param table: gives the class table in force
    :param local: this node's devices
    :param outside: by default everything is the machine's own
    :raises BadConfig: from :meth:`start`, if the gateway cannot be used
    """

    def __init__(self, conf: NodeConf, table: TableSource,
                 local: LocalVersions, logger: Logger, metrics: Metrics,
                 outside: Optional[Outside] = None) -> None:
        #: For callers that need one of its parts.
        self.parts = assembled(conf, table, local, logger, metrics,
                               outside or Outside())

    def require_ours(self) -> None:
        """:raises NotOurs: S3 says that the prefix belongs to another
        cluster"""
        self.parts.link.prefix.require_ours()

    def start(self) -> None:
        """Begin background work. Does not wait for S3.

        :raises BadConfig: no bucket, or the secret cannot be used
        """
        parts, logger = self.parts, self.parts.around.logger
        require_bucket(parts.conf)
        parts.client.check_secret()
        parts.link.keys.check()
        if parts.queue.damaged_path:
            logger.error(
                'gateway: the queue was damaged; it is now %s, and a new '
                'one was begun. Run a sweep for uploads; the gateway '
                'searches for pending deletes', parts.queue.damaged_path)
            parts.around.metrics.count('gateway.queue_damaged')
        if parts.conf.url.startswith('http://'):
            logger.warning(
                'gateway: %s is not encrypted; use https outside a '
                'trusted network', parts.conf.url)
        parts.dispatcher.start()
        parts.bundles.bundler.start()
        parts.uploads.parker.start()
        parts.uploads.agreement.start()
        parts.rounds.start()

    def stop(self) -> None:
        """Finish or give up running work; the queue keeps the rest."""
        parts = self.parts
        parts.around.stopping.set()
        parts.dispatcher.stop()
        parts.uploads.parker.stop()
        parts.uploads.agreement.stop()
        parts.rounds.stop()
        parts.uploads.crew.finish()
        parts.mend.witness.stop()
        parts.alarm.stop()
        parts.bundles.bundler.stop()
        parts.book.close()
        parts.mend.scrubber.stop()
        parts.mend.ask_scrubber.stop()
        parts.supply.stop()
        parts.queue.close()

    def enqueue_upload(self, version: VersionId, partition: str = '',
                       urgent: bool = False) -> None:
        """See :meth:`enqueue_uploads`."""
        self.enqueue_uploads([Upload(version, partition, urgent)])

    def enqueue_uploads(self, wanted: Iterable[Upload]) -> None:
        """Note that S3 may lack these versions, in one transaction.
        Idempotent, durable.

        :raises TierUnavailable: the queue's disk is full; none was noted
        """
        self.parts.jobs.enqueue(wanted)

    def enqueue_deletes(
            self, obsolete: Iterable[Tuple[VersionId, str]]) -> None:
        """Note that these versions (and their partitions, or '') were
        overwritten or deleted, in one transaction. Idempotent, durable; an
        upload of one that is running ends.

        MUST NOT be called for a file that only left this device (an
        emptied handoff, a rebalance): its key is the primaries'.

        :raises TierUnavailable: the queue's disk is full; none was noted
        """
        self.parts.uploads.orders.delete(obsolete)

    def enqueue_renewals(
            self, changed: Iterable[Tuple[VersionId, str]]) -> None:
        """Note that the metadata of these versions (and their partitions,
        or '') changed after a PUT: the bucket's records follow. Idempotent,
        durable.

        :raises TierUnavailable: the disk is full; none was noted
        """
        line = self.parts.jobs.line
        if self.parts.bundles.renewer.note(
                (version, line.partition(version, partition),
                 line.rank(version)) for version, partition in changed):
            upkeep = self.parts.bundles.upkeep
            upkeep.hasten()
            self.parts.jobs.bundling.ring(upkeep.due_at)

    def hurry(self) -> None:
        """Let no version wait for its age any more."""
        self.parts.jobs.hurry()
        self.parts.bundles.bundler.hurry(_HURRY_SECONDS)

    def rekey(self, version: VersionId, partition: str,
              dry_run: bool = False) -> bool:
        """Have a version's copy be sealed under the active key, unless it is
        in a bundle; see :meth:`rekey_bundles`.

        :param dry_run: only look
        :returns: False if it is sealed so already
        :raises DssError: it could not be done now
        """
        rekeying = self.parts.bundles.rekeying
        return rekeying.is_due(version, partition) if dry_run else \
            rekeying.rekey(version, partition)

    def rekey_bundles(self) -> None:
        """Order that bundles under another key are rewritten soon."""
        self.parts.bundles.rekeying.order()

    def repair(self, copies: Sequence[Copy]) -> Repaired:
        """Repair S3's copy of one version; see :class:`Repairer`.

        :raises RemoteCorrupt: it cannot be, from this node
        :raises DssError: it could not be said, or done, now
        """
        return self.parts.mend.repairs.repair(copies)

    def prove(self, local: LocalVersion) -> None:
        """Read all of a version from S3 while the link is idle.

        :raises RemoteCorrupt, S3Missing: S3 has it wrong or not at all
        :raises DssError: the answer is unknown
        """
        self.parts.supply.prove(local)

    def bundles_to_rekey(self) -> int:
        """Bundles that are still sealed under another key."""
        return self.parts.bundles.rekeying.bundles_left()

    def fetch(self, request: FetchRequest, sink: Sink) -> bool:
        """Serve bytes that a reader lacks, in the caller's thread.

        :returns: False if the caller must close the connection at once
        :raises OSError: what ``sink`` raised
        """
        if self.parts.around.stopping.is_set():
            sink.begin(FetchReply(503, 'stopping',
                                  self.parts.conf.retry_after_seconds))
            return False
        return self.parts.filler.fetch(request, sink)

    def prove_arrival(self, request: ProofRequest) -> ProofReply:
        """Ask S3 for a version that another node says it has; in the
        caller's thread. See :class:`Arrivals`.

        :raises DssError: S3 has it not, or does not say
        """
        self._refuse_if_stopping()
        return self.parts.arrivals.prove(request)

    def prove_leaving(self, local: LocalVersion) -> ProofReply:
        """Ask S3 for a version that is about to leave this node, and of which
        other nodes have stubs; in the caller's thread. See
        :meth:`Asker.kept`.

        :raises DssError: S3 has it not, or does not say
        """
        self._refuse_if_stopping()
        return ProofReply(200, '', replace(
            Residency.whole(local.content_length, Tier.REMOTE),
            remote=self.parts.mend.witness.kept(local)), local.etag)

    def collect(self, wish: Wish, progress: Callable[[Collected], None]
                = lambda counts: None) -> Collected:
        """One pass for keys that nothing needs; see :class:`Collector`.

        :raises BadConfig: absent keys may not be removed now
        """
        if wish.absent and os.path.exists(self.parts.restore_state):
            raise BadConfig('a restore has begun here and has not brought '
                            'back all: run it again, to its end')
        return self.parts.collector.run(wish, progress)

    def reading(self) -> Tuple[int, int]:
        """(parts on their way from S3, parts in memory); costs nothing."""
        return self.parts.supply.counts()

    @property
    def throughput(self) -> Throughput:
        """The rates of the link."""
        return self.parts.client.throughput

    def not_in_rings(self, devices: Iterable[str]) -> List[str]:
        """Those of this node's devices that no ring places here."""
        return self.parts.jobs.line.ranks.not_in_rings(devices)

    def link(self) -> Link:
        """S3 as it is now; costs nothing."""
        standing = self.parts.jobs.standing
        return Link(self.throughput.drain.rate(), standing.is_up,
                    max(standing.breaker.seconds_until_probe(),
                        standing.trust.seconds_until_trial()),
                    standing.trust.is_lost)

    def backlog(self) -> int:
        """Uploads, deletes and records that wait."""
        counts = self.parts.queue.counts()
        return int(counts['uploads']) + int(counts['deletes']) \
            + self.parts.book.renewals()

    def status(self) -> Dict[str, Any]:
        """Plain values for status output; no secrets in it."""
        parts = self.parts
        counts = parts.queue.counts()
        flying, held = parts.supply.counts()
        uploading, deleting = parts.uploads.crew.at_work()
        now = parts.around.clock.wall()
        for name in ('oldest_upload', 'oldest_delete'):
            since = counts.pop(name)
            counts[name + '_seconds'] = (
                None if since is None else max(0.0, now - since))
        breaker, mend = parts.link.breaker, parts.mend
        return dict(
            counts, endpoint=parts.conf.endpoint, bucket=parts.conf.bucket,
            state=parts.jobs.standing.state, last_error=breaker.last_error,
            **parts.link.prefix.status(),
            probe_in_seconds=breaker.seconds_until_probe(),
            uploading=uploading, deleting=deleting, reading=flying,
            read_buffers=held, bundles=dict(
                parts.book.counts(),
                sending=parts.bundles.sending.under_way(),
                last_error=parts.bundles.troubles.last_error),
            scrub=dict(mend.scrubber.status(),
                       keys=mend.ask_scrubber.status()),
            collect=dict(plain(parts.collector.found),
                         reconciled=parts.rounds.is_reconciled))

    def plenty(self) -> bool:
        """True if the link has room for prefetching."""
        return self.parts.dispatcher.plenty()

    def look(self) -> float:
        """Hand out everything that is due; seconds until there may be more.

        The threads of :meth:`start` do this by themselves. With an inline
        pool and without :meth:`start`, the caller's thread does the work.
        """
        return min(look() for look in self.looks().values())

    def looks(self) -> Dict[str, Callable[[], float]]:
        """The work of each thread of :meth:`look`, in their order there."""
        parts = self.parts
        return {'parker': parts.uploads.parker.look,
                'bundler': parts.bundles.bundler.look,
                'agreement': parts.uploads.agreement.look,
                'dispatcher': parts.dispatcher.look}

    def _refuse_if_stopping(self) -> None:
        if self.parts.around.stopping.is_set():
            raise RemoteUnavailable('stopping',
                                    self.parts.conf.retry_after_seconds)
