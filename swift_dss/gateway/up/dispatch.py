"""The dispatcher: hands due jobs to workers, class by class in fair turns.

Work is *pulled*: rows leave the durable queue only while a worker is free, so
the backlog stays on disk.
"""

from __future__ import annotations

import math
import time
from typing import Dict, Iterator

from swift_dss.gateway.around import Around
from swift_dss.gateway.down.supply import Supply
from swift_dss.gateway.form.prefix import Prefix
from swift_dss.gateway.link import wan
from swift_dss.gateway.link.alarm import Alarm
from swift_dss.gateway.looper import Looper
from swift_dss.gateway.peers.succession import LOOK_SECONDS
from swift_dss.gateway.queue import UploadJob
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.gateway.up.work import DELETES, Crew
from swift_dss.strategy.wan import Flow, Turns, plenty

#: So long after its last upload a worker is kept for the highest class.
_KEEP_SECONDS = 300.0
#: The dispatcher looks at least this often (gauges, clock jumps).
_IDLE_SECONDS = 10.0
#: Gauges of the queue are at most so old.
_PUBLISH_SECONDS = 1.0


class Dispatcher:
    """One thread, and the crew that it hands jobs to."""

    def __init__(self, around: Around, jobs: Jobs, crew: Crew,
                 prefix: Prefix, alarm: Alarm, supply: Supply) -> None:
        self._conf = around.conf
        self._table = around.table
        self._jobs = jobs
        self._queue = jobs.queue
        self._crew = crew
        self._line = jobs.line
        self._prefix = prefix
        self._alarm = alarm
        self._supply = supply
        self._clock = around.clock
        self._metrics = around.metrics
        self._logger = around.logger
        self._standing = jobs.standing
        self._turns = Turns()
        self._top_upload_at = -math.inf
        self._publish_at = -math.inf
        self._looper = Looper('dss-s3-dispatch', self._try_look,
                              around.stopping, jobs.due)
        self.start = self._looper.start

    def stop(self) -> None:
        """Look no more, and let jobs under way end. ``stopping`` MUST be set.
        """
        self._looper.stop()

    def look(self) -> float:
        """Hand out due work; seconds until there may be more."""
        now = self._clock.wall()
        self._line.saw(self._standing.is_up)
        if not self._standing.is_up:
            wait_seconds = self._alarm.probe()
            self._publish()
            return min(wait_seconds, _IDLE_SECONDS)
        self._alarm.beat()
        if not self._prefix.may_write():
            return LOOK_SECONDS
        slots = self._standing.breaker.background_slots(self._conf.uploads)
        uploading, deleting = self._crew.at_work()
        upload_slots = self._standing.slots(slots) - uploading
        delete_slots = min(slots, DELETES) - deleting
        busy = self._jobs.claimed()
        for delete in self._queue.due_deletes(
                now, max(0, delete_slots) and delete_slots + busy,
                agreed=True):
            if delete_slots > 0 and self._jobs.claim_delete(delete):
                self._crew.submit(delete)
                delete_slots -= 1
        if self._standing.trust.is_lost:
            # A version that was never tried tells more than one that S3
            # may have its reasons to refuse.
            upload_slots = self.submit_fairly(
                now, upload_slots, busy, fresh=True)
        upload_slots = self.submit_fairly(now, upload_slots, busy)
        self.push_in_plenty(now, upload_slots, busy)
        self._publish()
        following = self._queue.next_due(now)
        wait_seconds = self._standing.trust.seconds_until_trial() \
            or _IDLE_SECONDS
        if following is not None:
            wait_seconds = min(wait_seconds, following - now)
        return min(_IDLE_SECONDS, max(0.01, wait_seconds))

    def submit_fairly(self, now: float, slots: int, busy: int,
                      fresh: bool = False) -> int:
        """Fill the workers, class by class in fair turns, each class in
        the order in which its uploads became due; slots that are left.

        :param fresh: only with versions that were never tried
        """
        waiting: Dict[Flow, Iterator[UploadJob]] = {}
        table = self._table()
        if slots > 0:
            # The parker takes versions that may share an S3 object.
            jobs_by_flow = {wan.upload(class_id): self._queue.due_uploads(
                now, slots + busy, class_id, fresh,
                True if table.spec(class_id).bundle else None)
                for class_id in self._queue.due_classes(now)}
            waiting = {flow: iter(jobs) for flow, jobs in jobs_by_flow.items()
                       if jobs}
        if not waiting:
            self._turns.rest()
        top = {flow for flow in waiting if wan.is_highest(flow, table)}
        if top:
            self._top_upload_at = now
        # With one worker (the ramp after an outage) none is kept, or
        # nothing would ever succeed and widen it.
        several = slots + self._crew.at_work()[0] > 1
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
            if any(self.take(job) for job in waiting[flow]):
                slots -= 1
            else:
                del waiting[flow]
        return slots

    def push_in_plenty(self, now: float, slots: int, busy: int) -> None:
        """An idle link takes versions before their time has come."""
        after = self._conf.push_idle_after_seconds
        early = self._conf.remote_after_seconds - after
        if not after or early <= 0 or not plenty(
                0, busy + self._supply.counts()[0], self._conf.uploads,
                True):
            return
        for job in self._queue.due_uploads(now + early, max(0, slots),
                                           fresh=True):
            if self.take(job):
                self._metrics.count('gateway.pushed_early')

    def plenty(self) -> bool:
        """True if the link has room for prefetching."""
        return plenty(
            len(self._queue.due_classes(self._clock.wall())),
            self._jobs.claimed() + self._supply.counts()[0],
            self._conf.uploads + self._conf.fills, self._standing.is_up)

    def take(self, job: UploadJob) -> bool:
        """Have a worker do a job, unless another thread has the version."""
        claimed = bool(self._jobs.claim([job]))
        if claimed:
            self._crew.submit(job)
        return claimed

    # -- inside ----------------------------------------------------------

    def _try_look(self) -> float:
        try:
            return self.look()
        except Exception:
            # A full disk or a locked database must not end uploads
            # for good; it is logged, and looked at again.
            self._logger.exception('gateway: cannot take jobs')
            self._metrics.count('gateway.dispatch_errors')
            return _IDLE_SECONDS

    def _publish(self) -> None:
        now = time.monotonic()
        if now < self._publish_at:
            return
        # Counting rows costs more the more there are.
        self._publish_at = now + _PUBLISH_SECONDS
        counts = self._queue.counts()
        self._metrics.gauge('gateway.queued_uploads', counts['uploads'])
        self._metrics.gauge('gateway.queued_deletes', counts['deletes'])
        self._metrics.gauge('gateway.up', float(
            self._standing.is_up and not self._standing.trust.is_lost))
