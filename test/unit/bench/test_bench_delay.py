"""A link that hands every byte on, later."""

from __future__ import annotations

import socket
import threading
import time

from swift_dss.bench.cluster.delay import DelayedLink


class Echo:
    """Sends back what it gets."""

    def __enter__(self):
        self.listening = socket.create_server(('127.0.0.1', 0))
        self.port = self.listening.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            with connection:
                while True:
                    data = connection.recv(65536)
                    if not data:
                        break
                    connection.sendall(data)


def test_an_answer_takes_the_round_trip_and_every_byte_comes():
    body = bytes(range(256)) * 4096
    with Echo() as echo, DelayedLink(echo.port, 0.1) as link:
        with socket.create_connection(('127.0.0.1', link.port)) as client:
            client.settimeout(30)
            began = time.monotonic()
            client.sendall(b'x')
            assert client.recv(1) == b'x'
            assert time.monotonic() - began >= 0.1
            sender = threading.Thread(target=client.sendall, args=(body,))
            sender.start()
            got = b''
            while len(got) < len(body):
                got += client.recv(65536)
            sender.join()
            assert got == body
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b''
        assert link.connections == 1


def test_it_ends_with_connections_open():
    with Echo() as echo:
        with DelayedLink(echo.port, 0.01) as link:
            client = socket.create_connection(('127.0.0.1', link.port))
            client.settimeout(30)
            client.sendall(b'x')
            assert client.recv(1) == b'x'
        assert client.recv(1) == b''
        client.close()


def test_nobody_behind_it_is_a_closed_connection():
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
    with DelayedLink(port, 0.01) as link, socket.create_connection(
            ('127.0.0.1', link.port)) as client:
        client.settimeout(30)
        assert client.recv(1) == b''
