"""Stubs that other nodes send here, proven before they are written.

The record is all that comes. The tier daemon asks S3 for the version; until
S3 has answered, the version is refused and nothing else of the session. A
fragment that is to be rebuilt from stubs is not rebuilt at all: S3 is asked
for the fragment itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swift.common.swob import (
    HTTPServiceUnavailable, HTTPUnprocessableEntity)
from swift.common.utils import Timestamp

from swift_dss.core.errors import DamagedRecord, DssError
from swift_dss.core.residency import Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.objserver.fetch import ask_for_proof
from swift_dss.wire import names
from swift_dss.wire.records import proof, residency as record

_REPLICATION_HEADERS = 'X-Backend-Replication-Headers'
#: Which fragment it is, in metadata and headers.
FRAG_INDEX = 'X-Object-Sysmeta-Ec-Frag-Index'


@dataclass(frozen=True)
class Arriving:
    """A version of which no byte comes, since S3 has it whole.

    :param residency: all of it in S3; proven
    :param etag: MD5 of the version
    """

    residency: Residency
    etag: str

    @property
    def content_length(self) -> int:
        """Bytes of the version."""
        return self.residency.content_length


def receive(request: Any, disk_file: Any) -> Arriving:
    """Read the record at the start of a PUT's body, and have it proven.

    After it the request is one for the version: its own length, and no
    header of ours that would be stored.

    :raises HTTPException: 422: it is no stub; 503: S3 did not prove it
    """
    logger = disk_file._logger
    try:
        record = _read_record(request)
        etag = request.headers.get('Etag', '').strip('"').lower()
        if record.tiers != Tier.REMOTE or not etag or \
                request.headers.pop(names.BACKEND_STUB) != str(
                    record.content_length):
            raise DamagedRecord('stub: not of this version')
    except (DamagedRecord, KeyError) as err:
        logger.warning('dss: %s: %s', request.path, err)
        raise HTTPUnprocessableEntity(request=request) from err
    version = _version_of(request, disk_file)
    try:
        reply = _ask(disk_file, proof.ProofRequest(
            version, disk_file.dss_partition, etag, record))
    except DssError as err:
        logger.warning('dss: the stub %s is refused for now: %s',
                       request.path, err)
        logger.increment('dss.ssync.stubs_refused')
        raise HTTPServiceUnavailable(request=request) from err
    logger.increment('dss.ssync.stubs')
    disk_file.manager.dss_adoptions.came(
        (disk_file.dss_device, str(disk_file.dss_partition),
         int(disk_file.policy)), disk_file.dss_hash)
    request.headers['Content-Length'] = str(record.content_length)
    request.headers[_REPLICATION_HEADERS] = ' '.join(
        name for name in request.headers.get(
            _REPLICATION_HEADERS, '').split()
        if name.lower() != names.BACKEND_STUB.lower())
    assert reply.residency is not None
    return Arriving(reply.residency, etag)


def _read_record(request: Any) -> Residency:
    source = request.environ['wsgi.input']
    length = proof.record_bytes(_exactly(source, proof.HEAD_BYTES))
    return record.decode(_exactly(source, length))


def _exactly(source: Any, length: int) -> bytes:
    raw = b''
    while len(raw) < length:
        data = source.read(length - len(raw))
        if not data:
            break
        raw += data
    return raw


def _version_of(request: Any, disk_file: Any) -> VersionId:
    index = request.headers.get(FRAG_INDEX)
    return VersionId(
        disk_file.dss_device, int(disk_file.policy), disk_file.dss_hash,
        Timestamp(request.headers['X-Timestamp']).internal,
        None if index is None else int(index))


def _ask(disk_file: Any, request: proof.ProofRequest) -> proof.ProofReply:
    node = disk_file.manager.dss_node
    return ask_for_proof(node.sockets(disk_file.dss_device), request,
                         node.conf.io.remote_deadline_seconds)
