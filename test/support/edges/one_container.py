"""A container below the filter ``dss``, by Swift's own database code."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

from support.edges.fake_swift import Logger
from swift.common.storage_policy import POLICIES
from swift.common.swob import Request, Response, wsgi_to_str
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker

from swift_dss.proxy.filter import DssMiddleware
from swift_dss.wire import names

TABLE = (
    '[class:0]\nname = unclassified\nrank = 0\n'
    '[class:25]\nname = gold\nrank = 9\n[class:26]\nname = silver\nrank = 8\n')
POLICY = int(POLICIES.default)


class Container:
    """Swift below the filter: one container, by its own database code."""

    def __init__(self, folder: Any) -> None:
        self.broker: Any = ContainerBroker(
            str(folder / 'rows' / 'c.db'), account='a', container='c')
        self.broker.initialize(Timestamp(1).internal, POLICY)
        self.listings: List[Dict[str, str]] = []
        self.heads: List[str] = []
        self.tiers: Dict[str, Any] = {}
        self.authorizes: List[Any] = []
        self.fails_at: Optional[int] = None

    def put(self, name: str, class_id: int, kind: str = 'a/b',
            etag: str = 'e' * 32) -> None:
        if class_id or names.LISTED_CLASS in kind:
            kind += '%s%d' % (names.LISTED_CLASS, class_id)
        self.broker.merge_items([{
            'name': name, 'created_at': Timestamp(10).internal, 'size': 5,
            'content_type': kind, 'etag': etag, 'deleted': 0,
            'storage_policy_index': POLICY}])

    def __call__(self, env: Any, start: Any) -> Any:
        request = Request(env)
        if request.method == 'HEAD':
            return self._head(request)(env, start)
        params = {key: wsgi_to_str(value)
                  for key, value in request.params.items()}
        self.listings.append(params)
        if len(self.listings) == self.fails_at:
            return Response(status=503, body=b'gone')(env, start)
        listed = []
        for name, modified, size, kind, etag in self.broker.list_objects_iter(
                int(params.get('limit') or 10000), params.get('marker', ''),
                params.get('end_marker', ''), params.get('prefix'),
                params.get('delimiter'), params.get('path'), POLICY,
                params.get('reverse') == 'true'):
            listed.append({'subdir': name} if kind is None else {
                'bytes': size, 'hash': etag, 'name': name,
                'content_type': kind, 'last_modified': modified})
        return Response(
            body=json.dumps(listed).encode(), headers={
                'X-Container-Object-Count': '9'},
            content_type='application/json')(env, start)

    def _head(self, request: Any) -> Any:
        self.heads.append(wsgi_to_str(request.path_info))
        assert not request.query_string
        self.authorizes.append(request.environ.get('swift.authorize'))
        said = self.tiers.get(wsgi_to_str(request.path_info))
        if isinstance(said, int):
            return Response(status=said, request=request)
        return Response(headers=said or {}, request=request)


def filter_over(app: Any, folder: Any) -> Any:
    (folder / 'classes').write_text(TABLE)
    return DssMiddleware(app, {'class_table': str(folder / 'classes')},
                         Logger())
