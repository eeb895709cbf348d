"""Requests without boto3's layers are boto3's requests."""

from __future__ import annotations

import binascii
import hashlib
import http.server
import socket
import threading

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from swift_dss.core.config import GatewayConf
from swift_dss.gateway.link.connect import connect_to

BODY = b'some bytes'
MD5 = binascii.b2a_base64(hashlib.md5(BODY).digest(),
                          newline=False).decode()
#: Verb, arguments: what the gateway asks for.
ASKED = [
    ('head_object', {'Key': 'p/00a/k ~+\u00fc'}),
    ('get_object', {'Key': 'k', 'Range': 'bytes=3-9'}),
    ('get_object', {'Key': 'k'}),
    ('delete_object', {'Key': 'k'}),
    ('put_object', {'Key': 'k', 'Body': BODY, 'ContentLength': len(BODY),
                    'ContentMD5': MD5, 'IfNoneMatch': '*',
                    'Metadata': {'dss-a': 'x  y', 'dss-b': 'z='}})]


class Server:
    """Answers all requests alike, and keeps them.

    :ivar region: of the bucket; others are sent there
    """

    def __init__(self):
        self.seen = []
        self.region = 'us-east-1'
        self.answer = 200, {'Content-Length': '10', 'ETag': '"e"'}, b''
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def handle_one_request(self):
                self.raw_requestline = self.rfile.readline()
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                body = self.rfile.read(int(
                    self.headers.get('Content-Length', 0)))
                outer.seen.append((self.command, self.path, {
                    name.lower(): value
                    for name, value in self.headers.items()}, body))
                status, headers, data = outer.answer
                if '/%s/s3/' % outer.region not in self.headers[
                        'Authorization']:
                    status, headers, data = 400, {
                        'Content-Length': '0',
                        'x-amz-bucket-region': outer.region}, b''
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header('Connection', 'close')
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = True

        self._server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), Handler)
        threading.Thread(target=self._server.serve_forever,
                         daemon=True).start()
        self.url = 'http://127.0.0.1:%d' % self._server.server_address[1]

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


def connect(server, bucket='b', **options):
    return connect_to(GatewayConf(url=server.url, bucket=bucket, **options),
                      'access', 'secret', 2)


def boto3(server):
    """Without a bucket there is nothing before it."""
    made = connect(server, bucket='')
    assert made.__class__.__module__.startswith('botocore.')
    return made


@pytest.mark.parametrize('verb, asked', ASKED)
def test_it_asks_and_signs_as_boto3_does(server, verb, asked):
    """Signatures differ in the list of headers, so boto3's own signer signs
    the same request again."""
    data = b'0123456789' if verb == 'get_object' else b''
    server.answer = 200, {
        'Content-Length': '10' if verb in ('get_object', 'head_object')
        else '0', 'ETag': '"e"'}, data
    for asker in (connect(server), boto3(server)):
        getattr(asker, verb)(Bucket='b', **asked)
    (method, path, ours, body), (method_2, path_2, theirs, body_2) = \
        server.seen
    assert (method, path, body) == (method_2, path_2, body_2)
    for name in set(theirs) - {'authorization', 'amz-sdk-invocation-id',
                               'amz-sdk-request', 'x-amz-date', 'expect',
                               'user-agent', 'accept-encoding'}:
        assert ours.get(name) == theirs[name], name
    signed = ours['authorization'].split('SignedHeaders=')[1].split(',')[0]
    request = AWSRequest(method, server.url + path, {
        name: ours[name] for name in signed.split(';')}, body)
    request.context['timestamp'] = ours['x-amz-date']
    signer = auth.S3SigV4Auth(Credentials('access', 'secret'), 's3',
                              'us-east-1')
    text = signer.string_to_sign(request, signer.canonical_request(request))
    assert ours['authorization'].endswith(
        'Signature=' + signer.signature(text, request))


def test_what_s3_refuses_is_an_error_of_boto3(server):
    body = b'<Error><Code>NoSuchKey</Code><Message>m</Message></Error>'
    server.answer = 404, {'Content-Length': str(len(body))}, body
    client = connect(server)
    with pytest.raises(ClientError) as caught:
        client.get_object(Bucket='b', Key='k')
    assert caught.value.response['Error']['Code'] == 'NoSuchKey'
    assert caught.value.response['ResponseMetadata'][
        'HTTPStatusCode'] == 404


def test_a_put_that_fails_after_its_status_has_failed(server):
    body = b'<Error><Code>InternalError</Code></Error>'
    server.answer = 200, {'Content-Length': str(len(body))}, body
    client = connect(server)
    verb, asked = ASKED[-1]
    with pytest.raises(ClientError) as caught:
        getattr(client, verb)(Bucket='b', **asked)
    assert caught.value.response['ResponseMetadata'][
        'HTTPStatusCode'] == 500


def test_boto3_follows_to_another_region(server):
    server.region = 'eu-west-1'
    client = connect(server)
    for key in ('one', 'two'):
        assert client.head_object(Bucket='b', Key=key)['ETag'] == '"e"'
    # boto3 numbers its requests. Ours is not tried again.
    by_boto3 = ['amz-sdk-invocation-id' in headers
                for _, _, headers, _ in server.seen]
    assert by_boto3 == [False] + [True] * (len(by_boto3) - 1)
    assert {path for _, path, _, _ in server.seen[1:]} == {'/b/one', '/b/two'}


def test_with_checksums_boto3_does_it_all(server):
    client = connect(server, checksums='when_supported')
    for verb, asked in ASKED:
        if verb != 'get_object':  # boto3 wants the checksum of its bytes
            getattr(client, verb)(Bucket='b', **asked)
    assert len(server.seen) == 3
    assert all('amz-sdk-invocation-id' in headers
               for _, _, headers, _ in server.seen)


def test_a_body_does_not_wait_for_the_answer_to_its_head(
        server, monkeypatch):
    """Head and body are two segments. Where a connection may delay the
    second until the first is acknowledged, a server that acknowledges late
    adds 40 ms to each PUT."""
    server.answer = 200, {'Content-Length': '0', 'ETag': '"e"'}, b''
    said = []

    class Socket(socket.socket):
        def setsockopt(self, *options):
            said.append(options)
            super().setsockopt(*options)

    monkeypatch.setattr(socket, 'socket', Socket)
    verb, asked = ASKED[-1]
    for asker in (connect(server), boto3(server)):
        del said[:]
        getattr(asker, verb)(Bucket='b', **asked)
        assert (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1) in said
