"""What ssync's sender gets to see of our diskfiles."""

from __future__ import annotations

import os
from typing import Any, Dict

import pytest
from dss_disk import Disk
from swift.common.exceptions import DiskFileError

from swift_dss.core.spans import ClassMap
from swift_dss.objserver import sending

BODY = os.urandom(100000)
ON_HDD = ClassMap.uniform(2)


def offered(disk: Disk, policy: int = 0) -> Dict[str, Any]:
    """What a session offers; the session begins with it."""
    manager = disk.ec if policy else disk.ours
    first, *rest = manager.yield_hashes('sda', '7', disk.policies[policy])
    assert first[0] == sending.ANNOUNCEMENT
    return dict(rest)


def to_send(disk: Disk, object_hash: str, **options: Any) -> Any:
    found = disk.ours.get_diskfile_from_hash(
        'sda', '7', object_hash, disk.policies[0],
        **dict({'open_expired': True, 'frag_prefs': None}, **options))
    return found.open()


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


def test_a_fragment_to_be_rebuilt_lends_its_metadata_only(
        disk: Disk) -> None:
    """The reconstructor asks other servers for bytes, so that this one's
    need not be here."""
    disk.put('o', BODY, ON_HDD, policy=1, frag_index=1)
    os.rename(disk.capacity_path, disk.capacity_path + '.away')
    object_hash, = offered(disk, 1)
    for preferences, is_ready in ((None, True), ([], False)):
        found = disk.ec.get_diskfile_from_hash(
            'sda', '7', object_hash, disk.policies[1], frag_index=1,
            open_expired=True, frag_prefs=preferences).open()
        assert (found.content_length == len(BODY)) is is_ready
        assert ('X-Timestamp' in found.get_datafile_metadata()) is is_ready


def test_sessions_are_not_remembered_without_end() -> None:
    sessions = sending.Sessions()
    for number in range(3 * sending._MAX_SESSIONS):
        assert sessions.leave_out(('sda', str(number), 0, None))
    assert len(sessions._incomplete) <= sending._MAX_SESSIONS
