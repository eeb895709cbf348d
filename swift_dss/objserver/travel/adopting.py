"""A lost fragment whose twin lies in S3 comes back as a stub of it.

The reconstructor rebuilds a fragment from several others, and would read each
stub of them from S3. But the lost fragment has a key of its own in S3. So the
sender names each of its stubs in a line before the offer (``sending.hinted``).
A receiver that lacks its fragment asks S3 for that key and writes the stub
before it answers. Then nothing is missing, and nothing is rebuilt. If S3 has
no such key, or other bytes under it, or if a stub of it was put aside here,
the fragment is rebuilt as ever. If the answer is unknown, because S3 is slow
or the daemon has just begun, a later session asks again; if it stays unknown
for long, the fragment is rebuilt from other servers' local bytes.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import Any, Dict, NamedTuple, Tuple

from swift.common.exceptions import (
    DiskFileDeleted, DiskFileError, DiskFileNotExist)
from swift.common.utils import Timestamp, split_path

from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteUnavailable)
from swift_dss.core.version import VersionId
from swift_dss.io import residency_store
from swift_dss.io.quarantine import Quarantine
from swift_dss.objserver import tags
from swift_dss.objserver.fetch import ask_for_proof
from swift_dss.objserver.travel.arriving import FRAG_INDEX, Arriving
from swift_dss.wire import layout
from swift_dss.wire.records import proof

#: A session asks S3 for so long. The sender waits for all answers at once,
#: a minute by default.
_ASK_SECONDS = 20.0
_MAX_SESSIONS = 1024
#: A rebuild waits for so long for an S3 that does not answer.
_PATIENCE_SECONDS = 300.0
#: Metadata that a data file has from its own PUT, and a record from a later
#: POST.
_POSTED = ('X-Delete-At', 'Content-Type-Timestamp')
#: Device, partition and policy.
Place = Tuple[str, str, int]


class Wanted(NamedTuple):
    """A fragment that a session offers, and that may be in S3."""

    device: str
    partition: str
    policy: Any
    object_hash: str
    timestamp: Timestamp
    frag_index: int


class Adoptions:
    """The questions that sessions of a process may still ask S3.

    A receiver has one session at a time of a partition.
    """

    def __init__(self) -> None:
        self._until: OrderedDict[Place, float] = OrderedDict()
        #: The hash that the next line must offer to be put off.
        self._put_off: OrderedDict[Place, str] = OrderedDict()
        #: Since when S3's answer is unknown.
        self._silent: OrderedDict[Place, float] = OrderedDict()

    def begin(self, place: Place) -> None:
        """A sender has made itself known."""
        self.end(place)
        self._until[place] = time.monotonic() + _ASK_SECONDS
        if len(self._until) > _MAX_SESSIONS:
            self._until.popitem(last=False)

    def end(self, place: Place) -> None:
        """A session is over, however it ended. Idempotent."""
        self._until.pop(place, None)
        self._put_off.pop(place, None)

    def may_ask(self, place: Place) -> bool:
        """False once a session has asked for long enough."""
        return time.monotonic() < self._until.get(place, 0.0)

    def put_off(self, place: Place, object_hash: str) -> None:
        """The next session asks: neither S3 nor other servers are to be
        asked for this object now."""
        self._put_off[place] = object_hash
        self._put_off.move_to_end(place)
        if len(self._put_off) > _MAX_SESSIONS:
            self._put_off.popitem(last=False)

    def heard(self, place: Place, answered: bool) -> bool:
        """Note whether S3 could be asked.

        :returns: False if it could not, and the object is to wait for it
        """
        if answered:
            self._silent.pop(place, None)
            return True
        now = time.monotonic()
        since = self._silent.setdefault(place, now)
        if len(self._silent) > _MAX_SESSIONS:
            self._silent.popitem(last=False)
        return now - since >= _PATIENCE_SECONDS

    def was_put_off(self, place: Place, object_hash: str) -> bool:
        """True of the line right behind the hint that was put off; any
        other line forgets the hint."""
        return self._put_off.pop(place, None) == object_hash


def adopt(manager: Any, wanted: Wanted) -> bool:
    """Write a stub of the fragment, unless the fragment is here or S3 lacks
    it. Blocks only the green thread.

    :returns: False if S3's answer is unknown
    """
    if _is_here(manager, wanted):
        return True
    logger = manager.logger
    version = VersionId(
        wanted.device, int(wanted.policy), wanted.object_hash,
        wanted.timestamp.internal, wanted.frag_index)
    node = manager.dss_node
    if _was_put_aside(node.device_path(wanted.device), version):
        logger.info('dss: %s is to be rebuilt: what S3 has of it was found '
                    'wrong here', version.key)
        logger.increment('dss.ssync.not_adopted')
        return True
    try:
        _write(manager, wanted, ask_for_proof(
            node.sockets(wanted.device),
            proof.ProofRequest(version, wanted.partition),
            node.conf.io.remote_deadline_seconds))
        logger.increment('dss.ssync.adopted')
    except RemoteUnavailable as err:
        logger.info('dss: S3 could not be asked for %s: %s', version.key, err)
        logger.increment('dss.ssync.adoption_silent')
        return False
    except (DssError, DiskFileError, ValueError) as err:
        logger.info('dss: %s is to be rebuilt, not found in S3: %s',
                    version.key, err)
        logger.increment('dss.ssync.not_adopted')
    return True


def _is_here(manager: Any, wanted: Wanted) -> bool:
    """True if this fragment, or something newer, is on the device."""
    try:
        found = manager.dss_diskfile_from_hash(
            wanted.device, wanted.partition, wanted.object_hash,
            wanted.policy, frag_index=wanted.frag_index, open_expired=True)
        with found.open():
            newest = found.data_timestamp
    except DiskFileDeleted as err:
        newest = err.timestamp
    except (DiskFileNotExist, DiskFileError):
        return False
    return bool(newest >= wanted.timestamp)


def _was_put_aside(device_path: str, version: VersionId) -> bool:
    """True if a stub of the fragment lies in the device's quarantine: S3 was
    asked for its bytes then, and had others, or none."""
    folder = os.path.join(device_path, 'quarantined', layout.data_dir_name(
        version.policy), version.object_hash)
    if not os.path.isdir(folder):
        return False
    for held in Quarantine(device_path, version.device).files_of(version):
        try:
            record = residency_store.load(held.path)
        except (OSError, DamagedRecord):
            continue
        if record is not None and record.remote is not None:
            return True
    return False


def _write(manager: Any, wanted: Wanted, reply: proof.ProofReply) -> None:
    metadata: Dict[str, str] = dict(reply.metadata)
    account, container, obj = split_path(
        metadata.get('name', ''), 3, 3, True)
    disk_file = manager.get_diskfile(
        wanted.device, wanted.partition, account, container, obj,
        policy=wanted.policy, frag_index=wanted.frag_index)
    if disk_file.dss_hash != wanted.object_hash or \
            metadata.get(FRAG_INDEX) != str(wanted.frag_index):
        raise DamagedRecord('S3 has another object under its key')
    assert reply.residency is not None
    arriving = Arriving(reply.residency, reply.etag)
    # ssync sends the changes of later POSTs as POSTs.
    if metadata.get('X-Timestamp', '') > wanted.timestamp.internal:
        for name in _POSTED:
            metadata.pop(name, None)
    metadata.update({
        'X-Timestamp': wanted.timestamp.internal, 'ETag': reply.etag,
        'Content-Length': str(arriving.content_length)})
    disk_file.dss_tag(tags.of_metadata(metadata, manager.logger))
    disk_file.dss_arriving = arriving
    writer = disk_file.writer(size=arriving.content_length)
    try:
        writer.open()
        writer.chunks_finished()
        writer.put(metadata)
        writer.commit(wanted.timestamp)
    finally:
        writer.close()
