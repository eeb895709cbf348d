"""Requests without boto3's layers are boto3's requests."""

from __future__ import annotations

import binascii
import hashlib
import http.server
import threading

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from swift_dss.core.config import GatewayConf
from swift_dss.gateway.link import client as link

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
    """Answers all requests alike, and keeps them."""

    def __init__(self):
        self.seen = []
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
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
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


def connect(server, **options):
    return link._connect(GatewayConf(url=server.url, bucket='b', **options),
                         'access', 'secret', 2)


@pytest.mark.parametrize('verb, asked', ASKED)
def test_it_asks_and_signs_as_boto3_does(server, verb, asked):
    """Signatures differ in the list of headers, so boto3's own signer signs
    the same request again."""
    data = b'0123456789' if verb == 'get_object' else b''
    server.answer = 200, {
        'Content-Length': '10' if verb in ('get_object', 'head_object')
        else '0', 'ETag': '"e"'}, data
    client = connect(server)
    for asker in (client, client._client):
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
    server.answer = 400, {'Content-Length': '0',
                          'x-amz-bucket-region': 'eu-west-1'}, b''
    client = connect(server)
    asked = []

    class Boto3:
        def head_object(self, **options):
            asked.append(options['Key'])
            return {}

    client._client = Boto3()
    client.head_object(Bucket='b', Key='one')
    client.head_object(Bucket='b', Key='two')
    assert asked == ['one', 'two']
    assert len(server.seen) == 1  # and never again


def test_with_checksums_boto3_does_it_all(server):
    client = connect(server, checksums='when_supported')
    assert not hasattr(client, '_signed')
