"""A guest runs what it is told, says how it ended and leaves nothing."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time

import pytest

from swift_dss.block import lab
from swift_dss.block.lab import machine
from swift_dss.core.errors import BadClassInput, BadConfig

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST = os.path.join(HERE, 'lab_guest.py')


def run(*args, **options):
    return lab.run(GUEST, args, say=print, **options)


def traces(marker):
    """Processes whose command line has the marker, and files of runs."""
    entries = []
    for entry in os.listdir('/proc'):
        try:
            with open('/proc/%s/cmdline' % entry, 'rb') as source:
                if marker.encode() in source.read():
                    entries.append(entry)
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
            pass
    return entries


def digest(path):
    with open(path, 'rb') as source:
        return hashlib.sha256(source.read()).hexdigest()


def test_status_and_both_streams_come_back():
    seen = []
    result = run('tell', devices=['fast=nvme:64M', 'plain=raw:64M'],
                 sink=lambda name, data: seen.append(name))
    assert result.status == 7
    assert result.output.splitlines() == [
        'clock %d' % machine.EPOCH_SECONDS, 'loopback 127.0.0.1',
        'devices control fast plain']
    assert result.stderr == b'to stderr\n'
    assert set(seen) == {'stdout', 'stderr'}
    assert not result.complaints


def test_output_is_bytes_and_all_of_them():
    result = run('binary')
    assert result.stdout == bytes(range(256)) * 4096 * 4


def test_guest_writes_only_where_it_is_let(tmp_path):
    before = [digest(path) for path in ('/etc/passwd', GUEST, '/bin/sh')]
    result = run('vandal', str(tmp_path), shares=[str(tmp_path)])
    assert result.status == 0, result.stderr
    assert before == [digest(path) for path in
                      ('/etc/passwd', GUEST, '/bin/sh')]
    assert (tmp_path / 'kept').read_text() == 'from the guest'


def test_an_hour_of_sleep_takes_no_hour():
    result = run('sleep')
    assert 3600 <= result.virtual_seconds < 3600.1
    assert result.real_seconds < 600


def test_chance_is_the_same_in_every_guest_until_another_seed_is_given():
    first, second = run('draw').output, run('draw').output
    assert first == second
    assert len(first.strip()) == 64
    assert run('draw', kernel_options=['random-seed=2']).output != first
    # And in real time it is chance.
    assert run('draw', virtual_time=False).output != first


def test_process_left_behind_does_not_hold_the_guest():
    result = run('orphan')
    assert (result.status, result.output) == (0, 'gone\n')


def test_command_that_does_not_end_is_killed_with_all_it_has():
    seen = []
    marker = 'lab-test-%d' % os.getpid()
    # Long enough for a busy machine to have said its word.
    result = run('spin', timeout=45.0, kernel_options=[marker],
                 virtual_time=False,
                 sink=lambda name, data: seen.append(data))
    assert (result.status, result.killed) == (124, True)
    assert b''.join(seen) == result.stdout == b'spinning\n'
    assert traces(marker) == []


def test_who_spins_in_virtual_time_is_killed_too():
    # Nobody else gets the processor there, not even to hand on output.
    result = run('spin', timeout=10.0)
    assert (result.status, result.killed) == (124, True)


def test_end_by_signal_is_told_as_the_shell_does():
    assert run('signal').status == 128 + 9


def test_panic_is_an_error_with_the_kernels_words():
    with pytest.raises(lab.GuestDied, match='Kernel panic'):
        run('panic')


def test_complaint_of_the_kernel_is_seen():
    result = run('complain')
    assert result.status == 0
    assert any('as the test asked for' in line
               for line in result.complaints)


def test_device_that_cannot_be_made_stops_the_run():
    with pytest.raises(lab.GuestDied, match='zones is 1 to 64'):
        run('tell', devices=['d=hdd,zones=0:64M'])


def test_mistakes_are_found_before_anything_starts():
    with pytest.raises(BadClassInput, match='no preset'):
        run('tell', devices=['d=tape:64M'])
    with pytest.raises(BadConfig, match='variant'):
        run('tell', variant='imaginary')
    with pytest.raises(BadConfig, match='no file'):
        lab.run('/nowhere/at-all')
    with pytest.raises(BadConfig, match='not executable'):
        lab.run(os.path.join(HERE, '..', '..', 'README.md'))
    with pytest.raises(BadConfig, match='no module'):
        run('tell', modules=['imaginary'])


def test_guest_ends_with_the_process_that_started_it():
    marker = 'lab-test-kill-%d' % os.getpid()
    child = subprocess.Popen(
        [sys.executable, '-m', 'swift_dss.cli.main', 'lab', 'run',
         '--real-time', '--kernel-option', marker + '-guest', GUEST,
         'spin'],
        stdout=subprocess.PIPE)
    assert child.stdout.readline() == b'spinning\n'
    assert traces(marker + '-guest')
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    deadline = time.monotonic() + 30
    while traces(marker + '-guest') and time.monotonic() < deadline:
        time.sleep(0.1)
    assert traces(marker + '-guest') == []


def test_command_line_hands_on_status_and_streams():
    done = subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main', 'lab', 'run',
         '--device', 'fast=nvme:64M', GUEST, 'tell'],
        capture_output=True)
    assert done.returncode == 7
    assert b'devices control fast\n' in done.stdout
    assert b'to stderr\n' in done.stderr
