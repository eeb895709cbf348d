"""Questions to a tier daemon over its admin socket (``wire.control``)."""

from __future__ import annotations

import contextlib
import socket
from typing import Any, BinaryIO, Dict, Iterator

from swift_dss.core.errors import DssError, TierUnavailable
from swift_dss.wire.control import decode_line, encode_line


class DaemonSaid(DssError):
    """An error that the daemon answered with."""

    def __init__(self, text: str, exit_code: int, counter: str) -> None:
        super().__init__(text)
        self.exit_code = exit_code
        self.counter = counter


def refusal(err: DssError) -> Dict[str, Any]:
    """An error as a daemon says it, and :func:`ask` raises it."""
    return {'error': str(err), 'exit_code': err.exit_code,
            'counter': err.counter}


def ask(path: str, request: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """The daemon's answers, line by line; blocks as long as it works.

    :param path: of its ``admin.sock``
    :raises TierUnavailable: no daemon answers
    :raises DaemonSaid: its error
    """
    try:
        connection = _connected(path)
    except OSError as err:
        raise TierUnavailable('no tier daemon answers on %s: %s'
                              % (path, err)) from err
    message: Dict[str, Any] = {}
    with connection, connection.makefile('rb') as lines:
        for line in _lines(connection, lines, request):
            message = decode_line(line)
            if 'error' in message:
                raise DaemonSaid(message['error'], message['exit_code'],
                                 message.get('counter', ''))
            yield message
    if 'result' not in message:
        raise TierUnavailable('the tier daemon stopped on the way')


def _lines(connection: socket.socket, lines: BinaryIO,
           request: Dict[str, Any]) -> Iterator[bytes]:
    """The lines of its answer until it ends, or is ended."""
    with contextlib.suppress(ConnectionError):
        connection.sendall(encode_line(request))
        yield from lines


def answers(path: str) -> bool:
    """True if a daemon listens on an ``admin.sock``."""
    try:
        _connected(path).close()
    except OSError:
        return False
    return True


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection
