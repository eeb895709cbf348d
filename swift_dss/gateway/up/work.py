"""One job of the queue, from its claim to its end, in a worker's thread."""

from __future__ import annotations

import threading

from swift_dss.core.errors import DssError, RemoteUnavailable
from swift_dss.gateway.link import wan
from swift_dss.gateway.ports import Logger, Metrics
from swift_dss.gateway.queue import DeleteJob, Queue, UploadJob
from swift_dss.gateway.up.bundler import Bundler
from swift_dss.gateway.up.deletes import Deleter
from swift_dss.gateway.up.jobs import Job, Jobs, text_of
from swift_dss.gateway.up.offers import Offers
from swift_dss.gateway.up.orders import Orders
from swift_dss.gateway.up.upload import Outcome, Uploader
from swift_dss.io.workers import Clock


class Worker:
    """Does jobs, one per call, in any thread.

    :param orders: of deletes
    :param stopping: set when the daemon ends
    """

    def __init__(self, jobs: Jobs, queue: Queue, offers: Offers,
                 uploader: Uploader, bundler: Bundler, deleter: Deleter,
                 orders: Orders, clock: Clock, metrics: Metrics,
                 logger: Logger, stopping: threading.Event) -> None:
        self._jobs = jobs
        self._queue = queue
        self._offers = offers
        self._uploader = uploader
        self._bundler = bundler
        self._deleter = deleter
        self._orders = orders
        self._clock = clock
        self._metrics = metrics
        self._logger = logger
        self._stopping = stopping

    def run(self, job: Job) -> None:
        """Do a job that was claimed, and end its claim. Never raises."""
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
            self._jobs.release([job])

    def _upload(self, job: UploadJob) -> None:
        may_send = self._offers.may_send(job)
        outcome = None
        local = self._offers.described(job)
        if local is not None:
            if not self._offers.may_leave(local):
                self._jobs.drop([job])
                return
            outcome = self._bundler.takes(
                self._offers.of(job, local), self._offers.table())
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
            self._bundler.went_up(local)
            self._jobs.follow(job.version)
        if outcome is Outcome.OBSOLETE:
            self._orders.delete([(job.version, job.partition)])
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

    def _delete(self, job: DeleteJob) -> None:
        if not self._bundler.buries(job):
            self._deleter.run(job)
            self._bundler.let_go(job.version)
            return
        # It has no key of its own: a mark in its bundle is all there is.
        self._jobs.settle(upload.version for upload
                          in self._queue.uploads_of(job.version.key))
        self._queue.finish_delete(job.s3_key)

    def _failed(self, job: Job, err: DssError) -> None:
        if self._stopping.is_set():
            return
        at = self._jobs.again_at(job, err)
        try:
            if isinstance(job, UploadJob):
                self._jobs.retry(job, err, at)
            else:
                self._queue.retry_delete(job.s3_key, at, text_of(err))
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
