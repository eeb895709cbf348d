"""Only a regular file is read, by every program that has a configuration."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys

import pytest

from swift_dss.block import tab
from swift_dss.cli.ask import read_conf
from swift_dss.core.errors import BadConfig
from swift_dss.gateway.link.credentials import SecretFile
from swift_dss.io.start.text import read_text
from swift_dss.objserver.settings import node_for
from swift_dss.proxy.settings import Settings
from swift_dss.tier.inforce import Source
from swift_dss.tier.policies import Policies

LOGGER = logging.getLogger('text-test')


@pytest.fixture()
def pipe(tmp_path):
    path = str(tmp_path / 'swift.conf')
    os.mkfifo(path)
    return path


@pytest.mark.parametrize('read', [
    read_text, read_conf, tab.read,
    lambda path: Source(path).conf(),
    lambda path: SecretFile(path).read(),
    lambda path: node_for({'dss_conf': path}, LOGGER),
    lambda path: Settings(path, '', 1, LOGGER),
    lambda path: Policies(os.path.dirname(path)).load()])
def test_a_pipe_is_refused_at_once(pipe, read):
    with pytest.raises(BadConfig) as refused:
        read(pipe)
    assert pipe in str(refused.value)
    assert 'it is a named pipe, and a file is wanted' in str(refused.value)


@pytest.mark.parametrize('command', [
    ['swift_dss.tier.main', '--config'],
    ['swift_dss.cli.main', 'tier', 'status', '--config'],
    ['swift_dss.cli.main', 'check', '--config']])
def test_a_command_ends_where_its_configuration_is_a_pipe(pipe, command):
    done = subprocess.run(
        [sys.executable, '-m', *command, pipe],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 78, done.stderr
    assert pipe + ': it is a named pipe' in done.stdout + done.stderr
    assert 'Traceback' not in done.stderr


def test_what_else_is_no_file_is_named(tmp_path):
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(tmp_path / 's'))
        with pytest.raises(BadConfig, match='/s: '):
            read_text(str(tmp_path / 's'))
    for path, kind in ((str(tmp_path), 'a folder'),
                       ('/dev/zero', 'a character device')):
        with pytest.raises(BadConfig, match='%s: it is %s' % (path, kind)):
            read_text(path)


def test_text_alone_is_read(tmp_path):
    path = tmp_path / 'dss.conf'
    path.write_text('[dss]\nß = 1\n', encoding='utf-8')
    assert read_text(str(path)) == '[dss]\nß = 1\n'
    path.write_bytes(b'[dss]\n\xff\n')
    with pytest.raises(BadConfig, match='dss.conf: .*0xff'):
        node_for({'dss_conf': str(path)}, LOGGER)
