"""A node's figures in short, for the table of all nodes.

The tier daemon writes them to ``<run_dir>/summary.json`` every ten seconds,
replaced whole by rename; object servers give the file to who asks (``GET
/dss/status``). No names of objects are in it, nor of accounts.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from swift_dss.core.errors import DamagedRecord
from swift_dss.wire.jsonfields import Fields
from swift_dss.wire.node.pressure import class_id_of

#: In ``run_dir``.
FILE = 'summary.json'
_RECORD = 'summary of a node'
#: States of the gateway's breaker, in an operator's words.
REMOTE_STATES = {'closed': 'S3 answers', 'open': 'S3 does not answer',
                 'half_open': 'S3 is asked whether it answers again'}


class Device(NamedTuple):
    """A device; sizes in bytes.

    :param troubles: states that are not ready, as ``SSD unmounted``
    :param ssd_used: of ``ssd_room``, also by what is not counted in ``ssd``
    :param oldest_dirty: seconds for which bytes have been on the SSD alone;
        0 where none are
    :param lacking: versions that have bytes nowhere
    :param pending: waits for S3, of ``budget``
    """

    troubles: Tuple[str, ...]
    ssd: int
    ssd_used: int
    ssd_room: int
    hdd: int
    remote: int
    dirty: int
    oldest_dirty: float
    lacking: int
    pending: int
    budget: int


class Class(NamedTuple):
    """A class on the node; sizes in bytes.

    :param hits: those of ``reads`` that the SSD served whole; ``hit_bytes``
        those of ``read_bytes``
    """

    name: str
    rank: int
    ssd: int
    hdd: int
    remote: int
    dirty: int
    reads: int
    hits: int
    read_bytes: int
    hit_bytes: int


class Summary(NamedTuple):
    """A node.

    :param at: when it was made, by the node's clock
    :param host: its name
    :param up: seconds since the daemon's start
    :param remote: how S3 is, in words; '' without a gateway
    :param is_remote_well: whether S3 answers; True without a gateway
    :param uploads: versions that wait for S3
    :param events: of object servers that the daemon has not heard yet
    :param notes: what an operator should know
    """

    at: float
    host: str
    up: float
    remote: str
    is_remote_well: bool
    uploads: int
    events: int
    notes: Tuple[str, ...]
    devices: Dict[str, Device]
    classes: Dict[int, Class]


def encode(summary: Summary) -> bytes:
    """The file's bytes."""
    return json.dumps(values(summary)).encode('utf-8') + b'\n'


def values(summary: Summary) -> Dict[str, Any]:
    """The same as plain values."""
    return dict(
        summary._asdict(),
        devices={name: device._asdict()
                 for name, device in summary.devices.items()},
        classes={str(number): part._asdict()
                 for number, part in summary.classes.items()})


def decode(raw: bytes) -> Summary:
    """Read a text of :func:`encode`.

    :raises DamagedRecord: it is none
    """
    fields = Fields(raw, _RECORD)
    devices, classes = fields.inner('devices'), fields.inner('classes')
    return Summary(
        fields.number('at'), fields.text('host'), fields.number('up'),
        fields.text('remote'), fields.flag('is_remote_well'),
        fields.whole('uploads'), fields.whole('events'),
        _texts(fields, 'notes'),
        {name: _device(devices.inner(name)) for name in devices.values},
        {class_id_of(name, _RECORD): _class(classes.inner(name))
         for name in classes.values})


def _device(fields: Fields) -> Device:
    return Device(_texts(fields, 'troubles'), **_numbers(
        fields, Device._fields[1:], 'oldest_dirty'))


def _class(fields: Fields) -> Class:
    rank = fields.whole_or_none('rank')
    if rank is None:
        raise DamagedRecord('%s: a class has no rank' % _RECORD)
    return Class(fields.text('name'), rank,
                 **_numbers(fields, Class._fields[2:]))


def _numbers(fields: Fields, names: Tuple[str, ...],
             fraction: Optional[str] = None) -> Dict[str, Any]:
    return {name: fields.number(name) if name == fraction
            else fields.whole(name) for name in names}


def _texts(fields: Fields, name: str) -> Tuple[str, ...]:
    values: List[Any] = fields.values.get(name, [])
    if not isinstance(values, list) or not all(
            isinstance(value, str) for value in values):
        raise DamagedRecord('%s: %s is no list of texts' % (_RECORD, name))
    return tuple(values)
