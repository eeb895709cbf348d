"""RestoreObject, which s3api refuses: an object's bytes come to the SSD and
stay there for some days.

The filter ``dss`` gives the object another class for that time
(``proxy.lifecycle.restores``).
"""

from __future__ import annotations

from typing import Any

from swift.common.middleware.s3api.acl_handlers import BaseAclHandler
from swift.common.middleware.s3api.controllers.base import (
    Controller, object_operation)
from swift.common.middleware.s3api.etree import XMLSyntaxError, fromstring
from swift.common.middleware.s3api.s3response import (
    HTTPAccepted, HTTPOk, InvalidArgument, InvalidObjectState, MalformedXML,
    NoSuchKey, RestoreAlreadyInProgress, S3NotImplemented)
from swift.common.registry import get_swift_info
from swift.common.utils import public

from swift_dss.core.limits import (
    MAX_LIFECYCLE_DAYS, MAX_RESTORE_DOCUMENT_BYTES)
from swift_dss.proxy.s3.heads import head
from swift_dss.wire import names

HEADER = 'x-amz-restore'
#: Set where an object's name is a link to its newest version.
_VERSION_ID = 'x-object-version-id'
_TIERS = ('Standard', 'Bulk', 'Expedited')
_NOT_DONE = ('Type', 'SelectParameters', 'OutputLocation')
_KNOWN = ('Days', 'GlacierJobParameters', 'Tier', 'Description')


class RestoreController(Controller):
    """``POST /bucket/key?restore``."""

    acl_handler = BaseAclHandler
    resource_type = 'RESTORE'

    @public
    @object_operation
    def POST(self, req: Any) -> Any:
        """Handle RestoreObject."""
        restore_class = get_swift_info().get('dss', {}).get('restore_class')
        if not restore_class:
            raise S3NotImplemented(
                'This server has no class for restored objects '
                '(s3_restore of the class table).')
        body = req.xml(MAX_RESTORE_DOCUMENT_BYTES)
        if not body:
            raise MalformedXML()
        req.check_md5(body)
        days = _days(body)
        if req.params.get('versionId') not in (None, 'null'):
            # Swift has no POST of an old version.
            raise S3NotImplemented('Old versions cannot be restored.')
        answer = head(self.app, req)
        if answer.sw_headers.get(_VERSION_ID) not in (None, 'null'):
            raise S3NotImplemented('Objects of a versioned bucket cannot be '
                                   'restored.')
        restored = answer.sw_headers.get(names.RESTORE) or ''
        if 'ongoing-request="true"' in restored:
            raise RestoreAlreadyInProgress()
        if not restored and answer.sw_headers.get(
                names.CLASS_NAME) == restore_class:
            raise InvalidObjectState('Restore is not allowed for the '
                                     'object\'s current storage class: its '
                                     'bytes are on the SSD already.')
        req.environ[names.ENV_RESTORE_DAYS] = days
        try:
            req.get_response(self.app, 'POST', body='')
        except NoSuchKey:
            # It is there, as a link to a version of when versions were kept.
            if req.get_container_info(self.app)['sysmeta'].get(
                    'versions-enabled'):
                raise S3NotImplemented('Objects of a versioned bucket cannot '
                                       'be restored.') from None
            raise
        return HTTPOk() if restored else HTTPAccepted()


def _days(body: bytes) -> int:
    """The days that a RestoreRequest asks for.

    :raises ErrorResponse: S3's own; it names the element at fault
    """
    try:
        root = fromstring(body)
    except XMLSyntaxError:
        raise MalformedXML() from None
    for name in _NOT_DONE:
        if root.find(name) is not None:
            raise S3NotImplemented('%s is not implemented.' % name)
    days = root.findall('Days')
    if root.tag != 'RestoreRequest' or len(days) != 1 or any(
            isinstance(child.tag, str) and child.tag not in _KNOWN
            for child in root):
        raise MalformedXML()
    for tier in root.findall('.//Tier'):
        if tier.text not in _TIERS:
            raise InvalidArgument('Tier', tier.text or '', 'The Tier is one '
                                  'of %s.' % ', '.join(_TIERS))
    text = (days[0].text or '').strip()
    if not text.isdigit() or not text.isascii():
        raise MalformedXML()
    if len(text) > 12 or not 1 <= int(text) <= MAX_LIFECYCLE_DAYS:
        raise InvalidArgument('Days', text, "'Days' must be an integer from "
                              '1 to %d' % MAX_LIFECYCLE_DAYS)
    return int(text)
