"""HTTP from inside a bed: requests that a member makes."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional
from urllib.parse import quote, urlsplit


class Reply(NamedTuple):
    """An answer.

    :param headers: names in lower case
    :param cut: the connection ended before the promised length
    """

    status: int
    headers: Dict[str, str]
    body: bytes
    cut: bool = False

    @property
    def ok(self) -> bool:
        """2xx, and all of the body."""
        return 200 <= self.status < 300 and not self.cut

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class _Connection(http.client.HTTPConnection):
    """A server whose socket the caller opens."""

    def __init__(self, host: str, port: int,
                 dial: Callable[[], socket.socket]) -> None:
        super().__init__(host, port)
        self._dial = dial

    def connect(self) -> None:
        """Open the socket."""
        self.sock = self._dial()


def request(dial: Callable[[], socket.socket], host: str, port: int,
            method: str, path: str, body: Any = None,
            headers: Optional[Mapping[str, str]] = None) -> Reply:
    """Send one request and read all of the answer.

    :param dial: opens the connection
    :param path: quoted, with its query
    :param body: bytes, or an iterable of them (sent in chunks)
    :raises OSError: no answer
    """
    connection = _Connection(host, port, dial)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        cut = False
        try:
            data = answer.read()
        except http.client.IncompleteRead as err:
            data, cut = err.partial, True
        except ConnectionError:
            data, cut = b'', True
        return Reply(answer.status, {name.lower(): value for name, value
                                     in answer.getheaders()}, data, cut)
    finally:
        connection.close()


class Client:
    """A user of the bed, at one proxy. Not thread-safe.

    :param dial: opens a connection to the proxy
    :param host: of the proxy, for URLs
    """

    def __init__(self, dial: Callable[[], socket.socket], host: str,
                 port: int, user: str = 'test:tester',
                 key: str = 'testing') -> None:
        self._dial, self._host, self._port = dial, host, port
        self._user, self._key = user, key
        self._token = ''
        self.account = 'AUTH_' + user.partition(':')[0]

    def request(self, method: str, path: str = '', body: Any = None,
                headers: Optional[Mapping[str, str]] = None,
                query: str = '') -> Reply:
        """One request to ``/v1/ACCOUNT/path``, with our token.

        :param path: ``container`` or ``container/object``, not quoted
        """
        sent = {'X-Auth-Token': self._token or self._log_in()}
        sent.update(headers or {})
        target = '/v1/%s%s%s' % (
            self.account, '/' + quote(path) if path else '',
            '?' + query if query else '')
        return request(self._dial, self._host, self._port, method, target,
                       body, sent)

    def _log_in(self) -> str:
        reply = request(self._dial, self._host, self._port, 'GET',
                        '/auth/v1.0', headers={
                            'X-Auth-User': self._user,
                            'X-Auth-Key': self._key})
        if reply.status != 200:
            raise ConnectionError('log in: %d' % reply.status)
        self.account = urlsplit(
            reply.headers['x-storage-url']).path.rpartition('/')[2]
        self._token = reply.headers['x-auth-token']
        return self._token

    def put(self, path: str, body: Any = b'',
            headers: Optional[Mapping[str, str]] = None) -> Reply:
        """PUT a container or an object."""
        return self.request('PUT', path, body, headers)

    def get(self, path: str = '',
            headers: Optional[Mapping[str, str]] = None,
            query: str = '') -> Reply:
        """GET."""
        return self.request('GET', path, None, headers, query)

    def head(self, path: str = '',
             headers: Optional[Mapping[str, str]] = None) -> Reply:
        """HEAD."""
        return self.request('HEAD', path, None, headers)

    def post(self, path: str, headers: Mapping[str, str],
             body: Any = b'', query: str = '') -> Reply:
        """POST."""
        return self.request('POST', path, body, headers, query)

    def delete(self, path: str,
               headers: Optional[Mapping[str, str]] = None) -> Reply:
        """DELETE."""
        return self.request('DELETE', path, None, headers)

    def container(self, name: str, policy: str = 'dss') -> str:
        """Make a container of a storage policy.

        :returns: its name
        :raises ConnectionError: it could not be made
        """
        reply = self.put(name, headers={'X-Storage-Policy': policy})
        if not reply.ok:
            raise ConnectionError('PUT %s: %d' % (name, reply.status))
        return name
