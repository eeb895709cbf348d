"""What a command makes of a daemon that goes away."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading

import pytest

from swift_dss.cli import ask
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import TierUnavailable


@contextlib.contextmanager
def daemon(behave):
    """A daemon that deals with one connection; its configuration."""
    with tempfile.TemporaryDirectory() as run_dir, \
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(os.path.join(run_dir, 'admin.sock'))
        listener.listen(1)

        def serve():
            connection, _ = listener.accept()
            with connection:
                behave(connection)
        thread = threading.Thread(target=serve)
        thread.start()
        yield NodeConf(run_dir=run_dir)
        thread.join()


def read_first(*lines):
    def behave(connection):
        assert connection.recv(4096).endswith(b'\n')
        for line in lines:
            connection.sendall(line)
    return behave


def test_the_result_and_what_came_before():
    with daemon(read_first(b'{"progress": 1}\n', b'{"result": 7}\n')) as conf:
        shown = []
        assert ask.result(ask.ask(conf, {'verb': 'x'}), shown.append) == 7
        assert shown == [1]


def test_an_error_of_the_daemon_is_told_as_it_is():
    with daemon(read_first(
            b'{"error": "no such object", "exit_code": 3}\n')) as conf:
        with pytest.raises(ask.DaemonSaid, match='no such object') as caught:
            ask.result(ask.ask(conf, {'verb': 'x'}))
        assert caught.value.exit_code == 3


@pytest.mark.parametrize('behave', [
    lambda connection: None,                # resets: the request is unread
    read_first(), read_first(b'{"progress": 1}\n')])
def test_a_daemon_that_ends_on_the_way_is_named(behave):
    with daemon(behave) as conf:
        with pytest.raises(TierUnavailable, match='stopped on the way'):
            ask.result(ask.ask(conf, {'verb': 'x' * 100}))


def test_no_daemon_at_all_is_named(tmp_path):
    with pytest.raises(TierUnavailable, match='no tier daemon answers'):
        ask.result(ask.ask(NodeConf(run_dir=str(tmp_path)), {}))


@pytest.mark.parametrize('pages', [
    [], [[]], [[{'name': 'o', 'n': [1, None]}]],
    [[{'name': 'a\u2028b'}, 'x'], [], [{}, {'n': {'x': 1}}]]])
def test_rows_of_pages_are_printed_as_one_list(capsys, pages):
    ask.json_rows(iter(pages))
    assert capsys.readouterr().out == ask.json_text(
        [row for page in pages for row in page]) + '\n'


def test_a_page_is_printed_before_the_next_comes(capsys):
    def pages():
        yield [1, 2]
        assert capsys.readouterr().out == '[\n  1,\n  2'
        yield [3]

    ask.json_rows(pages())
    assert capsys.readouterr().out == ',\n  3\n]\n'
