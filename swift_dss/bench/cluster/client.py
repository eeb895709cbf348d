"""A Swift client that costs little: keep-alive, no parsing, no retries.

On a small machine the client shares the processor with the servers that it
measures, so this client does as little as possible for each request.
"""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from typing import Dict, Iterable, Mapping, Optional, Union
from urllib.parse import quote, urlsplit

from swift_dss.core.errors import DssError

_BUFFER_BYTES = 1 << 20
_TIMEOUT_SECONDS = 120.0


class BenchFailed(DssError):
    """A request that the measurement needs was refused."""

    exit_code = 70


@dataclass(frozen=True)
class Target:
    """One account of one cluster.

    :param prefix: ``/v1/AUTH_account``
    """

    host: str
    port: int
    prefix: str
    token: str
    tls: bool = False


@dataclass(frozen=True)
class Request:
    """One thing to do.

    :param path: ``container/object``, not quoted
    :param label: what to count it under
    :param size: bytes of a PUT's body
    :param body: its blocks; ``size`` bytes together
    :param query: as it is sent, without the question mark
    """

    method: str
    path: str
    label: str = ''
    size: int = 0
    body: Optional[Iterable[Union[bytes, memoryview]]] = None
    headers: Optional[Mapping[str, str]] = None
    query: str = ''


@dataclass(frozen=True)
class Sample:
    """The result of a request.

    :param at: ``time.monotonic()`` at its start, the same for all
        processes of the machine
    :param length: bytes of the body that was sent or read
    :param tier: ``X-DSS-Tier`` of the answer, ''
    """

    label: str
    status: int
    at: float
    seconds: float
    length: int
    tier: str = ''


def authenticate(auth_url: str, user: str, key: str) -> Target:
    """The account that v1 authentication gives a user.

    :raises BenchFailed: it does not
    """
    parts = urlsplit(auth_url)
    connection = _connect(parts.hostname or '', parts.port,
                          parts.scheme == 'https')
    try:
        connection.request('GET', parts.path, headers={
            'X-Auth-User': user, 'X-Auth-Key': key})
        answer = connection.getresponse()
        answer.read()
    except OSError as err:
        raise BenchFailed('%s: %s' % (auth_url, err)) from err
    finally:
        connection.close()
    url, token = (answer.getheader(name, '') for name in (
        'X-Storage-Url', 'X-Auth-Token'))
    if not token or not url:
        raise BenchFailed('%s: %d %s' % (
            auth_url, answer.status, answer.reason))
    storage = urlsplit(url)
    tls = storage.scheme == 'https'
    return Target(storage.hostname or '', storage.port or
                  (443 if tls else 80), storage.path, token, tls)


def _connect(host: str, port: Optional[int],
             tls: bool) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if tls else \
        http.client.HTTPConnection
    return kind(host, port, timeout=_TIMEOUT_SECONDS)


class Client:
    """One connection; not for several threads.

    :param target: whom to talk to
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._connection = _connect(target.host, target.port, target.tls)
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))

    def connect(self) -> None:
        """Open the connection now, so that no request pays for it."""
        if self._connection.sock is None:
            self._connection.connect()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def do(self, request: Request) -> Sample:
        """Send one request and read all of its answer.

        An answer of any status is a sample; a connection that breaks is
        one of status 0, and the next request opens a new one.
        """
        at = time.monotonic()
        length = 0
        try:
            self._send(request)
            answer = self._connection.getresponse()
            while True:
                count = answer.readinto(self._buffer)
                if not count:
                    break
                length += count
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return Sample(request.label, 0, at, time.monotonic() - at, 0)
        promised = answer.getheader('Content-Length')
        status = answer.status
        if promised and request.method == 'GET' and int(promised) != length:
            # Cut short: it must not count, nor may the rest of the
            # connection be taken for the next answer.
            status = 0
        if answer.will_close or not status:
            self._connection.close()
        return Sample(
            request.label, status, at, time.monotonic() - at,
            request.size if request.method == 'PUT' else length,
            answer.getheader('X-DSS-Tier', ''))

    def _send(self, request: Request) -> None:
        target, connection = self._target, self._connection
        connection.putrequest(
            request.method,
            '%s/%s%s' % (target.prefix, quote(request.path),
                         request.query and '?' + request.query),
            skip_accept_encoding=True)
        connection.putheader('X-Auth-Token', target.token)
        for name, value in (request.headers or {}).items():
            connection.putheader(name, value)
        if request.method in ('PUT', 'POST'):
            connection.putheader('Content-Length', str(request.size))
        connection.endheaders()
        for block in request.body or ():
            connection.send(block)

    def must(self, request: Request) -> Sample:
        """The same, where anything but 2xx ends the benchmark.

        :raises BenchFailed: names the refused request
        """
        sample = self.do(request)
        if sample.status // 100 != 2:
            raise BenchFailed('%s %s: status %d' % (
                request.method, request.path, sample.status))
        return sample

    def head(self, path: str) -> Dict[str, str]:
        """Headers of an object, names in lower case."""
        self._send(Request('HEAD', path))
        answer = self._connection.getresponse()
        answer.read()
        return {name.lower(): value for name, value in answer.getheaders()}

    def get_bytes(self, path: str) -> bytes:
        """The whole body of an object, for checks.

        :raises BenchFailed: it cannot be read
        """
        self._send(Request('GET', path))
        answer = self._connection.getresponse()
        raw = answer.read()
        if answer.status != 200:
            raise BenchFailed('GET %s: status %d' % (path, answer.status))
        return raw

    def make_container(self, name: str, storage_policy: str = '') -> None:
        """Create a container, in a storage policy of Swift.

        :raises BenchFailed: the cluster has no such storage policy
        """
        self.must(Request('PUT', name, headers={
            'X-Storage-Policy': storage_policy} if storage_policy else None))
