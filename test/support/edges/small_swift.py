"""A Swift of one dictionary, over real HTTP, whose answers can go wrong."""

from __future__ import annotations

import http.server
import json
import threading
import time
from urllib.parse import unquote

ACCOUNT = '/v1/AUTH_test'
TOKEN = 'AUTH_tk_small'


class SmallSwift:
    """Serves at once, until :meth:`close`.

    Attributes that a test may set: ``delay(method, path)`` in seconds,
    ``status(method, path)`` instead of the right one (None: the right one),
    ``change(path, body)`` of the bytes that a GET gives, and ``classes`` of
    ``/info``.
    """

    def __init__(self):
        self.objects = {}
        self.containers = {}
        self.asked = []
        self.classes = {'gold': 25, 'silver': 20}
        self.delay = lambda method, path: 0
        self.status = lambda method, path: None
        self.change = lambda path, body: body
        self.lock = threading.Lock()
        self._server = _Server(('127.0.0.1', 0), _Handler)
        self._server.daemon_threads = True
        self._server.swift = self
        self.url = 'http://127.0.0.1:%d' % self._server.server_address[1]
        self.storage_url = self.url + ACCOUNT
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def puts(self, path):
        """Headers of the PUTs of a path, in order."""
        return [headers for method, asked, headers in self.asked
                if method == 'PUT' and asked == path]


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def log_message(self, *_arguments):
        pass

    def _answer(self, status, body=b'', headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def _do(self):
        swift = self.server.swift
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if self.path == '/info':
            self._answer(200, json.dumps(
                {'dss': {'classes': swift.classes}}).encode())
            return
        if self.path == '/auth/v1.0':
            self._answer(200, headers=(('X-Storage-Url', swift.storage_url),
                                       ('X-Auth-Token', TOKEN)))
            return
        path = unquote(self.path)
        path = path[len(ACCOUNT):] if path.startswith(ACCOUNT) else path
        path = path.lstrip('/')
        with swift.lock:
            swift.asked.append((self.command, path, dict(self.headers)))
        time.sleep(swift.delay(self.command, path))
        status = swift.status(self.command, path)
        if status is not None:
            self._answer(status, b'no')
            return
        with swift.lock:
            status, answer = self._store(swift, path, body)
        self._answer(status, swift.change(path, answer), (
            ('X-DSS-Tier', 'ssd'),) if self.command == 'GET' else ())

    def _store(self, swift, path, body):
        held = swift.objects if '/' in path else swift.containers
        if self.command == 'PUT':
            held[path] = body
            return 201, b''
        if path not in held:
            return 404, b''
        if self.command == 'DELETE':
            if held is swift.containers and any(
                    name.startswith(path + '/') for name in swift.objects):
                return 409, b''
            del held[path]
            return 204, b''
        return 200, held[path]

    do_GET = do_HEAD = do_PUT = do_DELETE = _do
