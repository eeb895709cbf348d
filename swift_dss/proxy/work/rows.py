"""Rows of work to be done, as objects of Swift itself.

Rows are small objects of a hidden account: replicated, and on no node in
particular. Each has a time until which it is to be left alone: the lease of
the proxy that works on it, or the time at which it is due. That time is
metadata, and stands in the content type too, so that one listing tells it of a
thousand rows.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from typing import (
    Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple)

from swift.common.swob import (
    HTTPServiceUnavailable, Request, wsgi_quote)
from swift.common.utils import Timestamp, quote
from swift.common.wsgi import make_pre_authed_request

from swift_dss.proxy.wsgi import App, Env

_UNTIL = 'X-Object-Meta-Until'
_BESIDE = 'X-Object-Meta-Beside'
_TYPE = 'application/json;until=%.3f'
_TYPE_UNTIL = re.compile(r';until=(\d+\.\d+)')
#: Rows of one page.
PAGE = 1000


class Unreachable(Exception):
    """An object cannot be looked at or changed now."""

    def answer(self, words: str) -> HTTPServiceUnavailable:
        """To a client.

        :param words: of what could not be done
        """
        return HTTPServiceUnavailable(body=('%s: %s.\n' % (
            words, self)).encode('utf-8', 'replace'),
            headers={'Retry-After': '5'})


class Listed(NamedTuple):
    """A row, as a listing has it.

    :param until: seconds since the epoch; the listing may be late
    """

    name: str
    until: float


class Row(NamedTuple):
    """A row.

    :param until: seconds since the epoch
    :param beside: text of the proxy that touched it last
    :param made_at: seconds since the epoch; of its body
    """

    name: str
    body: bytes
    until: float
    beside: str
    made_at: float


class Rows:
    """The rows of one container.

    :param app: what is below the filter
    :param now: seconds since the epoch
    """

    def __init__(self, app: App, account: str, container: str,
                 now: Callable[[], float] = lambda: time.time()) -> None:
        self._app = app
        self._now = now
        self._account = account
        self._container = container

    def put(self, env: Env, name: str, body: bytes, until: float) -> None:
        """Store a row. After this a crash loses no work.

        :raises Unreachable: it is not stored
        """
        headers = self._headers(until)
        status = self._call(env, 'PUT', name, headers, body)[0]
        if status == 404:
            self._call(env, 'PUT', '')
            status = self._call(env, 'PUT', name, headers, body)[0]
        if status // 100 != 2:
            raise Unreachable('the record of work gives %d' % status)

    def page(self, env: Env, marker: str = '',
             most: int = PAGE) -> List[Listed]:
        """Rows after ``marker``, in order; [] if they cannot be listed."""
        status, _, body = self._call(
            env, 'GET', '', query='format=json&limit=%d&marker=%s' % (
                most, quote(marker)))
        if status != 200:
            return []
        return [Listed(str(row['name']), _until_of(row['content_type']))
                for row in json.loads(body)]

    def has_any(self, env: Env) -> bool:
        """Whether a row can be listed."""
        return bool(self.page(env, most=1))

    def every(self, env: Env) -> Iterator[Listed]:
        """All rows that can be listed, in order."""
        marker = ''
        while True:
            page = self.page(env, marker)
            yield from page
            if not page:
                return
            marker = page[-1].name

    def due(self, env: Env, leads: Callable[[], bool]) -> Iterator[Row]:
        """Rows whose time has come, while this process leads.

        :param leads: whether it does
        """
        for listed in self.every(env):
            if listed.until > self._now():
                continue
            if not leads():
                return
            row = self.read(env, listed.name)
            if row is not None and row.until <= self._now():
                yield row

    def read(self, env: Env, name: str) -> Optional[Row]:
        """A row; None if there is none or it cannot be read."""
        try:
            return self.find(env, name)
        except Unreachable:
            return None

    def find(self, env: Env, name: str) -> Optional[Row]:
        """A row; None if there is none.

        :raises Unreachable: it cannot be read
        """
        status, headers, body = self._call(env, 'GET', name, {
            'X-Newest': 'true'})
        if status == 404:
            return None
        if status != 200:
            raise Unreachable('the row %s gives %d' % (name, status))
        try:
            return Row(name, body, float(headers.get(_UNTIL) or 0),
                       headers.get(_BESIDE) or '', float(Timestamp(
                           headers.get('X-Backend-Data-Timestamp')
                           or headers.get('X-Timestamp') or 0)))
        except ValueError as err:
            raise Unreachable('the row %s: %s' % (name, err)) from err

    def take(self, env: Env, name: str, seconds: float) -> Optional[Row]:
        """A row whose time has come, with a lease of our own; None if it is
        another's, gone or unreadable."""
        row = self.read(env, name)
        if row is None or row.until > self._now():
            return None
        self.touch(env, name, self._now() + seconds, row.beside)
        return row

    def touch(self, env: Env, name: str, until: float,
              beside: str = '') -> bool:
        """Leave the row alone until then.

        :param beside: ASCII text
        :returns: whether that is stored
        """
        status, _, _ = self._call(env, 'POST', name,
                                  self._headers(until, beside))
        return status // 100 == 2

    def delete(self, env: Env, name: str, at: float = 0.0) -> None:
        """The work is done. If this fails it is done once more.

        :param at: seconds since the epoch; a row that was stored later stays
        """
        self._call(env, 'DELETE', name, {
            'X-Timestamp': Timestamp(at).internal} if at else {})

    def _headers(self, until: float, beside: str = '') -> Dict[str, str]:
        return {_UNTIL: '%.3f' % until, _BESIDE: beside,
                'Content-Type': _TYPE % until,
                'X-Timestamp': Timestamp(self._now()).internal}

    def _call(self, env: Env, method: str, name: str,
              headers: Optional[Dict[str, str]] = None, body: bytes = b'',
              query: str = '') -> Tuple[int, Mapping[str, str], bytes]:
        path = '/v1/%s/%s' % (self._account, self._container) + (
            name and '/' + wsgi_quote(name))
        request = make_pre_authed_request(
            env, method=method, path=path, headers=headers or {},
            body=body if method == 'PUT' else None, swift_source='DSS')
        request.environ['QUERY_STRING'] = query
        # Not the client's data: names and classes, which Swift does not
        # encrypt elsewhere.
        request.environ['swift.crypto.override'] = True
        response = request.get_response(self._app)
        return response.status_int, response.headers, response.body


def name_of(text: str) -> str:
    """The name of a row about something with a longer name."""
    return hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()


def own_env() -> Env:
    """An environment for requests that no client made."""
    env: Env = Request.blank('/').environ
    env['swift.trans_id'] = 'dss-work-%s' % Timestamp.now().internal
    return env


def _until_of(content_type: str) -> float:
    told = _TYPE_UNTIL.search(content_type)
    return float(told.group(1)) if told else 0.0
