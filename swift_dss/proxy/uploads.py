"""S3 multipart uploads: the classes of the initiate request reach the parts.

s3api keeps an upload as an empty marker object with the metadata of the
initiate request, and HEADs it before each part and before completion, so
its class passes by us for free; it is remembered by the marker's path.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Optional

from swift.common.swob import wsgi_quote
from swift.common.wsgi import make_pre_authed_request

from swift_dss.core.spans import ClassMap
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.target import SEGMENTS_SUFFIX, Target
from swift_dss.proxy.wsgi import Env


#: Markers one worker remembers; a forgotten one costs one HEAD.
_MAX_REMEMBERED = 4096


class Uploads:
    """The class of each multipart upload that is under way."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._known: OrderedDict[str, Optional[ClassMap]] = OrderedDict()

    def notice(self, env: Env, target: Target,
               class_map: Optional[ClassMap]) -> None:
        """A HEAD of ``target`` was answered 200 and said this."""
        if env.get('swift.source') == 'S3' and \
                target.container.endswith(SEGMENTS_SUFFIX):
            self._remember(target.path, class_map)

    def class_of(self, env: Env, marker: Target) -> Optional[ClassMap]:
        """The map of the upload's marker, None if it is unclassified.

        May make one object HEAD.
        """
        path = marker.path
        if path in self._known:
            return self._known[path]
        request = make_pre_authed_request(
            env, method='HEAD', path=wsgi_quote(path), swift_source='DSS')
        response = request.get_response(self._app)
        if not response.is_success:
            return None
        class_map = stored.effective_map(response.headers)
        self._remember(path, class_map)
        return class_map

    def _remember(self, path: str, class_map: Optional[ClassMap]) -> None:
        self._known[path] = class_map
        self._known.move_to_end(path)
        while len(self._known) > _MAX_REMEMBERED:
            self._known.popitem(last=False)
