"""Tags of objects, which s3api refuses; the tag ``dss-class`` is a class.

Tags are kept with the object as transient sysmeta, in the form of
``x-amz-tagging``: a POST sets them, and a copy takes them along. A POST of
Swift replaces all metadata, so PutObjectTagging sends the object's own again;
of two such requests at a time the later one wins, as with any POST.

``dss-class`` counts like ``X-DSS-Object-Class`` when it is set. It shows the
class in force afterwards, so that a client that writes back the tags it has
read changes nothing.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple
from urllib.parse import parse_qsl, quote_plus, urlencode

from swift.common.middleware.s3api.acl_handlers import BaseAclHandler
from swift.common.middleware.s3api.controllers.base import (
    Controller, object_operation)
from swift.common.middleware.s3api.etree import (
    Element, SubElement, XMLSyntaxError, fromstring, tostring)
from swift.common.middleware.s3api.s3response import (
    ErrorResponse, HTTPNoContent, HTTPOk, InvalidArgument, MalformedXML,
    S3NotImplemented)
from swift.common.utils import public

from swift_dss.core.limits import (
    MAX_S3_TAG_KEY_CHARS, MAX_S3_TAG_VALUE_CHARS, MAX_S3_TAGGING_BYTES,
    MAX_S3_TAGS, MAX_S3_TAGS_DOCUMENT_BYTES)
from swift_dss.proxy.reclassify import SAME_METADATA, is_posted
from swift_dss.proxy.s3.heads import head
from swift_dss.wire import names

#: The client's header with an upload.
HEADER = 'x-amz-tagging'
COUNT = 'x-amz-tagging-count'
DIRECTIVE = 'x-amz-tagging-directive'
#: Where Swift keeps them; gatekeeper drops it from clients' requests.
STORED = names.S3_TAGGING
#: The tag that is a class.
CLASS_TAG = 'dss-class'

Tags = List[Tuple[str, str]]


class InvalidTag(ErrorResponse):
    """S3's own; s3api has no tags."""

    _status = '400 Bad Request'
    _msg = 'The tag provided was not a valid tag.'


def of_header(text: str) -> Tags:
    """The tags of an ``x-amz-tagging`` header, or of the stored form.

    :raises InvalidArgument: it is no query
    """
    try:
        tags = parse_qsl(text, keep_blank_values=True, strict_parsing=True,
                         errors='strict') if text else []
    except ValueError:
        raise InvalidArgument(HEADER, text, 'The header \'x-amz-tagging\' '
                              'shall be encoded as UTF-8 then URLEncoded URL '
                              'query parameters without tag name duplicates.'
                              ) from None
    return checked(tags)


def checked(tags: Tags) -> Tags:
    """The same tags.

    :raises InvalidTag: says what is wrong with them
    """
    if len(tags) > MAX_S3_TAGS:
        raise InvalidTag('Object tags cannot be greater than %d'
                         % MAX_S3_TAGS)
    if len({key for key, _ in tags}) < len(tags):
        raise InvalidTag('Cannot provide multiple Tags with the same key')
    for key, value in tags:
        if not 0 < len(key) <= MAX_S3_TAG_KEY_CHARS:
            raise InvalidTag('The TagKey you have provided is invalid')
        if len(value) > MAX_S3_TAG_VALUE_CHARS:
            raise InvalidTag('The TagValue you have provided is invalid')
    if len(to_header(tags)) > MAX_S3_TAGGING_BYTES:
        raise InvalidTag('All tags together are more than %d bytes'
                         % MAX_S3_TAGGING_BYTES)
    return tags


def to_header(tags: Tags) -> str:
    """The stored form: ASCII."""
    return urlencode(tags, quote_via=quote_plus)


def to_set(req: Any, tags: Tags) -> Dict[str, str]:
    """Headers of a PUT or POST that sets ``tags``."""
    headers = {STORED: to_header(tags)}
    wanted = dict(tags).get(CLASS_TAG)
    said = req.headers.get(names.STORAGE_CLASS, names.STANDARD)
    if wanted is not None and said == names.STANDARD and \
            names.OBJECT_CLASS not in req.headers:
        headers[names.OBJECT_CLASS] = wanted
    return headers


def of_answer(answer: Any) -> Tags:
    """The tags of the object that an answer is about.

    :param answer: s3api's ``S3Response``, which keeps Swift's headers
    """
    tags = parse_qsl(answer.sw_headers.get(STORED, ''),
                     keep_blank_values=True)
    in_force = [answer.sw_headers.get(name, '') for name in (
        names.CLASS_NAME, names.OBJECT_CLASS)]
    shown = in_force[0] or in_force[1] or '0'
    return [(key, shown if key == CLASS_TAG
             and value.lower() not in in_force else value)
            for key, value in tags]


def kept_metadata(headers: Mapping[str, str]) -> Dict[str, str]:
    """The headers that a POST repeats to leave an object's metadata.

    :param headers: Swift's answer to a HEAD of it
    """
    return {name: value for name, value in headers.items()
            if is_posted(name) or name.lower() == STORED.lower()}


class TagsController(Controller):
    """``/bucket/key?tagging``: GET, PUT and DELETE."""

    acl_handler = BaseAclHandler
    resource_type = 'TAGGING'

    @public
    @object_operation
    def GET(self, req: Any) -> Any:
        """Handle GetObjectTagging."""
        answer = head(self.app, req)
        elem = Element('Tagging')
        tag_set = SubElement(elem, 'TagSet')
        for key, value in of_answer(answer):
            tag = SubElement(tag_set, 'Tag')
            SubElement(tag, 'Key').text = key
            SubElement(tag, 'Value').text = value
        return HTTPOk(body=tostring(elem), content_type='application/xml')

    @public
    @object_operation
    def PUT(self, req: Any) -> Any:
        """Handle PutObjectTagging."""
        body = req.xml(MAX_S3_TAGS_DOCUMENT_BYTES)
        if not body:
            raise MalformedXML()
        req.check_md5(body)
        self._set(req, checked(_of_document(body)))
        return HTTPOk()

    @public
    @object_operation
    def DELETE(self, req: Any) -> Any:
        """Handle DeleteObjectTagging."""
        self._set(req, [])
        return HTTPNoContent()

    def _set(self, req: Any, tags: Tags) -> None:
        if req.params.get('versionId') not in (None, 'null'):
            # Swift has no POST of an old version.
            raise S3NotImplemented('Tags of old versions cannot be set.')
        stored_headers = head(self.app, req).sw_headers
        headers = kept_metadata(stored_headers)
        headers.update(to_set(req, tags))
        req.environ[SAME_METADATA] = True
        # The document's, not the object's; Swift keeps that.
        req.environ.pop('CONTENT_TYPE', None)
        req.get_response(self.app, 'POST', headers=headers, body='')


def _of_document(body: bytes) -> Tags:
    try:
        elem = fromstring(body)
    except XMLSyntaxError:
        raise MalformedXML() from None
    if elem.tag != 'Tagging' or elem.find('TagSet') is None:
        raise MalformedXML()
    tags = []
    for tag in elem.find('TagSet').findall('Tag'):
        key, value = tag.find('Key'), tag.find('Value')
        if key is None or value is None:
            raise MalformedXML()
        tags.append((key.text or '', value.text or ''))
    return tags
