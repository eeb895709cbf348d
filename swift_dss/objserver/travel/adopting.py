"""A lost fragment whose twin lies in S3 comes back as a stub of it.

The reconstructor rebuilds a fragment from several others, and would read each
stub of them from S3. But S3 has the lost fragment, too. So the sender names
each of its stubs in a line before the offer (``sending.hinted``). A receiver
that lacks its fragment asks S3 for it and writes the stub before it answers.
Then nothing is missing, and nothing is rebuilt.

A fragment is under its own key, or in a bundle that a lost record of this node
has named: the daemon's book of bundles knows that. If S3 has no such key, or
other bytes under it, or if a stub of it was put aside here, the fragment is
rebuilt as ever. If the answer is unknown, because S3 is slow or the daemon has
just begun, a later session asks again; if it stays unknown for long, the
fragment is rebuilt from other servers' local bytes.

If the sender's stub is in a bundle, the lost one most likely is. If the book
does not know the bundle, another node may have the stub, and brings it by
itself since the ring changed. So the fragment waits for a while, and S3 is not
asked for its key before that is over.
"""

from __future__ import annotations

import enum
import os
import time
from collections import OrderedDict
from typing import Any, Dict, NamedTuple, Tuple

from swift.common.exceptions import (
    DiskFileDeleted, DiskFileError, DiskFileNotExist)
from swift.common.utils import Timestamp, split_path

from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteUnavailable, VersionGone)
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
#: A rebuild waits for so long for an S3 that does not answer, and for a stub
#: that another node may bring.
_PATIENCE_SECONDS = 300.0
#: Fragments that wait for another node, 250 bytes each; others do not wait.
_MAX_WAITING = 65536
#: Metadata that a data file has from its own PUT, and a record from a later
#: POST.
_POSTED = ('X-Delete-At', 'Content-Type-Timestamp')
#: Device, partition and policy.
Place = Tuple[str, str, int]


class Answer(enum.Enum):
    """The outcome of a question about a fragment.

    ``SETTLED``  it is here now, or has to be rebuilt
    ``SILENT``   S3 could not be asked
    ``ABSENT``   another node may bring it
    """

    SETTLED = 'settled'
    SILENT = 'silent'
    ABSENT = 'absent'


class Wanted(NamedTuple):
    """A fragment that a session offers, and that may be in S3.

    :param waits: for another node that may bring it
    """

    device: str
    partition: str
    policy: Any
    object_hash: str
    timestamp: Timestamp
    frag_index: int
    waits: bool = False


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
        #: Since when a fragment waits for its stub, by its object's hash.
        self._absent: OrderedDict[Tuple[Place, str], float] = OrderedDict()

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

    def heard(self, place: Place, object_hash: str,
              answer: Answer) -> bool:
        """Note an answer.

        :returns: False if the object is to wait for another one
        """
        now = time.monotonic()
        if answer is Answer.SILENT:
            since = self._silent.setdefault(place, now)
            if len(self._silent) > _MAX_SESSIONS:
                self._silent.popitem(last=False)
            return now - since >= _PATIENCE_SECONDS
        self._silent.pop(place, None)
        if answer is Answer.ABSENT:
            self._absent.setdefault((place, object_hash), now)
            return False
        self.came(place, object_hash)
        return True

    def has_waited(self, place: Place, object_hash: str) -> bool:
        """True if an absent fragment has waited for long enough, or if there
        is no room to wait."""
        now = time.monotonic()
        since = self._absent.get((place, object_hash))
        if since is not None:
            return now - since >= _PATIENCE_SECONDS
        if len(self._absent) < _MAX_WAITING:
            return False
        oldest = next(iter(self._absent))
        if now - self._absent[oldest] < _PATIENCE_SECONDS:
            return True
        del self._absent[oldest]
        return False

    def came(self, place: Place, object_hash: str) -> None:
        """A fragment does not wait any more. Idempotent."""
        self._absent.pop((place, object_hash), None)

    def was_put_off(self, place: Place, object_hash: str) -> bool:
        """True of the line right behind the hint that was put off; any
        other line forgets the hint."""
        return self._put_off.pop(place, None) == object_hash


def adopt(manager: Any, wanted: Wanted) -> Answer:
    """Write a stub of the fragment, unless the fragment is here or S3 lacks
    it. Blocks only the green thread.
    """
    if _is_here(manager, wanted):
        return Answer.SETTLED
    logger = manager.logger
    version = VersionId(
        wanted.device, int(wanted.policy), wanted.object_hash,
        wanted.timestamp.internal, wanted.frag_index)
    node = manager.dss_node
    if _was_put_aside(node.device_path(wanted.device), version):
        logger.info('dss: %s is to be rebuilt: what S3 has of it was found '
                    'wrong here', version.key)
        logger.increment('dss.ssync.not_adopted')
        return Answer.SETTLED
    try:
        _write(manager, wanted, ask_for_proof(
            node.sockets(wanted.device),
            proof.ProofRequest(version, wanted.partition,
                               packed=wanted.waits),
            node.conf.io.remote_deadline_seconds))
        logger.increment('dss.ssync.adopted')
    except RemoteUnavailable as err:
        logger.info('dss: S3 could not be asked for %s: %s', version.key, err)
        logger.increment('dss.ssync.adoption_silent')
        return Answer.SILENT
    except (DssError, DiskFileError, ValueError) as err:
        if wanted.waits and isinstance(err, VersionGone):
            logger.increment('dss.ssync.adoption_waits')
            return Answer.ABSENT
        logger.info('dss: %s is to be rebuilt, not found in S3: %s',
                    version.key, err)
        logger.increment('dss.ssync.not_adopted')
    return Answer.SETTLED


def _is_here(manager: Any, wanted: Wanted) -> bool:
    """True if this fragment, or something newer, is on the device."""
    try:
        disk_file = manager.dss_diskfile_from_hash(
            wanted.device, wanted.partition, wanted.object_hash,
            wanted.policy, frag_index=wanted.frag_index, open_expired=True)
        with disk_file.open():
            newest = disk_file.data_timestamp
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
