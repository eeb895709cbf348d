"""``POST /dss/many``: many HEADs and class POSTs in one request.

Each is done by the server's own methods, as if it had come alone, and one
that fails fails alone. This saves a connection each, and another one to
a container server (:mod:`.rows`). Like recon, it is for the cluster's
own network: a proxy forwards no path of a client that begins so.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, List

from swift.common.swob import (
    HTTPException, Request, Response, WsgiBytesIO)
from swift.common.utils import close_if_possible

from swift_dss.io import waiting
from swift_dss.objserver.many.asked import question_of
from swift_dss.objserver.many.rows import Rows
from swift_dss.wire.large import many

#: Requests that are done before others of the server have their turn.
_AT_ONCE = 8
#: Of the outer request, for each inner one.
_KEPT = ('SERVER_NAME', 'SERVER_PORT', 'SERVER_PROTOCOL', 'REMOTE_ADDR',
         'HTTP_X_TRANS_ID', 'HTTP_USER_AGENT', 'HTTP_HOST')


def answer(env: Any, start_response: Any, rows: Rows,
           app: Callable[[Any, Any], Any], logger: Any) -> Any:
    """Answer the question of ``env``.

    :param rows: what ``app`` holds back, to be sent before the answer
    :param app: the object server, for one request
    """
    request = Request(env)
    try:
        asked = question_of(request, many.decode_question)
    except HTTPException as refusal:
        return refusal(env, start_response)
    try:
        said = [_said(env, number, question, app)
                for number, question in enumerate(asked)]
    finally:
        rows.send()
    logger.info('dss: %d requests for segments, %s (txn: %s)', len(said),
                ', '.join('%d of %d' % (count, status) for status, count
                          in Counter(each.status for each in said).items()),
                request.headers.get('X-Trans-Id', '-'))
    return Response(body=many.encode_answer(said), request=request,
                    content_type='application/json')(env, start_response)


def _said(env: Any, number: int, asked: many.Ask,
          app: Callable[[Any, Any], Any]) -> many.Said:
    if number % _AT_ONCE == _AT_ONCE - 1:
        waiting.sleep(0)
    inner = {name: value for name, value in env.items()
             if name in _KEPT or name.startswith('wsgi.')}
    inner.update({
        'REQUEST_METHOD': asked.method, 'SCRIPT_NAME': '',
        'PATH_INFO': asked.path, 'QUERY_STRING': '',
        'CONTENT_LENGTH': '0', 'wsgi.input': WsgiBytesIO(b'')})
    for name, value in asked.headers.items():
        inner['HTTP_' + name.upper().replace('-', '_')] = value
    status: List[Any] = []

    def start(line: str, headers: Any, *_rest: Any) -> None:
        status[:] = [int(line[:3]), headers]

    close_if_possible(app(inner, start))
    return many.Said(status[0], dict(status[1]) if asked.method == 'HEAD'
                     and status[0] == 200 else {})
