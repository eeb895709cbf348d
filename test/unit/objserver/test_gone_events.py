"""Data files that Swift takes away: the tier daemon is told."""

from __future__ import annotations

import os
import socket
from typing import Any, Iterator, List

import pytest
from support.rigs.dss_disk import Disk
from swift.common.utils import Timestamp
from swift.obj.diskfile import DiskFileQuarantined

from swift_dss.core.limits import MAX_EVENT_BYTES
from swift_dss.wire import control
from swift_dss.wire.control import EventKind

BODY = b'x' * 1000


@pytest.fixture
def heard(disk: Disk) -> Iterator[Any]:
    run_dir = disk.node.conf.run_dir
    os.makedirs(run_dir)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.bind(os.path.join(run_dir, 'events.sock'))
    listening.setblocking(False)
    yield listening
    listening.close()


def gone(heard: Any) -> List[control.Event]:
    """What was said to be gone since the last call."""
    events = []
    while True:
        try:
            raw = heard.recv(2 * MAX_EVENT_BYTES)
        except BlockingIOError:
            return events
        events += [event for event in map(
            control.decode_event, control.split_events(raw))
            if event.kind is EventKind.GONE]


def test_a_quarantine_is_told(disk: Disk, heard: Any) -> None:
    version = disk.put('o', BODY).open().dss_version()
    with open(disk.data_path('o'), 'ab') as damaged:
        damaged.write(b'more than it has')
    with pytest.raises(DiskFileQuarantined):
        disk.open_file('o').open()
    event, = gone(heard)
    assert (event.version, event.partition) == (version, '7')
    assert len(disk.quarantined()) == 1


def test_a_suffix_put_aside_as_a_whole_is_told(
        disk: Disk, heard: Any) -> None:
    version = disk.put('o', BODY).open().dss_version()
    suffix = os.path.dirname(os.path.dirname(disk.data_path('o')))
    disk.ours.quarantine_dir_renamer(disk.device, suffix)
    assert [event.version for event in gone(heard)] == [version]


def test_a_fragment_that_is_handed_over_is_told(
        disk: Disk, heard: Any) -> None:
    disk.put('o', BODY, policy=1, frag_index=2, timestamp='1700000000')
    disk_file = disk.open_file('o', policy=1).open()
    version, path = disk_file.dss_version(), disk.data_path('o', policy=1)
    assert version.frag_index == 2 and os.path.exists(path)
    disk_file.purge(Timestamp('1700000000'), 2)
    event, = gone(heard)
    assert (event.version, event.partition) == (version, '7')
    assert not os.path.exists(path)
    # A tombstone is in no index.
    disk.open_file('o', policy=1).purge(Timestamp('1700000000'), None)
    assert gone(heard) == []


def test_what_hashing_clears_away_is_told(disk: Disk, heard: Any) -> None:
    disk.put('o', BODY, timestamp='1700000000')
    path = disk.data_path('o')
    version = disk.open_file('o').open().dss_version()
    # As a server that died between naming a version and clearing the one
    # before it leaves them.
    os.rename(path, path + '.kept')
    disk.put('o', BODY, timestamp='1700000001')
    os.rename(path + '.kept', path)
    gone(heard)
    disk.ours.get_hashes('sda', '7', [path.split(os.sep)[-3]],
                         disk.policies[0])
    assert [event.version for event in gone(heard)] == [version]
    assert not os.path.exists(path)


def test_an_overwrite_says_so_once(disk: Disk, heard: Any) -> None:
    for policy in (0, 1):
        for second in ('1700000000', '1700000001'):
            disk.put('o', BODY, policy=policy, timestamp=second,
                     frag_index=policy or None)
        disk.open_file('o', policy=policy).delete(Timestamp('1700000002'))
    assert gone(heard) == []
