"""An S3 server that misbehaves on demand: a proxy before a real one.

Requests pass through unchanged (the signature covers the Host header, so
the real server checks what the client signed) until an armed fault meets
the n-th request that matches it. Every fault counts how often it fired: a
campaign whose faults never fire proves nothing.
"""

from __future__ import annotations

import math
import socket
import threading
import time
import urllib.parse
from dataclasses import dataclass
from typing import Callable, Dict, List, Tuple

from support.rigs.cuttable import Cuttable, break_off

#: Name to what the client sees.
FAULTS = {
    'refuse': 'connection reset before any answer',
    '500': 'internal error, request not carried out',
    '503': 'SlowDown, request not carried out',
    'gone': 'no such bucket, request not carried out',
    'reset_request': 'reset in the middle of the request',
    'reset_answer': 'carried out, reset in the middle of the answer',
    'hang': 'no answer, request not carried out',
    'timeout_after_commit': 'carried out, no answer',
    'drip': 'carried out, the answer comes a byte a second',
    'wrong_bytes': 'success with a flipped bit in the body',
    'other_body': "success with another object's bytes",
    'short': 'success with fewer bytes, lengths agreeing with that',
    'swallow': 'success, the request was never carried out',
}
#: Faults that spoil any answer, and those that need a body to spoil.
_BLUNT = frozenset((
    'refuse', '500', '503', 'gone', 'reset_request', 'reset_answer', 'hang',
    'timeout_after_commit'))
_FINE = frozenset(('drip', 'wrong_bytes', 'other_body', 'short'))
#: Status and code of those that are errors of S3's own.
_ERRORS = {'500': ('500', 'InternalError'), '503': ('503', 'SlowDown'),
           'gone': ('404', 'NoSuchBucket')}
_HEAD_LIMIT = 65536
_XML = ('<?xml version="1.0"?><Error><Code>%s</Code>'
        '<Message>as armed</Message></Error>')


@dataclass
class Request:
    """One request, as far as faults care.

    :param at: ``time.monotonic`` when its head was here
    :param connected: when its connection was
    :param ended: when it had been answered, or was given up
    """

    number: int
    method: str
    target: str
    head: bytes
    length: int
    at: float
    connected: float
    ended: float = math.inf

    @property
    def key(self) -> str:
        """What it is about, without the bucket."""
        path = urllib.parse.unquote(self.target.partition('?')[0])
        return path.lstrip('/').partition('/')[2]


@dataclass
class Armed:
    """One fault that waits for its requests.

    ``met`` counts requests it was meant for, ``fired`` those that it could
    really spoil (an answer without a body has no bytes to flip).

    :param matches: which requests count
    :param nth: fire at this one of them (from 1)
    :param times: and at this many in all; 0 is for ever
    """

    fault: str
    matches: Callable[[Request], bool]
    nth: int
    times: int
    seen: int = 0
    met: int = 0
    fired: int = 0

    def wants(self, request: Request) -> bool:
        """Whether it fires now."""
        if not self.matches(request):
            return False
        self.seen += 1
        due = self.seen >= self.nth and (
            not self.times or self.seen < self.nth + self.times)
        self.met += due
        return due


_NONE = Armed('', lambda _request: False, 0, 0)


class FaultyS3(Cuttable):
    """The proxy; same life as an ``S3Server``.

    :param server: the real one, with ``url`` and keys
    """

    def __init__(self, server: object) -> None:
        self.access_key = server.access_key  # type: ignore[attr-defined]
        self.secret_key = server.secret_key  # type: ignore[attr-defined]
        url: str = server.url  # type: ignore[attr-defined]
        self._upstream = ('127.0.0.1', int(url.rpartition(':')[2]))
        self._armed: List[Armed] = []
        self._stopped = threading.Event()
        self.requests: List[Request] = []
        self.running = 0
        self.most_running = 0
        #: What a request that is swallowed takes.
        self.swallow_seconds = 0.0
        super().__init__()

    def arm(self, fault: str,
            matches: Callable[[Request], bool] = lambda _request: True,
            nth: int = 1, times: int = 1) -> Armed:
        """Let ``fault`` happen; its ``fired`` says whether it did."""
        assert fault in FAULTS, fault
        armed = Armed(fault, matches, nth, times)
        with self._lock:
            self._armed.append(armed)
        return armed

    def disarm(self) -> None:
        """No more faults; what hangs is cut."""
        with self._lock:
            self._armed = []

    def stop(self) -> None:
        """Cut for good."""
        self._stopped.set()
        self.cut()

    def serve(self, conn: socket.socket) -> None:
        """Its requests, one after another."""
        connected = time.monotonic()
        while self._one(conn, connected):
            pass

    def _one(self, conn: socket.socket, connected: float) -> bool:
        """One request and its answer; True if the connection goes on."""
        head, rest = _read_head(conn)
        if not head:
            return False
        request = self._note(head, connected)
        with self._lock:
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            armed = next((armed for armed in self._armed
                          if armed.wants(request)), _NONE)
        try:
            return self._answer(conn, request, rest, armed)
        finally:
            with self._lock:
                self.running -= 1
            request.ended = time.monotonic()

    def _note(self, head: bytes, connected: float) -> Request:
        method, target, _ = head.split(b'\r\n')[0].decode('latin1').split()
        fields = _fields(head)
        length = int(fields.get('content-length', '0'))
        with self._lock:
            request = Request(len(self.requests) + 1, method, target, head,
                              length, time.monotonic(), connected)
            self.requests.append(request)
        return request

    def _answer(self, conn: socket.socket, request: Request, rest: bytes,
                armed: Armed) -> bool:
        fault = armed.fault
        if fault in _BLUNT:
            armed.fired += 1
        if fault == 'refuse':
            _reset(conn)
            return False
        if fault == 'hang':
            return self._hang(conn)
        body = self._read_body(conn, request, rest, fault)
        if fault == 'reset_request':
            _reset(conn)
            return False
        if fault in _ERRORS:
            _send_error(conn, request, fault)
            return True
        if fault == 'swallow' and request.method in ('PUT', 'DELETE'):
            armed.fired += 1
            time.sleep(self.swallow_seconds)
            _send_success(conn, body)
            return True
        status, head, answer = self._forward(request, body)
        if fault == 'timeout_after_commit':
            return self._hang(conn)
        if fault in _FINE and answer and status in (200, 206):
            armed.fired += 1
            head, answer = _spoil(fault, head, answer)
        if fault == 'reset_answer':
            conn.sendall((head + answer)[:len(head) // 2
                                         + len(answer) // 2])
            _reset(conn)
            return False
        conn.sendall(head)
        if fault == 'drip':
            for at in range(len(answer)):
                conn.sendall(answer[at:at + 1])
                if self._stopped.wait(1.0):
                    return False
        conn.sendall(answer)
        return True

    def _read_body(self, conn: socket.socket, request: Request,
                   rest: bytes, fault: str) -> bytes:
        wanted = request.length
        if fault == 'reset_request':
            wanted //= 2
        if len(rest) < wanted and b'100-continue' in request.head.lower():
            conn.sendall(b'HTTP/1.1 100 Continue\r\n\r\n')
        pieces = [rest]
        have = len(rest)
        while have < wanted:
            piece = conn.recv(min(1 << 20, wanted - have))
            if not piece:
                raise ConnectionResetError('client left')
            pieces.append(piece)
            have += len(piece)
        return b''.join(pieces)

    def _hang(self, conn: socket.socket) -> bool:
        # Until the client gives up: that is an end of file for us.
        while conn.recv(65536):
            pass
        return False

    def _forward(self, request: Request,
                 body: bytes) -> Tuple[int, bytes, bytes]:
        """(status, head, body) of the real server's answer."""
        with socket.create_connection(self._upstream, 30) as upstream:
            # The whole body is here: the real server need not be asked.
            lines = [line for line in request.head.split(b'\r\n')
                     if not line.lower().startswith((b'expect:',))]
            upstream.sendall(b'\r\n'.join(lines) + body)
            while True:
                head, rest = _read_head(upstream)
                if not head:
                    raise ConnectionResetError('real server left')
                status = int(head.split(b' ', 2)[1])
                if status != 100:
                    break
            fields = _fields(head)
            if request.method == 'HEAD' or status in (204, 304):
                return status, head, b''
            if 'chunked' in fields.get('transfer-encoding', ''):
                return status, head, _read_chunks(upstream, rest)
            length = int(fields.get('content-length', '0'))
            pieces = [rest]
            have = len(rest)
            while have < length:
                piece = upstream.recv(1 << 20)
                if not piece:
                    raise ConnectionResetError('real server left')
                pieces.append(piece)
                have += len(piece)
            return status, head, b''.join(pieces)


def _spoil(fault: str, head: bytes, answer: bytes) -> Tuple[bytes, bytes]:
    if fault == 'wrong_bytes':
        at = len(answer) // 2
        return head, (answer[:at] + bytes((answer[at] ^ 0x10,))
                      + answer[at + 1:])
    if fault == 'other_body':
        return head, bytes(byte ^ 0xff for byte in answer)
    if fault == 'short':
        short = answer[:len(answer) // 2]
        return head.replace(
            b'%d\r\n' % len(answer), b'%d\r\n' % len(short), 1), short
    return head, answer


def _read_head(conn: socket.socket) -> Tuple[bytes, bytes]:
    data = b''
    while b'\r\n\r\n' not in data:
        piece = conn.recv(65536)
        if not piece or len(data) > _HEAD_LIMIT:
            return b'', b''
        data += piece
    head, _, rest = data.partition(b'\r\n\r\n')
    return head + b'\r\n\r\n', rest


def _read_chunks(conn: socket.socket, rest: bytes) -> bytes:
    data = rest
    while not data.endswith(b'0\r\n\r\n'):
        piece = conn.recv(1 << 20)
        if not piece:
            break
        data += piece
    return data


def _fields(head: bytes) -> Dict[str, str]:
    fields: Dict[str, str] = {}
    for line in head.decode('latin1').split('\r\n')[1:]:
        name, _, value = line.partition(':')
        fields[name.strip().lower()] = value.strip()
    return fields


def _send_error(conn: socket.socket, request: Request, fault: str) -> None:
    status, code = _ERRORS[fault]
    body = b'' if request.method == 'HEAD' else (_XML % code).encode()
    conn.sendall(('HTTP/1.1 %s As Armed\r\nContent-Type: application/xml'
                  '\r\nContent-Length: %d\r\n\r\n' % (
                      status, len(body))).encode() + body)


def _send_success(conn: socket.socket, body: bytes) -> None:
    import hashlib
    conn.sendall(('HTTP/1.1 200 OK\r\nETag: "%s"\r\nContent-Length: 0'
                  '\r\n\r\n' % hashlib.md5(body).hexdigest()).encode())


def _reset(conn: socket.socket) -> None:
    """RST instead of FIN."""
    break_off(conn, socket.SHUT_RD)
