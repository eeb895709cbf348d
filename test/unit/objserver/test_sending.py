"""What ssync's sender gets to see of our diskfiles."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import Any, Dict, Iterator

import pytest
from support.rigs.dss_disk import Disk
from swift.common.exceptions import (
    ChunkReadError, DiskFileError, DiskFileNotExist)
from swift.common.utils import Timestamp

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import RemoteUnavailable
from swift_dss.core.residency import Extent, RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap
from swift_dss.io import residency_store
from swift_dss.objserver import extents
from swift_dss.objserver.reader import BytesUnavailable
from swift_dss.objserver.travel import adopting, sending
from swift_dss.wire import names
from swift_dss.wire.records import proof, residency as record

BODY = os.urandom(100000)
ON_HDD = ClassMap.uniform(2)


def offered(disk: Disk, policy: int = 0) -> Dict[str, Any]:
    """What a session offers; the session begins with it."""
    manager = disk.ec if policy else disk.ours
    first, *rest = manager.yield_hashes('sda', '7', disk.policies[policy])
    assert first[0] == sending.ANNOUNCEMENT
    return dict(rest)


def to_send(disk: Disk, object_hash: str, **options: Any) -> Any:
    disk_file = disk.ours.get_diskfile_from_hash(
        'sda', '7', object_hash, disk.policies[0],
        **dict({'open_expired': True, 'frag_prefs': None}, **options))
    return disk_file.open()


def test_each_session_fails_once_however_much_it_leaves_out(
        disk: Disk) -> None:
    for name in 'ab':
        disk.put(name, BODY, ON_HDD)
    os.rename(disk.capacity_path, disk.capacity_path + '.away')
    for _ in range(2):
        first, second = offered(disk)
        refused = to_send(disk, first)
        assert refused.content_length == 0
        assert refused.get_datafile_metadata() == {}
        assert list(refused.reader()) == []
        with pytest.raises(DiskFileError):
            assert to_send(disk, second).content_length
    assert disk.logger.counts['dss.ssync.skipped'] == 4
    assert not disk.quarantined()

    os.rename(disk.capacity_path + '.away', disk.capacity_path)
    for object_hash in offered(disk):
        ready = to_send(disk, object_hash)
        assert ready.content_length == len(BODY)
        assert ready.get_datafile_metadata()['Content-Length'] == \
            str(len(BODY))
        assert b''.join(ready.reader()) == BODY


def test_a_receiver_that_looks_makes_nothing_ready(disk: Disk) -> None:
    disk.put('o', BODY, ON_HDD)
    os.rename(disk.capacity_path, disk.capacity_path + '.away')
    object_hash, = offered(disk)
    looked = disk.ours.get_diskfile_from_hash(
        'sda', '7', object_hash, disk.policies[0], frag_index=None,
        open_expired=True).open()
    assert looked.content_length == len(BODY)


def _drop_half(disk: Disk, in_s3: bool) -> None:
    """Leave the second half to S3; the first one is here."""
    half = len(BODY) // 2
    both = Tier.SSD | Tier.REMOTE if in_s3 else Tier.SSD
    with open(disk.data_path('o'), 'rb+') as target:
        target.truncate(len(BODY) + 1)
        residency_store.store(target.fileno(), Residency(len(BODY), (
            Extent(0, half, both), Extent(half, half, Tier.REMOTE)),
            RemoteCopy('s3', 'k', 'e', 1.0)))


def test_no_byte_of_a_stub_goes_without_a_digest(disk: Disk) -> None:
    disk.put('o', BODY)
    _drop_half(disk, True)
    object_hash, = offered(disk)
    ready = to_send(disk, object_hash)
    assert ready.content_length < 1000
    sent = b''.join(ready.reader())
    assert len(sent) == ready.content_length
    residency = record.decode(sent[proof.HEAD_BYTES:])
    assert residency.extents == (Extent(0, len(BODY), Tier.REMOTE),)
    assert ready.get_datafile_metadata()[names.BACKEND_STUB] == \
        str(len(BODY))


def test_bytes_that_s3_lacks_are_sent(disk: Disk, monkeypatch: Any) -> None:
    class Stream:
        def chunks(self) -> Iterator[bytes]:
            yield BODY[len(BODY) // 2:]

        def close(self) -> None:
            pass

    monkeypatch.setattr(extents, 'open_fetch', lambda *_: Stream())
    disk.put('o', BODY)
    _drop_half(disk, False)
    object_hash, = offered(disk)
    ready = to_send(disk, object_hash)
    assert ready.content_length == len(BODY)
    assert b''.join(ready.reader()) == BODY
    assert names.BACKEND_STUB not in ready.get_datafile_metadata()


def test_a_fragment_to_be_rebuilt_lends_its_metadata_only(
        disk: Disk) -> None:
    """The reconstructor asks other servers for bytes, so that this one's
    need not be here."""
    disk.put('o', BODY, ON_HDD, policy=1, frag_index=1)
    os.rename(disk.capacity_path, disk.capacity_path + '.away')
    object_hash, = offered(disk, 1)
    for preferences, is_ready in ((None, True), ([], False)):
        disk_file = disk.ec.get_diskfile_from_hash(
            'sda', '7', object_hash, disk.policies[1], frag_index=1,
            open_expired=True, frag_prefs=preferences).open()
        assert (disk_file.content_length == len(BODY)) is is_ready
        assert ('X-Timestamp' in disk_file.get_datafile_metadata()) is is_ready


def test_sessions_are_not_remembered_without_end() -> None:
    sessions = sending.Sessions()
    numbers = range(3 * sending._MAX_SESSIONS)
    for number in numbers:
        assert sessions.leave_out(('sda', str(number), 0, None))
    assert sum(not sessions.leave_out(('sda', str(number), 0, None))
               for number in reversed(numbers)) == sending._MAX_SESSIONS


def test_a_session_under_way_is_not_forgotten_for_others() -> None:
    sessions = sending.Sessions()
    now = ('sda', 'now', 0, None)
    for number in range(sending._MAX_SESSIONS - 1):
        sessions.wants_whole(('sda', str(number), 0, None))
    sessions.wants_whole(now)
    assert sessions.leave_out(now)
    for number in range(sending._MAX_SESSIONS - 1):
        other = ('sda', 'then%d' % number, 0, None)
        sessions.wants_whole(other)
        sessions.leave_out(other)
    assert not sessions.takes_stubs(now)
    assert not sessions.leave_out(now)


class Cut:
    """A stream that ends early."""

    def chunks(self) -> Iterator[bytes]:
        yield BODY[:500]
        raise RemoteUnavailable('short', 1)

    def close(self) -> None:
        pass


@pytest.mark.parametrize('peers', [1, 2, 3, 4])
def test_a_body_that_breaks_starves_no_peer(
        disk: Disk, monkeypatch: Any, peers: int) -> None:
    """Each peer has a session in turn; all get what is behind it."""
    monkeypatch.setattr(extents, 'open_fetch', lambda *_: Cut())
    disk.put('o', BODY)
    _drop_half(disk, False)
    through = set()
    for number in range(12 * peers):
        object_hash, = offered(disk)
        ready = to_send(disk, object_hash)
        if ready.content_length == 0:
            assert ready.get_datafile_metadata() == {}
            through.add(number % peers)
            continue
        with pytest.raises(BytesUnavailable):
            list(ready.reader())
    assert through == set(range(peers))


def test_a_body_that_broke_is_tried_again_on_a_node_of_many_partitions(
        monkeypatch: Any) -> None:
    monkeypatch.setattr(sending, '_MAX_SESSIONS', 10)
    sessions, session = sending.Sessions(), ('sda', '7', 0, None)
    sessions.begin(session)
    sessions.broke(session, 'f')
    tries = []
    for _ in range(3):
        for number in range(20):
            sessions.begin(('sda', str(number + 100), 0, None))
        sessions.begin(session)
        tries.append(sessions.may_try(session, 'f'))
    assert tries == [False, True, True]


def test_a_body_that_broke_is_left_out_of_the_next_session_alone(
        disk: Disk, monkeypatch: Any) -> None:
    monkeypatch.setattr(extents, 'open_fetch', lambda *_: Cut())
    monkeypatch.setattr(sending, '_READ_AHEAD_BYTES', 1)
    disk.without_sums()
    disk.put('o', BODY)
    _drop_half(disk, False)
    lengths = []
    for _ in range(3):
        object_hash, = offered(disk)
        ready = to_send(disk, object_hash)
        lengths.append(ready.content_length)
        with contextlib.suppress(BytesUnavailable):
            list(ready.reader())
    assert lengths == [len(BODY), 0, len(BODY)]


def _known(disk: Disk, line: str, **options: Any) -> Any:
    return disk.ec.get_diskfile_from_hash(
        'sda', '7', line, disk.policies[1], open_expired=True, **options)


@pytest.mark.parametrize('offset', [0, 4711], ids=['alone', 'packed'])
def test_a_stub_that_is_to_be_rebuilt_is_offered_with_a_hint(
        disk: Disk, offset: int) -> None:
    """Where fragments go home, the stub itself travels."""
    disk.put('near', BODY, policy=1, frag_index=1)
    disk.put('far', BODY, policy=1, frag_index=1)
    path = disk.data_path('far', 1)
    with open(path, 'rb+') as target:
        length = os.fstat(target.fileno()).st_size
        target.truncate(length + 1)
        residency_store.store(
            target.fileno(), Residency.whole(length).with_remote(RemoteCopy(
                's3', 'k', 'e', 1.0, offset)).drop(0, length, Tier.SSD))
    far = path.split(os.sep)[-2]
    for preferences, hints in ((None, 1), ([], 0)):
        lines = [line for line, _ in disk.ec.yield_hashes(
            'sda', '7', disk.policies[1], frag_index=1,
            frag_prefs=preferences)]
        assert len(lines) == 3 + hints
        hints_read = [sending.read_hint(line) for line in lines]
        if hints:
            at = lines.index(far) - 1
            assert hints_read[at] == (
                sending.PACKED if offset else sending.STUB, far,
                disk.open_file('far', policy=1).open().data_timestamp)
        assert sum(hint is not None for hint in hints_read) == hints


@pytest.mark.parametrize('line', [
    'a' * 32, sending.ANNOUNCEMENT, 'dss-stub,abc', 'dss-stub,abc,x'])
def test_other_lines_are_no_hints(line: str) -> None:
    assert sending.read_hint(line) is None


def test_a_receiver_that_has_asked_for_long_leaves_the_rest(
        disk: Disk, monkeypatch: Any) -> None:
    """Neither S3 nor other servers are asked for what is put off."""
    asked = []
    monkeypatch.setattr(adopting, 'adopt',
                        lambda _manager, wanted: asked.append(wanted)
                        or adopting.Answer.SETTLED)
    hint = 'dss-stub,%s,1700000000.00001' % ('a' * 32)
    for seconds, expected in ((20.0, 1), (0.0, 1)):
        monkeypatch.setattr(adopting, '_ASK_SECONDS', seconds)
        _known(disk, sending.ANNOUNCEMENT, frag_index=1)
        known = _known(disk, hint, frag_index=1).open()
        assert known.data_timestamp == Timestamp(1)
        assert len(asked) == expected
    assert asked[0].frag_index == 1
    # Once: the next offer is looked at again.
    assert _known(disk, 'a' * 32, frag_index=1).open().data_timestamp > \
        Timestamp('1700000000.00001')
    with pytest.raises(DiskFileNotExist):
        _known(disk, 'a' * 32, frag_index=1)


def test_a_peer_that_wants_a_line_of_ours_is_a_stock_server(
        disk: Disk) -> None:
    session = ('sda', '7', 0, None)
    hint = 'dss-stub,%s,1700000000.00001' % ('a' * 32)
    for line in (sending.ANNOUNCEMENT, hint):
        offered(disk)
        assert disk.ours.dss_sessions.takes_stubs(session)
        with pytest.raises(DiskFileNotExist):
            to_send(disk, line)
        assert not disk.ours.dss_sessions.takes_stubs(session)


def test_a_peer_that_wants_a_hint_of_this_release_takes_stubs(
        disk: Disk) -> None:
    """It is one of an earlier release, which takes the line for an object."""
    session = ('sda', '7', 0, None)
    offered(disk)
    with pytest.raises(DiskFileNotExist):
        to_send(disk, 'dss-packed,%s,1700000000.00001' % ('a' * 32))
    assert disk.ours.dss_sessions.takes_stubs(session)


def test_a_fragment_that_others_may_bring_waits(
        disk: Disk, monkeypatch: Any) -> None:
    waits = []

    def adopt(_manager: Any, wanted: Any) -> adopting.Answer:
        waits.append(wanted.waits)
        return adopting.Answer.ABSENT if wanted.waits \
            else adopting.Answer.SETTLED
    now = [1000.0]
    monkeypatch.setattr(adopting, 'adopt', adopt)
    monkeypatch.setattr(adopting.time, 'monotonic', lambda: now[0])
    for kind, expected in (('dss-stub', [False]),
                           ('dss-packed', [True, True, False])):
        del waits[:]
        for _ in expected:
            _known(disk, sending.ANNOUNCEMENT, frag_index=1)
            _known(disk, '%s,%s,1700000000.00001' % (kind, 'a' * 32),
                   frag_index=1)
            if waits[-1]:
                assert _known(disk, 'a' * 32, frag_index=1).data_timestamp
            else:
                with pytest.raises(DiskFileNotExist):
                    _known(disk, 'a' * 32, frag_index=1)
            now[0] += adopting._PATIENCE_SECONDS * 0.6
        assert waits == expected


def test_a_receiver_without_a_gateway_is_sent_bytes(disk: Disk) -> None:
    """It could prove no stub, ever."""
    disk.node.conf = replace(disk.node.conf, gateway=GatewayConf())
    for line in (sending.ANNOUNCEMENT,
                 'dss-stub,%s,1700000000.00001' % ('a' * 32)):
        with pytest.raises(DiskFileNotExist):
            _known(disk, line, frag_index=1)


def test_one_object_at_a_time_leaves_no_room_for_a_line_of_ours(
        disk: Disk) -> None:
    disk.put('o', BODY)
    disk.ours.dss_one_at_a_time = True
    (line, _), = disk.ours.yield_hashes('sda', '7', disk.policies[0])
    assert len(line) == 32
    assert not disk.ours.dss_sessions.takes_stubs(('sda', '7', 0, None))


def _put_off(disk: Disk, monkeypatch: Any, object_hash: str) -> None:
    """A session whose last line is a hint that is put off."""
    monkeypatch.setattr(adopting, '_ASK_SECONDS', 0.0)
    _known(disk, sending.ANNOUNCEMENT, frag_index=1)
    _known(disk, 'dss-stub,%s,1700000000.00001' % object_hash, frag_index=1)


def test_a_hint_whose_session_dies_says_nothing_of_the_next_session(
        disk: Disk, monkeypatch: Any) -> None:
    """What the next one offers may be the last copy there is, and goes
    once its sender takes it for known."""
    with pytest.raises(ChunkReadError):
        with disk.ec.replication_lock('sda', disk.policies[1], '7'):
            _put_off(disk, monkeypatch, 'a' * 32)
            raise ChunkReadError()
    with disk.ec.replication_lock('sda', disk.policies[1], '7'):
        with pytest.raises(DiskFileNotExist):
            _known(disk, 'a' * 32, frag_index=1)


@pytest.mark.parametrize('line', ['b' * 32, sending.ANNOUNCEMENT])
def test_a_hint_counts_for_the_very_next_line(
        disk: Disk, monkeypatch: Any, line: str) -> None:
    _put_off(disk, monkeypatch, 'a' * 32)
    with contextlib.suppress(DiskFileNotExist):
        _known(disk, line, frag_index=1)
    with pytest.raises(DiskFileNotExist):
        _known(disk, 'a' * 32, frag_index=1)


def test_a_fragment_is_looked_for_whatever_was_put_off(
        disk: Disk, monkeypatch: Any) -> None:
    def silent(*_args: Any) -> None:
        raise RemoteUnavailable('S3 was asked, so it is not here', 1)
    _put_off(disk, monkeypatch, 'a' * 32)
    monkeypatch.setattr(adopting, 'ask_for_proof', silent)
    assert adopting.adopt(disk.ec, adopting.Wanted(
        'sda', '7', disk.policies[1], 'a' * 32, Timestamp(1), 1)) \
        is adopting.Answer.SILENT


def test_adoptions_are_not_remembered_without_end() -> None:
    adoptions = adopting.Adoptions()
    places = [('sda', str(number), 1)
              for number in range(3 * adopting._MAX_SESSIONS)]
    for place in places:
        adoptions.begin(place)
        adoptions.put_off(place, 'a')
    assert sum(map(adoptions.may_ask, places)) == adopting._MAX_SESSIONS
    assert [place for place in places if adoptions.was_put_off(place, 'a')
            ] == places[-adopting._MAX_SESSIONS:]
    adoptions.end(place)
    assert not adoptions.may_ask(place)
