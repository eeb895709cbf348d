"""What the driver of block benchmarks is told and what it answers."""

import json
import os
import struct
import subprocess

import pytest

from swift_dss.bench.block import driver
from swift_dss.bench.block.driver import (
    CHAINED, DUE, FLUSH, WRITE, DriverFailed, Request)

MIB = 1 << 20


@pytest.mark.parametrize('bad, reason', [
    (Request(-4096, 4096), 'offset -4096'),
    (Request(512, 4096), 'offset 512'),
    (Request(0, 0), 'length 0'),
    (Request(0, 2 * MIB), 'length 2097152'),
    (Request(0, 4096, 32), 'class 32 is not in 0..31'),
    (Request(0, 4096, 0, 64), 'flags 64'),
    (Request(0, 4096, 0, FLUSH), 'a flush belongs to a write'),
    (Request(0, 4096, 0, 0, -1), 'it waits -1 ns'),
])
def test_a_request_that_cannot_be_is_named(bad, reason):
    with pytest.raises(DriverFailed) as caught:
        driver.encode([Request(0, 4096), bad])
    assert 'request 1: ' in str(caught.value)
    assert reason in str(caught.value)


def test_a_list_comes_back_as_it_was():
    listed = [Request(8192, 4096, 31, WRITE | FLUSH, 7),
              Request(0, MIB, 0, CHAINED | DUE, 1 << 40)]
    assert driver.decode(driver.encode(listed)) == listed
    with pytest.raises(DriverFailed, match='cut off'):
        driver.decode(driver.encode(listed)[:-1])


@pytest.mark.parametrize('said', [
    '', '[]', '{"seconds": 1}',
    '{"seconds": "x", "wrong": 0, "failed": 0, "trouble": ""}'])
def test_other_words_of_the_driver_are_refused(said):
    with pytest.raises(DriverFailed, match='the driver said'):
        driver.outcome(said, b'', 0)


def test_times_of_another_list_are_refused():
    said = '{"seconds": 1, "wrong": 0, "failed": 0, "trouble": ""}'
    with pytest.raises(DriverFailed, match='16 bytes of times for 2'):
        driver.outcome(said, bytes(16), 2)


def test_the_summary_counts_by_class_and_direction():
    listed = [Request(0, 4096, 3), Request(4096, 8192, 3, WRITE),
              Request(0, 4096, 5), Request(0, 4096, 5)]
    outcome = driver.outcome(
        '{"seconds": 2.0, "wrong": 0, "failed": 0, "trouble": ""}',
        struct.pack('<8Q', 0, 1000, 0, 3000, 0, 2000, 0, 0), 4)
    told = driver.summary(listed, outcome)
    assert told['all']['requests'] == 3  # The last was not issued.
    assert told['all']['mean_us'] == 2.0
    assert told['all']['max_us'] == 3.0
    assert told['read']['requests'] == 2
    assert told['write']['bytes'] == 8192
    assert list(told['classes']) == ['3', '5']
    assert told['classes']['3']['p50_us'] == 1.0
    assert told['all']['mb_per_second'] == pytest.approx(16384 / 2e6)


@pytest.fixture(scope='module')
def program():
    return driver.build(lambda line: None)


@pytest.fixture
def device():
    """A loop device over a file in memory."""
    path = '/dev/shm/block-driver-test-%d' % os.getpid()
    with open(path, 'wb') as out:
        out.truncate(4 * MIB)
    made = subprocess.run(['losetup', '-f', '--show', path],
                          capture_output=True, text=True)
    if made.returncode:
        os.unlink(path)
        pytest.skip('no loop devices: %s' % made.stderr)
    yield made.stdout.strip()
    subprocess.run(['losetup', '-d', made.stdout.strip()], check=True)
    os.unlink(path)


class Replayer:
    """Runs the driver on a device."""

    def __init__(self, program, device, folder):
        self.program, self.device = program, device
        self.folder = folder

    def run(self, listed, threads=1, seconds=0):
        path = self.folder / 'list'
        path.write_bytes(driver.encode(listed))
        done = subprocess.run(
            [self.program, self.device, str(path),
             str(self.folder / 'times'), str(self.folder / 'state'),
             str(threads), str(seconds)], capture_output=True, text=True,
            timeout=60)
        if done.returncode not in (0, 1):
            return done
        return driver.outcome(
            done.stdout, (self.folder / 'times').read_bytes(), len(listed))


@pytest.fixture
def replayer(program, device, tmp_path):
    return Replayer(program, device, tmp_path)


def test_every_request_is_served_and_timed(replayer):
    listed = [Request(4096 * (n % 1024), 4096, n % 32,
                      WRITE if n % 3 else 0) for n in range(600)]
    outcome = replayer.run(listed, threads=8)
    assert (outcome.wrong, outcome.failed) == (0, 0)
    assert all(outcome.taken_ns)
    again = replayer.run([Request(0, MIB), Request(MIB, MIB, 0, CHAINED)])
    assert (again.wrong, again.failed) == (0, 0)


def test_no_request_begins_after_its_time(replayer):
    listed = [Request(0, 4096, 0, 0, 50 * 10**6) for _ in range(100)]
    outcome = replayer.run(listed, seconds=0.2)
    assert 0 < sum(1 for taken in outcome.taken_ns if taken) < 20


@pytest.mark.parametrize('damage, trouble', [
    (lambda data: bytes(4096), 'stale version at byte 4096'),
    (lambda data: data[:4000] + bytes(96), 'torn block at byte 4096'),
    (lambda data: struct.pack('<QQ', 9, 1) + data[16:-16]
     + struct.pack('<QQ', 9, 1), "another block's bytes at byte 4096"),
    (lambda data: struct.pack('<QQ', 2, 9) + data[16:-16]
     + struct.pack('<QQ', 2, 9), 'version never written at byte 4096'),
])
def test_wrong_bytes_are_seen(replayer, damage, trouble):
    replayer.run([Request(4096, 4096, 0, WRITE)])
    with open(replayer.device, 'r+b', buffering=0) as disk:
        disk.seek(4096)
        data = disk.read(4096)
        disk.seek(4096)
        disk.write(damage(data))
        os.fsync(disk.fileno())
    outcome = replayer.run([Request(0, 16384)])
    assert outcome.wrong == 1
    assert outcome.trouble.startswith(trouble)


def test_an_old_version_is_stale(replayer):
    writes = [Request(4096, 4096, 0, WRITE)]
    replayer.run(writes)
    with open(replayer.device, 'rb', buffering=0) as disk:
        disk.seek(4096)
        old = disk.read(4096)
    replayer.run(writes)
    with open(replayer.device, 'r+b', buffering=0) as disk:
        disk.seek(4096)
        disk.write(old)
        os.fsync(disk.fileno())
    outcome = replayer.run([Request(4096, 4096)])
    assert (outcome.wrong, outcome.failed) == (1, 0)
    assert outcome.trouble == 'stale version at byte 4096: 1, not 2'


def test_a_request_beyond_the_device_is_refused(replayer):
    done = replayer.run([Request(4 * MIB, 4096)])
    assert done.returncode == 2
    assert 'request 0: 4096 bytes at 4194304 do not fit' in done.stderr


def test_a_failed_request_is_counted(replayer, tmp_path):
    if os.geteuid():
        pytest.skip('needs a read-only device')
    subprocess.run(['blockdev', '--setro', replayer.device], check=True)
    try:
        done = replayer.run([Request(0, 4096, 0, WRITE)])
    finally:
        subprocess.run(['blockdev', '--setrw', replayer.device], check=True)
    # A read-only device is not even opened for writing, or fails writes.
    if isinstance(done, subprocess.CompletedProcess):
        assert done.returncode == 2 and replayer.device in done.stderr
    else:
        assert done.failed == 1


def test_the_state_of_another_device_is_refused(replayer):
    replayer.run([Request(0, 4096)])
    (replayer.folder / 'state').write_bytes(bytes(16))
    done = replayer.run([Request(0, 4096)])
    assert done.returncode == 2
    assert 'state' in done.stderr


def test_what_it_prints_is_json(replayer):
    path = replayer.folder / 'list'
    path.write_bytes(driver.encode([Request(0, 4096)]))
    done = subprocess.run(
        [replayer.program, replayer.device, str(path),
         str(replayer.folder / 'times'), str(replayer.folder / 'state'),
         '1', '0'], capture_output=True, text=True, timeout=60)
    assert set(json.loads(done.stdout)) == {
        'seconds', 'wrong', 'failed', 'trouble'}
