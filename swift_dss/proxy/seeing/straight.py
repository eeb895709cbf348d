"""A listing goes past the filters that would read it and write it again.

Five filters of Swift parse each listing in JSON for what stands behind the
ETag of a row (a link's target, the ETag of a large object), and write it
again. Where no row has that, they write just what they read, and all of their
work is half of a listing's. So ``dss`` gives them an empty listing in its
stead, and the filter ``dss_retry_after``, left of s3api, gives the listing
itself to those above.

This is done for listings that show classes, if ``dss_retry_after`` is there
and only filters of Swift are in between: another one may change rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from swift.common.utils import close_if_possible
from swift.common.wsgi import WSGIContext

from swift_dss.proxy.wsgi import App, Body, Env, Start
from swift_dss.wire import names

_KEY = 'swift_dss.listing'
#: A listing without a row.
_EMPTY = b'[]'
_ETAG = b'"hash": "'
_ETAG_CHARS = 32


class _Passage:
    """One request's way up.

    :param path: of the request that ``dss_retry_after`` saw: filters in
        between make others
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.text: Optional[bytes] = None


class _Answer(NamedTuple):
    status: str
    headers: Any
    exc_info: Any
    body: Body


def call(app: App, env: Env, start: Start) -> Body:
    """Let ``app`` answer, and give the client the listing that went past.

    An answer that is another one than the empty listing is a surprise: the
    filters in between are asked again then, and see all rows.
    """
    if env['REQUEST_METHOD'] != 'GET' or \
            names.SEE_QUERY not in (env.get('QUERY_STRING') or ''):
        return app(env, start)
    passage, before = _Passage(env['PATH_INFO']), dict(env)
    env[_KEY] = passage
    answer = _ask(app, env)
    if passage.text is not None and answer.status.startswith('200'):
        body = b''.join(answer.body)
        close_if_possible(answer.body)
        if body == _EMPTY:
            start(answer.status, [
                (name, str(len(passage.text))
                 if name.lower() == 'content-length' else value)
                for name, value in answer.headers], answer.exc_info)
            return [passage.text]
        answer = _ask(app, before)
    start(answer.status, answer.headers, answer.exc_info)
    return answer.body


def past(env: Env, text: bytes) -> bytes:
    """The listing that ``dss`` answers: none of its rows, if it may go past
    the filters above.

    :param text: in JSON, as container servers write it
    """
    passage: Optional[_Passage] = env.get(_KEY)
    if passage is None or passage.path != env['PATH_INFO'] or \
            not _is_plain(text):
        return text
    passage.text = text
    return _EMPTY


def _is_plain(text: bytes) -> bool:
    """Has every row an ETag with nothing behind it?

    A quote inside a name has a backslash before it, so no name looks like
    the field.
    """
    etags = text.split(_ETAG)
    return all(etag[_ETAG_CHARS:_ETAG_CHARS + 1] == b'"' and
               b';' not in etag[:_ETAG_CHARS] for etag in etags[1:])


def _ask(app: App, env: Env) -> _Answer:
    context = WSGIContext(app)
    body = context._app_call(env)
    return _Answer(context._response_status, context._response_headers,
                   context._response_exc_info, body)
