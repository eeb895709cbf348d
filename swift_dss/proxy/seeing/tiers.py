"""``dss_tier`` of the rows of a listing: one HEAD of each object.

Containers do not know tiers, which change without a request. The value is
that of ``X-DSS-Tier``, of the object server that answered; null where there is
none: for a link, a manifest (the bytes of a large object are in its segments),
an object on stock Swift's diskfile, and one that cannot be looked at now, or
not by this client.
"""

from __future__ import annotations

from typing import Iterable, Optional, Tuple

from swift.common.swob import str_to_wsgi, wsgi_quote
from swift.common.utils import StreamingPile
from swift.common.wsgi import make_subrequest

from swift_dss.core.limits import TIER_CONCURRENCY
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.seeing.rows import Row
from swift_dss.proxy.wsgi import App
from swift_dss.wire import names

TIER = 'dss_tier'


def show(app: App, request: ProxyRequest, listed: Iterable[Row]) -> None:
    """Give each row of an object its field.

    Blocks for the HEADs, ``TIER_CONCURRENCY`` at a time.
    """
    with StreamingPile(TIER_CONCURRENCY) as pile:
        for row, tier in pile.asyncstarmap(_ask, (
                (app, request, row) for row in listed if 'name' in row)):
            row[TIER] = tier


def _ask(app: App, request: ProxyRequest,
         row: Row) -> Tuple[Row, Optional[str]]:
    target = request.target._replace(obj=str_to_wsgi(row['name']))
    # The client's own rights count.
    head = make_subrequest(request.env, 'HEAD', wsgi_quote(target.path),
                           swift_source='DSS')
    head.environ['QUERY_STRING'] = ''
    answer = head.get_response(app)
    answer.body  # noqa: B018  # a HEAD has none; this closes it
    headers = answer.headers
    if not answer.is_success or stored.is_symlink(headers) or \
            stored.is_manifest(headers):
        return row, None
    return row, headers.get(names.BACKEND_TIER)
