"""A stub that travels: its form among nodes, and how it is proven.

Between object servers, one body: ``b'DSP1'``, length of the record (u32, big
endian), and the residency record (``wire.residency``), which places all bytes
in S3. None of them comes along.

Between an object server and its tier daemon, over ``fetch.sock``: a JSON
line, answered by one. The daemon asks S3 if it has the version; without a
record it looks for the version under the version's own key. The same line asks
if this node may give up a version that other nodes have as stubs.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Mapping, Optional

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import MAX_EXTENTS
from swift_dss.core.residency import Residency
from swift_dss.core.version import VersionId
from swift_dss.wire.jsonfields import Fields
from swift_dss.wire.records import residency as record

#: The first bytes of a request's line; no fetch begins with them.
PREFIX = b'{"prove"'
_HEAD = struct.Struct('>4sI')
_MAGIC = b'DSP1'
HEAD_BYTES = _HEAD.size
#: Extents of nine bytes each, and three texts.
MAX_RECORD_BYTES = 9 * MAX_EXTENTS + 16384


def encode_stub(residency: Residency) -> bytes:
    """The body.

    :raises ValueError: more than ``MAX_EXTENTS`` extents
    """
    raw = record.encode(residency)
    return _HEAD.pack(_MAGIC, len(raw)) + raw


def record_bytes(head: bytes) -> int:
    """How long the record is that follows the first ``HEAD_BYTES``.

    :raises DamagedRecord: it is no such body
    """
    if len(head) != HEAD_BYTES:
        raise DamagedRecord('stub: cut off after %d bytes' % len(head))
    magic, length = _HEAD.unpack(head)
    if magic != _MAGIC or not 0 < length <= MAX_RECORD_BYTES:
        raise DamagedRecord('stub: no DSP1 at its start')
    return int(length)


@dataclass(frozen=True)
class ProofRequest:
    """Does S3 have this version?

    :param version: where it is to be on this node
    :param etag: MD5 of its bytes; '' if only S3 knows
    :param residency: as another node has it, which is not believed; None
        looks for the version in a bundle that was known here, and under its
        own key
    :param packed: it has hardly a key of its own: S3 is not asked for that
    :param leaves: it is on this node, and its local bytes are to go
    """

    version: VersionId
    partition: str
    etag: str = ''
    residency: Optional[Residency] = None
    packed: bool = False
    leaves: bool = False


def encode_request(request: ProofRequest) -> bytes:
    """The request line, newline included."""
    return json.dumps({'prove': {
        'version': asdict(request.version), 'partition': request.partition,
        'etag': request.etag, 'record': _text(request.residency),
        'packed': request.packed,
        'leaves': request.leaves}}).encode('utf-8') + b'\n'


def decode_request(line: bytes) -> ProofRequest:
    """The request of a line.

    :raises DamagedRecord: not one of ours
    """
    fields = Fields(line, 'proof request').inner('prove')
    return ProofRequest(
        fields.inner('version').version(
            'device', 'policy', 'object_hash', 'timestamp', 'frag_index'),
        fields.name('partition'), fields.text('etag'),
        _residency(fields.text('record')),
        # Servers of earlier releases do not say these.
        fields.flag('packed', False), fields.flag('leaves', False))


@dataclass(frozen=True)
class ProofReply:
    """The daemon's answer.

    :param status: 200; 404: S3 has it not, or has something else; 503:
        that cannot be said now
    :param residency: all of it in S3, as S3 itself says
    :param metadata: as the bucket has it, of a version that was looked for
    """

    status: int
    reason: str = ''
    residency: Optional[Residency] = None
    etag: str = ''
    metadata: Mapping[str, str] = field(default_factory=dict)


def encode_reply(reply: ProofReply) -> bytes:
    """The reply line, newline included."""
    return json.dumps({
        'status': reply.status, 'reason': reply.reason, 'etag': reply.etag,
        'record': _text(reply.residency),
        'metadata': dict(reply.metadata)}).encode('ascii') + b'\n'


def decode_reply(line: bytes) -> ProofReply:
    """The reply of a line.

    :raises DamagedRecord: not one of ours
    """
    fields = Fields(line, 'proof reply')
    metadata: Dict[str, Any] = fields.inner('metadata').values
    if not all(isinstance(value, str) for value in metadata.values()):
        raise DamagedRecord('proof reply: metadata that is no text')
    return ProofReply(fields.whole('status'), fields.text('reason'),
                      _residency(fields.text('record')),
                      fields.text('etag'), metadata)


def _text(residency: Optional[Residency]) -> str:
    return '' if residency is None else base64.b64encode(
        record.encode(residency)).decode('ascii')


def _residency(text: str) -> Optional[Residency]:
    try:
        return record.decode(base64.b64decode(
            text, validate=True)) if text else None
    except binascii.Error as err:
        raise DamagedRecord('proof: record: %s' % err) from err
