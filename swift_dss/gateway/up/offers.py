"""The facts about a version that its upload needs before S3 is asked."""

from __future__ import annotations

from typing import NamedTuple, Optional

from swift_dss.core.errors import DssError
from swift_dss.gateway.peers.succession import Succession
from swift_dss.gateway.ports import LocalVersion, LocalVersions, TableSource
from swift_dss.gateway.queue import UploadJob


class Offer(NamedTuple):
    """A version that may share an S3 object with others.

    :param may_send: False only looks whether another replica did it
    :param is_first: it is this device's turn before all others'
    """

    job: UploadJob
    local: LocalVersion
    may_send: bool
    is_first: bool


class Offers:
    """Looks at versions that are to go up. Thread-safe.

    :param table: the class table in force
    """

    def __init__(self, local: LocalVersions, table: TableSource,
                 line: Succession) -> None:
        self._local = local
        self.table = table
        self._line = line

    def described(self, job: UploadJob) -> Optional[LocalVersion]:
        """A job's version; None if only its upload can tell."""
        try:
            return self._local.describe(job.version, job.partition)
        except DssError:
            return None  # the uploader handles the cause

    def may_leave(self, local: LocalVersion) -> bool:
        """See :meth:`ClassTable.may_leave`."""
        return self.table().may_leave(local.class_ids)

    def may_send(self, job: UploadJob) -> bool:
        """True if it is this device's turn."""
        return self._line.may_send(job.version, job.first_seen)

    def of(self, job: UploadJob, local: LocalVersion) -> Offer:
        """The facts about a job that the bundler needs."""
        return Offer(job, local, self.may_send(job),
                     self._line.turn_after(job.version) == 0)
