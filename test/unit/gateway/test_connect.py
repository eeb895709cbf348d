"""boto3's client: options that it cannot use, and answers without end."""

from __future__ import annotations

import http.server
import threading

import pytest
from botocore.loaders import JSONFileLoader

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import BadConfig, RemoteUnavailable
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import S3Client
from swift_dss.gateway.link.connect import connect_to


@pytest.mark.parametrize('options', [
    {'bucket': 'a/b'}, {'url': 's3.example.com'}, {'url': 'https://[::1'},
    {'url': 'ftp://x'}, {'url': 'https://x:99999'}])
def test_options_that_boto3_cannot_use_are_refused(options):
    conf = GatewayConf(**{'bucket': 'b', 'url': 'http://127.0.0.1:1',
                          **options})
    with pytest.raises(BadConfig, match='bucket, region or url'):
        connect_to(conf, 'k', 's', 1)


def test_what_botocore_knows_of_s3_is_read_once_a_process(monkeypatch):
    def made() -> None:
        connect_to(GatewayConf(bucket='b', url='http://127.0.0.1:1'),
                   'k', 's', 1)

    def refuse(self, path):
        raise AssertionError(path)
    made()
    monkeypatch.setattr(JSONFileLoader, 'load_file', refuse)
    made()


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """As a balancer that sends all of http:// to https://."""

    def do_GET(self):
        self._answer()

    def do_HEAD(self):
        self._answer()

    def _answer(self):
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.send_header('Location', 'https://127.0.0.1:1' + self.path)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


@pytest.mark.parametrize('status', [301, 302, 307])
def test_a_redirect_without_end_is_one_request(tmp_path, status):
    secret = tmp_path / 'secret'
    secret.write_text('access_key = k\nsecret_key = s\n')
    secret.chmod(0o600)
    server = http.server.HTTPServer(('127.0.0.1', 0), Elsewhere)
    server.status, server.asked = status, []
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        client = S3Client(GatewayConf(
            bucket='b', url='http://127.0.0.1:%d' % server.server_port,
            secret_file=str(secret)), Breaker(), 1)
        with pytest.raises(RemoteUnavailable, match='Redirected'):
            client.page('')
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert len(server.asked) == 1
