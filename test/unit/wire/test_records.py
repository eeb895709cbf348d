"""Residency records, messages, state files, names on disk."""

from __future__ import annotations

import dataclasses
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as some

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, DamagedRecord
from swift_dss.core.limits import RUN_DIR_BYTES
from swift_dss.core.limits import MAX_EVENT_BYTES, MAX_EXTENTS
from swift_dss.core.residency import (
    Extent, RemoteCopy, Residency, Tier)
from swift_dss.core.version import VersionId
from swift_dss.wire import control, layout
from swift_dss.wire.node import pressure
from swift_dss.wire.records import residency
from swift_dss.wire.settings import nodeconf

VERSION = VersionId('d1', 1, 'ab' * 16, '1700000000.00000', 2)
some_tiers = some.integers(1, 7).map(Tier)
some_texts = some.text('ab/é"%\u20ac', max_size=12)


@some.composite
def residencies(draw):
    extents, offset = [], 0
    for length, tiers in draw(some.lists(some.tuples(
            some.integers(1, 1 << 40), some_tiers), max_size=20)):
        extents.append(Extent(offset, length, tiers))
        offset += length
    remote = None
    if any(extent.tiers & Tier.REMOTE for extent in extents):
        remote = RemoteCopy(draw(some_texts), draw(some_texts),
                            draw(some_texts), draw(some.floats(0, 1e10)))
    return Residency(offset, tuple(extents), remote)


@given(residencies())
def test_a_residency_survives_its_record(record):
    assert residency.decode(residency.encode(record)) == record


@given(some.integers(1, 1 << 40), some.builds(
    RemoteCopy, some_texts, some_texts, some_texts, some.floats(0, 1e10),
    some.integers(0, 1 << 40), some_texts))
def test_the_record_of_what_arrived_is_that_of_any_other(length, remote):
    assert residency.encode_arrived(length, remote) == residency.encode(
        Residency.whole(length).with_remote(remote))


@given(residencies(), some.data())
def test_any_flipped_bit_of_a_record_is_noticed(record, data):
    raw = bytearray(residency.encode(record))
    at = data.draw(some.integers(0, len(raw) * 8 - 1))
    raw[at // 8] ^= 1 << at % 8
    with pytest.raises(DamagedRecord):
        residency.decode(bytes(raw))


@given(residencies(), some.data())
def test_a_record_cut_off_anywhere_is_noticed(record, data):
    raw = residency.encode(record)
    at = data.draw(some.integers(0, len(raw) - 1))
    with pytest.raises(DamagedRecord):
        residency.decode(raw[:at])


def test_the_largest_record_fits_one_attribute():
    extents = tuple(Extent(at, 1, Tier(1 + at % 2))
                    for at in range(MAX_EXTENTS))
    assert len(residency.encode(Residency(MAX_EXTENTS, extents))) < 65536
    with pytest.raises(ValueError, match='more than 2048'):
        residency.encode(Residency(
            MAX_EXTENTS + 1, extents + (Extent(MAX_EXTENTS, 1, Tier.HDD),)))


EVENT = control.Event(control.EventKind.READ, VERSION, '12', 5, '25', 1, 2,
                      3, 4.5)


def test_events_survive_their_datagram():
    for kind in control.EventKind:
        for client in ('', '0123456789ab'):
            event = dataclasses.replace(EVENT, kind=kind, client=client)
            assert control.decode_event(
                control.encode_event(event)) == event


@given(some_texts, some.one_of(some.none(), some.integers(0, 20)),
       some.integers(0, 1 << 62), some.floats(0, 1e11), some.booleans(),
       some.sampled_from(['', '0123456789ab']),
       some.sampled_from(['', '25', 'm1:' + 'x' * 5000]))
def test_a_read_is_written_as_any_event_is(device, frag_index, size, at,
                                           manifest, client, map_text):
    version = VersionId(device, 1, 'ab' * 16, '1700000000.00000', frag_index)
    assert control.encode_read(version, '12', size, 7, 8, 3, at,
                               manifest, client, map_text) == \
        control.encode_event(control.Event(
            control.EventKind.READ, version, '12', size, map_text, 7, 8, 3,
            at, manifest, client))


def test_a_map_too_long_for_a_datagram_is_left_out():
    event = dataclasses.replace(EVENT, map_text='m1:' + 'x' * 5000)
    raw = control.encode_event(event)
    assert len(raw) <= MAX_EVENT_BYTES
    assert control.decode_event(raw) == dataclasses.replace(
        EVENT, map_text='')


@pytest.mark.parametrize('raw', [
    b'', b'{', b'[]', b'null', b'\xff', b'[' * 100000, b'{}',
    control.encode_event(EVENT).replace(b'"d1"', b'"../d1"'),
    control.encode_event(EVENT).replace(b'"d1"', b'""'),
    control.encode_event(EVENT).replace(b'"d1"', b'7'),
    control.encode_event(EVENT).replace(b'"ababab', b'"/babab'),
    control.encode_event(EVENT).replace(b'"read"', b'"write"'),
    control.encode_event(EVENT).replace(b'"s":5', b'"s":-5'),
    control.encode_event(EVENT).replace(b'"s":5', b'"s":true'),
    control.encode_event(EVENT).replace(b'"s":5', b'"s":5.5'),
    control.encode_event(EVENT).replace(b'"f":2', b'"f":-2'),
    control.encode_event(EVENT).replace(b'"a":4.5', b'"a":Infinity'),
    control.encode_event(EVENT).replace(b'"a":4.5', b'"a":NaN'),
    control.encode_event(dataclasses.replace(EVENT, client='0' * 13)),
    control.encode_event(EVENT).replace(b'"n":"12"', b'"n":".."')])
def test_what_is_no_event_is_refused(raw):
    assert raw != control.encode_event(EVENT)
    with pytest.raises(DamagedRecord, match='^event: '):
        control.decode_event(raw)


def test_fetches_survive_their_lines():
    for client in ('', '0123'):
        request = control.FetchRequest(VERSION, '12', 5, 6, 25, 1.5, False,
                                       client=client)
        line = control.encode_fetch(request)
        assert line.endswith(b'\n') and line.count(b'\n') == 1
        assert control.decode_fetch(line) == request
    with pytest.raises(DamagedRecord, match='client has 5000 characters'):
        control.decode_fetch(control.encode_fetch(dataclasses.replace(
            request, client='0' * 5000)))
    for reply in (control.FetchReply(200),
                  control.FetchReply(503, 'down\n"', 15)):
        line = control.encode_fetch_reply(reply)
        assert line.count(b'\n') == 1
        assert control.decode_fetch_reply(line) == reply
    with pytest.raises(DamagedRecord, match='version is not an object'):
        control.decode_fetch(b'{"version": 5}')
    with pytest.raises(DamagedRecord, match='status is not'):
        control.decode_fetch_reply(b'{"status": "200"}')


def test_admin_lines_are_json_objects():
    message = {'op': 'ls', 'n': [1, None, {'x': 'é'}]}
    assert control.decode_line(control.encode_line(message)) == message
    with pytest.raises(DamagedRecord, match='not an object'):
        control.decode_line(b'[1]')


def test_pressure_survives_its_file():
    for rank in (None, 0, 900):
        state = pressure.Pressure(100, 50, 80, rank, True, 5.5,
                                  claims={5: 10} if rank else {})
        assert pressure.decode(pressure.encode(state)) == state
        with_backlog = dataclasses.replace(state, backlog=pressure.Backlog(
            1, 2, 3, 4, 5.5, False, 6.5, 0.75, 2.0))
        assert pressure.decode(pressure.encode(
            with_backlog)) == with_backlog
    for raw in (b'', b'{}', b'[]', pressure.encode(state)[:-3],
                pressure.encode(state).replace(b'true', b'1'),
                pressure.encode(state).replace(b'100', b'-100')):
        with pytest.raises(DamagedRecord, match='^pressure file: '):
            pressure.decode(raw)


@pytest.mark.parametrize('name, parsed', [
    ('1700000000.00000.data', ('1700000000.00000', None, True)),
    ('1700000000.00000_0000000000000001.data',
     ('1700000000.00000_0000000000000001', None, True)),
    ('1700000000.00000#3.data', ('1700000000.00000', 3, False)),
    ('1700000000.00000#3#d.data', ('1700000000.00000', 3, True)),
    ('1700000000.00000.ts', None), ('1700000000.00000.meta', None),
    ('1700000000.00000.data\n', None), ('x1700000000.00000.data', None),
    ('170000000٣.00000.data', None), ('1700000000.00000##d.data', None)])
def test_names_of_data_files(name, parsed):
    assert layout.parse_data_file(name) == parsed


def test_paths_lead_back_to_their_versions():
    for policy, frag in ((0, None), (3, 2)):
        version = dataclasses.replace(
            VERSION, policy=policy, frag_index=frag)
        name = version.timestamp + (
            '.data' if frag is None else '#%d#d.data' % frag)
        path = '%s/%s' % (layout.hash_dir(
            '/srv/node/d1', policy, '12', version.object_hash), name)
        assert layout.version_of_path('d1', path) == version
    for path in ('1700000000.00000.data', '/a/b/c/d/x.data',
                 '/srv/accounts/1/abc/h/1700000000.00000.data',
                 '/srv/objects-x/1/abc/h/1700000000.00000.data',
                 '/srv/objects-/1/abc/h/1700000000.00000.data'):
        assert layout.version_of_path('d1', path) is None


def test_every_fragment_and_version_has_places_of_its_own():
    seen = set()
    for frag in (None, 0, 1):
        for timestamp in ('1700000000.00000', '1700000001.00000'):
            version = dataclasses.replace(
                VERSION, frag_index=frag, timestamp=timestamp)
            seen.add(layout.capacity_file('/hdd/d1', version))
            seen.add(layout.remote_key('p/', version))
    assert len(seen) == 12
    assert layout.capacity_file('/hdd/d1', VERSION) == (
        '/hdd/d1/data/1/bab/%s/1700000000.00000#2' % VERSION.object_hash)
    assert layout.remote_key('p/', VERSION) == (
        'p/bab/1/%s/1700000000.00000#2' % VERSION.object_hash)


def test_a_node_without_a_file_has_the_defaults():
    assert nodeconf.parse('') == NodeConf()


def test_the_longest_run_dir_is_one_that_a_socket_can_be_named_in():
    longest = '/' + 'r' * (RUN_DIR_BYTES - 1)
    assert nodeconf.parse('[dss]\nrun_dir = %s\n' % longest).run_dir == \
        longest
    with socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(FileNotFoundError):
            client.connect(longest + '/events.sock')
        with pytest.raises(OSError, match='too long'):
            client.connect(longest + 'r/events.sock')


def test_node_options_units_and_devices():
    conf = nodeconf.parse(
        '[dss]\nrun_dir = /r\nmount_check = no\n'
        '[capacity]\nSdA = /h/a\n* = /h/%(device)s\n'
        '[io]\nspool_bytes = 2m\n[tier]\nhigh_watermark = 0.9\n'
        '[gateway]\nenabled = on\ndeadline_seconds = 2.5\n')
    assert conf.run_dir == '/r' and conf.mount_check is False
    assert conf.io.spool_bytes == 2 << 20
    assert conf.tier.high_watermark == 0.9
    assert conf.gateway.enabled and conf.gateway.deadline_seconds == 2.5
    assert nodeconf.capacity_path(conf, 'SdA') == '/h/a'
    assert nodeconf.capacity_path(conf, 'sdb') == '/h/sdb'
    assert nodeconf.capacity_path(NodeConf(), 'sdb') == ''


@pytest.mark.parametrize('text, said', [
    ('[DEFAULT]\nlog_level = DEBUG\n',
     r'\[DEFAULT\] log_level: .* in its section'),
    ('[gateway]\nurl = s3.example.com\n', r'\[gateway\] url: .*https://s3'),
    ('[disks]\n', r'unknown section \[disks\]'),
    ('[io]\ncarier = null\n', r'\[io\] carier: no such option'),
    ('[io]\n__class__ = x\n', r'\[io\] __class__: no such option'),
    ('[io]\ncarrier = x\n', "'x' is not one of auto"),
    ('[io]\nssd_threads = many\n', 'is not a number'),
    ('[io]\nssd_threads = 1.5\n', 'is not a whole number'),
    ('[io]\nssd_threads = -1\n', 'is out of range'),
    ('[io]\nspool_bytes = 1e400\n', 'is out of range'),
    ('[io]\nspool_bytes = nan\n', 'is out of range'),
    ('[io]\nremote_deadline_seconds = inf\n', 'is out of range'),
    ('[tier]\nhigh_watermark = nan\n', 'is out of range'),
    ('[tier]\nhigh_watermark = 1.5\n', 'is out of range'),
    ('[tier]\nhigh_watermark = 0.5\n', 'low_watermark must be below'),
    ('[dss]\nmount_check = maybe\n', 'neither true nor false'),
    ('[dss]\nrun_dir = /%s\n' % ('r' * 95), 'has more than 95 bytes'),
    ('[dss]\nrun_dir = /%s\n' % ('\u00e9' * 48), 'has more than 95 bytes'),
    ('[dss]\nio = 5\n', r'\[dss\] io: no such option'),
    ('x = 1\n', 'no section headers'),
    ('[io]\n[io]\n', 'already exists')])
def test_what_a_node_refuses_to_start_with(text, said):
    with pytest.raises(BadConfig, match=said):
        nodeconf.parse(text)
