"""The door of a tier daemon at which object servers ask for bytes."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any, TypeVar

_Door = TypeVar('_Door', bound='FetchDoor')


class FetchDoor:
    """Listens at a node's ``fetch.sock``; each request has a thread.

    :param root: of the node
    """

    def __init__(self, root: str) -> None:
        self._path = os.path.join(root, 'run', 'fetch.sock')
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self._path)
        self._socket.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    def answer(self, line: bytes, asker: socket.socket) -> None:
        """Answer a request; the connection is closed after it."""
        raise NotImplementedError

    def _serve(self) -> None:
        while True:
            try:
                asker, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._hear, args=(asker,),
                             daemon=True).start()

    def _hear(self, asker: socket.socket) -> None:
        with asker, asker.makefile('rb') as lines:
            self.answer(lines.readline(), asker)

    def __enter__(self: _Door) -> _Door:
        return self

    def __exit__(self, *_: Any) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        os.unlink(self._path)
