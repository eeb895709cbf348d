"""What rounds and restorations do alike: pages of listings, guarded rows."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List

from swift.common.swob import wsgi_quote
from swift.common.utils import quote
from swift.common.wsgi import make_pre_authed_request

from swift_dss.core.errors import DssError
from swift_dss.proxy.services import Services
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.rows import Unreachable
from swift_dss.proxy.wsgi import App, Env

#: Objects of one page.
PAGE = 1000


def pages(env: Env, app: App, where: Target, marker: str = '',
          prefix: str = '', newest: bool = False
          ) -> Iterator[List[Dict[str, Any]]]:
    """The rows of a container, page after page; none if it is not there.

    :param marker: rows after this name
    :param newest: ask every replica
    :raises Unreachable: it cannot be listed
    """
    while True:
        request = make_pre_authed_request(
            env, method='GET', path=wsgi_quote(where.path),
            headers={'X-Newest': 'true'} if newest else {},
            swift_source='DSS')
        request.environ['QUERY_STRING'] = \
            'format=json&limit=%d&prefix=%s&marker=%s' % (
                PAGE, quote(prefix), quote(marker))
        response = request.get_response(app)
        if response.status_int == 404:
            return
        if not response.is_success:
            raise Unreachable('%s: GET gives %d' % (
                where.path, response.status_int))
        page = json.loads(response.body or b'[]')
        if not page:
            return
        yield page
        marker = page[-1]['name']


@contextmanager
def guarded(services: Services, kind: str, name: str) -> Iterator[None]:
    """Work on one row. What fails is counted and logged: others have to go on.

    :param kind: of work, as counters call it
    :param name: of the row
    """
    try:
        yield
    except (Unreachable, DssError) as err:
        services.count(kind + '.later')
        services.logger.warning('dss: %s: %s', kind, err)
    except Exception:
        services.count(kind + '.failed')
        services.logger.exception('dss: %s of %s', kind, name)
