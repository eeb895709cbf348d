"""Servers of test clusters that are forks are as those that are started."""

from __future__ import annotations

import http.client
import os
from typing import Any, Iterator

import pytest
from support import nursery, wait_until

from swift_dss.aio import processes
from swift_dss.aio.bed import clock

_NAME = 'account-server'
_LAST_PID = '/proc/sys/kernel/ns_last_pid'
_CONF = """\
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = %d
swift_dir = %s
workers = 0
[pipeline:main]
pipeline = account-server
[app:account-server]
use = egg:swift#account
"""


@pytest.fixture(scope='module')
def spawn() -> Any:
    """Of nurseries, whatever the session uses."""
    return nursery.Nurseries().spawn


@pytest.fixture
def root(tmp_path: Any) -> Iterator[str]:
    """Of a cluster that has ended after the test."""
    yield str(tmp_path)
    processes.end(str(tmp_path))


def _files(root: str) -> int:
    """What a server needs; returns its port."""
    port = processes.free_base_port(1, first=18080)
    with open(os.path.join(root, 'swift.conf'), 'w') as out:
        out.write('[swift-hash]\nswift_hash_path_suffix = a\n')
    with open(os.path.join(root, 'account.conf'), 'w') as out:
        out.write(_CONF % (port, root))
    clock.set_offset(os.path.join(root, 'clock'), 1e9)
    return port


def _log(root: str) -> str:
    with open(os.path.join(root, 'log')) as source:
        return source.read()


@pytest.mark.parametrize('moved', [False, True])
def test_a_server_is_found_and_logs_with_the_clock_of_its_node(
        spawn: Any, root: str, moved: bool) -> None:
    port = _files(root)
    entrance = ['swift_dss.aio.bed.run', os.path.join(root, 'clock')]
    child = spawn(root, _NAME, os.path.join(root, 'log'), [
        '-m', *entrance[:2 * moved], 'swift_dss.aio.run', root, _NAME,
        os.path.join(root, 'account.conf')])
    assert isinstance(child, nursery.Forked)
    wait_until(lambda: processes.listening(port), 30, 'the server')
    asked = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
    asked.request('HEAD', '/sda1/0/account')
    asked.getresponse().read()
    assert processes.find(root) == {_NAME: [child.pid]}
    assert os.getsid(child.pid) == child.pid
    assert child.poll() is None
    child.terminate()
    assert child.wait(30) in (0, -15)
    assert not processes.find(root)
    # eventlet says so of locks that it could not replace.
    assert 'not greened' not in _log(root)
    years = {line[:4] for line in _log(root).splitlines()
             if ' INFO ' in line or ' ERROR ' in line}
    assert years and all((int(year) > 2050) == moved for year in years)


def test_who_fails_says_so_by_its_status_and_its_log(
        spawn: Any, root: str) -> None:
    _files(root)
    child = spawn(root, 'x', os.path.join(root, 'log'),
                  ['-m', 'swift_dss.aio.run', root, 'no-server', 'conf'])
    assert child.wait(30) == 1
    assert "KeyError: 'no-server'" in _log(root)


@pytest.mark.skipif(not os.access(_LAST_PID, os.W_OK),
                    reason='needs root, and a kernel that can restore')
def test_a_number_that_another_had_says_nothing_of_its_end(
        spawn: Any, root: str) -> None:
    """Numbers of processes come again; a long run has all of them."""
    words = ['-m', 'swift_dss.aio.run', _NAME]
    log = os.path.join(root, 'log')
    first = spawn(root, _NAME, log, words)
    assert first.wait(60) > 0
    _files(root)
    words = ['-m', 'swift_dss.aio.run', root, _NAME,
             os.path.join(root, 'account.conf')]
    for _ in range(100):
        # Another process of the machine may be faster.
        with open(_LAST_PID, 'w') as out:
            out.write(str(first.pid - 1))
        second = spawn(root, _NAME, log, words)
        if second.pid == first.pid:
            break
        second.kill()
    assert second.pid == first.pid
    assert second.poll() is None
    second.terminate()
    assert second.wait(60) is not None


def test_other_programs_paths_and_variables_are_no_forks(
        spawn: Any, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = os.path.join(root, 'log')
    words = ['-m', 'swift_dss.aio.run', root, 'no-server', 'conf']

    def forked(arguments: Any, **options: Any) -> bool:
        child = spawn(root, 'x', log, arguments, **options)
        child.wait(30)
        return isinstance(child, nursery.Forked)
    assert not forked(['-c', 'pass'])
    assert not forked([], program='true')
    assert not forked(words, prefix=['nice'])
    assert not forked(words, extra_env={'PYTHONPATH': '/nowhere'})
    monkeypatch.setenv('PYTHONPATH', '/nowhere')
    assert not forked(words)
