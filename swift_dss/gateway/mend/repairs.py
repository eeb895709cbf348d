"""Repairs of copies in S3, each while no upload of the version runs."""

from __future__ import annotations

import threading
from concurrent.futures import Executor
from typing import Sequence

from swift_dss.core.errors import DssError, RemoteUnavailable
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.down.fill import Losses
from swift_dss.gateway.form.prefix import Prefix
from swift_dss.gateway.mend.repair import Copy, Repaired, Repairer
from swift_dss.gateway.queue import UploadJob
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.strategy.pauses import Pauses

#: A version that readers found missing is repaired at once, and not again
#: before so long; twice as long each time, and no longer than that. Each
#: version that is remembered takes 500 bytes.
_PAUSE_SECONDS = 30.0
_PAUSE_CAP_SECONDS = 600.0
_REMEMBERED = 10000


class Repairs(Losses):
    """Does repairs, in any thread.

    :param workers: do those that readers ask for
    """

    def __init__(self, around: Around, jobs: Jobs, repairer: Repairer,
                 prefix: Prefix, workers: Executor) -> None:
        self._conf = around.conf
        self._jobs = jobs
        self._repairer = repairer
        self._prefix = prefix
        self._workers = workers
        self.clock = around.clock
        self._metrics = around.metrics
        self._logger = around.logger
        self._stopping = around.stopping
        self._lock = threading.Lock()
        self._pauses: Pauses[VersionId] = Pauses(
            _PAUSE_SECONDS, _PAUSE_CAP_SECONDS, _REMEMBERED)

    def repair(self, copies: Sequence[Copy]) -> Repaired:
        """Repair S3's copy of one version; see :class:`Repairer`.

        :raises RemoteCorrupt: it cannot be, from this node
        :raises DssError: it could not be said, or done, now
        """
        claimed = self._jobs.claim([
            UploadJob(version, partition, 0.0, 0.0)
            for version, partition in copies[:1]])
        if copies and not claimed:
            raise RemoteUnavailable('it is on its way to S3 just now',
                                    self._conf.retry_after_seconds)
        try:
            outcome = self._repairer.repair(copies)
        finally:
            self._jobs.release(claimed)
        self._metrics.count('gateway.repair.%s' % outcome.value)
        return outcome

    def missed(self, version: VersionId, partition: str) -> None:
        """A reader has found that S3 has not got a version: repair it soon.
        """
        if self._stopping.is_set():
            return
        with self._lock:
            may_try = self._pauses.may_try(version, self.clock.monotonic())
        if may_try:
            self._workers.submit(self._try, version, partition)
        else:
            self._metrics.count('gateway.repair_paused')

    def _try(self, version: VersionId, partition: str) -> None:
        try:
            self._prefix.require_for_proof()
            outcome = self.repair([(version, partition)])
        except DssError as err:
            self._metrics.count('gateway.%s' % err.counter)
            return
        except Exception:
            self._logger.exception('gateway: repair of %s', version.key)
            return
        with self._lock:
            self._pauses.worked(version)
        self._logger.warning('gateway: %s on %s was missing in S3: %s',
                             version.key, version.device, outcome.value)
