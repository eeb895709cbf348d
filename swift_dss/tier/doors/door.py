"""``admin.sock``, whoever answers: one request a connection, as JSON lines.

See ``wire.control`` for the lines. :mod:`swift_dss.tier.doors.asking` is the
other end, which commands import: it loads nothing of the daemon.
"""

from __future__ import annotations

import abc
import logging
import socket
from typing import Any, Callable, Dict

from swift_dss.core.errors import DamagedRecord, DssError
from swift_dss.tier.doors.asking import refusal
from swift_dss.tier.doors.fetchd import StreamServer, read_line
from swift_dss.wire.control import decode_line, encode_line

_MAX_LINE_BYTES = 65536
_MAX_CLIENTS = 16
Progress = Callable[[Dict[str, Any]], None]


class AdminDoor(abc.ABC):
    """Answers each connection in a thread of its own.

    :param path: of the socket
    """

    def __init__(self, path: str, logger: logging.Logger) -> None:
        self._server = StreamServer(path, 'admin', self._serve,
                                    _MAX_CLIENTS, logger)

    def start(self) -> None:
        """Bind and begin."""
        self._server.start()

    def stop(self) -> None:
        """Cut off who is connected and return."""
        self._server.stop()

    @abc.abstractmethod
    def answer(self, request: Dict[str, Any], progress: Progress) -> Any:
        """The answer to one request; blocks as long as it takes.

        :param progress: is told of what is done so far
        :raises DssError: is what is answered instead
        """

    def _serve(self, connection: socket.socket) -> None:
        def send(message: Dict[str, Any]) -> None:
            connection.sendall(encode_line(message))

        try:
            request = decode_line(read_line(connection, _MAX_LINE_BYTES))
            send({'result': self.answer(
                request, lambda said: send({'progress': said}))})
        except (DssError, DamagedRecord) as err:
            send(refusal(err))
