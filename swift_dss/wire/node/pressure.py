"""How full a device's tiers are: the daemon writes it, others read it.

A JSON file a device, replaced whole by rename, so that a reader sees an
old state or a new one and never a mixture. It only steers placement: a
missing or stale file makes writes go where their class says first.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import CLASS_ID_MAX
from swift_dss.core.pressure import Backlog, Pressure
from swift_dss.wire.jsonfields import Fields

__all__ = ('Backlog', 'Pressure', 'decode', 'encode')

#: Fields of a backlog that earlier releases did not have.
_LATER = ('untracked_bytes', 'configured_bytes', 'reserve_share',
          'remote_refuses')
#: The possible answers of a proxy to a write.
ANSWERS = ('accept', 'throttle', 'retry', 'full')
#: The text before and after the lines of devices in a node's answer.
_LINES_BEGIN = b'{"devices": {\n'
_LINES_END = b'\n}, "rooms": '


def encode(pressure: Pressure) -> bytes:
    """The file's bytes; without S3 they are as before backlogs existed."""
    return json.dumps(_values(pressure)).encode('utf-8') + b'\n'


def decode(raw: Union[bytes, str]) -> Pressure:
    """The pressure of a file.

    :raises DamagedRecord: not one of ours
    """
    return of_fields(Fields(raw, 'pressure file'))


def of_fields(fields: Fields) -> Pressure:
    """The pressure of an object that was parsed."""
    return Pressure(
        fields.whole('ssd_bytes'), fields.whole('ssd_used_bytes'),
        fields.whole('high_bytes'), fields.whole_or_none('lowest_rank'),
        fields.flag('hdd_ready'), fields.number('at'), _backlog(fields),
        _claims(fields))


def _values(pressure: Pressure) -> Dict[str, Any]:
    # dataclasses.asdict copies deeply, which took two thirds of the time.
    values = dict(vars(pressure))
    if pressure.backlog is None:
        del values['backlog']
    else:
        backlog = values['backlog'] = dict(vars(pressure.backlog))
        for name in _LATER:
            if not backlog[name]:
                del backlog[name]
    if pressure.claims:
        values['claims'] = {str(class_id): length for class_id, length
                            in sorted(pressure.claims.items())}
    else:
        del values['claims']
    return values


def _claims(fields: Fields) -> Dict[int, int]:
    if 'claims' not in fields.values:
        return {}
    inner = fields.inner('claims')
    return {class_id_of(name, 'claims'): inner.whole(name)
            for name in inner.values}


def class_id_of(name: str, where: str) -> int:
    if not name.isdigit() or int(name) > CLASS_ID_MAX:
        raise DamagedRecord('%s: %r is no class' % (where, name[:32]))
    return int(name)


def _backlog(fields: Fields) -> Optional[Backlog]:
    if fields.values.get('backlog') is None:
        return None
    inner = fields.inner('backlog')
    return Backlog(
        inner.whole('pending_bytes'), inner.whole('budget_bytes'),
        inner.whole('reserve_bytes'), inner.whole('room_bytes'),
        inner.number('drain_rate'), inner.flag('remote_up'),
        inner.number('probe_seconds'), inner.number('throttle_at'),
        inner.number('throttle_seconds'), inner.whole('untracked_bytes', 0),
        inner.whole('configured_bytes', 0),
        inner.number('reserve_share', 0.0),
        inner.flag('remote_refuses', False))


def encode_node(pressures: Mapping[str, Pressure], now: float,
                rooms: Mapping[str, Tuple[int, int]]) -> bytes:
    """An object server's answer to a proxy: all its devices, each with the age
    of its figures, so clocks need not agree.

    The answer is one JSON object with a line for each device. A line can be
    read without the others, because JSON strings contain no line ends.

    :param rooms: of mounted devices, (bytes that may still be written, all
        bytes)
    """
    lines = ',\n'.join('%s: %s' % (json.dumps(device), json.dumps(
        dict(_values(pressure), age=max(0.0, now - pressure.at))))
        for device, pressure in pressures.items())
    return b'%s%s%s%s}' % (
        _LINES_BEGIN, lines.encode('ascii'), _LINES_END, json.dumps({
            device: {'room': room, 'size': size}
            for device, (room, size) in rooms.items()}).encode('ascii'))


class Devices(Mapping[str, Tuple[float, Pressure]]):
    """Read a text of :func:`encode_node`: device to (age in seconds,
    pressure). A device is decoded when it is looked up: a proxy wants one
    of dozens.

    :param since: seconds since the answer was made, added to each age
    :raises DamagedRecord: not an answer of ours; by a lookup, if that
        device is damaged
    """

    def __init__(self, raw: bytes, since: float = 0.0) -> None:
        self._raw = raw
        self._since = since
        self._found: Dict[str, Tuple[float, Pressure]] = {}
        self._whole: Optional[Fields] = None
        self._end = raw.find(_LINES_END)
        if not raw.startswith(_LINES_BEGIN) or self._end < 0 or \
                not raw.endswith(b'}}'):
            # Of an earlier release, or of none.
            self._parsed()

    def __getitem__(self, device: str) -> Tuple[float, Pressure]:
        reading = self._found.get(device)
        if reading is None:
            fields = self._line(device) if self._whole is None \
                else self._of_whole(device)
            reading = self._found[device] = (
                fields.number('age') + self._since, of_fields(fields))
        return reading

    def __iter__(self) -> Iterator[str]:
        return iter(self._parsed().values)

    def __len__(self) -> int:
        return len(self._parsed().values)

    def _line(self, device: str) -> Fields:
        begin = b'\n%s: ' % json.dumps(device).encode('ascii')
        at = self._raw.find(begin, 0, self._end)
        if at < 0:
            raise KeyError(device)
        at += len(begin)
        end = self._raw.find(b'\n', at, self._end + 1)
        return Fields(self._raw[at:end].rstrip(b','),
                      'pressure answer devices ' + device)

    def _of_whole(self, device: str) -> Fields:
        devices = self._parsed()
        if device not in devices.values:
            raise KeyError(device)
        return devices.inner(device)

    def _parsed(self) -> Fields:
        if self._whole is None:
            self._whole = Fields(
                self._raw, 'pressure answer').inner('devices')
        return self._whole


def decode_rooms(raw: bytes) -> Dict[str, Tuple[int, int]]:
    """Device to (bytes that may still be written, all bytes).

    :raises DamagedRecord: not an answer of ours
    """
    fields = Fields(raw, 'pressure answer')
    if 'rooms' not in fields.values:
        return {}
    rooms = fields.inner('rooms')
    return {device: (rooms.inner(device).whole('room'),
                     rooms.inner(device).whole('size'))
            for device in rooms.values}


def encode_tally(tally: Mapping[int, Mapping[str, int]]) -> str:
    """Verdicts by class id and name of the answer, as a header's value."""
    return json.dumps({str(class_id): dict(counts) for class_id, counts
                       in tally.items()}, separators=(',', ':'))


def decode_tally(text: str) -> Dict[int, Dict[str, int]]:
    """Read a text of :func:`encode_tally`.

    :raises DamagedRecord: not one of ours
    """
    fields = Fields(text, 'admissions')
    tally: Dict[int, Dict[str, int]] = {}
    for name in fields.values:
        class_id, inner = class_id_of(name, 'admissions'), fields.inner(name)
        tally[class_id] = {answer: inner.whole(answer)
                           for answer in inner.values if answer in ANSWERS}
    return tally
