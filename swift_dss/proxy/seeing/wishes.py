"""The words of a listing's query.

::

    GET /v1/<account>/<container>?dss=true&dss-class=gold&format=json

``dss=true`` shows the class of each object, ``dss=tier`` its class and its
tier; ``dss=false`` is as if it were not there. ``dss-class`` is an id or a
name of the class table: rows of other classes are left out, in every format.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from swift.common.swob import Request, wsgi_to_str

from swift_dss.core.errors import BadClassInput
from swift_dss.proxy.request import ProxyRequest
from swift_dss.wire import names
from swift_dss.wire.headers import parse_object_class

_TRUE, _FALSE, _TIER = 'true', 'false', 'tier'
#: The query that lists old versions of objects.
_VERSIONS = 'versions'


class Wish(NamedTuple):
    """What a client asks a listing for.

    :param classes: rows show their class
    :param tiers: and their tier
    :param class_id: of the rows that are wanted; None: of all
    """

    classes: bool
    tiers: bool
    class_id: Optional[int]


def of(request: ProxyRequest) -> Optional[Wish]:
    """The wish of a GET of a container; None if it has none.

    :raises BadClassInput: there is no such word or class, or old versions are
        to be listed
    """
    # s3api writes the queries of its own requests.
    if names.SEE_QUERY not in (request.env.get('QUERY_STRING') or '') or \
            request.source == 'S3':
        return None
    params = Request(request.env).params
    word = wsgi_to_str(params.get(names.SEE_QUERY, _FALSE)).strip().lower()
    if word not in (_TRUE, _FALSE, _TIER):
        raise BadClassInput(names.SEE_QUERY, '%s is none of %s, %s and %s' % (
            ascii(word[:48]), _TRUE, _TIER, _FALSE))
    class_id = None
    if names.CLASS_QUERY in params:
        class_id = parse_object_class(
            wsgi_to_str(params[names.CLASS_QUERY]), request.state.table,
            names.CLASS_QUERY)
    if word == _FALSE and class_id is None:
        return None
    if _VERSIONS in params:
        raise BadClassInput(
            names.SEE_QUERY if word != _FALSE else names.CLASS_QUERY,
            'a listing of versions has no classes; HEAD a version for its own')
    return Wish(word != _FALSE, word == _TIER, class_id)
