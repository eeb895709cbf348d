"""A handoff asks S3 again before it gives up bytes that are stubs elsewhere.

Swift removes what a node only stands in for once the primaries have it. To
ssync, a primary with a stub has it. But S3 may have lost the stub's key since,
and the bytes here may then be the last ones of the cluster.

So the sender of such a partition names each version of which it has bytes in a
line before the offer (``sending.LEAVING``). A receiver with a stub of it asks
for that line, and this node's daemon asks S3 for the version: once a job,
however many receivers want to know. Where the primaries have the bytes too,
nobody asks. If S3 lacks the version, the daemon sends it again from here.

Until S3 is known to have it, the session fails at its end and the partition
stays. All other objects of it were sent by then.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, Dict, Iterator, Optional, Tuple

from swift.common.exceptions import DiskFileError, DiskFileNotExist
from swift.common.utils import Timestamp

from swift_dss.core.errors import DssError
from swift_dss.core.residency import Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.objserver.fetch import ask_for_proof
from swift_dss.objserver.travel import sending
from swift_dss.wire.records import proof

#: A receiver hangs up after a minute without a word, by default.
_SIGN_OF_LIFE_SECONDS = 10.0
#: Device, partition and policy.
Place = Tuple[str, str, int]
#: An object's hash, a timestamp, and the index of a fragment.
_Version = Tuple[str, str, Optional[int]]


class Notice:
    """A sender's answer to a hint: a POST of an object that is not there.
    A receiver takes its 404 for a success.

    :param fails: without a timestamp, so that the session fails at its end
    """

    account = container = '.dss'
    obj = 'notice'
    data_timestamp = durable_timestamp = Timestamp(1)
    timestamp = Timestamp(2)

    def __init__(self, fails: bool) -> None:
        self._fails = fails

    def open(self) -> Notice:
        """As a diskfile's."""
        return self

    @property
    def content_length(self) -> int:
        """For an earlier release of ours, which asks for data.

        :raises Skipped: the session may succeed: send no PUT
        """
        if not self._fails:
            raise sending.Skipped('nothing is to be sent')
        return 0

    def get_datafile_metadata(self) -> Dict[str, str]:
        """Of a PUT that no server takes."""
        return {}

    def get_metafile_metadata(self) -> Dict[str, str]:
        """The headers of the POST."""
        return {} if self._fails else {
            'X-Timestamp': self.data_timestamp.internal}

    def reader(self) -> Iterator[bytes]:
        """No bytes."""
        return iter(())


class _Job:
    """A partition that may be removed when all sessions of it are over."""

    def __init__(self) -> None:
        #: False of versions that have to stay.
        self.may_go: Dict[_Version, bool] = {}
        self.spoken_at = time.monotonic()


class Partings:
    """The partitions that a process is about to remove."""

    def __init__(self) -> None:
        self._jobs: Dict[Place, _Job] = {}

    @contextlib.contextmanager
    def job(self, place: Place) -> Iterator[None]:
        """While this lasts, the partition is offered in order to remove it.
        One within another, as when Swift's relinker takes two locks of a
        partition, is a part of that one.
        """
        if place in self._jobs:
            yield
            return
        self._jobs[place] = _Job()
        try:
            yield
        finally:
            del self._jobs[place]

    def is_leaving(self, place: Place) -> bool:
        """True within :meth:`job`."""
        return place in self._jobs

    def notice(self, manager: Any, session: sending.Session,
               hint: sending.Hint) -> Notice:
        """The notice for a receiver that has a stub of a version.

        :raises DiskFileNotExist: the receiver needs none
        """
        job = self._jobs.get(session[:3])
        if job is None or not manager.dss_sessions.takes_stubs(session):
            # A stock server asks for each hint, and has whole objects.
            raise DiskFileNotExist()
        version = hint.object_hash, hint.timestamp.internal, session[3]
        if version not in job.may_go:
            job.may_go[version] = _is_in_s3(manager, session, hint)
        fails = not job.may_go[version] and \
            manager.dss_sessions.leave_out(session)
        now = time.monotonic()
        if not fails and now - job.spoken_at < _SIGN_OF_LIFE_SECONDS:
            raise DiskFileNotExist()
        job.spoken_at = now
        return Notice(fails)


def has_bytes(residency: Optional[Residency]) -> bool:
    """True if some bytes of a version are on local tiers."""
    return residency is None or bool(residency.tiers & ~Tier.REMOTE)


def wants(manager: Any, session: sending.Session, policy: Any,
          hint: sending.Hint) -> bool:
    """True if bytes of a version that a sender gives up are not here."""
    device, partition, _, frag_index = session
    try:
        disk_file = manager.dss_diskfile_from_hash(
            device, partition, hint.object_hash, policy,
            frag_index=frag_index, open_expired=True)
        with disk_file.open():
            residency = disk_file.dss_residency
            return bool(disk_file.data_timestamp == hint.timestamp
                        and residency is not None and not residency.is_local)
    except DiskFileError:
        return False


def _is_in_s3(manager: Any, session: sending.Session,
              hint: sending.Hint) -> bool:
    """Blocks only the green thread."""
    device, partition, policy, frag_index = session
    node, logger = manager.dss_node, manager.logger
    version = VersionId(device, policy, hint.object_hash,
                        hint.timestamp.internal, frag_index)
    try:
        ask_for_proof(node.sockets(device), proof.ProofRequest(
            version, partition, leaves=True),
            node.conf.io.remote_deadline_seconds)
    except DssError as err:
        logger.warning('dss: %s stays on %s for now: others have it in S3 '
                       'alone, and %s', version.key, device, err)
        logger.increment('dss.ssync.kept')
        return False
    logger.increment('dss.ssync.given_up')
    return True
