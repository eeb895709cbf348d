"""An S3 client that costs next to nothing, to find a server's own rate.

Requests are signed beforehand, and go byte for byte over connections that
stay open, one a thread.
"""

from __future__ import annotations

import base64
import hashlib
import socket
import threading
import time
from typing import Any, Dict, List, NamedTuple, Union
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from support.edges.lean_s3 import LeanServer
from support.edges.s3_servers import BUCKET, S3Server

_PIECE_BYTES = 65536


class Rate(NamedTuple):
    """What a server did.

    :param seconds: for all objects
    :param requests: one PUT and one HEAD an object
    """

    seconds: float
    requests: int


class BareClient:
    """Requests to one server; :meth:`sign` them, and :meth:`run` once."""

    def __init__(self, server: Union[S3Server, LeanServer]) -> None:
        self._url = server.url
        self._address = urlsplit(server.url)
        self._signer = S3SigV4Auth(Credentials(
            server.access_key, server.secret_key), 's3', 'us-east-1')
        self._waiting: List[List[bytes]] = []

    def sign(self, prefix: str, count: int, body: bytes) -> None:
        """Have ``count`` new objects stored and looked at."""
        md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
        for number in range(count):
            key = '%s%d' % (prefix, number)
            self._waiting.append([
                self._signed('PUT', key, {
                    'Content-Length': str(len(body)), 'Content-MD5': md5,
                    'If-None-Match': '*'}, body),
                self._signed('HEAD', key, {}, b'')])

    def run(self, threads: int) -> Rate:
        """Ask for all that was signed, so many objects at a time.

        :raises AssertionError: the server refused one
        """
        objects = iter(self._waiting)
        lock = threading.Lock()
        wrong: List[bytes] = []

        def work() -> None:
            with socket.create_connection((
                    self._address.hostname, self._address.port)) as link:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while not wrong:
                    with lock:
                        requests = next(objects, None)
                    if requests is None:
                        return
                    for request in requests:
                        link.sendall(request)
                        said = _answer(link, request.startswith(b'HEAD'))
                        if b' 200 ' not in said[:16]:
                            wrong.append(said)
        workers = [threading.Thread(target=work) for _ in range(threads)]
        began = time.monotonic()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not wrong, wrong[0]
        return Rate(time.monotonic() - began, 2 * len(self._waiting))

    def _signed(self, method: str, key: str, headers: Dict[str, str],
                body: bytes) -> bytes:
        request: Any = AWSRequest(method, '%s/%s/%s' % (
            self._url, BUCKET, key), headers, body)
        self._signer.add_auth(request)
        return b''.join([
            b'%s /%s/%s HTTP/1.1\r\nHost: %s\r\n' % (
                method.encode(), BUCKET.encode(), key.encode(),
                self._address.netloc.encode()),
            *(b'%s: %s\r\n' % (name.encode(), str(value).encode())
              for name, value in request.headers.items()),
            b'\r\n', body])


def _answer(link: socket.socket, is_head: bool) -> bytes:
    """Head and body of an answer."""
    said = link.recv(_PIECE_BYTES)
    while b'\r\n\r\n' not in said:
        said += _more(link)
    head, _, _ = said.partition(b'\r\n\r\n')
    length = 0 if is_head else _length_of(head)
    while len(said) < len(head) + 4 + length:
        said += _more(link)
    return said


def _more(link: socket.socket) -> bytes:
    piece = link.recv(_PIECE_BYTES)
    assert piece, 'the server closed the connection'
    return piece


def _length_of(head: bytes) -> int:
    for line in head.split(b'\r\n'):
        name, _, value = line.partition(b':')
        if name.strip().lower() == b'content-length':
            return int(value)
    return 0
