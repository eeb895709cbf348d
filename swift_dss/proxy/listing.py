"""Listings: the class of each object, which its row has.

Object servers append it to the content type of the row
(``objserver.listed``). It is taken off each listing; for s3api, which shows
it, it becomes a field of its own, ``dss_storage_class``. Listings for clients
that ask for classes are made in ``proxy.seeing``.
"""

from __future__ import annotations

import json
import re
from typing import (
    Any, Callable, Dict, Iterable, NamedTuple, Optional, Tuple)

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.utils import close_if_possible
from swift.common.wsgi import WSGIContext

from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.target import SEGMENTS_SUFFIX
from swift_dss.proxy.wsgi import App, Body, Env, Start
from swift_dss.wire import names

Headers = Iterable[Tuple[str, str]]

#: In the rows of a listing for s3api.
FIELD = 'dss_storage_class'
_SEEN = 'swift_dss.s3'
_MARK = names.LISTED_CLASS.encode()
#: The field behind the content type, in the rows of container servers: a name
#: that ends like a class has another one behind it.
_BEHIND = b', "last_modified"'
_IN_ROW = re.compile(_MARK + rb'(\d{1,2})"' + _BEHIND)
#: For rows in another order, and names that look like classes.
#: A quote inside a name has a backslash before it, so no name begins a field.
_TYPE = re.compile(
    rb'("content_type": ?"[^"\\]*(?:\\.[^"\\]*)*)' + _MARK +
    rb'(\d{1,2})"')


class Listed(NamedTuple):
    """The answer to a GET of a container.

    :param text: a listing in JSON; None for any other answer
    :param body: that of any other answer
    """

    context: WSGIContext
    text: Optional[bytes]
    body: Body = ()

    def give(self, start: Start, text: Optional[bytes],
             more: Headers = ()) -> Body:
        """Answer the client.

        :param text: instead of the listing; None for another answer
        :param more: headers
        """
        context = self.context
        headers = context._response_headers
        if text is not None and text is not self.text:
            headers = [(name, value) for name, value in headers
                       if name.lower() != 'content-length']
            headers.append(('Content-Length', str(len(text))))
        start(context._response_status, [*headers, *more],
              context._response_exc_info)
        return self.body if text is None else [text]


def ask(app: App, env: Env) -> Listed:
    """GET a container."""
    context = WSGIContext(app)
    answer: Any = context._app_call(env)
    kind = HeaderKeyDict(context._response_headers).get('Content-Type') or ''
    if not context._response_status.startswith('200') or \
            not kind.startswith('application/json'):
        return Listed(context, None, answer)
    try:
        return Listed(context, b''.join(answer))
    finally:
        close_if_possible(answer)


def call(app: App, request: ProxyRequest) -> Body:
    """GET a container, for clients and s3api that ask for no classes."""
    listed = ask(app, request.env)
    text = listed.text
    if text is not None and _MARK in text:
        text = shown(text, request)
    return listed.give(request.start, text)


def shown(body: bytes, request: ProxyRequest) -> bytes:
    """A listing in JSON without our parameter of content types."""
    seen = seen_by_s3(request.env)
    table = request.state.table

    def end(class_id: bytes) -> bytes:
        """The last part of a content type, for that of a class."""
        name = table.storage_class_of(int(class_id)) \
            if seen is not None else ''
        return ('", "%s": "%s"' % (FIELD, name)).encode() if name else b'"'

    body = _taken_off(body, end)
    if seen is None:
        return body
    if request.target.container.endswith(SEGMENTS_SUFFIX):
        seen.update((row['name'], row[FIELD]) for row in json.loads(body)
                    if FIELD in row)
    return body


def _taken_off(body: bytes, end: Callable[[bytes], bytes]) -> bytes:
    """Each class is one replacement, if all stand where a row has them."""
    left, at = body, body.find(_MARK)
    while at >= 0:
        match = _IN_ROW.match(left, at)
        if match is None:
            return _TYPE.sub(lambda field: field.group(1) + end(
                field.group(2)), body)
        left = left.replace(match.group(0),
                            end(match.group(1)) + _BEHIND)
        at = left.find(_MARK, at)
    return left


def note_s3(env: Env) -> None:
    """Note that our s3api took a request for one of S3's."""
    env.setdefault('swift.infocache', {})[_SEEN] = {}


def seen_by_s3(env: Env) -> Optional[Dict[str, str]]:
    """The storage classes of parts and uploads that were listed for our s3api,
    by name; None if the request is not one of S3's to it.

    Swift hands ``swift.infocache`` to all requests that it makes of one.
    """
    seen: Optional[Dict[str, str]] = env.get(
        'swift.infocache', {}).get(_SEEN)
    return seen
