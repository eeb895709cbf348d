"""Requests to Swift: one pool of connections, retries, and a token.

A request is retried where another try may end otherwise: the connection
broke, or the status says "later". All requests here may be sent twice.
"""

from __future__ import annotations

import asyncio
import json
from typing import (
    Any, AsyncIterator, Awaitable, Callable, Dict, List, Mapping, NamedTuple,
    Optional, Sequence, Tuple, Union)
from urllib.parse import quote, urlencode

import aiohttp
import tenacity
from yarl import URL

from swift_dss.client.fs.errors import (
    error_of, is_unsure, marked_unsure)
from swift_dss.client.fs.login import Access, Login

Bytes = Union[bytes, bytearray, memoryview]

#: Bytes that a connection is handed at once.
_PIECE_BYTES = 256 * 1024
#: Rows of one page of a listing; Swift's own limit.
_PAGE_ROWS = 10000
#: Statuses after which the same request may succeed.
_LATER = frozenset((408, 429, 500, 502, 503, 504))
#: Longest time that a server may ask us to wait, seconds.
_MOST_WAIT_SECONDS = 30.0
_BROKEN = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError,
           asyncio.TimeoutError)


class Request(NamedTuple):
    """One request.

    :param name: of the object; empty for the container, or the account
        where that is empty too
    :param body: its pieces, which are sent one behind the other
    :param allow: statuses over 299 that are no errors
    :param url: outside of the account, and sent without the token
    """

    method: str
    container: str = ''
    name: str = ''
    query: Tuple[Tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    body: Sequence[Bytes] = ()
    allow: Tuple[int, ...] = ()
    url: str = ''

    @property
    def path(self) -> str:
        """``container/object``."""
        return self.container + ('/' + self.name if self.name else '')


class Answer(NamedTuple):
    """An answer; names of headers are found in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b''


class _Later(Exception):
    """Another try may succeed; ``args[0]`` is the error if none does."""

    def __init__(self, error: OSError, seconds: float = 0.0) -> None:
        super().__init__(error)
        self.error = error
        self.seconds = seconds


class Store:
    """An account of Swift, for one event loop.

    :param tries: of each request
    :param connections: open at a time
    :param idle_seconds: without a byte, after which a connection is broken
    """

    def __init__(self, login: Login, tries: int = 5, connections: int = 32,
                 idle_seconds: float = 120.0) -> None:
        self._login = login
        self._tries = tries
        self._connections = connections
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=20.0, sock_read=idle_seconds)
        self._session: Optional[aiohttp.ClientSession] = None
        #: The answer, or the question under way.
        self._info: Optional[asyncio.Task[Dict[str, Any]]] = None

    async def send(self, request: Request) -> Answer:
        """The answer, whole.

        :raises OSError: see :mod:`swift_dss.client.fs.errors`
        """
        async def once() -> Answer:
            async with self._opened(request) as response:
                return Answer(response.status, response.headers,
                              await response.read())
        return await self._tried(request, once)

    async def head_of(self, request: Request, most_bytes: int) -> Answer:
        """The answer with the first ``most_bytes`` of its body; the
        connection is given up."""
        async def once() -> Answer:
            async with self._opened(request) as response:
                body = bytearray()
                while len(body) < most_bytes:
                    chunk = await response.content.read(
                        most_bytes - len(body))
                    if not chunk:
                        break
                    body += chunk
                response.close()
                return Answer(response.status, response.headers, bytes(body))
        return await self._tried(request, once)

    async def stream(self, request: Request, size: int,
                     etag: str) -> AsyncIterator[bytes]:
        """The bytes of an object; a broken connection is made up for.

        :param size: bytes that the object has
        :param etag: of the version to read
        """
        done = failures = 0
        while done < size:
            headers = dict(request.headers, **{'If-Match': etag})
            if done:
                headers['Range'] = 'bytes=%d-' % done
            try:
                async with self._opened(
                        request._replace(headers=headers)) as response:
                    async for chunk in response.content.iter_chunked(
                            _PIECE_BYTES):
                        done += len(chunk)
                        failures = 0
                        yield chunk
            except (_Later, *_BROKEN) as err:
                failures += 1
                if failures >= self._tries:
                    raise _final(err, request) from err
                await asyncio.sleep(_seconds_before(failures, err))

    async def rows(self, container: str, limit: int = 0,
                   **query: str) -> List[Dict[str, Any]]:
        """The rows of a listing: of a container, or with '' of the account.

        :param limit: rows at most; 0 for all
        :param query: ``prefix`` and ``delimiter``
        :raises FileNotFoundError: there is no such container
        """
        rows: List[Dict[str, Any]] = []
        marker = ''
        while True:
            count = min(_PAGE_ROWS, limit - len(rows) if limit
                        else _PAGE_ROWS)
            words = {'format': 'json', 'limit': str(count), 'marker': marker,
                     **query}
            answer = await self.send(Request(
                'GET', container, query=tuple(
                    (name, value) for name, value in words.items()
                    if value)))
            page = json.loads(answer.body or b'[]')
            rows += page
            if len(page) < count or len(rows) == limit:
                return rows
            marker = page[-1].get('name') or page[-1]['subdir']

    async def info(self) -> Dict[str, Any]:
        """What the cluster says about itself; empty if it doesn't. Many who
        ask at once ask it once."""
        if self._info is None or self._info.done() and (
                self._info.cancelled() or self._info.exception()):
            self._info = asyncio.ensure_future(self._ask_info())
        # One who gives up ends no question of others.
        return await asyncio.shield(self._info)

    async def _ask_info(self) -> Dict[str, Any]:
        access = await self._access(None)
        root = access.storage_url.rsplit('/v1', 1)[0]
        answer = await self.send(Request(
            'GET', url=root + '/info', allow=(401, 403, 404)))
        said: Dict[str, Any] = json.loads(answer.body) \
            if answer.status == 200 else {}
        return said

    async def close(self) -> None:
        """Give up all connections."""
        if self._info is not None:
            self._info.cancel()
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _tried(self, request: Request,
                     once: Callable[[], Awaitable[Answer]]) -> Answer:
        is_done = False

        async def tried() -> Answer:
            nonlocal is_done
            try:
                return await once()
            except (_Later, *_BROKEN) as err:
                is_done = is_done or not isinstance(err, _Later) \
                    or is_unsure(err.error)
                raise
        try:
            async for attempt in tenacity.AsyncRetrying(
                    stop=tenacity.stop_after_attempt(self._tries),
                    wait=_wait, reraise=True,
                    retry=tenacity.retry_if_exception_type(
                        (_Later, *_BROKEN))):
                with attempt:
                    return await tried()
        except (_Later, *_BROKEN) as err:
            final = _final(err, request)
            raise (marked_unsure(final) if is_done else final) from err
        except OSError as err:
            raise marked_unsure(err) if is_done else err
        raise AssertionError('no try was made')

    def _opened(self, request: Request) -> _Opened:
        return _Opened(self, request)

    async def response_of(self, request: Request) -> Any:
        """One try: the response, its body still to be read.

        :raises OSError: the answer is an error and will stay one
        """
        refused: Optional[str] = None
        while True:
            access = await self._access(refused)
            response = await self._pool().request(
                request.method, _url(access, request), ssl=access.tls,
                headers=_headers(access, request), data=_data(request),
                allow_redirects=False)
            if response.status == 401 and refused is None \
                    and 401 not in request.allow:
                refused = access.token
                response.close()
                continue
            if response.status < 300 or response.status in request.allow:
                return response
            body = await response.content.read(4096)
            response.close()
            error = error_of(response.status, request.method, request.path,
                             body)
            seconds = _asked_wait(response.headers)
            if response.status in _LATER and seconds <= _MOST_WAIT_SECONDS:
                raise _Later(error, seconds)
            raise error

    async def _access(self, refused: Optional[str]) -> Access:
        return await asyncio.get_event_loop().run_in_executor(
            None, self._login.access, refused)

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                # Stored bytes are given as they are.
                auto_decompress=False, timeout=self._timeout,
                # Swift guesses an upload's type by its name, and a POST
                # without one leaves it as it is.
                skip_auto_headers=('Content-Type',))
        return self._session


class _Opened:
    """``async with``: the response of a request, closed afterwards."""

    def __init__(self, store: Store, request: Request) -> None:
        self._store = store
        self._request = request
        self._response: Any = None

    async def __aenter__(self) -> Any:
        self._response = await self._store.response_of(self._request)
        return self._response

    async def __aexit__(self, *_: Any) -> None:
        self._response.release()


def _url(access: Access, request: Request) -> URL:
    if request.url:
        return URL(request.url, encoded=True)
    text = access.storage_url
    if request.container:
        text += '/' + quote(request.container, safe='')
    if request.name:
        text += '/' + quote(request.name, safe='/~')
    if request.query:
        text += '?' + urlencode(request.query, quote_via=quote)
    return URL(text, encoded=True)


def _headers(access: Access, request: Request) -> Dict[str, str]:
    headers = {'Accept-Encoding': 'identity', **request.headers}
    if access.token and not request.url:
        headers['X-Auth-Token'] = access.token
    if request.method in ('PUT', 'POST'):
        headers['Content-Length'] = str(sum(map(len, request.body)))
    return headers


def _data(request: Request) -> Any:
    if not request.body:
        return None

    async def pieces() -> AsyncIterator[Bytes]:
        for part in request.body:
            view = memoryview(part)
            for at in range(0, len(view), _PIECE_BYTES):
                yield view[at:at + _PIECE_BYTES]
    return pieces()


def _asked_wait(headers: Mapping[str, str]) -> float:
    text = headers.get('Retry-After', '')
    return float(text) if text.isdigit() else 0.0


def _seconds_before(failures: int, err: Optional[BaseException]) -> float:
    asked = err.seconds if isinstance(err, _Later) else 0.0
    return max(asked, min(10.0, 0.1 * 2.0 ** failures))


def _wait(state: tenacity.RetryCallState) -> float:
    err = state.outcome.exception() if state.outcome else None
    return _seconds_before(state.attempt_number, err)


def _final(err: BaseException, request: Request) -> OSError:
    if isinstance(err, _Later):
        return err.error
    if isinstance(err, asyncio.TimeoutError):
        return TimeoutError('Swift does not answer (dss://%s)'
                            % request.path)
    return ConnectionError('Swift is not reached (dss://%s): %r'
                           % (request.path, err))
