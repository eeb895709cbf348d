"""The checkpoint's writers send what they say, and see a wrong answer."""

from __future__ import annotations

import hashlib
import http.server
import threading
from typing import Any, Dict, Iterator, List

import pytest

from fault.edge_writes import Checkpoint, stall
from fault.outage import Wrong
from swift_dss.bench.cluster.client import Target

_LENGTH = (2 << 20) + 777


class _Handler(http.server.BaseHTTPRequestHandler):
    got: List[Dict[str, Any]] = []
    damage = False
    status = 201

    def do_PUT(self) -> None:
        length = int(self.headers['Content-Length'])
        body = self.rfile.read(length)
        self.got.append({'path': self.path, 'body': body,
                         'token': self.headers['X-Auth-Token']})
        etag = hashlib.md5(body[self.damage:]).hexdigest()
        self.send_response(self.status)
        self.send_header('Etag', etag)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        return


@pytest.fixture
def handler() -> Iterator[Any]:
    class Own(_Handler):
        got: List[Dict[str, Any]] = []
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Own)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Own.target = Target(  # type: ignore[attr-defined]
        '127.0.0.1', server.server_address[1], '/v1/a', 'token')
    yield Own
    server.shutdown()
    server.server_close()


def test_each_writer_sends_bytes_of_its_own(handler: Any) -> None:
    data = Checkpoint(3, _LENGTH)
    seconds, clients = stall(
        lambda number: data.put(handler.target, 'c/o%d' % number, number), 3)
    assert seconds > 0 and len(clients) == 3
    bodies = {request['path']: request['body'] for request in handler.got}
    assert {request['token'] for request in handler.got} == {'token'}
    assert len(set(data.etags)) == 3
    for number, etag in enumerate(data.etags):
        body = bodies['/v1/a/c/o%d' % number]
        assert len(body) == _LENGTH
        assert hashlib.md5(body).hexdigest() == etag
        with data.open_source(number) as source:
            assert source.read(4000) + source.read() == body
    data.close()


def test_a_wrong_answer_is_caught(handler: Any) -> None:
    data = Checkpoint(1, _LENGTH)
    handler.damage = True
    with pytest.raises(Wrong):
        data.put(handler.target, 'c/o', 0)
    handler.damage, handler.status = False, 503
    with pytest.raises(Wrong):
        data.put(handler.target, 'c/o', 0)
    handler.status = 201
    data.put(handler.target, 'c/o', 0)
    data.close()
