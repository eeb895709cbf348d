"""When passes over the bucket are made in the background."""

from __future__ import annotations

from swift_dss.core.errors import DssError
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.collect.keys import Collector, Wish
from swift_dss.gateway.link.breaker import Breaker, BreakerState
from swift_dss.gateway.looper import Looper
from swift_dss.gateway.queue import Queue

#: Marks in the queue: everything was looked at since it is new; when the
#: last pass ended.
RECONCILED, COLLECTED_AT = 'reconciled', 'collected_at'
#: After a boot the object servers of the cluster come up first.
_SETTLED_SECONDS = 60.0
#: Waits before a pass that could not be ended is tried again.
_AGAIN_SECONDS, _MOST_SECONDS = 60.0, 3600.0
_IDLE_SECONDS = 10.0


class Rounds:
    """One thread that makes a pass when it is due.

    :param queue: keeps marks for as long as it lasts
    :param book: of bundles; a new one knows none that others do not keep
    """

    def __init__(self, around: Around, collector: Collector, queue: Queue,
                 book: Book, breaker: Breaker) -> None:
        self._conf = around.conf
        self._collector = collector
        self._queue = queue
        self._book = book
        self._breaker = breaker
        self._logger = around.logger
        self._metrics = around.metrics
        self._clock = around.clock
        self._failures = 0
        self._not_before = around.clock.wall() + _SETTLED_SECONDS
        looper = Looper('dss-collect', self._try_look, around.stopping)
        self.start = looper.start
        self.stop = looper.stop

    @property
    def is_reconciled(self) -> bool:
        """False as long as deletes of a lost queue, or dead members of a lost
        book, may be forgotten.
        """
        return bool(self._queue.marked(RECONCILED)) and \
            self._book.is_looked_through

    def look(self) -> float:
        """Make a pass if it is due; seconds until there may be another."""
        now = self._clock.wall()
        if now < self._not_before or \
                self._breaker.state is not BreakerState.CLOSED:
            return _IDLE_SECONDS
        if not self.is_reconciled:
            wish = Wish(everything=True, mine=True, paced=True)
        elif self._conf.gc_interval_seconds and \
                self._queue.marked(COLLECTED_AT) \
                + self._conf.gc_interval_seconds <= now:
            wish = Wish(paced=True)
        else:
            return _IDLE_SECONDS
        try:
            counts = self._collector.run(wish)
            if not self.is_reconciled:
                self._queue.mark(RECONCILED, 1.0)
                self._book.looked_through()
            self._queue.mark(COLLECTED_AT, self._clock.wall())
        except DssError as err:
            self._failures += 1
            self._not_before = now + min(
                _MOST_SECONDS, _AGAIN_SECONDS * 2.0 ** (self._failures - 1))
            self._logger.warning('gateway: looking for dead keys: %s', err)
            return _IDLE_SECONDS
        self._failures = 0
        self._logger.info(
            'gateway: looked at %d versions and %d bundles in S3: %d keys '
            'removed, %d held, %d deletes noted again', counts.versions,
            counts.bundles, counts.removed, counts.held, counts.requeued)
        return _IDLE_SECONDS

    def _try_look(self) -> float:
        try:
            return self.look()
        except Exception:
            # It is logged, and tried again.
            self._logger.exception('gateway: looking for dead keys')
            self._metrics.count('gateway.collect_errors')
            return _IDLE_SECONDS
