"""If a version that is on its way to S3 is still wanted there."""

from __future__ import annotations

from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.ports import LocalVersions
from swift_dss.gateway.queue import UploadJob
from swift_dss.gateway.up.jobs import Cancelled, Jobs


class Stopping(DssError):
    """The daemon ends; the job goes on after its next start."""


class StillWanted:
    """Asked before each piece of an upload. Thread-safe."""

    def __init__(self, around: Around, local: LocalVersions,
                 jobs: Jobs) -> None:
        self._stopping = around.stopping
        self._local = local
        self._jobs = jobs

    def check(self, job: UploadJob) -> None:
        """Raise :class:`Cancelled` if the version is obsolete by now.

        :raises Stopping: the daemon ends; parts that S3 has are kept
        """
        if self._stopping.is_set():
            raise Stopping('%s: to be resumed' % job.version.key)
        if self._jobs.is_cancelled(job.version.key) or \
                self.is_obsolete(job.version, job.partition):
            raise Cancelled('%s: overwritten or deleted meanwhile'
                            % job.version.key)

    def is_obsolete(self, version: VersionId, partition: str) -> bool:
        """True if this node has something newer than the version."""
        if not version.device:
            return False  # nowhere on this node
        newest = self._local.newest(version, partition)
        return newest is not None and newest > version.timestamp
