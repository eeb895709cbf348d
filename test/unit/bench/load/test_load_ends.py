"""The end of a load that is interrupted, killed or cut off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from support import wait_until
from support.edges.far_hosts import at

pytest.importorskip('hdrh')
pytest.importorskip('execnet')


@pytest.fixture
def command(server, far_hosts, tmp_path):
    """A minute of reads, as a process of a terminal."""
    (tmp_path / 's').write_text(json.dumps({
        'name': 'reads', 'run_seconds': 60, 'user_count': 4,
        'crud_profile': [0, 1, 0, 0], 'container_count': 1,
        'sizes': [{'name': 'tiny', 'size_min': 0, 'size_max': 900}],
        'initial_files': {'tiny': 4}}))

    def begin(*words):
        process = subprocess.Popen(
            [sys.executable, '-m', 'swift_dss.cli.main', 'load',
             str(tmp_path / 's'), '--storage-url', server.storage_url,
             '--token', 'a', '--rate', '40', '--json', str(tmp_path / 'out'),
             *words], start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        begun.append(process)
        wait_until(lambda: len(server.asked) > 80)
        return process

    begun = []
    yield begin
    for process in begun:
        process.kill()
        process.wait()
        process.stdout.close()


def test_an_interrupt_of_the_terminal_leaves_the_machines_there(
        command, server, tmp_path):
    """A terminal sends SIGINT to ssh too, as it is in the foreground."""
    process = command(*at('load1', 'load2'))
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=40)[0]
    assert process.returncode == 0, said
    report = json.loads((tmp_path / 'out').read_text())
    assert report['interrupted'] and report['lost'] == 0
    assert all(row['operations'] > 20 for row in report['processes'])
    assert server.objects == server.containers == {}


def test_a_machine_that_hears_nothing_sends_nothing(
        command, server, far_hosts):
    """The way to it is cut, and nobody counts what it does."""
    for name in ('load1', 'load2'):
        far_hosts.customize(name, 'from swift_dss.bench.load.workers import '
                            'worker\nworker.SILENCE_SECONDS = 2.0\n')
    process = command(*at('load1', 'load2'))
    before = len(server.asked)
    # For 2 seconds it is only late.
    wait_until(lambda: len(server.asked) > before + 120)
    os.kill(process.pid, signal.SIGSTOP)
    wait_until(is_quiet(server), 20)
    assert len(server.asked) < before + 400


def is_quiet(server):
    """Tells whether no request has come for a while."""
    newest = [0, 0.0]

    def ask():
        if len(server.asked) != newest[0]:
            newest[:] = len(server.asked), time.monotonic()
        return time.monotonic() - newest[1] > 1.5

    return ask


def test_nothing_is_sent_when_the_command_was_killed(command, server):
    process = command('--processes', '3')
    with open('/proc/%d/task/%d/children' % (process.pid, process.pid)
              ) as source:
        children = [int(pid) for pid in source.read().split()]
    assert len(children) == 3
    process.kill()
    before = len(server.asked)
    wait_until(is_quiet(server), 20)
    assert len(server.asked) < before + 200
    for pid in children:
        wait_until(lambda pid=pid: not os.path.exists('/proc/%d' % pid))


@pytest.mark.parametrize('words', [
    ('--processes', '2'), at('load1', 'load2')])
def test_figures_stay_when_the_clean_up_is_interrupted(
        command, server, far_hosts, tmp_path, words):
    process = command(*words)
    server.delay = lambda method, path: 600.0 * (method == 'DELETE')
    os.killpg(process.pid, signal.SIGINT)
    wait_until(lambda: any(method == 'DELETE'
                           for method, _, _ in server.asked))
    begun = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=40)[0]
    assert time.monotonic() - begun < 20
    assert process.returncode == 130, said
    assert 'the clean-up was interrupted' in said
    report = json.loads((tmp_path / 'out').read_text())
    assert report['operations'] > 60 and report['lost'] == 0
    assert report['interrupted'] and report['uncleaned']


def test_figures_stay_when_users_hang_and_nobody_waits(
        command, server, tmp_path):
    process = command('--processes', '2')
    server.delay = lambda method, path: 600.0
    os.killpg(process.pid, signal.SIGINT)
    wait_until(is_quiet(server))
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=40)[0]
    assert process.returncode == 130, said
    report = json.loads((tmp_path / 'out').read_text())
    assert report['operations'] > 60 and report['interrupted']
