"""A loopback TCP server that can be cut off and mended.

What the emulated link and the misbehaving S3 have in common: they listen
on one port, however often they go away, and break what is open when they
do.
"""

from __future__ import annotations

import socket
import struct
import threading
from typing import Optional, Set


class Cuttable:
    """A server; whoever derives from it says what a connection is for."""

    def __init__(self) -> None:
        self.port = 0
        self.accepted = 0
        self._lock = threading.Lock()
        self._open: Set[socket.socket] = set()
        self._listener: Optional[socket.socket] = None
        self.mend()
        self.url = 'http://127.0.0.1:%d' % self.port

    @property
    def is_cut(self) -> bool:
        """Nobody is let in."""
        return self._listener is None

    def cut(self) -> None:
        """Refuse connections, break those that are open."""
        with self._lock:
            listener, self._listener = self._listener, None
            conns = list(self._open)
        if listener is not None:
            # Closing alone does not wake the thread in accept().
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for conn in conns:
            break_off(conn)

    def mend(self) -> None:
        """Listen (again) on the same port."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(('127.0.0.1', self.port))
        listener.listen(128)
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,),
                         daemon=True).start()

    def serve(self, conn: socket.socket) -> None:
        """What a connection is for; in a thread of its own. ``OSError`` is
        what a network does.

        When it returns the connection is closed.
        """
        raise NotImplementedError

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                conn, _peer = listener.accept()
            except OSError:
                return
            if not self._enter(conn, listener):
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(conn,),
                             daemon=True).start()

    def _enter(self, conn: socket.socket,
               listener: Optional[socket.socket] = None) -> bool:
        """Know a connection, so that a cut breaks it; False if there was
        one meanwhile."""
        with self._lock:
            if self._listener is not (listener or self._listener) \
                    or self._listener is None:
                conn.close()
                return False
            self._open.add(conn)
        return True

    def _serve(self, conn: socket.socket) -> None:
        try:
            self.serve(conn)
        except OSError:
            pass  # either side left: what a network does
        finally:
            self._leave(conn)

    def _leave(self, conn: socket.socket) -> None:
        with self._lock:
            self._open.discard(conn)
        conn.close()


def break_off(conn: socket.socket, ways: int = socket.SHUT_RDWR) -> None:
    """End a connection as a crashed peer or a firewall does, and wake the
    threads that use it.

    :param ways: ``SHUT_RD`` where nobody may be sending: the peer then
        sees nothing but RST
    """
    try:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                        struct.pack('ii', 1, 0))
        conn.shutdown(ways)
        conn.close()
    except OSError:
        pass  # it was gone already
