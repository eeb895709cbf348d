"""GetObjectAttributes, which s3api takes for a GetObject."""

from __future__ import annotations

from typing import Any

from swift.common.middleware.s3api.acl_handlers import ObjectAclHandler
from swift.common.middleware.s3api.controllers.base import (
    Controller, object_operation)
from swift.common.middleware.s3api.etree import Element, SubElement, tostring
from swift.common.middleware.s3api.s3response import (
    HTTPOk, InvalidArgument)
from swift.common.utils import list_from_csv, public

from swift_dss.proxy.s3.heads import head, in_force

_WANTED = 'x-amz-object-attributes'
_KNOWN = ('ETag', 'Checksum', 'ObjectParts', 'StorageClass', 'ObjectSize')


class AttributesController(Controller):
    """``GET /bucket/key?attributes``: what a HEAD says, as a document.

    Checksums other than the ETag are left out: s3api keeps none.
    """

    acl_handler = ObjectAclHandler
    resource_type = 'OBJECT'

    @public
    @object_operation
    def GET(self, req: Any) -> Any:
        """Handle GetObjectAttributes."""
        wanted = list_from_csv(req.headers.get(_WANTED))
        for name in wanted or ['']:
            if name not in _KNOWN:
                raise InvalidArgument(_WANTED, name,
                                      'Invalid attribute name specified.')
        answer = head(self.app, req)
        etag = answer.headers['etag'].strip('"')
        elem = Element('GetObjectAttributesResponse')
        if 'ETag' in wanted:
            SubElement(elem, 'ETag').text = etag
        parts = etag.rpartition('-')[2]
        if 'ObjectParts' in wanted and '-' in etag and parts.isdigit():
            SubElement(SubElement(elem, 'ObjectParts'),
                       'PartsCount').text = parts
        if 'StorageClass' in wanted:
            SubElement(elem, 'StorageClass').text = in_force(answer)
        if 'ObjectSize' in wanted:
            SubElement(elem, 'ObjectSize').text = str(
                answer.headers['content-length'])
        headers = {name: answer.headers[name] for name in (
            'last-modified', 'x-amz-version-id') if name in answer.headers}
        return HTTPOk(body=tostring(elem), headers=headers,
                      content_type='application/xml')
