"""The question of a POST that other nodes' daemons and proxies send."""

from __future__ import annotations

from typing import Callable, TypeVar

from swift.common.swob import HTTPException, Request

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import MAX_QUESTION_BYTES

_Question = TypeVar('_Question')


def question_of(request: Request,
                decode: Callable[[bytes], _Question]) -> _Question:
    """Read it.

    :param decode: raises DamagedRecord for what is no question
    :raises HTTPException: the answer to a request that asks nothing
    """
    if request.method != 'POST':
        raise HTTPException(status=405, request=request)
    if not 0 < (request.content_length or 0) <= MAX_QUESTION_BYTES:
        raise HTTPException(status=413, request=request)
    try:
        return decode(request.environ['wsgi.input'].read(
            request.content_length))
    except DamagedRecord as err:
        raise HTTPException(status=400, body=str(err).encode(
            'utf-8', 'replace'), request=request) from err
