"""The door of the S3: counts requests by node and kind, and breaks them on
demand.

A process in the S3's namespace: it listens where the gateways think that
S3 is, knows nodes by their addresses, and hands requests on to the second
Swift unchanged (they are signed). Told over a Unix socket, one JSON object
a line each way, which a network namespace does not hide:

``{"verb": "counts", "reset": false}``, ``{"verb": "requests"}``,
``{"verb": "fault", "fault": {...}}``, ``{"verb": "heal"}``,
``{"verb": "faults"}``.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import socketserver
import struct
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Optional, Tuple

from swift_dss.aio.bed.s3.faults import Fault, Faults, Request, without_keys
from swift_dss.aio.bed.s3.tally import Asked, Tally
from swift_dss.core.errors import BadConfig

_CHUNK_BYTES = 65536
#: A gateway gives up long before; this ends our thread.
_HANG_SECONDS = 300.0
_UPSTREAM_SECONDS = 120.0
_HOP_BY_HOP = ('connection', 'keep-alive', 'transfer-encoding', 'expect')


class Gone(Exception):
    """The connection to the node is reset; nothing more is sent."""


class Door(ThreadingHTTPServer):
    """The server that nodes talk to.

    :param listen: where
    :param upstream: the S3 itself
    :param names: address to node
    """

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, listen: Tuple[str, int], upstream: Tuple[str, int],
                 names: Dict[str, str], seed: int = 1) -> None:
        self.upstream = upstream
        self.tally = Tally()
        self.healed = threading.Event()
        self._names = names
        self._faults = Faults(random.Random(seed))
        self._lock = threading.Lock()
        super().__init__(listen, Visit)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A node that went away is no news."""

    def name_of(self, address: str) -> str:
        """The node at an address."""
        return self._names.get(address, address)

    def judge(self, request: Request) -> Optional[Fault]:
        """The fault that a request meets, if any."""
        with self._lock:
            return self._faults.judge(request)

    def forgotten(self, node: str) -> List[str]:
        """Patterns of keys that a node must not see in listings."""
        with self._lock:
            return self._faults.forgotten(node)

    def command(self, asked: Dict[str, Any]) -> Any:
        """Carry out a verb.

        :raises BadConfig: there is no such verb or fault
        """
        verb = asked.get('verb')
        if verb == 'counts':
            return self.tally.counts(bool(asked.get('reset')))
        if verb == 'requests':
            return self.tally.requests()
        if verb == 'name':
            self._names[str(asked['address'])] = str(asked['node'])
            return True
        with self._lock:
            if verb == 'faults':
                return self._faults.in_force()
            if verb == 'fault':
                self._faults.add(Fault.parse(asked['fault']))
                return True
            if verb == 'heal':
                self.healed.set()
                self.healed = threading.Event()
                return self._faults.clear()
        raise BadConfig('no verb %r' % verb)


class Visit(BaseHTTPRequestHandler):
    """One connection of a node."""

    protocol_version = 'HTTP/1.1'
    server: Door
    _upstream: Optional[http.client.HTTPConnection] = None
    _note: Callable[[], None]

    def log_message(self, format: str, *args: Any) -> None:
        """The tally has it."""

    def finish(self) -> None:
        """The node went away."""
        if self._upstream is not None:
            self._upstream.close()
        try:
            super().finish()
        except OSError:
            pass

    def _serve(self) -> None:
        path, _mark, query = self.path.partition('?')
        key = urllib.parse.unquote(path).lstrip('/').partition('/')[2]
        node = self.server.name_of(self.client_address[0])
        operation = self.command
        if operation == 'GET' and not key and 'location' not in query:
            operation = 'LIST'
        begun, clock = time.time(), time.monotonic()
        fault = self.server.judge(Request(node, self.command, key))
        kind = fault.kind if fault else ''
        self._sent = self._got = self._status = self._length = 0

        def note() -> None:
            self._note = _noted
            self.server.tally.note(Asked(
                node, operation, key, self._sent, self._got, self._status,
                begun, time.monotonic() - clock, kind))
        self._note = note
        try:
            self._answer(fault, operation, node)
        except (Gone, OSError, http.client.HTTPException):
            self._reset()
        finally:
            self._note()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def _answer(self, fault: Optional[Fault], operation: str,
                node: str) -> None:
        kind = fault.kind if fault else ''
        if kind == 'refuse':
            raise Gone
        if kind == 'hang':
            self.server.healed.wait(_HANG_SECONDS)
            raise Gone
        if fault and kind == 'slow':
            time.sleep(fault.milliseconds / 1000.0)
        length = int(self.headers.get('Content-Length') or 0)
        if kind == 'reset' and length:
            self._take(length // 2)
            raise Gone
        body = self._take(length)
        if kind in ('500', '503'):
            return self._refuse(int(kind))
        if kind == 'forget' and operation in ('GET', 'HEAD'):
            return self._refuse(404)
        if kind == 'drop' and operation == 'PUT':
            return self._pretend(body)
        self._hand_on(body, kind, self.server.forgotten(node)
                      if operation == 'LIST' else [])

    def _take(self, length: int) -> bytes:
        """Bytes of the request's body.

        :raises Gone: the node sent fewer
        """
        pieces = []
        while self._sent < length:
            piece = self.rfile.read(min(_CHUNK_BYTES, length - self._sent))
            if not piece:
                raise Gone
            self._sent += len(piece)
            pieces.append(piece)
        return b''.join(pieces)

    def _refuse(self, status: int) -> None:
        code = {404: 'NoSuchKey', 500: 'InternalError',
                503: 'SlowDown'}[status]
        text = ('<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>%s'
                '</Code><Message>told to</Message></Error>' % code).encode()
        self._begin(status, [('Content-Type', 'application/xml'),
                             ('Content-Length', str(len(text)))])
        self._send(text)

    def _pretend(self, body: bytes) -> None:
        import hashlib
        self._begin(200, [('Content-Length', '0'), (
            'ETag', '"%s"' % hashlib.md5(body).hexdigest())])  # nosec

    def _hand_on(self, body: bytes, kind: str, hidden: List[str]) -> None:
        answer = self._ask(body)
        headers = [(name, value) for name, value in answer.getheaders()
                   if name.lower() not in _HOP_BY_HOP]
        names = {name.lower(): value for name, value in headers}
        has_body = self.command != 'HEAD' and answer.status not in (
            204, 304)
        whole = None
        if hidden or (has_body and 'content-length' not in names):
            whole = without_keys(answer.read(), hidden)
        length = int(names.get('content-length') or 0)
        if kind == 'short' and answer.status < 300:
            length //= 2
        if whole is not None:
            length = len(whole)
        if has_body or 'content-length' in names:
            headers = [pair for pair in headers
                       if pair[0].lower() != 'content-length']
            headers.append(('Content-Length', str(length)))
        self._begin(answer.status, headers)
        if not has_body:
            answer.read()
        elif whole is not None:
            self._send(whole)
        else:
            self._stream(answer, length, kind)

    def _stream(self, answer: http.client.HTTPResponse, length: int,
                kind: str) -> None:
        lies = answer.status < 300
        while self._got < length:
            piece = answer.read(min(_CHUNK_BYTES, length - self._got))
            if not piece:
                raise Gone
            if kind == 'flip' and lies and not self._got:
                piece = bytes([piece[0] ^ 0xff]) + piece[1:]
            if kind == 'reset' and self._got + len(piece) > length // 2:
                self._send(piece[:max(0, length // 2 - self._got)])
                raise Gone
            self._send(piece)
        # Drain the bytes that a fault held back from the connection.
        answer.read()

    def _ask(self, body: bytes) -> http.client.HTTPResponse:
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in _HOP_BY_HOP}
        for _attempt in range(2):
            fresh = self._upstream is None
            if self._upstream is None:
                self._upstream = http.client.HTTPConnection(
                    *self.server.upstream, timeout=_UPSTREAM_SECONDS)
            try:
                self._upstream.putrequest(
                    self.command, self.path, skip_host=True,
                    skip_accept_encoding=True)
                for name, value in headers.items():
                    self._upstream.putheader(name, value)
                self._upstream.endheaders(body or None)
                return self._upstream.getresponse()
            except (OSError, http.client.HTTPException):
                self._upstream.close()
                self._upstream = None
                # A kept connection may have ended since; a new one that fails
                # is the S3's own fault.
                if fresh:
                    raise
        raise Gone

    def _begin(self, status: int, headers: List[Tuple[str, str]]) -> None:
        self._status = status
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
            if name.lower() == 'content-length':
                self._length = int(value)
        if self.command == 'HEAD' or not self._length:
            self._note()
        self.end_headers()

    def _send(self, data: bytes) -> None:
        if self.command == 'HEAD':
            return
        self._got += len(data)
        # Count the request before its answer is complete.
        if self._got >= self._length:
            self._note()
        self.wfile.write(data)

    def _reset(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   struct.pack('ii', 1, 0))
        self.connection.close()


def _noted() -> None:
    pass


class Control(socketserver.ThreadingUnixStreamServer):
    """The socket that tells the door what to do."""

    daemon_threads = True

    def __init__(self, path: str, door: Door) -> None:
        self.door = door
        super().__init__(path, _Order)


class _Order(socketserver.StreamRequestHandler):
    server: Control

    def handle(self) -> None:
        for line in self.rfile:
            try:
                answer: Dict[str, Any] = {
                    'result': self.server.door.command(json.loads(line))}
            except (BadConfig, ValueError, KeyError) as err:
                answer = {'error': str(err)}
            self.wfile.write(json.dumps(answer).encode() + b'\n')


def main(argv: Optional[List[str]] = None) -> int:
    """Serve until ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--listen', required=True)
    parser.add_argument('--upstream', required=True)
    parser.add_argument('--control', required=True)
    parser.add_argument('--names', required=True, help='JSON')
    args = parser.parse_args(argv)
    door = Door(_server(args.listen), _server(args.upstream),
                json.loads(args.names))
    control = Control(args.control, door)
    threading.Thread(target=control.serve_forever, daemon=True).start()
    door.serve_forever()
    return 0


def _server(text: str) -> Tuple[str, int]:
    host, _colon, port = text.rpartition(':')
    return host, int(port)


if __name__ == '__main__':
    raise SystemExit(main())
