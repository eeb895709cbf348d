"""An S3 server that costs next to nothing: one process, keys in memory.

For benchmarks on a machine whose processors a real server would take a part
of. It knows the requests for single keys, conditions and listings that a
gateway makes; of all others it says that they are not implemented. It
believes every signature. Run as a program it serves until it is told to end.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from typing import Dict, List, NamedTuple, Optional
from xml.sax.saxutils import escape

_PIECE_BYTES = 1 << 20
_LISTING = ('<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
            '<IsTruncated>%s</IsTruncated>%s</ListBucketResult>')
_LISTED = ('<Contents><Key>%s</Key><Size>%d</Size><ETag>&quot;%s&quot;'
           '</ETag></Contents>')
_PAGE = 1000


class _Kept(NamedTuple):
    """An object, its digest and its headers."""

    data: bytes
    etag: str
    headers: bytes


class _Connection:
    """Requests of one client, one after another."""

    def __init__(self, link: socket.socket, keys: Dict[str, _Kept]) -> None:
        self.link = link
        self._keys = keys
        self._said = b''
        self._pieces: List[bytes] = []
        self._missing = 0

    def read(self) -> bool:
        """Take what came, and answer whole requests; False at the end."""
        piece = self.link.recv(_PIECE_BYTES)
        if not piece:
            return False
        self._pieces.append(piece)
        self._missing -= len(piece)
        if self._missing > 0:
            return True
        self._said += b''.join(self._pieces)
        self._pieces.clear()
        while True:
            head, mark, rest = self._said.partition(b'\r\n\r\n')
            if not mark:
                return True
            lines = head.decode('latin-1').split('\r\n')
            headers = {name.lower(): value.strip() for name, _, value in (
                line.partition(':') for line in lines[1:])}
            length = int(headers.get('content-length', 0))
            if len(rest) < length:
                self._missing = length - len(rest)
                return True
            self._said = rest[length:]
            method, target, _ = lines[0].split(' ')
            self._answer(method, target, headers, rest[:length])

    def _answer(self, method: str, target: str, headers: Dict[str, str],
                body: bytes) -> None:
        path, _, query = target.partition('?')
        _, _, key = urllib.parse.unquote(path)[1:].partition('/')
        if not key:
            self._list(query)
        elif query:
            self._say(501, b'', _error('NotImplemented'))
        elif method == 'PUT':
            self._put(key, headers, body)
        elif method == 'DELETE':
            self._keys.pop(key, None)
            self._say(204)
        elif key not in self._keys:
            self._say(404, b'', b'' if method == 'HEAD'
                      else _error('NoSuchKey'))
        elif method == 'HEAD':
            kept = self._keys[key]
            self._say(200, kept.headers, length=len(kept.data))
        else:
            self._get(self._keys[key], headers.get('range', ''))

    def _put(self, key: str, headers: Dict[str, str], body: bytes) -> None:
        if headers.get('if-none-match') == '*' and key in self._keys:
            self._say(412, b'', _error('PreconditionFailed'))
            return
        digest = hashlib.md5(body)
        if headers.get('content-md5', '') not in (
                '', base64.b64encode(digest.digest()).decode()):
            self._say(400, b'', _error('BadDigest'))
            return
        etag = digest.hexdigest()
        kept = 'ETag: "%s"\r\n' % etag + ''.join(
            '%s: %s\r\n' % header for header in headers.items()
            if header[0].startswith('x-amz-meta-'))
        self._keys[key] = _Kept(body, etag, kept.encode('latin-1'))
        self._say(200, b'ETag: "%s"\r\n' % etag.encode())

    def _get(self, kept: _Kept, asked: str) -> None:
        if not asked:
            self._say(200, kept.headers, kept.data)
            return
        first, _, last = asked.partition('=')[2].partition('-')
        end = min(int(last or len(kept.data)), len(kept.data) - 1)
        self._say(206, kept.headers + b'Content-Range: bytes %d-%d/%d\r\n' % (
            int(first), end, len(kept.data)), kept.data[int(first):end + 1])

    def _list(self, query: str) -> None:
        asked = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if 'list-type' not in asked:
            # Of the bucket itself, such as whether it keeps old versions.
            self._say(200, b'', b'<VersioningConfiguration/>')
            return
        after = asked.get('start-after', '')
        listed = sorted(key for key in self._keys if key > after
                        and key.startswith(asked.get('prefix', '')))
        self._say(200, b'', (_LISTING % (
            str(len(listed) > _PAGE).lower(), ''.join(_LISTED % (
                escape(key), len(self._keys[key].data), self._keys[key].etag)
                for key in listed[:_PAGE]))).encode())

    def _say(self, status: int, headers: bytes = b'', body: bytes = b'',
             length: Optional[int] = None) -> None:
        self.link.sendall(
            b'HTTP/1.1 %d S3\r\nDate: %s\r\nContent-Length: %d\r\n%s\r\n%s' % (
                status, _now(), len(body) if length is None else length,
                headers, body))


def _error(code: str) -> bytes:
    return b'<Error><Code>%s</Code></Error>' % code.encode()


def _now() -> bytes:
    return email.utils.formatdate(time.time(), usegmt=True).encode()


def serve(listener: socket.socket) -> None:
    """Answer all who connect, for ever."""
    keys: Dict[str, _Kept] = {}
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    while True:
        for ready, _ in waiting.select():
            if ready.fileobj is listener:
                link, _ = listener.accept()
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                waiting.register(link, selectors.EVENT_READ,
                                 _Connection(link, keys))
                continue
            try:
                goes_on = ready.data.read()
            except ConnectionError:
                goes_on = False
            if not goes_on:
                waiting.unregister(ready.fileobj)
                ready.data.link.close()


class LeanServer:
    """The server, in a process of its own until :meth:`close`."""

    name = 'lean'
    access_key = 'gateway'
    secret_key = 'gateway-secret-key'

    def __init__(self) -> None:
        self.root = tempfile.mkdtemp(prefix='dss-s3-')
        #: Empty: its keys are in memory.
        self.data = os.path.join(self.root, 'data')
        with socket.create_server(('127.0.0.1', 0), backlog=128) as listener:
            self.url = 'http://127.0.0.1:%d' % listener.getsockname()[1]
            self._process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__),
                 str(listener.fileno())], pass_fds=[listener.fileno()])
        self.pid = self._process.pid

    def close(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        shutil.rmtree(self.root, ignore_errors=True)


if __name__ == '__main__':
    serve(socket.socket(fileno=int(sys.argv[1])))
