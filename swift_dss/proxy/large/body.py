"""The data of a large object, read below Swift's own SLO and DLO.

For its ``.dss`` form alone: those middlewares would put nothing in front.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator

from swift.common.exceptions import ListingIterError, SegmentError
from swift.common.request_helpers import SegmentedIterable
from swift.common.swob import HTTPConflict, Request, wsgi_to_str

from swift_dss.proxy.large.reading import Whole
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.wsgi import App

#: Seconds that a GET may take, as in Swift's SLO.
_MAX_GET_SECONDS = 86400


def body_of(request: ProxyRequest, app: App, whole: Whole,
            logger: Any) -> Any:
    """An iterable of all bytes; the client's right to each segment is asked
    for with the segment.

    :raises HTTPException: the first segment cannot be read
    """
    body = SegmentedIterable(
        Request(request.env), app, _listed(request, whole),
        _MAX_GET_SECONDS, logger, ua_suffix='DSS MultipartGET',
        swift_source='DSS', name=request.target.path,
        response_body_length=whole.size)
    try:
        body.validate_first_segment()
    except (SegmentError, ListingIterError):
        raise HTTPConflict(request=Request(request.env)) from None
    return body


def _listed(request: ProxyRequest, whole: Whole) -> Iterator[Dict[str, Any]]:
    top = '/v1/' + wsgi_to_str(request.target.account)
    for use, entry in whole.pieces:
        if use.is_manifest or not use.length:
            continue
        bounds = {'first_byte': use.start,
                  'last_byte': use.start + use.length - 1}
        if use.path:
            yield dict(bounds, path=top + use.path, bytes=entry.size,
                       hash=entry.etag or None)
        else:
            yield dict(bounds, raw_data=entry.data)
