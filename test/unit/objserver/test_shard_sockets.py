"""Each shard hears of its own devices, and a reader waits for one."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any, Iterator, List

import pytest
from support.rigs.dss_disk import Disk

from swift_dss.core.errors import RemoteUnavailable
from swift_dss.core.version import VersionId
from swift_dss.objserver import settings
from swift_dss.objserver.fetch import dial, open_fetch
from swift_dss.wire.node import shards
from swift_dss.wire.control import (
    Event, EventKind, FetchRequest, decode_event)
from swift_dss.wire.node.shards import Layout


@pytest.fixture
def disk(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Disk:
    # A file that changes is seen at the next look.
    monkeypatch.setattr(settings, '_LOOK_SECONDS', 0.0)
    made = Disk(str(tmp_path))
    for number in (0, 1):
        os.makedirs(made.node.conf.run_dir + '/shard-%d' % number)
    return made


@pytest.fixture
def ears(disk: Disk) -> Iterator[List[socket.socket]]:
    """Sockets of two shards, and of a daemon without."""
    sockets = []
    for folder in ('shard-0', 'shard-1', '.'):
        ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ear.bind(os.path.join(disk.node.conf.run_dir, folder, 'events.sock'))
        ear.setblocking(False)
        sockets.append(ear)
    yield sockets
    for ear in sockets:
        ear.close()


def divide(disk: Disk, **devices: int) -> None:
    path = os.path.join(disk.node.conf.run_dir, shards.FILE)
    with open(path + '.new', 'wb') as target:
        target.write(shards.encode(Layout(devices)))
    os.replace(path + '.new', path)


def heard(ear: socket.socket) -> List[str]:
    devices = []
    while True:
        try:
            devices.append(decode_event(ear.recv(65536)).version.device)
        except BlockingIOError:
            return devices


def say(disk: Disk, device: str) -> bool:
    version = VersionId(device, 0, '0' * 32, '1700000000.00000')
    return bool(disk.node.events.tell(Event(
        EventKind.PUT, version, '7', 10, '0', at=1.0)))


def test_events_go_to_the_shard_of_their_device(
        disk: Disk, ears: List[socket.socket]) -> None:
    assert say(disk, 'sda')
    assert [heard(ear) for ear in ears] == [[], [], ['sda']]
    divide(disk, sda=0, sdb=1)
    for device in ('sda', 'sdb', 'sdc'):
        assert say(disk, device)
    assert [heard(ear) for ear in ears] == [['sda'], ['sdb'], ['sdc']]
    divide(disk, sda=1, sdb=0)
    for device in ('sda', 'sdb'):
        assert say(disk, device)
    assert [heard(ear) for ear in ears] == [['sdb'], ['sda'], []]
    os.unlink(os.path.join(disk.node.conf.run_dir, shards.FILE))
    assert say(disk, 'sda')
    assert [heard(ear) for ear in ears] == [[], [], ['sda']]


def test_a_damaged_layout_changes_nothing(
        disk: Disk, ears: List[socket.socket]) -> None:
    divide(disk, sda=1)
    assert say(disk, 'sda')
    with open(os.path.join(disk.node.conf.run_dir, shards.FILE),
              'w', encoding='ascii') as target:
        target.write('{')
    assert say(disk, 'sda')
    assert heard(ears[1]) == ['sda', 'sda']
    assert disk.logger.counts['dss.errors.reload'] == 1


def _listen(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(path)
    made.listen(8)
    return made


def test_a_reader_waits_for_a_shard_that_is_started_again(
        disk: Disk) -> None:
    run_dir = disk.node.conf.run_dir
    divide(disk, sda=0)
    sockets = disk.node.sockets('sda')
    came: List[socket.socket] = []
    later = threading.Timer(0.5, lambda: came.append(
        _listen(os.path.join(sockets, 'fetch.sock'))))
    with _listen(os.path.join(run_dir, 'admin.sock')):
        later.start()
        began = time.monotonic()
        dial(sockets, 10.0).close()
        assert time.monotonic() - began > 0.3
    later.join()
    came[0].close()


def test_nobody_waits_where_nobody_starts_it_again(disk: Disk) -> None:
    request = FetchRequest(VersionId(
        'sda', 0, '0' * 32, '1700000000.00000'), '7', 0, 10, 0, 30.0, True)
    divide(disk, sda=0)
    for folder in (disk.node.sockets('sda'), disk.node.conf.run_dir):
        began = time.monotonic()
        with pytest.raises(RemoteUnavailable):
            open_fetch(folder, request)
        assert time.monotonic() - began < 2.0
