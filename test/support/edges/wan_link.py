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
from typing import Tuple

from support.rigs.cuttable import Cuttable, break_off

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


class WanLink(Cuttable):
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
        super().__init__()

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

    def stop(self) -> None:
        """For good."""
        self.flow()
        self.cut()

    def serve(self, conn: socket.socket) -> None:
        """Carry bytes both ways until both are through."""
        with socket.create_connection(self._upstream, 10) as other:
            if not self._enter(other):
                return
            try:
                writers = [self._start(conn, other, self.up_gate),
                           self._start(other, conn, self.down_gate)]
                for writer in writers:
                    writer.join()
            finally:
                self._leave(other)

    def _start(self, source: socket.socket, target: socket.socket,
               gate: Gate) -> threading.Thread:
        held: queue.Queue[Tuple[float, bytes]] = queue.Queue(_HELD)
        threading.Thread(target=self._read, args=(source, gate, held),
                         daemon=True).start()
        writer = threading.Thread(
            target=self._write, args=(source, target, held), daemon=True)
        writer.start()
        return writer

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
                break_off(source)
                if not data:
                    return
