"""A handoff asks S3 again before it gives up bytes that are stubs elsewhere.

Both ends of the lines that ssync takes for objects.
"""

from __future__ import annotations

import os
from typing import Any, List

import pytest
from support.rigs.dss_disk import Disk
from swift.common.exceptions import DiskFileError, DiskFileNotExist
from swift.common.utils import Timestamp
from swift.obj.ssync_receiver import decode_missing, encode_wanted
from swift.obj.ssync_sender import encode_missing

from swift_dss.core.errors import RemoteUnavailable, VersionGone
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap
from swift_dss.io import residency_store
from swift_dss.objserver.travel import parting, sending

BODY = os.urandom(5000)
ON_HDD = ClassMap.uniform(2)


def lines_of(disk: Disk, policy: int = 0, leaves: bool = True,
             **options: Any) -> List[str]:
    """What a session offers; within a job that may remove the partition, or
    in one that does not."""
    manager = disk.ec if policy else disk.ours
    ring_policy = disk.policies[policy]
    if not leaves:
        return [line for line, _ in manager.yield_hashes(
            'sda', '7', ring_policy, **options)]
    with manager.partition_lock('sda', ring_policy, '7', name='replication'):
        return [line for line, _ in manager.yield_hashes(
            'sda', '7', ring_policy, **options)]


def make_stub(disk: Disk, name: str, policy: int = 0) -> str:
    """Leave a version to S3 alone; returns its hash."""
    path = disk.data_path(name, policy)
    with open(path, 'rb+') as target:
        length = os.fstat(target.fileno()).st_size
        target.truncate(length + 1)
        residency_store.store(
            target.fileno(), Residency.whole(length).with_remote(RemoteCopy(
                's3', 'k', 'e', 1.0)).drop(0, length, Tier.SSD))
    return path.split(os.sep)[-2]


def hint_of(disk: Disk, name: str, later: int = 0, policy: int = 0) -> str:
    """The line about a version, or about one that is ``later``."""
    path = disk.data_path(name, policy)
    stamp = Timestamp(os.path.basename(path).partition('#')[0].replace(
        '.data', ''))
    return '%s,%s,%s' % (sending.LEAVING, path.split(os.sep)[-2], Timestamp(
        float(stamp) + later).internal)


@pytest.mark.parametrize('policy', [0, 1], ids=['replicas', 'fragments'])
def test_a_handoff_names_what_it_has_bytes_of(
        disk: Disk, policy: int) -> None:
    index = {'frag_index': 1} if policy else {}
    disk.put('ssd', BODY, policy=policy, **index)
    disk.put('hdd', BODY, ON_HDD, policy=policy, **index)
    disk.put('far', BODY, policy=policy, **index)
    far = make_stub(disk, 'far', policy)
    options = dict(index, frag_prefs=[]) if policy else {}
    lines = lines_of(disk, policy, **options)
    hints = {hint.object_hash: at for at, hint in enumerate(
        map(sending.read_hint, lines)) if hint is not None}
    hashes = [line for line in lines if len(line) == 32]
    assert len(hashes) == 3 and set(hints) == set(hashes) - {far}
    # Right before the offer.
    assert all(lines[at + 1] == hint for hint, at in hints.items())
    # One that removes nothing asks nobody.
    assert not any(map(sending.read_hint, lines_of(
        disk, policy, leaves=False, **options)))


def test_a_partition_may_have_two_locks(disk: Disk) -> None:
    """Swift's relinker removes an empty partition under both."""
    policy = disk.policies[0]
    disk.put('o', BODY)
    with disk.ours.replication_lock('sda', policy, '7'):
        with disk.ours.partition_lock('sda', policy, '7'):
            pass
        lines = list(disk.ours.yield_hashes('sda', '7', policy))
    assert sum(sending.read_hint(line) is not None for line, _ in lines) == 1
    assert not disk.ours.dss_partings.is_leaving(('sda', '7', 0))


def test_a_job_of_tombstones_of_fragments_has_no_index(disk: Disk) -> None:
    disk.put('o', BODY, policy=1, frag_index=1)
    disk.open_file('o', policy=1).delete(Timestamp.now())
    first, tombstone = lines_of(disk, 1, frag_index=None, frag_prefs=[])
    assert first == sending.ANNOUNCEMENT and len(tombstone) == 32


def test_two_objects_at_a_time_leave_room_for_one_line_of_ours(
        disk: Disk) -> None:
    """With a line before it, no fragment would ever be offered."""
    disk.put('o', BODY, policy=1, frag_index=1)
    options = {'frag_index': 1, 'frag_prefs': []}
    assert len(lines_of(disk, 1, **options)) == 3
    for few, lines in (('1', 1), ('2', 2), ('3', 3)):
        disk.ec.__init__(dict(
            disk.options, max_objects_per_revert=few), disk.logger)
        assert len(lines_of(disk, 1, **options)) == lines


def test_a_record_that_cannot_be_read_says_nothing_of_bytes(
        disk: Disk, monkeypatch: Any) -> None:
    disk.put('o', BODY)

    def load(_path: Any) -> None:
        raise OSError(5, 'EIO')
    monkeypatch.setattr(residency_store, 'load', load)
    assert sum(map(bool, map(sending.read_hint, lines_of(disk)))) == 1


def wanted(disk: Disk, line: str) -> str:
    """A receiver's answer to a line of a sender, as Swift makes it."""
    remote = decode_missing(encode_missing(line, **sending.ANNOUNCED[0][1]))
    disk_file = disk.ours.get_diskfile_from_hash(
        'sda', '7', remote['object_hash'], disk.policies[0], frag_index=None,
        open_expired=True).open()
    answer = encode_wanted(remote, {
        'ts_data': disk_file.data_timestamp, 'ts_meta': disk_file.timestamp,
        'ts_ctype': disk_file.content_type_timestamp})
    return '' if answer is None else answer.partition(' ')[2]


def test_a_receiver_asks_where_it_has_a_stub_and_nowhere_else(
        disk: Disk) -> None:
    disk.put('near', BODY)
    disk.put('hdd', BODY, ON_HDD)
    disk.put('far', BODY)
    make_stub(disk, 'far')
    # For no data: there is no such object.
    assert wanted(disk, hint_of(disk, 'far')) == 'm'
    for line in (hint_of(disk, 'near'), hint_of(disk, 'hdd'),
                 # The sender has an older or a newer version.
                 hint_of(disk, 'far', -1), hint_of(disk, 'far', 1),
                 '%s,%s,1700000000.00000' % (sending.LEAVING, 'a' * 32)):
        assert wanted(disk, line) == '', line


class Door:
    """The tier daemon's answers; counts the questions."""

    def __init__(self, monkeypatch: Any) -> None:
        self.asked: List[Any] = []
        self.error: Any = None
        monkeypatch.setattr(parting, 'ask_for_proof', self)

    def __call__(self, _sockets: str, request: Any, _seconds: float) -> None:
        self.asked.append(request)
        if self.error is not None:
            raise self.error


@pytest.fixture
def door(monkeypatch: Any) -> Door:
    return Door(monkeypatch)


def told(disk: Disk, line: str) -> Any:
    """What the sender sends to a receiver that wants a line."""
    return disk.ours.get_diskfile_from_hash(
        'sda', '7', line, disk.policies[0], frag_index=None,
        open_expired=True, frag_prefs=None)


def begun(disk: Disk) -> None:
    """A session begins."""
    next(iter(disk.ours.yield_hashes('sda', '7', disk.policies[0])))


def test_s3_is_asked_once_for_all_receivers_of_a_job(
        disk: Disk, door: Door) -> None:
    disk.put('o', BODY)
    line = hint_of(disk, 'o')
    for jobs in (1, 2):
        with disk.ours.partition_lock('sda', disk.policies[0], '7'):
            for _receiver in range(3):
                begun(disk)
                with pytest.raises(DiskFileNotExist):
                    told(disk, line)
        assert len(door.asked) == jobs
    request = door.asked[0]
    assert request.leaves and request.residency is None
    assert request.version.object_hash in line and request.partition == '7'
    assert disk.logger.counts['dss.ssync.given_up'] == 2


@pytest.mark.parametrize('error', [
    RemoteUnavailable('S3 is away', 1), VersionGone('S3 has lost it')])
def test_a_session_fails_once_where_s3_proves_nothing(
        disk: Disk, door: Door, error: Exception) -> None:
    """Whatever number of versions has to stay."""
    disk.put('a', BODY)
    disk.put('b', BODY)
    door.error = error
    with disk.ours.partition_lock('sda', disk.policies[0], '7'):
        for _receiver in range(3):
            begun(disk)
            notice = told(disk, hint_of(disk, 'a')).open()
            with pytest.raises(DiskFileNotExist):
                told(disk, hint_of(disk, 'b'))
            # A receiver asks for the POST, one of an earlier release for
            # data: without a timestamp no server takes either.
            assert notice.data_timestamp != notice.timestamp
            assert notice.get_metafile_metadata() == {}
            assert (notice.content_length, notice.get_datafile_metadata(),
                    list(notice.reader())) == (0, {}, [])
    assert len(door.asked) == 2
    assert disk.logger.counts['dss.ssync.kept'] == 2


def test_a_receiver_hears_something_while_s3_is_slow(
        disk: Disk, door: Door, monkeypatch: Any) -> None:
    """It would hang up, and the next job would begin with the same ones."""
    now = [1000.0]
    monkeypatch.setattr(parting.time, 'monotonic', lambda: now[0])
    names = [str(number) for number in range(12)]
    for name in names:
        disk.put(name, BODY)
    spoken = []
    with disk.ours.partition_lock('sda', disk.policies[0], '7'):
        begun(disk)
        for at, name in enumerate(names):
            now[0] += 6.0
            try:
                notice = told(disk, hint_of(disk, name)).open()
            except DiskFileNotExist:
                continue
            spoken.append(at)
            # A POST of nothing: 404 is a success.
            assert 'X-Timestamp' in notice.get_metafile_metadata()
            # And to who asks for data, nothing.
            with pytest.raises(DiskFileError):
                assert notice.content_length
    assert spoken == [1, 3, 5, 7, 9, 11]


def test_no_stock_server_makes_anybody_ask(disk: Disk, door: Door) -> None:
    """It wants each line of ours, and has objects as a whole."""
    disk.put('o', BODY)
    with disk.ours.partition_lock('sda', disk.policies[0], '7'):
        begun(disk)
        for line in (sending.ANNOUNCEMENT, hint_of(disk, 'o')):
            with pytest.raises(DiskFileNotExist):
                told(disk, line)
    assert not door.asked


def test_no_job_is_remembered_once_it_is_over(disk: Disk) -> None:
    with pytest.raises(ZeroDivisionError):
        with disk.ours.partition_lock('sda', disk.policies[0], '7'):
            raise ZeroDivisionError()
    assert not disk.ours.dss_partings.is_leaving(('sda', '7', 0))
