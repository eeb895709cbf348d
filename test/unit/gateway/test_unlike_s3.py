"""An answer with a good status that is none of S3's: a portal, a balancer's
page, a server that leaves out a field."""

from __future__ import annotations

import http.server
import threading
from typing import Any, Iterator

import pytest

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import RemoteUnavailable
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import S3Client

_PAGE = b'<html><body>Please accept our terms<br></body></html>'
_WHOLE = '<a><IsTruncated>false</IsTruncated>'
_XML = '<?xml version="1.0" encoding="UTF-8"?>'


class Answers(http.server.BaseHTTPRequestHandler):
    """Says the server's words to everything, with 200."""

    def do_GET(self) -> None:
        """A read."""
        self._answer()

    def do_POST(self) -> None:
        """An upload that begins."""
        self._answer()

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        words: bytes = self.server.words
        self.send_response(200)
        self.send_header('Content-Length', str(len(words)))
        self.end_headers()
        self.wfile.write(words)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    """Listens; its ``words`` are what it says."""
    made = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Answers)
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def breaker() -> Breaker:
    """Hears how the calls went."""
    return Breaker()


@pytest.fixture
def client(server: Any, breaker: Breaker, tmp_path: Any) -> S3Client:
    """Asks that server."""
    secret = tmp_path / 'secret'
    secret.write_text('access_key = k\nsecret_key = s\n')
    secret.chmod(0o600)
    return S3Client(GatewayConf(
        bucket='b', url='http://127.0.0.1:%d' % server.server_port,
        secret_file=str(secret)), breaker, 1)


CALLS = {
    'create_multipart_upload': lambda client: client.begin_multipart('k', {}),
    'list_parts': lambda client: client.parts('k', 'u'),
    'list_multipart_uploads': lambda client: client.uploads_of('k'),
    'list_objects_v2': lambda client: client.page(''),
    'list_object_versions': lambda client: list(client.versions(''))}


@pytest.mark.parametrize('operation', CALLS)
@pytest.mark.parametrize('words', [_PAGE, b'\0\1', b'{"error": "no"}'])
def test_a_page_of_something_else_is_no_answer(
        server: Any, client: S3Client, breaker: Breaker, operation: str,
        words: bytes) -> None:
    server.words = words
    _refused(client, breaker, operation)


@pytest.mark.parametrize('operation, words, lacks', [
    ('create_multipart_upload', '<InitiateMultipartUploadResult>'
     '<Bucket>b</Bucket></InitiateMultipartUploadResult>', 'UploadId'),
    ('create_multipart_upload', '<InitiateMultipartUploadResult>'
     '<UploadId/></InitiateMultipartUploadResult>', 'UploadId'),
    ('list_parts', _WHOLE + '<Part><PartNumber>1</PartNumber>'
     '<Size>5</Size></Part></a>', 'ETag'),
    ('list_parts', _WHOLE + '<Part><ETag>"e"</ETag><Size>5</Size></Part></a>',
     'PartNumber'),
    ('list_multipart_uploads', _WHOLE + '<Upload><Key>k</Key></Upload></a>',
     'UploadId'),
    ('list_objects_v2', _WHOLE + '<Contents><Key>k</Key></Contents></a>',
     'Size'),
    ('list_objects_v2', _WHOLE + '<Contents><Size>1</Size></Contents></a>',
     'Key'),
    ('list_object_versions', _WHOLE + '<Version><Key>k</Key></Version></a>',
     'VersionId'),
    # A page that is XML, and no empty bucket.
    ('list_objects_v2', '<html><body></body></html>', 'IsTruncated')])
def test_a_field_that_is_missing_is_named(
        server: Any, client: S3Client, breaker: Breaker, operation: str,
        words: str, lacks: str) -> None:
    server.words = (_XML + words).encode('ascii')
    said = _refused(client, breaker, operation)
    assert said == '%s: no %s in the answer' % (operation, lacks)


def _refused(client: S3Client, breaker: Breaker, operation: str) -> str:
    with pytest.raises(RemoteUnavailable, match=operation + ': ') as raised:
        CALLS[operation](client)
    # A fault of S3, as a time-out is: enough of them open the breaker.
    assert breaker.last_error == str(raised.value)
    return str(raised.value)
