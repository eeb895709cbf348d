"""Unix sockets at which the daemon answers.

One request a connection, each in a thread of its own. At ``admin.sock`` these
are JSON lines (see ``wire.control``); :mod:`swift_dss.tier.doors.asking` is
their other end, which commands import: it loads nothing of the daemon.
"""

from __future__ import annotations

import abc
import contextlib
import logging
import os
import socket
import threading
from typing import Any, Callable, Dict, Set

from swift_dss.core.errors import DamagedRecord, DssError
from swift_dss.tier.doors.asking import refusal
from swift_dss.wire.control import decode_line, encode_line

_MAX_LINE_BYTES = 65536
_MAX_CLIENTS = 16
Progress = Callable[[Dict[str, Any]], None]


class StreamServer(abc.ABC):
    """Answers at a Unix stream socket, each connection in a thread of its
    own.

    :param name: of its threads
    :param limit: connections at a time; more wait in the socket's queue
    """

    def __init__(self, path: str, name: str, limit: int,
                 logger: logging.Logger) -> None:
        self._path = path
        self._name = name
        self._logger = logger
        self._slots = threading.BoundedSemaphore(limit)
        self._guard = threading.Lock()
        self._open: Set[socket.socket] = set()
        self._stopping = False
        self._socket: socket.socket
        self._thread = threading.Thread(
            target=self._accept, name='dss-' + name, daemon=True)

    def start(self) -> None:
        """Bind and begin."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self._path)
        os.chmod(self._path, 0o660)
        self._socket.listen(128)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more and cut off those that are connected."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with self._guard:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)

    @abc.abstractmethod
    def serve(self, connection: socket.socket) -> None:
        """Answer the one request of a connection, which is closed after it;
        blocks until it has."""

    def _accept(self) -> None:
        while not self._stopping:
            self._slots.acquire()
            try:
                connection, _ = self._socket.accept()
            except OSError as err:
                self._slots.release()
                if not self._stopping:
                    self._logger.error('%s socket: %s', self._name, err)
                return
            with self._guard:
                self._open.add(connection)
            threading.Thread(target=self._run, args=(connection,),
                             name='dss-%s-one' % self._name,
                             daemon=True).start()

    def _run(self, connection: socket.socket) -> None:
        try:
            self.serve(connection)
        except OSError as err:
            self._logger.debug('%s: reader left: %s', self._name, err)
        except Exception:
            # One bad request must not take the daemon down.
            self._logger.exception('%s request failed', self._name)
        finally:
            with self._guard:
                self._open.discard(connection)
            connection.close()
            self._slots.release()


class AdminDoor(StreamServer):
    """Answers operators' requests.

    :param path: of the socket
    """

    def __init__(self, path: str, logger: logging.Logger) -> None:
        super().__init__(path, 'admin', _MAX_CLIENTS, logger)

    @abc.abstractmethod
    def answer(self, request: Dict[str, Any], progress: Progress) -> Any:
        """The answer to one request; blocks as long as it takes.

        :param progress: is told of what is done so far
        :raises DssError: is what is answered instead
        """

    def serve(self, connection: socket.socket) -> None:
        """See :meth:`StreamServer.serve`."""
        def send(message: Dict[str, Any]) -> None:
            connection.sendall(encode_line(message))

        try:
            request = decode_line(read_line(connection, _MAX_LINE_BYTES))
            send({'result': self.answer(
                request, lambda said: send({'progress': said}))})
        except (DssError, DamagedRecord) as err:
            send(refusal(err))


def read_line(connection: socket.socket, limit: int) -> bytes:
    """One line from a stream socket.

    :raises DamagedRecord: longer than ``limit`` or cut off
    """
    raw = b''
    while not raw.endswith(b'\n'):
        data = connection.recv(4096)
        raw += data
        if not data or len(raw) > limit:
            raise DamagedRecord('request line cut off after %d bytes'
                                % len(raw))
    return raw
