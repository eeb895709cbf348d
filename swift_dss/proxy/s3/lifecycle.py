"""Lifecycle configurations of buckets, which s3api takes for a bucket's own
PUT, GET and DELETE.

The filter ``dss`` keeps them and acts on them (``proxy.lifecycle``); the owner
of the account sets them, and those who may list the bucket see them.
"""

from __future__ import annotations

from typing import Any, Optional

from swift.common.middleware.s3api.acl_handlers import BaseAclHandler
from swift.common.middleware.s3api.controllers.base import (
    Controller, bucket_operation)
from swift.common.middleware.s3api.s3response import (
    HTTPNoContent, HTTPOk, InvalidRequest, MalformedXML,
    NoSuchLifecycleConfiguration, S3NotImplemented)
from swift.common.registry import get_swift_info
from swift.common.utils import public

from swift_dss.core.errors import TooManySpans
from swift_dss.core.lifecycle import Lifecycle
from swift_dss.core.limits import MAX_LIFECYCLE_DOCUMENT_BYTES
from swift_dss.proxy.s3 import rulesxml
from swift_dss.wire import names
from swift_dss.wire.s3 import lifecycle as stored


class LifecycleController(Controller):
    """``/bucket?lifecycle``: GET, PUT and DELETE."""

    acl_handler = BaseAclHandler
    resource_type = 'LIFECYCLE'

    @public
    @bucket_operation
    def GET(self, req: Any) -> Any:
        """Handle GetBucketLifecycleConfiguration."""
        answer = req.get_response(self.app, 'HEAD')
        lifecycle = stored.from_headers(names.CONTAINER_SYSMETA_LIFECYCLE,
                                        answer.sw_headers)
        if lifecycle is None:
            raise NoSuchLifecycleConfiguration()
        return HTTPOk(body=rulesxml.document(lifecycle),
                      content_type='application/xml')

    @public
    @bucket_operation
    def PUT(self, req: Any) -> Any:
        """Handle PutBucketLifecycleConfiguration."""
        known = get_swift_info().get('dss', {})
        if not known.get('s3_lifecycle'):
            raise S3NotImplemented('This server acts on no lifecycle '
                                   'configurations (lifecycle_interval = 0).')
        body = req.xml(MAX_LIFECYCLE_DOCUMENT_BYTES)
        if not body:
            raise MalformedXML()
        req.check_md5(body)
        lifecycle = rulesxml.parse(body, known.get('s3_storage_classes', {}))
        try:
            stored.encode(lifecycle)
        except TooManySpans as err:
            raise InvalidRequest('%s.' % err) from err
        self._set(req, lifecycle)
        return HTTPOk()

    @public
    @bucket_operation
    def DELETE(self, req: Any) -> Any:
        """Handle DeleteBucketLifecycle."""
        self._set(req, None)
        return HTTPNoContent()

    def _set(self, req: Any, lifecycle: Optional[Lifecycle]) -> None:
        req.environ[names.ENV_LIFECYCLE] = lifecycle
        req.get_response(self.app, 'POST', body='')
