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

from enum import Enum
from typing import Sequence

from swift_dss.core.errors import DssError
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.form.remove import Remover
from swift_dss.gateway.link.client import S3Client, S3Rejected
from swift_dss.gateway.looper import Looper
from swift_dss.gateway.peers.primaries import Primaries, Wanted
from swift_dss.gateway.ports import LocalVersions
from swift_dss.gateway.queue import BEGINNING, DeleteJob
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

    :param jobs: hears when a delete may go
    """

    def __init__(self, around: Around, local: LocalVersions,
                 primaries: Primaries, jobs: Jobs) -> None:
        self._conf = around.conf
        self._local = local
        self._jobs = jobs
        self._queue = jobs.queue
        self._primaries = primaries
        self._metrics = around.metrics
        self._logger = around.logger
        self._retry = jobs.backoff
        self._clock = around.clock
        self._trusted = around.trusted
        looper = Looper('dss-agree', self._try_look, around.stopping)
        self.start = looper.start
        self.stop = looper.stop
        self.kick = looper.kick

    def look(self) -> float:
        """Ask about due rows; seconds until there may be more."""
        now = self._clock.wall()
        jobs = self._queue.due_deletes(now, _AT_ONCE, agreed=False)
        if jobs:
            self._judge(jobs, now)
        if len(jobs) == _AT_ONCE:
            return 0.0
        following = self._queue.next_question()
        if following is None:
            return _IDLE_SECONDS
        return min(_IDLE_SECONDS, max(0.05, following - self._clock.wall()))

    def _judge(self, jobs: Sequence[DeleteJob], now: float) -> None:
        answers = self._primaries.ask([
            Wanted(job.version, self._name(job)) for job in jobs])
        dead = [job.s3_key for job, said in zip(jobs, answers)
                if of_key(job.version.timestamp, said, self._trusted.wall(),
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
            self._jobs.due.ring()

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

    def __init__(self, around: Around, client: S3Client,
                 local: LocalVersions, book: Book, jobs: Jobs,
                 remover: Remover) -> None:
        self._jobs = jobs
        self._client = client
        self._local = local
        self._book = book
        self._queue = jobs.queue
        self._remover = remover
        self._metrics = around.metrics

    def run(self, job: DeleteJob) -> None:
        """Delete a version's key, or mark it dead in its bundle. Idempotent;
        see :meth:`remove`.
        """
        if not self._buries(job):
            self.remove(job)
            self._book.let_go(job.version)
            return
        # It has no key of its own: a mark in its bundle is all there is.
        self._jobs.settle(upload.version for upload
                          in self._queue.uploads_of(job.version.key))
        self._queue.finish_delete(job.s3_key)

    def _buries(self, job: DeleteJob) -> bool:
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

    def remove(self, job: DeleteJob) -> DeleteOutcome:
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
        self._remover.remove(job.s3_key)
        self._queue.finish_delete(job.s3_key)
        steps.reached('delete.done')
        return DeleteOutcome.DELETED

    def _abort_listed(self, key: str) -> None:
        try:
            for upload_id in self._client.uploads_of(key):
                self._client.abort(key, upload_id)
        except S3Rejected:
            self._metrics.count('gateway.leftovers_unlisted')
