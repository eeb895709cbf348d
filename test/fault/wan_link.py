"""A long thin link on loopback: latency, bandwidth, stalls and cuts.

A TCP proxy. Bytes of each direction pass one gate of a given rate, shared
by all connections, and come out ``delay_seconds`` later. It changes no
byte, and says how many went by, so that a test can show that the link was
what it thinks it was.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from typing import Optional, Set, Tuple

_PIECE_BYTES = 16384
#: Pieces under way in one direction of a connection: what a router holds.
_HELD = 16


class Gate:
    """One direction's rate. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free_at = 0.0
        self.bytes_per_second = 0.0
        self.passed = 0

    def wait(self, length: int) -> float:
        """Book the wire for some bytes; seconds until they are through."""
        with self._lock:
            self.passed += length
            if not self.bytes_per_second:
                return 0.0
            now = time.monotonic()
            self._free_at = max(self._free_at, now) \
                + length / self.bytes_per_second
            return self._free_at - now


class WanLink:
    """Same life as an ``S3Server``: ``url``, keys, ``stop()``.

    :param server: what it leads to
    :param bytes_per_second: each way; 0 is no limit
    :param delay_seconds: one way
    """

    def __init__(self, server: object, bytes_per_second: float = 0.0,
                 delay_seconds: float = 0.0) -> None:
        self.access_key = server.access_key  # type: ignore[attr-defined]
        self.secret_key = server.secret_key  # type: ignore[attr-defined]
        url: str = server.url  # type: ignore[attr-defined]
        self._upstream = ('127.0.0.1', int(url.rpartition(':')[2]))
        self.up_gate, self.down_gate = Gate(), Gate()
        self.delay_seconds = delay_seconds
        self.set_rate(bytes_per_second)
        self._flowing = threading.Event()
        self._flowing.set()
        self._lock = threading.Lock()
        self._open: Set[socket.socket] = set()
        self._listener: Optional[socket.socket] = None
        self.port = 0
        self.refused = 0
        self.accepted = 0
        self.mend()
        self.url = 'http://127.0.0.1:%d' % self.port

    def set_rate(self, bytes_per_second: float) -> None:
        """From now on, each way."""
        self.up_gate.bytes_per_second = bytes_per_second
        self.down_gate.bytes_per_second = bytes_per_second

    def stall(self) -> None:
        """Connections stay open and nothing passes."""
        self._flowing.clear()

    def flow(self) -> None:
        """It passes again."""
        self._flowing.set()

    def cut(self) -> None:
        """Refuse connections and break those that are open."""
        with self._lock:
            listener, self._listener = self._listener, None
            conns = list(self._open)
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for conn in conns:
            _break(conn)

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

    def stop(self) -> None:
        """For good."""
        self.flow()
        self.cut()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                conn, _peer = listener.accept()
            except OSError:
                return
            try:
                other = socket.create_connection(self._upstream, 10)
            except OSError:
                conn.close()
                continue
            self.accepted += 1
            with self._lock:
                if self._listener is not listener:
                    conn.close()
                    other.close()
                    return
                self._open |= {conn, other}
            for way in ((conn, other, self.up_gate),
                        (other, conn, self.down_gate)):
                self._start(*way)

    def _start(self, source: socket.socket, target: socket.socket,
               gate: Gate) -> None:
        held: queue.Queue[Tuple[float, bytes]] = queue.Queue(_HELD)
        threading.Thread(target=self._read, args=(source, gate, held),
                         daemon=True).start()
        threading.Thread(target=self._write, args=(source, target, held),
                         daemon=True).start()

    def _read(self, source: socket.socket, gate: Gate,
              held: queue.Queue[Tuple[float, bytes]]) -> None:
        while True:
            try:
                data = source.recv(_PIECE_BYTES)
            except OSError:
                data = b''
            self._flowing.wait()
            if data:
                seconds = gate.wait(len(data))
                if seconds > 0:
                    time.sleep(seconds)
            held.put((time.monotonic() + self.delay_seconds, data))
            if not data:
                return

    def _write(self, source: socket.socket, target: socket.socket,
               held: queue.Queue[Tuple[float, bytes]]) -> None:
        while True:
            at, data = held.get()
            time.sleep(max(0.0, at - time.monotonic()))
            try:
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)
            except OSError:
                _break(source)
                with self._lock:
                    self._open -= {source, target}
                if not data:
                    return


def _break(conn: socket.socket) -> None:
    try:
        conn.shutdown(socket.SHUT_RDWR)
        conn.close()
    except OSError:
        pass  # it was gone already
