"""What object servers write down while a trace is recorded."""

from __future__ import annotations

import glob
import os
import time
from types import SimpleNamespace
from typing import Any, List, Optional

import pytest
from support.clocks import StillClock
from support.rigs.dss_disk import Disk

from swift_dss.objserver import recorder
from swift_dss.replay.traces import native
from swift_dss.wire import tracing

BODY = b'x' * 1000


def order(disk: Disk, folder: str, seconds: float = 60.0,
          process_bytes: int = 1 << 20) -> None:
    os.makedirs(disk.node.conf.run_dir, exist_ok=True)
    with open(tracing.path_in(disk.node.conf.run_dir), 'wb') as target:
        target.write(tracing.encode(tracing.TraceOrder(
            folder, time.time() + seconds, process_bytes)))


@pytest.fixture
def clock(monkeypatch: Any) -> StillClock:
    """By it the recorder looks for an order once a second."""
    made = StillClock()
    monkeypatch.setattr(recorder, 'time', SimpleNamespace(
        time=time.time, monotonic=made.monotonic))
    return made


def lines(folder: str) -> List[bytes]:
    text_lines: List[bytes] = []
    for path in sorted(glob.glob(os.path.join(folder, '*')), reverse=True):
        with open(path, 'rb') as source:
            text_lines += source.readlines()
    return text_lines


def test_what_was_done_is_a_trace_that_can_be_read(
        disk: Disk, tmp_path: object) -> None:
    folder = str(tmp_path)
    order(disk, folder)
    disk.put('unmistakable', BODY)
    disk.read('unmistakable')
    disk.node.recorder.flush()
    trace = native.read(lines(folder), 'recorded', keep_names=True)
    assert trace.verbs.tolist() == [1, 0]
    assert trace.sizes.tolist() == trace.lengths.tolist() == [1000, 1000]
    assert trace.objects.tolist() == [0, 0]
    # Neither the account's name nor the object's is in it.
    assert b'unmistakable' not in b''.join(lines(folder))
    assert not any(line.split()[2].startswith(b'a/')
                   for line in lines(folder))


def test_without_an_order_nothing_is_noted(
        disk: Disk, tmp_path: object, clock: StillClock,
        monkeypatch: Any) -> None:
    # Nor is a note kept until a timer rings.
    monkeypatch.setattr(recorder.waiting, 'later', lambda *_: True)
    disk.put('o', BODY)
    disk.read('o')
    order(disk, str(tmp_path))
    clock.now += 60.0
    assert disk.node.recorder.is_on()
    disk.node.recorder.flush()
    assert lines(str(tmp_path)) == []


@pytest.mark.parametrize('damage', [None, b'{"folder": 3}'])
def test_an_order_that_is_over_or_damaged_ends_it(
        disk: Disk, tmp_path: object, clock: StillClock,
        damage: Optional[bytes]) -> None:
    order(disk, str(tmp_path))
    assert disk.node.recorder.is_on()
    if damage is None:
        order(disk, str(tmp_path), seconds=-1.0)
    else:
        with open(tracing.path_in(disk.node.conf.run_dir), 'wb') as target:
            target.write(damage)
    clock.now += 60.0
    assert not disk.node.recorder.is_on()
    assert any('trace' in line for line in disk.logger.lines) == bool(damage)


def test_it_never_writes_more_than_it_may(
        disk: Disk, tmp_path: object) -> None:
    folder = str(tmp_path)
    order(disk, folder, process_bytes=4000)
    assert disk.node.recorder.is_on()
    version = _version(disk)
    for at in range(400):
        disk.node.recorder.note('GET', 'a', version, 10, 0, 10, at % 32)
        disk.node.recorder.flush()
    total = sum(os.path.getsize(path)
                for path in glob.glob(os.path.join(folder, '*')))
    assert 1000 < total <= 4000
    # The newest are those that are left.
    assert lines(folder)[-1].endswith(b' %d\n' % (399 % 32))


def test_a_disk_that_fails_is_counted_and_hurts_nobody(
        disk: Disk, tmp_path: object) -> None:
    order(disk, os.path.join(str(tmp_path), 'not', 'there'))
    disk.put('o', BODY)
    assert disk.read('o') == BODY
    disk.node.recorder.flush()
    assert disk.logger.counts['dss.trace.dropped'] >= 1


def _version(disk: Disk) -> object:
    disk.put('p', BODY)
    with disk.open_file('p').open() as disk_file:
        return disk_file.dss_version()


