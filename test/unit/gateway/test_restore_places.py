"""The bucket forgets a container when all of its servers have."""

from __future__ import annotations

import http.server
import logging
import socket
import threading
from types import SimpleNamespace

import pytest
from support.clocks import StillClock
from support.edges.memory_s3 import MemoryS3

from support.nodes.gateway_node import CountingMetrics, conf_for

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import DssError
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.form.encrypt import KeyFile
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import S3Client, S3Rejected
from swift_dss.gateway.restore import places
from swift_dss.gateway.restore.places import Places, Servers

SECRET = SimpleNamespace(url='https://s3', access_key='a', secret_key='s')


class Says(http.server.BaseHTTPRequestHandler):
    """A container server that gives one status."""

    status = 404

    def do_HEAD(self):
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture
def servers():
    """Ports by what is said there: 0 is silence."""
    with socket.socket() as closed:
        closed.bind(('127.0.0.1', 0))
        ports = {0: closed.getsockname()[1]}
    made = []
    for status in (204, 404, 507):
        server = http.server.HTTPServer(('127.0.0.1', 0), type(
            'Says', (Says,), {'status': status}))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.append(server)
        ports[status] = server.server_port
    yield ports
    for server in made:
        server.shutdown()
        server.server_close()


class Rig:
    def __init__(self, root, ports, answers):
        class Rings(Servers):
            cluster = 'here'

            def ring(self, name):
                return SimpleNamespace(get_nodes=lambda *_: (1, [
                    {'ip': '127.0.0.1', 'port': ports[answer],
                     'device': 'sda'} for answer in answers]))

        self.s3 = MemoryS3()
        conf = conf_for(SECRET, str(root)).gateway
        self.client = S3Client(conf, Breaker(), 4, connect=self.s3.connect)
        self.book = Book(str(root / 'bundles.db'))
        self.notes = []
        self.places = Places(
            Around(conf, ClassTable, CountingMetrics(),
                   logging.getLogger('places'), clock=StillClock(1000.0)),
            Shelves(self.book, self.client, KeyFile('')), Rings(str(root)),
            SimpleNamespace(note=self.notes.append))
        self.key = places.key_of('p/', '/a/c')
        self.s3.keys[self.key] = b'x-container-read: friends', {}
        self.places.note('/a/c/o')


@pytest.mark.parametrize('answers, kept', (
    ((404, 404, 404), False), ((0, 0, 404), True), ((404, 0, 404), True),
    ((404, 507, 404), True), ((404, 0, 204), True)))
def test_only_all_servers_together_say_that_a_container_is_gone(
        tmp_path, servers, answers, kept):
    rig = Rig(tmp_path, servers, answers)
    rig.places.run()
    assert (rig.key in rig.s3.keys) == kept
    assert len(rig.book.due_places(1e12, 9)) == (2 if kept else 0)
    rig.book.close()


def test_a_record_that_s3_refuses_holds_no_other_up(
        tmp_path, servers, monkeypatch):
    rig = Rig(tmp_path, servers, (204,))
    inner = rig.client.put

    def put(key, *more):
        if key == rig.key:
            raise S3Rejected('no')
        return inner(key, *more)
    monkeypatch.setattr(rig.client, 'put', put)
    rig.places.note('/b/c/o')
    rig.places.run()
    assert all(isinstance(note, DssError) for note in rig.notes) and rig.notes
    for path in ('/a', '/b', '/b/c'):
        assert places.key_of('p/', path) in rig.s3.keys
    # It is put off, and not forgotten.
    assert ('/a/c', '') in rig.book.due_places(1e12, 9)
    assert ('/a/c', '') not in rig.book.due_places(1000.0, 9)
    rig.book.close()
