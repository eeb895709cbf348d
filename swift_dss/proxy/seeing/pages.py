"""Pages of listings that show classes or tiers, or rows of one class.

A container server does not know classes, so rows of one class are picked here,
from as many listings as it takes: the first is of as many rows as the client
wants, each further one of eight times as many. One answer reads
``MAX_FILTERED_ROWS`` rows at most. If those give fewer than the limit, or
tiers are shown and the limit is more than ``MAX_TIER_ROWS``, the answer says
in ``X-DSS-Next-Marker`` where the next page begins; the page may be empty
then. In every page ``marker=<last name>`` gives the next one, as always.

Subdirectories (``delimiter``, ``path``) stay in whatever is in them: a listing
with such a prefix is the way to their objects.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional
from urllib.parse import quote

from swift.common.constraints import CONTAINER_LISTING_LIMIT
from swift.common.request_helpers import constrain_req_limit
from swift.common.swob import Request, str_to_wsgi

from swift_dss.core.limits import MAX_FILTERED_ROWS, MAX_TIER_ROWS
from swift_dss.proxy import listing
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.seeing import rows, straight, tiers
from swift_dss.proxy.seeing.wishes import Wish
from swift_dss.proxy.wsgi import App, Body, Env
from swift_dss.wire import names

_GROWTH = 8


def call(app: App, request: ProxyRequest, wish: Wish) -> Body:
    """GET a container."""
    table = request.state.table
    if wish.class_id is None and not wish.tiers:
        listed = listing.ask(app, request.env)
        return listed.give(
            request.start, None if listed.text is None else straight.past(
                request.env, rows.with_classes(listed.text, table)))
    # As the proxy server does, with its answer to a limit that is too high.
    limit = constrain_req_limit(Request(request.env),
                                CONTAINER_LISTING_LIMIT)
    page = _Page(wish, min(limit, MAX_TIER_ROWS) if wish.tiers else limit)
    first = listed = listing.ask(app, _env(request.env, page))
    while listed.text is not None and page.add(json.loads(listed.text)):
        listed = listing.ask(app, _env(request.env, page))
    if listed.text is None:
        return listed.give(request.start, None)
    if wish.classes:
        for row, class_id in zip(page.rows, page.class_ids):
            rows.show_class(row, class_id, table)
    if wish.tiers:
        tiers.show(app, request, page.rows)
    more = []
    if page.is_cut or len(page.rows) == page.most < limit:
        more.append((names.NEXT_MARKER, quote(page.marker)))
    return first.give(request.start, straight.past(
        request.env, json.dumps(page.rows).encode('ascii')), more)


class _Page:
    """The rows of one answer, as they come.

    :param most: rows that it has at most

    ``marker`` is the last name that was looked at; ``is_cut`` is set if more
    rows were to be looked at.
    """

    def __init__(self, wish: Wish, most: int) -> None:
        self._wish = wish
        self.most = most
        self.step = most
        self.rows: List[rows.Row] = []
        self.class_ids: List[Optional[int]] = []
        self.marker = ''
        self.is_cut = False
        self._looked = 0

    def add(self, listed: List[Dict[str, Any]]) -> bool:
        """Pick the rows of a listing of ``step`` rows.

        :returns: whether another one is needed
        """
        for row in listed:
            self.marker = row['name'] if 'name' in row else row['subdir']
            class_id = rows.take_class(row)
            if self._wish.class_id in (None, class_id) or 'subdir' in row:
                self.rows.append(row)
                self.class_ids.append(class_id)
                if len(self.rows) == self.most:
                    return False
        self._looked += len(listed)
        if not listed or len(listed) < self.step:
            return False
        self.is_cut = self._looked >= MAX_FILTERED_ROWS
        self.step = min(self.step * _GROWTH, CONTAINER_LISTING_LIMIT)
        return not self.is_cut


def _env(env: Env, page: _Page) -> Env:
    """The client's request for the next listing."""
    # The proxy server notes the shards that one listing has visited in it.
    request = Request(dict(env))
    params = request.params
    for name in (names.SEE_QUERY, names.CLASS_QUERY):
        params.pop(name, None)
    params['limit'] = str(page.step)
    if page.marker:
        params['marker'] = str_to_wsgi(page.marker)
    request.params = params
    return request.environ  # type: ignore[no-any-return]
