"""The door of the S3: what a node sees, fault by fault."""

from __future__ import annotations

import http.client
import http.server
import json
import socket
import threading
import time

import pytest

from swift_dss.aio.bed.s3.door import Control, Door
from swift_dss.aio.bed.s3.store import S3Door
from swift_dss.core.errors import DssError

LISTING = (b'<ListBucketResult><Contents><Key>a/1</Key></Contents>'
           b'<Contents><Key>b/1</Key></Contents></ListBucketResult>')


class _Bucket(http.server.BaseHTTPRequestHandler):
    """An S3 that keeps what it gets."""

    protocol_version = 'HTTP/1.1'

    def log_message(self, format, *args):
        pass

    def _do(self):
        kept = self.server.kept
        length = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(length)
        path, _mark, query = self.path.partition('?')
        self.server.seen.append((self.command, self.path,
                                 self.headers.get('Host')))
        if self.command == 'PUT':
            kept[path] = body
            return self._answer(200, b'')
        if self.command == 'DELETE':
            kept.pop(path, None)
            return self._answer(204, b'')
        if 'list-type' in query:
            return self._chunked(LISTING)
        if path not in kept:
            return self._answer(404, b'<Error/>')
        self._answer(200, kept[path])

    do_GET = do_HEAD = do_PUT = do_DELETE = _do

    def _answer(self, status, body):
        self.send_response(status)
        if status != 204:
            self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def _chunked(self, body):
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        self.wfile.write(b'%x\r\n%s\r\n0\r\n\r\n' % (len(body), body))


class _Visitor:
    """A node: one connection that is kept, as boto3's are."""

    def __init__(self, port):
        self._port = port
        self._connection = None

    def ask(self, method, path, body=None, headers=None, seconds=10.0):
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                '127.0.0.1', self._port, timeout=seconds)
        try:
            self._connection.request(method, path, body, headers or {})
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except BaseException:
            self._connection.close()
            self._connection = None
            raise

    def close(self):
        if self._connection is not None:
            self._connection.close()


def _serve(server):
    threading.Thread(target=server.serve_forever, daemon=True,
                     kwargs={'poll_interval': 0.01}).start()


@pytest.fixture
def s3():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), _Bucket)
    server.daemon_threads = True
    server.kept, server.seen = {}, []
    _serve(server)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def door(s3, tmp_path):
    """The door and how to tell it: ``(visitor, S3Door)``."""
    served = Door(('127.0.0.1', 0), s3.server_address[:2],
                  {'127.0.0.1': 'n1'})
    path = str(tmp_path / 'door.sock')
    control = Control(path, served)
    for http_server in (served, control):
        _serve(http_server)
    visitor = _Visitor(served.server_address[1])
    yield visitor, S3Door(path)
    visitor.close()
    for http_server in (served, control):
        http_server.shutdown()
        http_server.server_close()


def test_what_is_well_goes_through_and_is_counted(door, s3):
    visitor, told = door
    body = bytes(range(256)) * 1000
    assert visitor.ask('PUT', '/b/a%2Fk', body, {'Host': 'as-signed'}
                       ) == (200, b'')
    assert visitor.ask('GET', '/b/a%2Fk') == (200, body)
    assert visitor.ask('HEAD', '/b/a%2Fk') == (200, b'')
    assert visitor.ask('GET', '/b?list-type=2') == (200, LISTING)
    assert visitor.ask('DELETE', '/b/a%2Fk') == (204, b'')
    assert visitor.ask('GET', '/b/a%2Fk')[0] == 404
    assert s3.seen[0] == ('PUT', '/b/a%2Fk', 'as-signed')
    counts = told.counts()['n1']
    assert counts['PUT'] == {'requests': 1, 'sent': 256000, 'got': 0,
                             'status': {'200': 1}}
    assert counts['GET'] == {'requests': 2, 'sent': 0, 'got': 256008,
                             'status': {'200': 1, '404': 1}}
    assert counts['LIST']['got'] == len(LISTING)
    assert told.count('HEAD') == told.count('DELETE', 'n1') == 1
    assert told.count('HEAD', 'n2') == 0
    puts = told.requests('PUT')
    assert [(put['key'], put['fault']) for put in puts] == [('a/k', '')]
    assert abs(puts[0]['time'] - time.time()) < 60


def test_a_client_that_waits_for_leave_to_send_gets_it(door, s3):
    visitor, _told = door
    visitor.ask('PUT', '/b/k', b'after 100', {'Expect': '100-continue'})
    assert s3.kept['/b/k'] == b'after 100'


@pytest.mark.parametrize('status', ['500', '503'])
def test_it_answers_with_a_status(door, s3, status):
    visitor, told = door
    told.fault(status, methods='PUT', times=1)
    assert visitor.ask('PUT', '/b/k', b'x')[0] == int(status)
    assert not s3.kept
    assert visitor.ask('PUT', '/b/k', b'x')[0] == 200


@pytest.mark.parametrize('kind, body', [('refuse', None),
                                        ('reset', b'y' * 200000)])
def test_it_resets_the_connection(door, s3, kind, body):
    visitor, told = door
    told.fault(kind, times=1)
    with pytest.raises(OSError):
        visitor.ask('PUT', '/b/k', body)
    assert not s3.kept
    assert told.requests()[0]['status'] == 0


def test_it_resets_in_the_middle_of_what_a_node_reads(door, s3):
    visitor, told = door
    s3.kept['/b/k'] = b'z' * 400000
    told.fault('reset', methods='GET')
    with pytest.raises((OSError, http.client.IncompleteRead)):
        visitor.ask('GET', '/b/k')
    assert told.requests('GET')[0]['got'] == 200000


def test_it_hangs_until_it_is_healed(door, s3):
    visitor, told = door
    told.fault('hang', keys='k')
    with pytest.raises(TimeoutError):
        visitor.ask('GET', '/b/k', seconds=0.3)
    assert visitor.ask('GET', '/b/other')[0] == 404
    assert told.heal() == 1
    assert visitor.ask('GET', '/b/k')[0] == 404


def test_it_is_slow(door, s3):
    visitor, told = door
    told.fault('slow', milliseconds=300)
    begun = time.monotonic()
    assert visitor.ask('GET', '/b/k')[0] == 404
    assert time.monotonic() - begun >= 0.3


def test_it_forgets_keys_and_lists_them_no_more(door, s3):
    visitor, told = door
    s3.kept['/b/a/1'] = s3.kept['/b/b/1'] = b'x'
    told.fault('forget', keys='a/*')
    assert visitor.ask('GET', '/b/a/1')[0] == 404
    assert visitor.ask('HEAD', '/b/a/1') == (404, b'')
    assert visitor.ask('GET', '/b/b/1') == (200, b'x')
    status, listing = visitor.ask('GET', '/b?list-type=2')
    assert status == 200
    assert b'a/1' not in listing and b'b/1' in listing


def test_it_lies_about_bytes(door, s3):
    visitor, told = door
    s3.kept['/b/k'] = b'right' * 50000
    told.fault('flip', times=1)
    status, got = visitor.ask('GET', '/b/k')
    assert status == 200 and len(got) == 250000
    assert sum(byte != other for byte, other
               in zip(got, s3.kept['/b/k'])) == 1
    told.fault('short', times=1)
    assert visitor.ask('GET', '/b/k') == (200, s3.kept['/b/k'][:125000])
    # The connection is as good as before.
    assert visitor.ask('GET', '/b/k') == (200, s3.kept['/b/k'])


def test_it_drops_what_it_promised_to_keep(door, s3):
    visitor, told = door
    told.fault('drop')
    assert visitor.ask('PUT', '/b/k', b'gone')[0] == 200
    assert not s3.kept


def test_faults_are_of_the_node_that_was_named(door, s3):
    visitor, told = door
    told.fault('500', node='n2')
    assert visitor.ask('GET', '/b/k')[0] == 404
    told.name('127.0.0.1', 'n2')
    assert visitor.ask('GET', '/b/k')[0] == 500


def test_what_the_door_does_not_understand_is_said(door, tmp_path):
    _visitor, told = door
    with pytest.raises(DssError, match='explode'):
        told.fault('explode')
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(str(tmp_path / 'door.sock'))
        other.sendall(b'{"verb": "dance"}\n')
        with other.makefile('rb') as lines:
            assert 'no verb' in json.loads(lines.readline())['error']


def test_a_door_that_is_not_there_is_said(tmp_path):
    with pytest.raises(DssError, match='does not answer'):
        S3Door(str(tmp_path / 'none.sock')).counts()
