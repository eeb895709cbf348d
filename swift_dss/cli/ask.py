"""Asking the tier daemon over its admin socket, for every command."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import textwrap
from typing import (
    Any, BinaryIO, Callable, Dict, Iterable, Iterator, Optional, Sequence)

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, DssError, TierUnavailable
from swift_dss.wire.control import decode_line, encode_line
from swift_dss.wire.settings import nodeconf

#: "swift-dss aio env" names the all-in-one cluster's.
CONFIG = os.environ.get('SWIFT_DSS_CONF', '/etc/swift/dss.conf')


class DaemonSaid(DssError):
    """An error that the daemon answered with."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def ask(conf: NodeConf, request: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """The daemon's answers, line by line.

    :raises TierUnavailable: no daemon answers
    :raises DaemonSaid: its error
    """
    path = os.path.join(conf.run_dir, 'admin.sock')
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError as err:
        connection.close()
        raise TierUnavailable('no tier daemon answers on %s: %s'
                              % (path, err)) from err
    message: Dict[str, Any] = {}
    with connection, connection.makefile('rb') as lines:
        for line in _lines(connection, lines, request):
            message = decode_line(line)
            if 'error' in message:
                raise DaemonSaid(message['error'], message['exit_code'])
            yield message
    if 'result' not in message:
        raise TierUnavailable('the tier daemon stopped on the way')


def _lines(connection: socket.socket, lines: BinaryIO,
           request: Dict[str, Any]) -> Iterator[bytes]:
    """The daemon's answer, until either side closes the connection."""
    with contextlib.suppress(ConnectionError):
        connection.sendall(encode_line(request))
        yield from lines


def result(messages: Iterator[Dict[str, Any]],
           progress: Optional[Callable[[Dict[str, Any]], None]] = None
           ) -> Any:
    """The last answer; ``progress`` is shown the ones before it."""
    found = None
    for message in messages:
        if progress is not None and 'progress' in message:
            progress(message['progress'])
        found = message.get('result', found)
    return found


def read_conf(path: str) -> NodeConf:
    """:raises BadConfig: the file is missing or does not parse."""
    try:
        with open(path, encoding='utf-8') as source:
            return nodeconf.parse(source.read(), path, os.environ)
    except (OSError, UnicodeDecodeError) as err:
        raise BadConfig('%s: %s (say which with --config)'
                        % (path, err)) from err


def json_text(found: Any) -> str:
    """As every ``--json`` prints it."""
    return json.dumps(found, indent=2, sort_keys=True)


def json_rows(pages: Iterable[Sequence[Any]]) -> None:
    """Print one list of all rows of pages as :func:`json_text` would, with
    no more than a page of them in memory."""
    before = '['
    for rows in pages:
        for row in rows:
            print(before + '\n' + textwrap.indent(json_text(row), '  '),
                  end='')
            before = ','
    print('[]' if before == '[' else '\n]')
