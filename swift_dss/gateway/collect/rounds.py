"""When passes over the bucket are made in the background."""

from __future__ import annotations

from typing import Any, Callable

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DssError
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.collect.keys import Collector, Wish

#: Marks in the queue: everything was looked at since it is new; when the
#: last pass ended.
RECONCILED, COLLECTED_AT = 'reconciled', 'collected_at'
#: After a boot the object servers of the cluster come up first.
_SETTLED_SECONDS = 60.0
#: Waits before a pass that could not be ended is tried again.
_AGAIN_SECONDS, _MOST_SECONDS = 60.0, 3600.0
_IDLE_SECONDS = 10.0


class Rounds:
    """When passes are made in the background.

    :param mark, marked: numbers that last as long as the queue does
    :param book: of bundles; a new one knows none that others do not keep
    :param is_up: S3 answers
    """

    def __init__(self, conf: GatewayConf, collector: Collector,
                 mark: Callable[[str, float], None],
                 marked: Callable[[str], float], book: Book,
                 is_up: Callable[[], bool], logger: Any,
                 now: Callable[[], float]) -> None:
        self._conf = conf
        self._collector = collector
        self._mark = mark
        self._marked = marked
        self._book = book
        self._is_up = is_up
        self._logger = logger
        self._now = now
        self._failures = 0
        self._not_before = now() + _SETTLED_SECONDS

    @property
    def is_reconciled(self) -> bool:
        """False as long as deletes of a lost queue, or dead members of a lost
        book, may be forgotten.
        """
        return bool(self._marked(RECONCILED)) and \
            self._book.is_looked_through

    def look(self) -> float:
        """Make a pass if it is due; seconds until there may be another."""
        now = self._now()
        if now < self._not_before or not self._is_up():
            return _IDLE_SECONDS
        if not self.is_reconciled:
            wish = Wish(everything=True, mine=True, paced=True)
        elif self._conf.gc_interval_seconds and self._marked(COLLECTED_AT) \
                + self._conf.gc_interval_seconds <= now:
            wish = Wish(paced=True)
        else:
            return _IDLE_SECONDS
        try:
            found = self._collector.run(wish)
            if not self.is_reconciled:
                self._mark(RECONCILED, 1.0)
                self._book.looked_through()
            self._mark(COLLECTED_AT, self._now())
        except DssError as err:
            self._failures += 1
            self._not_before = now + min(
                _MOST_SECONDS, _AGAIN_SECONDS * 2.0 ** (self._failures - 1))
            self._logger.warning('gateway: looking for dead keys: %s', err)
            return _IDLE_SECONDS
        self._failures = 0
        self._logger.info(
            'gateway: looked at %d versions and %d bundles in S3: %d keys '
            'removed, %d held, %d deletes noted again', found.versions,
            found.bundles, found.removed, found.held, found.requeued)
        return _IDLE_SECONDS
