"""The client and the crowd, against a server of a few lines."""

import http.server
import subprocess
import sys
import threading

import pytest

from swift_dss.bench.cluster import client, load
from swift_dss.bench.cluster.client import BenchFailed, Client, Request, Target


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self, status, body=b'', headers=(), promised=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('Content-Length', str(
            len(body) if promised is None else promised))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == '/auth':
            good = self.headers['X-Auth-Key'] == 'secret'
            self.answer(200 if good else 401, headers=(
                ('X-Storage-Url', 'http://h.example:8/v1/AUTH_a'),
                ('X-Auth-Token', 'tk')) if good else ())
        elif self.path.endswith('/cut'):
            self.answer(200, b'abc', promised=10)
            self.close_connection = True
        elif self.path.endswith('/missing'):
            self.answer(404)
        else:
            self.answer(200, b'x' * 3000, (('X-DSS-Tier', 'ssd+hdd'),))

    def do_PUT(self):
        length = int(self.headers['Content-Length'])
        self.server.puts.append((
            self.path, self.headers['X-Auth-Token'],
            self.headers['X-DSS-Object-Class'], self.rfile.read(length)))
        self.answer(201)

    def log_message(self, *args):
        """No noise."""


@pytest.fixture
def server():
    http_server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    http_server.daemon_threads = True
    http_server.puts = []
    thread = threading.Thread(target=http_server.serve_forever)
    thread.start()
    yield http_server
    http_server.shutdown()
    http_server.server_close()
    thread.join()


@pytest.fixture
def target(server):
    return Target('127.0.0.1', server.server_port, '/v1/AUTH_a', 'tk')


def test_put_sends_body_class_and_token(server, target):
    sample = Client(target).must(Request(
        'PUT', 'c/o p', 'label', 6, [b'abc', memoryview(b'def')],
        {'X-DSS-Object-Class': 'gold'}))
    assert server.puts == [('/v1/AUTH_a/c/o%20p', 'tk', 'gold', b'abcdef')]
    assert (sample.status, sample.length, sample.label) == (201, 6, 'label')


def test_get_counts_bytes_and_tier(target):
    sample = Client(target).do(Request('GET', 'c/o'))
    assert (sample.status, sample.length, sample.tier) == (
        200, 3000, 'ssd+hdd')
    assert sample.seconds > 0


def test_an_answer_that_is_cut_short_is_no_success(target):
    connection = Client(target)
    assert connection.do(Request('GET', 'c/cut')).status == 0
    assert connection.do(Request('GET', 'c/o')).status == 200


def test_must_refuses_what_is_not_2xx(target):
    with pytest.raises(BenchFailed, match='c/missing: status 404'):
        Client(target).must(Request('GET', 'c/missing'))


def test_nobody_there_is_a_failed_sample():
    nobody = Target('127.0.0.1', 1, '/v1/a', 'tk')
    assert Client(nobody).do(Request('GET', 'c/o')).status == 0


def test_authenticate(server):
    url = 'http://127.0.0.1:%d/auth' % server.server_port
    target = client.authenticate(url, 'a:b', 'secret')
    assert target == Target('h.example', 8, '/v1/AUTH_a', 'tk')
    with pytest.raises(BenchFailed, match='401'):
        client.authenticate(url, 'a:b', 'wrong')


def test_a_crowd_does_all_work_of_every_client(target):
    outcome = load.run(target, 3, lambda number: iter(
        [Request('GET', 'c/%d' % at, str(number)) for at in range(4)]))
    assert sorted(sample.label for sample in outcome.good) == \
        sorted('012' * 4)
    assert outcome.failures == 0
    assert outcome.per_second == pytest.approx(12 / outcome.seconds)


def test_a_crowd_counts_failures_apart(target):
    outcome = load.run(target, 2, lambda number: iter(
        [Request('GET', 'c/o'), Request('GET', 'c/missing')]))
    assert (len(outcome.good), outcome.failures) == (2, 2)


def test_a_crowd_begins_nothing_after_its_time(target):
    def forever(number):
        while True:
            yield Request('GET', 'c/o')

    outcome = load.run(target, 2, forever, seconds=0.2)
    assert outcome.good
    begin = min(sample.at for sample in outcome.samples)
    assert max(sample.at for sample in outcome.samples) - begin < 2.0


def test_a_client_that_dies_is_noticed(target):
    def broken(number):
        raise ValueError('on purpose')
        yield

    with pytest.raises(BenchFailed, match='client process died'):
        load.run(target, 1, broken)


def test_a_client_beside_swifts_modules_has_sockets_of_the_system():
    """Forked clients with eventlet's would share one epoll, and wake each
    other for every byte."""
    told = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c',
         'import swift_dss.cli.bench, swift.common.bufferedhttp\n'
         'import swift_dss.bench.cluster.client as client, socket\n'
         'print(client.http.client.socket is socket)'],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert told.stdout.decode('utf-8') == 'True\n'
