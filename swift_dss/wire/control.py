"""Messages between the object servers, the tier daemon and its tools.

*Events* are datagrams of JSON objects, one a line, never answered: the object
server reports its act and goes on. *Fetches* are a JSON line over a stream
socket; the daemon answers with a JSON line and, if its status is 200, exactly
``length`` raw bytes (fewer mean that it failed on the way: the reader must
give up, not guess). *Admin* requests are a JSON line, answered with any number
of ``{"progress": ...}`` lines and one ``{"result": ...}`` or ``{"error": text,
"exit_code": n}`` line.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from enum import Enum
from json.encoder import encode_basestring_ascii as _quoted
from math import isfinite
from typing import Any, Dict, List, Optional

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import (
    CLASS_ID_MAX, MAX_EVENT_BYTES, MAX_READER_CHARS)
from swift_dss.core.version import VersionId
from swift_dss.wire.jsonfields import Fields


#: The first bytes of an urgent datagram; no event begins with them.
_URGENT = b'\1'


class EventKind(Enum):
    """The kinds of events: an object server's act on a version."""

    PUT = 'put'
    READ = 'read'
    CLASS = 'class'
    DELETE = 'delete'
    HDD_DIFFERS = 'hdd-differs'
    GONE = 'gone'
    ROT = 'rot'


_KINDS = {kind.value: kind for kind in EventKind}
#: A text that may be one part of a path.
_is_plain = re.compile(r'[^./\0][^/\0]*').fullmatch


@dataclass(frozen=True)
class Event:
    """One thing that happened on a device.

    For PUT, ``version`` is the new version: every older one of the same
    object (and fragment) is obsolete. For DELETE it is the tombstone. For
    READ, ``offset`` and ``length`` name the range, and ``tier_bits`` the tiers
    that served it. CLASS: a POST changed the metadata, and maybe the class
    map. HDD_DIFFERS: an audit found that the HDD's bytes differ from the
    SSD's, whose digest is right; or a reader found the HDD copy missing of a
    version that S3 has. GONE: a data file left the device without a newer
    version (a fragment handed over, a quarantine, a clean-up of its folder).
    ROT: blocks on SSD or HDD are not as they were written, and another tier
    has them.

    :param version: device, policy, hash, timestamp, fragment
    :param partition: Swift's partition, to find the hash directory
    :param size: Content-Length of the version (0 for DELETE)
    :param map_text: encoded class map (``wire.classmap``); '' if unknown
    :param at: seconds since the epoch
    :param manifest: a READ of the manifest of a large object
    :param client: a word for the reader; '' if unknown
    :param name: ``/account/container/object`` of a PUT whose bytes are all on
        the SSD and nowhere else; else ''
    :param auto: of a PUT whose rule says ``classify = auto``: the class of the
        bytes that open the file; else None
    """

    kind: EventKind
    version: VersionId
    partition: str
    size: int = 0
    map_text: str = ''
    offset: int = 0
    length: int = 0
    tier_bits: int = 0
    at: float = 0.0
    manifest: bool = False
    client: str = ''
    name: str = ''
    auto: Optional[int] = None


def encode_event(event: Event) -> bytes:
    """The datagram. A map or name too long for one is left out: the daemon
    then reads it from the object."""
    map_text = event.map_text
    name = event.name if map_text else ''
    while True:
        raw = _encode(
            event.kind.value, event.version, event.partition, event.size,
            map_text, event.offset, event.length, event.tier_bits, event.at,
            event.manifest, event.client, name, event.auto)
        if len(raw) <= MAX_EVENT_BYTES or not map_text:
            return raw
        map_text = name = ''


def encode_read(version: VersionId, partition: str, size: int, offset: int,
                length: int, tier_bits: int, at: float,
                manifest: bool = False, client: str = '',
                map_text: str = '') -> bytes:
    """The same bytes as :func:`encode_event` of a READ, without the event
    object: every GET sends one."""
    raw = _encode('read', version, partition, size, map_text, offset, length,
                  tier_bits, at, manifest, client, '', None)
    if len(raw) <= MAX_EVENT_BYTES or not map_text:
        return raw
    return encode_read(version, partition, size, offset, length, tier_bits,
                       at, manifest, client)


def _encode(kind: str, version: VersionId, partition: str, size: int,
            map_text: str, offset: int, length: int, tier_bits: int,
            at: float, manifest: bool, client: str, name: str,
            auto: Optional[int]) -> bytes:
    """A JSON object, at a fraction of what an encoder takes."""
    frag = version.frag_index
    return ('{"k":"%s","d":%s,"p":%d,"h":%s,"t":%s,"f":%s,"n":%s,"s":%d,'
            '"m":%s,"o":%d,"l":%d,"r":%d,"a":%r%s%s%s%s}' % (
                kind, _quoted(version.device), version.policy,
                _quoted(version.object_hash), _quoted(version.timestamp),
                'null' if frag is None else frag, _quoted(partition), size,
                _quoted(map_text), offset, length, tier_bits, at,
                ',"x":true' if manifest else '',
                ',"c":' + _quoted(client) if client else '',
                ',"w":' + _quoted(name) if name else '',
                '' if auto is None else ',"u":%d' % auto)).encode('ascii')


def urgent(raw: bytes) -> bytes:
    """A datagram that the daemon should not leave for long."""
    return _URGENT + raw


def is_urgent(raw: bytes) -> bool:
    """True of what :func:`urgent` made."""
    return raw.startswith(_URGENT)


def split_events(raw: bytes) -> List[bytes]:
    """The events of a datagram, each for :func:`decode_event`."""
    return raw[is_urgent(raw):].split(b'\n')


def decode_event(raw: bytes) -> Event:
    """The event of one line of a datagram.

    :raises DamagedRecord: not one of ours
    """
    return plain_event(raw) or checked_event(raw)


def plain_event(raw: bytes) -> Optional[Event]:
    """The same as :func:`checked_event` for a sound event, at a third of
    the cost; None for all others."""
    try:
        said = json.loads(raw.decode('utf-8'))
        kind, frag, at = _KINDS[said['k']], said['f'], said['a']
        names = said['d'], said['h'], said['t'], said['n']
        wholes = said['p'], said['s'], said['o'], said['l'], said['r']
        map_text, manifest = said['m'], said.get('x', False)
        client, name = said.get('c', ''), said.get('w', '')
        auto = said.get('u')
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    if type(map_text) is not str or type(manifest) is not bool or \
            type(at) is not float or not isfinite(at) or frag is not None and (
                type(frag) is not int or frag < 0):
        return None
    if type(client) is not str or len(client) > MAX_READER_CHARS:
        return None
    if type(name) is not str or auto is not None and (
            type(auto) is not int or not 0 <= auto <= CLASS_ID_MAX):
        return None
    for part in names:
        if type(part) is not str or not _is_plain(part):
            return None
    for whole in wholes:
        if type(whole) is not int or whole < 0:
            return None
    return Event(
        kind, VersionId(said['d'], said['p'], said['h'], said['t'], frag),
        said['n'], said['s'], map_text, said['o'], said['l'], said['r'], at,
        manifest, client, name, auto)


def checked_event(raw: bytes) -> Event:
    fields = Fields(raw, 'event')
    try:
        kind = EventKind(fields.text('k'))
    except ValueError as err:
        raise DamagedRecord('event: %s' % err) from err
    return Event(
        kind, fields.version('d', 'p', 'h', 't', 'f'), fields.name('n'),
        fields.whole('s'), fields.text('m'), fields.whole('o'),
        fields.whole('l'), fields.whole('r'), fields.number('a'),
        fields.flag('x', False), _reader(fields, 'event: c'),
        fields.text('w', ''), _class_of(fields.whole_or_none('u')))


def _class_of(auto: Optional[int]) -> Optional[int]:
    if auto is not None and auto > CLASS_ID_MAX:
        raise DamagedRecord('event: u is %d, and no class' % auto)
    return auto


def _reader(fields: Fields, where: str) -> str:
    reader = fields.text(where.rpartition(' ')[2], '')
    if len(reader) > MAX_READER_CHARS:
        raise DamagedRecord('%s has %d characters; a reader has at most %d'
                            % (where, len(reader), MAX_READER_CHARS))
    return reader


@dataclass(frozen=True)
class FetchRequest:
    """Bytes of a version that its reader lacks locally.

    :param keep: False for replication and other reads that must not warm
        a cache: the bytes are passed on and not stored
    :param deadline_seconds: until the first byte
    :param ahead: fetched before a reader asks; readers go first. Only within
        the daemon; never on the wire
    :param client: as in :class:`Event`
    """

    version: VersionId
    partition: str
    offset: int
    length: int
    class_id: int
    deadline_seconds: float
    keep: bool = True
    ahead: bool = False
    client: str = ''


def encode_fetch(request: FetchRequest) -> bytes:
    """The request line, newline included."""
    said = asdict(request)
    del said['ahead']
    if not request.client:
        del said['client']
    return json.dumps(said).encode('utf-8') + b'\n'


def decode_fetch(line: bytes) -> FetchRequest:
    """The request of a line.

    :raises DamagedRecord: not one of ours
    """
    fields = Fields(line, 'fetch request')
    return FetchRequest(
        fields.inner('version').version(
            'device', 'policy', 'object_hash', 'timestamp', 'frag_index'),
        fields.name('partition'), fields.whole('offset'),
        fields.whole('length'), fields.whole('class_id'),
        fields.number('deadline_seconds'), fields.flag('keep', True),
        client=_reader(fields, 'fetch request: client'))


@dataclass(frozen=True)
class FetchReply:
    """The daemon's answer before the bytes.

    :param status: 200, 404 (that version is gone), 503 or 507
    """

    status: int
    reason: str = ''
    retry_after_seconds: Optional[int] = None


def encode_fetch_reply(reply: FetchReply) -> bytes:
    """The reply line, newline included."""
    return json.dumps(asdict(reply)).encode('utf-8') + b'\n'


def decode_fetch_reply(line: bytes) -> FetchReply:
    """The reply of a line.

    :raises DamagedRecord: not one of ours
    """
    fields = Fields(line, 'fetch reply')
    return FetchReply(fields.whole('status'), fields.text('reason', ''),
                      fields.whole_or_none('retry_after_seconds'))


def encode_line(message: Dict[str, Any]) -> bytes:
    """Any JSON line of the admin protocol."""
    return json.dumps(message, separators=(',', ':')).encode('utf-8') + b'\n'


def decode_line(line: bytes) -> Dict[str, Any]:
    """The JSON object of a line.

    :raises DamagedRecord: not a JSON object
    """
    return Fields(line, 'admin line').values
