"""Processes of a cluster are found, ended and told from others."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

from swift_dss.aio import processes

SLEEPER = ['-c', 'import time; time.sleep(600)']
STUBBORN = ['-c', 'import signal, time; '
            'signal.signal(signal.SIGTERM, signal.SIG_IGN); '
            'print("ready", flush=True); time.sleep(600)']


def _spawn(tmp_path, root, name, arguments):
    log = str(tmp_path / (name + '.log'))
    return processes.spawn(root, name, log, arguments), log


def test_a_process_is_found_by_root_and_name(tmp_path):
    root = str(tmp_path / 'a')
    child, _log = _spawn(tmp_path, root, 'sleeper', SLEEPER)
    try:
        # Until it has its program it looks like this one.
        assert processes.wait(lambda: processes.find(root) != {}, 10.0)
        assert processes.find(root) == {'sleeper': [child.pid]}
        # A root that is a prefix of ours is another cluster.
        assert processes.find(root[:-1]) == {}
    finally:
        processes.end(root)
        child.wait()
    assert processes.find(root) == {}


def test_end_spares_servers_of_other_names(tmp_path):
    root = str(tmp_path)
    process, _log = _spawn(tmp_path, root, 'one', SLEEPER)
    two, _log = _spawn(tmp_path, root, 'two', SLEEPER)
    try:
        assert processes.wait(lambda: len(processes.find(root)) == 2, 10.0)
        assert processes.end(root, ['one']) == 0
        assert process.wait() == -signal.SIGTERM
        assert processes.find(root) == {'two': [two.pid]}
    finally:
        processes.end(root)
        two.wait()


def test_a_process_that_ignores_sigterm_is_killed(tmp_path):
    root = str(tmp_path)
    child, log = _spawn(tmp_path, root, 'stubborn', STUBBORN)
    assert processes.wait(lambda: 'ready' in processes.tail(log), 10)
    assert processes.end(root, grace_seconds=0.2) == 1
    assert child.wait() == -signal.SIGKILL


_LISTENER = [
    '-c', 'import socket, sys, time\n'
    'memory = bytes(300 << 20).replace(b"\\0", b"x")\n'
    'with socket.socket() as ours:\n'
    '    ours.bind(("127.0.0.1", 0))\n'
    '    ours.listen()\n'
    '    print(ours.getsockname()[1], flush=True)\n'
    '    time.sleep(600)\n']


def test_what_ended_does_not_listen_any_more(tmp_path):
    """Ports are closed after the memory is given back, which takes long
    enough for a start to mistake the old server for the new one."""
    root = str(tmp_path)
    child, log = _spawn(tmp_path, root, 'listener', _LISTENER)
    assert processes.wait(lambda: processes.tail(log).strip().isdigit(), 30)
    port = int(processes.tail(log))
    assert processes.listening(port)
    processes.end(root)
    assert not processes.listening(port)
    child.wait()


def test_output_goes_to_the_log_and_tail_shows_its_end(tmp_path):
    child, log = _spawn(tmp_path, str(tmp_path), 'talker', [
        '-c', 'print("\\n".join(str(n) for n in range(50)))'])
    child.wait()
    assert processes.tail(log, 2) == '    48\n    49'
    assert processes.tail(str(tmp_path / 'absent')) == ''


def test_a_base_port_has_only_free_ports_after_it():
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        port = taken.getsockname()[1]
        assert not processes.port_free(port)
    base = processes.free_base_port(10, first=20000)
    assert all(processes.port_free(base + n) for n in range(10))


_RESERVES = [
    '-c', 'import sys; from swift_dss.aio import processes; '
    'print(processes.free_base_port(10, first=int(sys.argv[1])), '
    'flush=True); sys.stdin.read()']


def test_two_processes_never_get_the_same_ports():
    """Nobody listens yet: only the reservation tells them apart."""
    ours = processes.free_base_port(10, first=21000)
    other = subprocess.Popen(
        [sys.executable] + _RESERVES + [str(ours)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True)
    try:
        theirs = int(other.stdout.readline())
        assert theirs >= ours + 10
        # Blocks of another size do not reach into theirs either.
        third = processes.free_base_port(4, first=theirs - 2)
        assert third >= theirs + 10
    finally:
        other.communicate()
    # It ended, and so did its reservation.
    assert processes.free_base_port(10, first=theirs) == theirs or \
        not processes.port_free(theirs)


def test_a_child_joins_the_groups_that_it_is_given(tmp_path):
    procs = tmp_path / 'cgroup.procs'
    child = processes.spawn(str(tmp_path), 'x', str(tmp_path / 'x.log'),
                            ['-c', 'pass'], [str(procs)])
    child.wait()
    assert procs.read_text() == '%d\n' % child.pid
    assert child.pid != os.getpid()


#: Told to end, its first thread does at once, and the other one a second
#: later, with the socket. So may one whose threads are all killed.
LATE = '\n'.join([
    'import ctypes, os, platform, signal, socket, sys, threading, time',
    'held = socket.socket(socket.AF_UNIX)',
    'held.bind(sys.argv[1])',
    'told = threading.Event()',
    'def end_late():',
    '    told.wait()',
    '    time.sleep(1.0)',
    '    os._exit(0)',
    'threading.Thread(target=end_late).start()',
    'def end(*_):',
    '    told.set()',
    '    number = {"x86_64": 60}.get(platform.machine(), 93)',
    '    ctypes.CDLL(None).syscall(number, 0)',
    'signal.signal(signal.SIGTERM, end)',
    'held.listen()',
    'while True:',
    '    signal.pause()'])


def test_one_whose_first_thread_has_ended_is_waited_for(tmp_path):
    root, path = str(tmp_path), str(tmp_path / 'sock')
    child, _log = _spawn(tmp_path, root, 'late', ['-c', LATE, path])
    try:
        assert processes.wait(lambda: processes.listening_unix(path), 60)
        assert processes.end(root, grace_seconds=60.0) == 0
        assert not processes.listening_unix(path)
    finally:
        child.kill()
        child.wait()
