"""Small versions out of the queue and into the book, many at a time.

The fixed cost of an upload (a look at the class, a transaction for the queue's
row, one for the book's) would be most of the cost of a small version. So a
thread of its own takes rows of bundled classes by the hundred. It needs no S3:
versions queued during an outage are ready to be sent when S3 is back.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import (
    Callable, Iterable, List, NamedTuple, Optional, Sequence, Set)

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId
from swift_dss.gateway.looper import Looper
from swift_dss.gateway.ports import LocalVersion, Logger, Metrics
from swift_dss.gateway.queue import Queue, UploadJob
from swift_dss.gateway.up.bundler import Bundler, Offer
from swift_dss.gateway.up.upload import Outcome

#: Rows of one transaction.
_AT_ONCE = 256
#: It looks at least this often.
_IDLE_SECONDS = 10.0


class Jobs(NamedTuple):
    """The gateway's functions for the parker.

    :param claim: takes the jobs of these that no other thread has
    :param release: gives jobs back
    :param described: a job's version; None if only its upload can tell
    :param may_send: whether it is this device's turn
    :param is_first: whether its turn is before all others'
    :param wanted_remote: whether the version may go to S3
    :param look_again_at: when to check again if another replica has sent it
    :param left_alone: notes that some rows are left for single uploads
    """

    claim: Callable[[Sequence[UploadJob]], List[UploadJob]]
    release: Callable[[Iterable[UploadJob]], None]
    described: Callable[[UploadJob], Optional[LocalVersion]]
    may_send: Callable[[UploadJob], bool]
    is_first: Callable[[UploadJob], bool]
    wanted_remote: Callable[[LocalVersion], bool]
    look_again_at: Callable[[UploadJob], float]
    left_alone: Callable[[], None]


class Parker:
    """One thread that parks due versions.

    :param table: the class table in force
    """

    def __init__(self, jobs: Jobs, queue: Queue, bundler: Bundler,
                 table: Callable[[], ClassTable], metrics: Metrics,
                 logger: Logger, stopping: threading.Event,
                 now: Callable[[], float]) -> None:
        self._jobs = jobs
        self._queue = queue
        self._bundler = bundler
        self._table = table
        self._metrics = metrics
        self._logger = logger
        self._stopping = stopping
        self._now = now
        self._looper = Looper('dss-park', self.look, stopping)
        self.start = self._looper.start
        self.stop = self._looper.stop
        self.kick = self._looper.kick

    def park(self) -> int:
        """Park some due versions; how many rows it settled."""
        done = 0
        coming: Set[int] = set()
        table = self._table()
        for class_id in self._queue.due_classes(self._now()):
            if not table.spec(class_id).bundle or self._stopping.is_set():
                continue
            self._bundler.let_late_go_first()
            rows = self._queue.due_uploads(
                self._now(), _AT_ONCE, class_id, alone=False)
            if len(rows) == _AT_ONCE:
                coming.add(class_id)
            jobs = self._jobs.claim(rows)
            try:
                with self._bundler.baton():
                    self._park(jobs, table)
            finally:
                self._jobs.release(jobs)
            done += len(jobs)
        self._bundler.coming = frozenset(coming)
        return done

    def _park(self, jobs: List[UploadJob], table: ClassTable) -> None:
        offers: List[Offer] = []
        alone: List[VersionId] = []
        finished: List[VersionId] = []
        waiting: List[UploadJob] = []
        for job in jobs:
            local = self._jobs.described(job)
            if local is None:
                alone.append(job.version)
            elif not self._jobs.wanted_remote(local):
                finished.append(job.version)
            else:
                offers.append(Offer(job, local, self._jobs.may_send(job),
                                    self._jobs.is_first(job)))
        outcomes = self._bundler.take_all(offers, table)
        self._count(outcomes)
        for offer, outcome in zip(offers, outcomes):
            if outcome is None:
                alone.append(offer.job.version)
            elif outcome is Outcome.FOUND:
                finished.append(offer.job.version)
            elif outcome is Outcome.WAITING:
                waiting.append(offer.job)
        self._end(finished, alone, waiting)

    def _end(self, finished: List[VersionId], alone: List[VersionId],
             waiting: List[UploadJob]) -> None:
        if waiting:
            self._queue.wait((job.version, self._jobs.look_again_at(job))
                             for job in waiting)
        if finished:
            self._queue.finish_uploads(finished)
        if alone:
            self._queue.go_alone(alone)
            self._jobs.left_alone()

    def _count(self, outcomes: Iterable[Optional[Outcome]]) -> None:
        for outcome, number in Counter(outcomes).items():
            if outcome is not None:
                self._metrics.count('gateway.upload.%s' % outcome.value,
                                    number)

    def look(self) -> float:
        """Park due versions; seconds until there may be more.

        Logs failures, and never raises.
        """
        try:
            return 0.0 if self.park() else self._until_due()
        except DssError as err:
            self._logger.error('gateway: parking: %s', err)
        except Exception:
            # It is logged, and looked at again: uploads must go on.
            self._logger.exception('gateway: parking')
        self._metrics.count('gateway.park_errors')
        return _IDLE_SECONDS

    def _until_due(self) -> float:
        now = self._now()
        following = self._queue.next_due(now)
        if following is None:
            return _IDLE_SECONDS
        return min(_IDLE_SECONDS, max(0.05, following - now))
