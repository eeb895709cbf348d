"""One job of the queue, from its claim to its end, in a worker's thread."""

from __future__ import annotations

import threading
from typing import Tuple

from swift_dss.core.errors import DssError, RemoteUnavailable
from swift_dss.gateway.around import Around
from swift_dss.gateway.collect.keys import Deletions
from swift_dss.gateway.link import wan
from swift_dss.gateway.queue import UploadJob
from swift_dss.gateway.up.deletes import Deleter
from swift_dss.gateway.up.jobs import Job, Jobs, text_of
from swift_dss.gateway.up.offers import Offers
from swift_dss.gateway.up.parking import Parking
from swift_dss.gateway.up.upload import Outcome, Uploader

#: Workers for deletes, apart from uploads so that neither starves.
DELETES = 2


class Uploads:
    """Brings a version to S3, in a bundle or under a key of its own, one per
    call, in any thread.

    :param deletions: get versions that are obsolete by now
    """

    def __init__(self, around: Around, jobs: Jobs, offers: Offers,
                 parking: Parking, uploader: Uploader,
                 deletions: Deletions) -> None:
        self._jobs = jobs
        self._offers = offers
        self._parking = parking
        self._uploader = uploader
        self._deletions = deletions
        self._table = around.table
        self._metrics = around.metrics
        self._logger = around.logger

    def run(self, job: UploadJob) -> None:
        """Do a job that was claimed. Its claim ends, unless this raises.

        :raises DssError: S3, or our side; try later
        """
        may_send = self._offers.may_send(job)
        outcome = None
        local = self._offers.described(job)
        if local is not None:
            if not self._offers.may_leave(local):
                self._jobs.drop([job])
                return
            outcome = self._parking.takes(
                self._offers.of(job, local), self._table())
        if outcome is None:
            outcome = self._uploader.run(job, may_send)
            if outcome in (Outcome.UPLOADED, Outcome.FOUND):
                self._proven()
        self._metrics.count('gateway.upload.%s' % outcome.value)
        if outcome is Outcome.WAITING:
            self._jobs.wait([job])
            return
        if outcome is Outcome.PARKED:
            return  # its row stays until the bundle is proven
        if outcome is Outcome.UPLOADED and local is not None:
            self._parking.went_up(local)
            self._jobs.follow(job.version)
        if outcome is Outcome.OBSOLETE:
            self._deletions.delete([(job.version, job.partition)])
        if outcome in (Outcome.OBSOLETE, Outcome.GONE):
            self._jobs.drop([job])
        else:
            self._jobs.finish([job])

    def _proven(self) -> None:
        recovery = self._jobs.standing.proven()
        if recovery.keeps_again:
            self._logger.info('gateway: S3 keeps uploads again')
        if recovery.retry_now:
            self._jobs.try_again()


class Worker:
    """Does jobs, one per call, in any thread."""

    def __init__(self, around: Around, jobs: Jobs, uploads: Uploads,
                 deleter: Deleter) -> None:
        self._jobs = jobs
        self._uploads = uploads
        self._deleter = deleter
        self._clock = around.clock
        self._metrics = around.metrics
        self._logger = around.logger
        self._stopping = around.stopping

    def run(self, job: Job) -> None:
        """Do a job that was claimed, and end its claim. Never raises."""
        try:
            if isinstance(job, UploadJob):
                with wan.working_for(wan.upload(job.class_id)):
                    self._uploads.run(job)
            else:
                self._deleter.run(job)
                self._metrics.count('gateway.deletes')
        except DssError as err:
            self._failed(job, err)
        except Exception as err:
            self._logger.exception('gateway: %s failed', job.version.key)
            self._failed(job, DssError(type(err).__name__))
        finally:
            self._jobs.release([job])

    def _failed(self, job: Job, err: DssError) -> None:
        if self._stopping.is_set():
            return
        at = self._jobs.again_at(job, err)
        try:
            if isinstance(job, UploadJob):
                self._jobs.retry(job, err, at)
            else:
                self._jobs.queue.retry_delete(job.s3_key, at, text_of(err))
        except DssError as queue_err:
            # The row is still due: this worker waits in its stead, or a
            # full disk would make us hammer S3.
            self._logger.error('gateway: %s', queue_err)
            self._stopping.wait(at - self._clock.wall())
        kind = 'upload' if isinstance(job, UploadJob) else 'delete'
        self._metrics.count('gateway.%s_failed' % kind)
        self._metrics.count('gateway.%s' % err.counter)
        level = (self._logger.warning if isinstance(err, RemoteUnavailable)
                 else self._logger.error)
        level('gateway: %s of %s on %s: %s; next try in %.0f s', kind,
              job.version.key, job.version.device, text_of(err),
              at - self._clock.wall())


class Crew:
    """The workers, and how many are at it. Thread-safe."""

    def __init__(self, around: Around, jobs: Jobs, worker: Worker) -> None:
        self._jobs = jobs
        self._worker = worker
        self._counting = threading.Lock()
        self._uploading = 0
        self._deleting = 0
        #: They also do repairs that readers ask for.
        self.workers = around.pool(around.conf.uploads + DELETES, 'dss-s3')

    def finish(self) -> None:
        """Wait for all. The caller MUST have stopped the dispatcher."""
        self.workers.shutdown(wait=True)

    def at_work(self) -> Tuple[int, int]:
        """(uploads, deletes) that workers have."""
        with self._counting:
            return self._uploading, self._deleting

    def submit(self, job: Job) -> None:
        """Have a worker do a job that was claimed."""
        self._count(job, 1)
        self.workers.submit(self._work, job)

    def _work(self, job: Job) -> None:
        try:
            self._worker.run(job)
        finally:
            self._count(job, -1)
            self._jobs.due.ring()

    def _count(self, job: Job, change: int) -> None:
        with self._counting:
            if isinstance(job, UploadJob):
                self._uploading += change
            else:
                self._deleting += change
