"""Plans of the parts of versions: S3 is asked once for all that wait."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, wait
from typing import Callable, Dict

from swift_dss.core.version import VersionId
from swift_dss.gateway.down.flights import LOOK_SECONDS
from swift_dss.gateway.down.source import Plan, Source
from swift_dss.gateway.link import wan
from swift_dss.gateway.link.fair_pool import FairPool
from swift_dss.gateway.ports import LocalVersion


class Plans:
    """Single flight of the question for a version's parts. Thread-safe.

    :param leaders: the threads that ask S3
    """

    def __init__(self, source: Source, leaders: FairPool) -> None:
        self._source = source
        self._leaders = leaders
        self._lock = threading.RLock()
        self._asked: Dict[VersionId, Future[Plan]] = {}

    def wait_for(self, local: LocalVersion, deadline: float,
                 look: Callable[[], None]) -> Plan:
        """The parts of the version.

        :param look: called while S3 does not answer; raises if waiting is no
            use
        :raises TimeoutError: no answer until the reader's deadline
        """
        if self._source.knows(local):
            return self._source.plan(local)
        asked = self._ask(local)
        while not asked.done():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError('S3 did not say in time how %s is cut'
                                   % local.version.key)
            wait([asked], min(left, LOOK_SECONDS))
            if not asked.done():
                look()
        return asked.result()

    def abandon(self) -> None:
        """S3 was found dead: later readers ask again."""
        with self._lock:
            self._asked.clear()

    def _ask(self, local: LocalVersion) -> Future[Plan]:
        with self._lock:
            asked = self._asked.get(local.version)
            if asked is None:
                asked = self._leaders.submit(
                    wan.fill(local.class_map.rest), self._source.plan,
                    local)
                self._asked[local.version] = asked
                asked.add_done_callback(
                    lambda done: self._forget(local.version, done))
            return asked

    def _forget(self, version: VersionId, asked: Future[Plan]) -> None:
        with self._lock:
            if self._asked.get(version) is asked:
                del self._asked[version]
