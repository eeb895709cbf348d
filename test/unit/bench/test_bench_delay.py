"""A link that hands every byte on, later."""

from __future__ import annotations

import socket
import threading
import time

from swift_dss.bench.cluster.bundles_link import Paced
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


def test_a_link_at_a_rate_takes_its_time_both_ways_and_counts():
    body = bytes(20000)
    with Echo() as echo, Paced(echo.port, 0.0, 8 * 100000.0) as link:
        with socket.create_connection(('127.0.0.1', link.port)) as client:
            client.settimeout(30)
            began = time.monotonic()
            client.sendall(body)
            got = 0
            while got < len(body):
                got += len(client.recv(65536))
            # The last byte goes after all others, up and then down.
            assert time.monotonic() - began >= 0.2
        assert link.pace.sent == {'up': 20000, 'down': 20000}


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
