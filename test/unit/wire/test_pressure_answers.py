"""What an object server answers proxies: a line for each device."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.pressure import Backlog, Pressure
from swift_dss.wire.node import pressure as wire

BACKLOG = Backlog(1, 2, 3, 4, 5.5, True, 0.0, 0.75, 2.0)


def state(number, backlog=BACKLOG):
    return Pressure(number, 2, 3, None, True, 5.0, backlog, {5: number})


def earlier(raw):
    """The same answer as earlier releases wrote it, on one line."""
    return json.dumps(json.loads(raw)).encode()


@given(some.dictionaries(some.text(), some.integers(0, 1 << 60)),
       some.lists(some.text()))
def test_a_device_looked_up_by_its_line_is_that_of_the_whole(sizes, others):
    raw = wire.encode_node({name: state(size)
                            for name, size in sizes.items()}, 7.0,
                           dict.fromkeys(sizes, (1, 2)))
    whole = wire.Devices(earlier(raw), 1.5)
    lines = wire.Devices(raw, 1.5)
    for name in list(sizes) + others:
        assert lines.get(name) == whole.get(name)
        assert (lines.get(name) is None) == (name not in sizes)
    assert dict(lines) == dict(whole) and len(lines) == len(sizes)
    assert wire.decode_rooms(raw) == wire.decode_rooms(earlier(raw))


def test_an_answer_is_one_json_object_to_earlier_releases():
    raw = wire.encode_node({'sda': state(1), 'sdb': state(2, None)}, 7.5, {
        'sda': (3, 4)})
    assert json.loads(raw) == {
        'devices': {
            'sda': {'ssd_bytes': 1, 'ssd_used_bytes': 2, 'high_bytes': 3,
                    'lowest_rank': None, 'hdd_ready': True, 'at': 5.0,
                    'claims': {'5': 1}, 'age': 2.5, 'backlog': {
                        'pending_bytes': 1, 'budget_bytes': 2,
                        'reserve_bytes': 3, 'room_bytes': 4,
                        'drain_rate': 5.5, 'remote_up': True,
                        'probe_seconds': 0.0, 'throttle_at': 0.75,
                        'throttle_seconds': 2.0}},
            'sdb': {'ssd_bytes': 2, 'ssd_used_bytes': 2, 'high_bytes': 3,
                    'lowest_rank': None, 'hdd_ready': True, 'at': 5.0,
                    'claims': {'5': 2}, 'age': 2.5}},
        'rooms': {'sda': {'room': 3, 'size': 4}}}
    assert json.loads(wire.encode_node({}, 7.5, {})) == {
        'devices': {}, 'rooms': {}}


def test_names_of_rooms_and_classes_are_no_devices():
    raw = wire.encode_node({'sda': state(1)}, 7.0, {'sdb': (1, 2)})
    assert all(wire.Devices(body).get(name) is None
               for body in (raw, earlier(raw))
               for name in ('sdb', '5', 'rooms', 'age', 'backlog', ''))


@pytest.mark.parametrize('damage', [
    lambda raw: raw[:-1], lambda raw: raw[:len(raw) // 2], lambda raw: b'',
    lambda raw: b'[]', lambda raw: b'{"devices": {\n',
    lambda raw: raw.replace(b'rooms', b'r')[:-2]])
def test_what_is_not_whole_is_refused(damage):
    raw = damage(wire.encode_node({'sda': state(1)}, 7.0, {}))
    with pytest.raises(DamagedRecord):
        wire.Devices(raw).get('sda')


def test_a_damaged_line_is_damage_of_its_device_only():
    raw = wire.encode_node({'sda': state(1), 'sdb': state(2)}, 7.0, {})
    devices = wire.Devices(raw.replace(b'"ssd_bytes": 1', b'"ssd_bytes": x'))
    assert devices['sdb'][1] == state(2)
    assert devices.get('sdc') is None
    with pytest.raises(DamagedRecord):
        devices.get('sda')
