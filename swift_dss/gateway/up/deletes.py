"""Take keys of obsolete versions out of S3.

A key is shared by all replicas of a version, and one that missed the
overwrite or the delete may need it. So the primaries are asked first
(``strategy.agreement``), many rows in one question; a row that they did not
agree to stays, and they are asked again. The first primary deletes; the
others come ``take_over_seconds`` later, each after the one before it, and
find the key gone.

The tombstone row stays until S3 acknowledged. Uploads of the same version
go first out of the queue and then out of S3 (data, ``.meta``, ``.sums``, a
multipart upload in progress), so the far end sees a key's changes in local
order. The newest version of an object is never deleted.
"""

from __future__ import annotations

import threading
from enum import Enum
from typing import Callable, Sequence

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DssError, RemoteUnavailable
from swift_dss.gateway.form.metadata import SUFFIXES
from swift_dss.gateway.link.client import S3Client, S3Rejected
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.looper import Looper
from swift_dss.gateway.peers.primaries import Primaries, Wanted
from swift_dss.gateway.ports import LocalVersions, Logger, Metrics
from swift_dss.gateway.queue import BEGINNING, DeleteJob, Queue
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.io import steps
from swift_dss.strategy.agreement import Verdict, of_key

#: Rows of one question.
_AT_ONCE = 500
#: It looks at least this often.
_IDLE_SECONDS = 10.0
_HELD = 'a primary may need it still: it has nothing newer, or is silent'


class DeleteOutcome(Enum):
    """How a delete job ended."""

    DELETED = 'deleted'
    REFUSED = 'refused'


class Agreement:
    """Asks the primaries about deletes that are due, in a thread of its
    own: a server that does not answer holds nothing else up.

    :param retry: waits of those that were not agreed to
    :param agreed: called when some were
    :param trusted: clock for ages; see ``TrustedClock``
    """

    def __init__(self, conf: GatewayConf, local: LocalVersions,
                 queue: Queue, primaries: Primaries, metrics: Metrics,
                 logger: Logger, retry: Backoff,
                 stopping: threading.Event, now: Callable[[], float],
                 agreed: Callable[[], None],
                 trusted: Callable[[], float]) -> None:
        self._conf = conf
        self._local = local
        self._queue = queue
        self._primaries = primaries
        self._metrics = metrics
        self._logger = logger
        self._retry = retry
        self._stopping = stopping
        self._now = now
        self._agreed = agreed
        self._trusted = trusted
        looper = Looper('dss-agree', self._try_look, stopping)
        self.start = looper.start
        self.stop = looper.stop
        self.kick = looper.kick

    def look(self) -> float:
        """Ask about due rows; seconds until there may be more."""
        now = self._now()
        jobs = self._queue.due_deletes(now, _AT_ONCE, agreed=False)
        if jobs:
            self._judge(jobs, now)
        if len(jobs) == _AT_ONCE:
            return 0.0
        following = self._queue.next_question()
        if following is None:
            return _IDLE_SECONDS
        return min(_IDLE_SECONDS, max(0.05, following - self._now()))

    def _judge(self, jobs: Sequence[DeleteJob], now: float) -> None:
        answers = self._primaries.ask([
            Wanted(job.version, self._name(job)) for job in jobs])
        dead = [job.s3_key for job, said in zip(jobs, answers)
                if of_key(job.version.timestamp, said, self._trusted(),
                          self._conf.reclaim_age_seconds,
                          job.first_seen) is Verdict.DEAD
                or self._is_newest(job)]
        may_go = set(dead)
        held = [job for job in jobs if job.s3_key not in may_go]
        if held:
            self._metrics.count('gateway.deletes_held', len(held))
            self._queue.retry_deletes(
                [(job.s3_key, now + self._retry.seconds(job.attempts + 1))
                 for job in held], _HELD)
        if dead:
            self._queue.agree(dead)
            self._agreed()

    def _name(self, job: DeleteJob) -> str:
        try:
            return self._local.object_name(job.version, job.partition)
        except DssError:
            return ''

    def _is_newest(self, job: DeleteJob) -> bool:
        """A false order, which the deleter refuses."""
        try:
            return self._local.newest(
                job.version, job.partition) == job.version.timestamp
        except DssError:
            return False

    def _try_look(self) -> float:
        try:
            return self.look()
        except DssError as err:
            self._logger.error('gateway: deletes: %s', err)
        except Exception:
            # It is logged, and looked at again: deletes must go on.
            self._logger.exception('gateway: deletes')
        self._metrics.count('gateway.agreement_errors')
        return _IDLE_SECONDS


class Deleter:
    """Does delete jobs, one per call, in any thread.

    :param jobs: uploads of what is deleted end there
    """

    def __init__(self, conf: GatewayConf, client: S3Client,
                 local: LocalVersions, queue: Queue, jobs: Jobs,
                 metrics: Metrics) -> None:
        self._conf = conf
        self._jobs = jobs
        self._client = client
        self._local = local
        self._queue = queue
        self._metrics = metrics

    def run(self, job: DeleteJob) -> DeleteOutcome:
        """Delete the key and its side cars. Idempotent; 404 is success.

        The caller MUST have stopped uploads of the same version, and the
        primaries MUST have agreed.

        :raises RemoteUnavailable, S3Rejected: the row stays; try later
        """
        newest = self._local.newest(job.version, job.partition)
        if newest == job.version.timestamp:
            # Timestamps only grow: this can only be a false order.
            self._queue.finish_delete(job.s3_key)
            self._metrics.count('gateway.deletes_refused')
            return DeleteOutcome.REFUSED
        for upload in self._queue.uploads_of(job.version.key):
            if upload.upload_id == BEGINNING:
                self._abort_listed(job.s3_key)
            elif upload.upload_id:
                self._client.abort(job.s3_key, upload.upload_id)
            self._jobs.settle([upload.version])
        if self._jobs.line.rank(job.version) and not job.attempts and \
                self._client.head(job.s3_key) is None:
            # The primary before this one did it.
            self._queue.finish_delete(job.s3_key)
            return DeleteOutcome.DELETED
        self.remove(job.s3_key)
        self._queue.finish_delete(job.s3_key)
        steps.reached('delete.done')
        return DeleteOutcome.DELETED

    def remove(self, key: str) -> None:
        """Take a version's key and its side cars out of S3.

        :raises RemoteUnavailable, S3Rejected: it may still be there
        """
        self._client.delete(key)
        steps.reached('delete.data')
        for suffix in SUFFIXES:
            self._client.delete(key + suffix)
        steps.reached('delete.sent')
        if self._client.head(key) is not None:
            # Acknowledged and not done, or not done everywhere yet.
            raise RemoteUnavailable(
                '%s is still there' % key, self._conf.retry_after_seconds)

    def _abort_listed(self, key: str) -> None:
        try:
            for upload_id in self._client.uploads_of(key):
                self._client.abort(key, upload_id)
        except S3Rejected:
            self._metrics.count('gateway.leftovers_unlisted')
