"""Small versions out of the queue and into the book, many at a time.

The fixed cost of an upload (a look at the class, a transaction for the queue's
row, one for the book's) would be most of the cost of a small version. So a
thread of its own takes rows of bundled classes by the hundred. It needs no S3:
versions queued during an outage are ready to be sent when S3 is back.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterable, List, Optional, Set

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import DssError
from swift_dss.gateway.around import Around
from swift_dss.gateway.looper import Looper
from swift_dss.gateway.queue import UploadJob
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.gateway.up.offers import Offer, Offers
from swift_dss.gateway.up.parking import Parking
from swift_dss.gateway.up.upload import Outcome

#: Rows of one transaction.
_AT_ONCE = 256
#: It looks at least this often.
_IDLE_SECONDS = 10.0


class Parker:
    """One thread that parks due versions."""

    def __init__(self, around: Around, jobs: Jobs, parking: Parking,
                 offers: Offers) -> None:
        self._jobs = jobs
        self._queue = jobs.queue
        self._parking = parking
        self._offers = offers
        self._metrics = around.metrics
        self._logger = around.logger
        self._stopping = around.stopping
        self._clock = around.clock
        looper = Looper('dss-park', self.look, around.stopping,
                        jobs.parkable)
        self.start = looper.start
        self.stop = looper.stop

    def park(self) -> int:
        """Park some due versions; how many rows it settled."""
        done = 0
        coming: Set[int] = set()
        table = self._offers.table()
        for class_id in self._queue.due_classes(self._clock.wall()):
            if not table.spec(class_id).bundle or self._stopping.is_set():
                continue
            self._parking.let_late_go_first()
            rows = self._queue.due_uploads(
                self._clock.wall(), _AT_ONCE, class_id, alone=False)
            comes = {class_id} if len(rows) == _AT_ONCE else set()
            coming |= comes
            # Before these wait: how large a bundle is to be depends on it.
            self._parking.coming = self._parking.coming - {class_id} | comes
            jobs = self._jobs.claim(rows)
            try:
                with self._parking.baton():
                    self._park(jobs, table)
            finally:
                self._jobs.release(jobs)
            done += len(jobs)
        self._parking.coming = frozenset(coming)
        return done

    def _park(self, jobs: List[UploadJob], table: ClassTable) -> None:
        offers: List[Offer] = []
        alone: List[UploadJob] = []
        staying: List[UploadJob] = []
        for job in jobs:
            local = self._offers.described(job)
            if local is None:
                alone.append(job)
            elif not self._offers.may_leave(local):
                staying.append(job)
            else:
                offers.append(self._offers.of(job, local))
        outcomes = self._parking.take_all(offers, table)
        self._count(outcomes)

        def ended(outcome: Optional[Outcome]) -> List[UploadJob]:
            return [offer.job for offer, said in zip(offers, outcomes)
                    if said is outcome]
        self._jobs.wait(ended(Outcome.WAITING))
        self._jobs.drop(staying)
        self._jobs.finish(ended(Outcome.FOUND))
        self._jobs.leave_alone(alone + ended(None))

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
        now = self._clock.wall()
        following = self._queue.next_due(now)
        if following is None:
            return _IDLE_SECONDS
        return min(_IDLE_SECONDS, max(0.05, following - now))
