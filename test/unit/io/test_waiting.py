"""What requests wait with: the same in green threads and in threads."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest
from support.waiting_forms import in_green

from swift_dss.io import waiting

ROOT = Path(__file__).resolve().parents[3]
#: Tests that run in both forms, and who may import eventlet in a process of
#: threads: Swift does so all over, also where it uses none of it.
BOTH = [('test/unit/io/test_pools.py', 'nobody'),
        ('test/unit/io/test_waiting.py', 'nobody'),
        ('test/unit/proxy/test_shared_pressures.py', 'nobody'),
        ('test/unit/proxy/test_requests_at_once.py', 'ours'),
        ('test/unit/proxy/test_proxy_admission.py', 'ours')]


@pytest.mark.skipif('support.no_eventlet' in sys.modules,
                    reason='it is that process')
@pytest.mark.parametrize('path, importer', BOTH)
def test_threads_need_no_eventlet(path: str, importer: str) -> None:
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider',
         '-p', 'support.no_eventlet', '-p', 'support.waiting_forms',
         '--noconftest', path],
        cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=300,
        env=dict(os.environ, NO_EVENTLET=importer,
                 PYTHONPATH=str(ROOT / 'test')))
    assert done.returncode == 0, done.stdout
    assert ' passed' in done.stdout and 'green' not in done.stdout


@pytest.mark.skipif('support.no_eventlet' in sys.modules,
                    reason='it is about eventlet')
def test_what_a_test_begins_ends_with_it() -> None:
    """Else it goes on in the loop of a later test, for ever."""
    import eventlet
    turns: List[float] = []

    def for_ever() -> None:
        while True:
            turns.append(time.monotonic())
            waiting.sleep(0)

    with in_green():
        waiting.spawn(for_ever)
        while not turns:
            waiting.sleep(0)
    seen = len(turns)
    for _turn in range(10):
        eventlet.sleep(0)
    assert len(turns) == seen


def _sleep_until(so: Callable[[], bool]) -> None:
    """Sleep in short naps until something is so; ten seconds at most."""
    ends = time.monotonic() + 10
    while not so() and time.monotonic() < ends:
        waiting.sleep(0.001)


def test_others_go_on_while_one_sleeps(form: Any) -> None:
    order: List[str] = []

    def sleeps_until_the_other_ran() -> None:
        _sleep_until(lambda: bool(order))
        order.append('late')

    late = form.begin(sleeps_until_the_other_ran)
    form.begin(order.append, 'soon').wait()
    late.wait()
    assert order == ['soon', 'late']


def test_all_run_at_once_and_answer_in_their_order(form: Any) -> None:
    begun: List[int] = []
    ended: List[int] = []

    def look(number: int) -> int:
        begun.append(number)
        _sleep_until(lambda: len(begun) == 3)
        _sleep_until(lambda: len(ended) == 2 - number)
        ended.append(number)
        return number * 10

    assert list(waiting.together(look, range(3))) == [0, 10, 20]
    assert ended == [2, 1, 0]
    assert list(waiting.together(look, [])) == []


def test_a_descriptor_is_waited_for_until_it_takes_bytes(form: Any) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    try:
        while True:
            ours.send(b'x' * 65536)
    except BlockingIOError:
        pass
    waits = form.begin(waiting.until_writable, ours.fileno())
    drained: List[int] = []
    theirs.setblocking(False)

    def drain() -> None:
        try:
            while True:
                drained.append(len(theirs.recv(1 << 20)))
        except BlockingIOError:
            pass

    form.begin(drain).wait()
    waits.wait()
    assert drained
    ours.send(b'x')
    ours.close()
    theirs.close()


@pytest.fixture
def serve() -> Iterator[Callable[[List[Any]], int]]:
    """A server that sends bytes, and waits where a number says so."""
    listeners: List[socket.socket] = []

    def start(steps: List[Any]) -> int:
        listener = socket.create_server(('127.0.0.1', 0))
        listeners.append(listener)

        def answer() -> None:
            client, _ = listener.accept()
            with client:
                asked.append(client.recv(65536))
                for step in steps:
                    if isinstance(step, bytes):
                        try:
                            client.sendall(step)
                        except OSError:
                            return
                    else:
                        time.sleep(step)

        asked: List[bytes] = []
        start.asked = asked  # type: ignore[attr-defined]
        threading.Thread(target=answer, daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for listener in listeners:
        listener.close()


def test_an_answer_is_read_up_to_a_bound(form: Any, serve: Any) -> None:
    port = serve([b'HTTP/1.1 200 OK\r\nX-Some: 5\r\nContent-Length: 9\r\n\r\n',
                  b'123456789'])
    status, headers, body = waiting.fetch(
        '127.0.0.1', port, '/dss/x', {'X-Asked': 'y'}, 4, 5)
    assert (status, headers.get('x-some'), body) == (200, '5', b'1234')
    (request,) = serve.asked
    assert request.startswith(b'GET /dss/x HTTP/1.1\r\n')
    assert b'X-Asked: y\r\n' in request


@pytest.mark.parametrize('steps', [
    [60], [b'HTTP/1.1 200 OK\r\n', 60],
    # A byte now and then: no single wait is long.
    [b'HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n']
    + [b'x', 0.02] * 300], ids=['silence', 'half a head', 'drops'])
def test_a_slow_server_holds_a_request_up_no_longer_than_the_limit(
        form: Any, serve: Any, steps: List[Any]) -> None:
    port = serve(steps)
    began = time.monotonic()
    with pytest.raises(OSError):
        waiting.fetch('127.0.0.1', port, '/', {}, 9999, 0.2)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize('steps', [
    [b'nonsense\r\n\r\n'], [b''], [
        b'HTTP/1.1 200 OK\r\n' + b'X: y\r\n' * 9999 + b'\r\n']])
def test_what_is_no_http_is_an_error_of_the_server(
        form: Any, serve: Any, steps: List[Any]) -> None:
    with pytest.raises(OSError):
        waiting.fetch('127.0.0.1', serve(steps), '/', {}, 9999, 5)


def test_a_server_that_is_not_there_is_an_error(form: Any) -> None:
    with socket.create_server(('127.0.0.1', 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        waiting.fetch('127.0.0.1', port, '/', {}, 9999, 5)


def test_only_an_event_loop_calls_later(form: Any) -> None:
    called: List[int] = []
    if waiting.later(0.001, lambda: called.append(1)):
        form.until(lambda: called)
        assert form.name == 'green'
    else:
        assert form.name == 'threads'
    assert waiting.is_green() == (form.name == 'green')
