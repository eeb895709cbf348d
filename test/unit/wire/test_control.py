"""Events: the fast way to read them says what the careful one says."""

from __future__ import annotations

import itertools
import json

import pytest

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.version import VersionId
from swift_dss.wire import control
from swift_dss.wire.control import Event, EventKind, encode_event

EVENT = Event(EventKind.PUT, VersionId('sda', 0, 'ab' * 16,
                                       '1700000000.00000', 2),
              '37', 8192, '5', 0, 4096, 1, 1700000000.5, True, auto=9)
VALUES = (None, True, 0, 1, 31, 32, -1, 1.5, float('nan'), float('inf'),
          1 << 70, '', '.', '..', 'a.b', 'a/b', 'a\0b', 'é', '\ud800', 'put',
          'read', 'other', [], {}, ['put'])


def careful(raw):
    try:
        return control.checked_event(raw)
    except DamagedRecord:
        return None


def test_an_ordinary_event_is_read_the_fast_way():
    assert control.plain_event(encode_event(EVENT)) == EVENT
    for manifest in (False, True):
        raw = control.encode_read(EVENT.version, '37', 8192, 0, 4096, 1, 5.0,
                                  manifest)
        event = control.plain_event(raw)
        assert event == control.checked_event(raw)
        assert event.manifest == manifest


@pytest.mark.parametrize('name', sorted(json.loads(encode_event(EVENT))))
def test_both_ways_say_the_same_of_any_value(name):
    said = json.loads(encode_event(EVENT))
    for value in VALUES:
        raw = json.dumps(dict(said, **{name: value})).encode()
        event = control.plain_event(raw)
        # None means that the careful way decides.
        assert event is None or event == careful(raw), value
    raw = json.dumps({key: value for key, value in said.items()
                      if key != name}).encode()
    # Only of manifests is it said that they are, and of uploads that a node
    # is to classify which class it gives.
    assert control.plain_event(raw) == (
        careful(raw) if name in ('x', 'u') else None)


@pytest.mark.parametrize('raw', [
    b'', b'{', b'[]', b'"k"', b'7', b'null', b'\xff\xfe', b'[' * 100000,
    '{"k": 1}'.encode('utf-16')])
def test_what_is_no_event_is_left_to_the_careful_way(raw):
    assert control.plain_event(raw) is None
    with pytest.raises(DamagedRecord):
        control.decode_event(raw)


def test_no_two_flipped_bytes_make_the_ways_disagree():
    raw = encode_event(EVENT)
    for first, second in itertools.combinations(range(0, len(raw), 7), 2):
        torn = bytearray(raw)
        torn[first] ^= 0x11
        torn[second] ^= 0x04
        event = control.plain_event(bytes(torn))
        assert event is None or event == careful(bytes(torn)), torn
