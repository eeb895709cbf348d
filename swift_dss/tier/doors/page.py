"""The daemon's HTTP page on the loopback address.

``/`` is for people, ``/status.json`` has the same numbers, ``/metrics`` is for
Prometheus. It only answers requests that name the loopback address: a web page
from elsewhere cannot have a browser ask for it under a name of its own. It
changes nothing: there is nothing but GET.
"""

from __future__ import annotations

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, Tuple

ADDRESS = '127.0.0.1'
_HOSTS = frozenset(('127.0.0.1', 'localhost', '[::1]'))
_HTML = 'text/html; charset=utf-8'
_JSON = 'application/json'
#: A browser may only show the page.
_POLICY = ("default-src 'none'; style-src 'unsafe-inline'; "
           "frame-ancestors 'none'; base-uri 'none'")
#: A reader that sends nothing for this long is gone.
_STALL_SECONDS = 10
#: Path to (content type, function that makes the body).
Views = Dict[str, Tuple[str, Callable[[], bytes]]]


class Page:
    """Serves views of the daemon.

    :param port: of :data:`ADDRESS`; 0 takes a free one
    """

    def __init__(self, port: int, views: Views,
                 logger: logging.Logger) -> None:
        self._server = _Server((ADDRESS, port), _Handler)
        self._server.views = views
        self._server.logger = logger
        self._thread = threading.Thread(
            target=self._server.serve_forever, name='dss-page', daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and close the port."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):

    daemon_threads = True
    views: Views
    logger: logging.Logger


class _Handler(BaseHTTPRequestHandler):

    server_version = 'swift-dss'
    sys_version = ''
    timeout = _STALL_SECONDS
    server: _Server

    def do_GET(self) -> None:
        """Show a view."""
        host = self.headers.get('Host', '').rsplit(':', 1)[0]
        if host not in _HOSTS:
            self._answer(403, 'text/plain', b'only for this machine\n')
            return
        view = self.server.views.get(self.path.partition('?')[0])
        if view is None:
            self._answer(404, 'text/plain', b'there is no such page\n')
            return
        kind, make = view
        try:
            body = make()
        except Exception:
            self.server.logger.exception('page %s', self.path)
            self._answer(500, 'text/plain', b'see the log\n')
            return
        self._answer(200, kind, body)

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Cache-Control', 'no-store')
        self.send_header('Content-Security-Policy', _POLICY)
        self.send_header('X-Content-Type-Options', 'nosniff')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: browsers ask every ten seconds."""


def json_view(make: Callable[[], Any]) -> Tuple[str, Callable[[], bytes]]:
    """A view of plain values."""
    return _JSON, lambda: json.dumps(make()).encode('utf-8')


def html_view(make: Callable[[], str]) -> Tuple[str, Callable[[], bytes]]:
    """A view for people."""
    return _HTML, lambda: make().encode('utf-8')
