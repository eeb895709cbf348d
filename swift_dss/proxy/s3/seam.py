"""
``s3api`` with storage classes, in the place of Swift's::

    [filter:s3api]
    use = egg:swift_dss#s3api

It takes all options of Swift's s3api, and is Swift's s3api but for this:

- ``x-amz-storage-class`` may name each storage class that the class table has
  (``s3_storage_class``); others are refused as before, with
  ``InvalidStorageClass``. The ``dss`` filter, below, makes it a class.
- GET, HEAD and listings show the storage class.
- GetObjectAttributes, which Swift takes for a GetObject.
- Tags of objects (``x-amz-tagging`` and ``?tagging``): kept and shown; the tag
  ``dss-class`` gives the object a class.
- Lifecycle configurations of buckets (``?lifecycle``), and RestoreObject.

The places of s3api that this rests on are pinned by ``test/contract``:
``S3Request._validate_headers`` looks at the headers before the signature is
computed from them, and so must be passed with them out of its sight;
``S3Request.controller`` names the controller of a request; the rest are
methods of controllers and of the middleware, overridden here.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict
from urllib.parse import unquote

from swift.common.middleware.s3api import s3api
from swift.common.middleware.s3api.controllers import (
    BucketController, ObjectController, UploadController, UploadsController)
from swift.common.middleware.s3api.etree import fromstring, tostring
from swift.common.middleware.s3api.s3request import S3Request
from swift.common.registry import get_swift_info
from swift.common.utils import public

from swift_dss.proxy.listing import FIELD, note_s3, seen_by_s3
from swift_dss.proxy.s3 import restore, tags
from swift_dss.proxy.s3.attributes import AttributesController
from swift_dss.proxy.s3.heads import HEADER, in_force
from swift_dss.proxy.s3.lifecycle import LifecycleController
from swift_dss.proxy.wsgi import App, Body, Env, Start
from swift_dss.wire import names

_COPY_SOURCE = 'x-amz-copy-source'
_DIRECTIVE = 'x-amz-metadata-directive'
_HEADER_KEY = 'HTTP_X_AMZ_STORAGE_CLASS'
_TAGS_KEY = 'HTTP_X_AMZ_TAGGING'
#: In the environment of a request that came to our s3api.
_IS_OURS = 'swift_dss.s3api'


class Buckets(BucketController):
    """Listings show storage classes."""

    acl_handler = BucketController.acl_handler
    resource_type = BucketController.resource_type

    def _add_object(self, req: Any, elem: Any, o: Any, *arguments: Any,
                    **options: Any) -> None:
        super()._add_object(req, elem, o, *arguments, **options)
        if FIELD in o:
            shown = elem[-1].find('StorageClass')
            if shown is not None:
                shown.text = o[FIELD]


class Objects(ObjectController):
    """GET and HEAD show the storage class."""

    acl_handler = ObjectController.acl_handler
    resource_type = ObjectController.resource_type

    def GETorHEAD(self, req: Any) -> Any:
        """Handle GET and HEAD of an object."""
        answer = super().GETorHEAD(req)
        storage_class = in_force(answer)
        if storage_class != names.STANDARD:
            answer.headers[HEADER] = storage_class
        restored = answer.sw_headers.get(names.RESTORE)
        if restored:
            answer.headers[restore.HEADER] = restored
        count = len(tags.of_answer(answer))
        if count:
            answer.headers[tags.COUNT] = str(count)
        return answer

    @public
    def PUT(self, req: Any) -> Any:
        """Handle PutObject and CopyObject."""
        if HEADER in req.headers and _COPY_SOURCE in req.headers and \
                req.headers.get(_DIRECTIVE, 'COPY') == 'COPY':
            # s3api refuses a copy onto itself that changes no metadata. Any
            # word but REPLACE keeps the metadata.
            req.headers[_DIRECTIVE] = 'COPY, CHANGE CLASS'
        req.headers.update(self._tags(req))
        return super().PUT(req)

    def _tags(self, req: Any) -> Dict[str, str]:
        """Headers that set the tags of an upload or a copy."""
        said = req.headers.get(tags.HEADER)
        if _COPY_SOURCE not in req.headers:
            return {} if said is None else tags.to_set(
                req, tags.of_header(said))
        if req.headers.get(tags.DIRECTIVE, 'COPY') == 'REPLACE':
            return tags.to_set(req, tags.of_header(said or ''))
        if req.headers.get(_DIRECTIVE) != 'REPLACE':
            return {}  # Swift's copy takes them along
        source = req.check_copy_source(self.app)
        return {tags.STORED: source.sw_headers.get(tags.STORED, '')}


class Uploads(UploadsController):
    """Uploads have tags, and their listing shows storage classes."""

    acl_handler = UploadsController.acl_handler
    resource_type = UploadsController.resource_type

    @public
    def POST(self, req: Any) -> Any:
        """Handle CreateMultipartUpload."""
        said = req.headers.get(tags.HEADER)
        if said is not None:
            req.headers.update(tags.to_set(req, tags.of_header(said)))
        return super().POST(req)

    @public
    def GET(self, req: Any) -> Any:
        """Handle ListMultipartUploads."""
        answer = super().GET(req)
        seen = seen_by_s3(req.environ) or {}
        elem = fromstring(answer.body)
        for upload in elem.findall('Upload'):
            name = '%s/%s' % (upload.find('Key').text,
                              upload.find('UploadId').text)
            if req.params.get('encoding-type') == 'url':
                name = unquote(name)
            if name in seen:
                upload.find('StorageClass').text = seen[name]
        answer.body = tostring(elem)
        return answer


class Upload(UploadController):
    """The listing of an upload's parts shows their storage class; what is
    made of them gets the upload's tags."""

    acl_handler = UploadController.acl_handler
    resource_type = UploadController.resource_type

    @public
    def POST(self, req: Any) -> Any:
        """Handle CompleteMultipartUpload."""
        ask = req.get_response

        def get_response(*arguments: Any, **options: Any) -> Any:
            # s3api looks at the upload first: one HEAD serves both.
            answer = ask(*arguments, **options)
            stored = answer.sw_headers.get(tags.STORED)
            if stored:
                req.headers.setdefault(tags.STORED, stored)
            return answer

        req.get_response = get_response
        return super().POST(req)

    @public
    def GET(self, req: Any) -> Any:
        """Handle ListParts."""
        answer = super().GET(req)
        seen = seen_by_s3(req.environ) or {}
        if seen:
            elem = fromstring(answer.body)
            elem.find('StorageClass').text = min(seen.values())
            answer.body = tostring(elem)
        return answer


#: Controllers of s3api and those in their place.
_INSTEAD: Dict[Any, Any] = {
    BucketController: Buckets, ObjectController: Objects,
    UploadsController: Uploads, UploadController: Upload}
#: Controllers of queries that s3api does not know.
_OF_QUERY: Dict[str, Any] = {'attributes': AttributesController,
                             'restore': restore.RestoreController,
                             'tagging': tags.TagsController}
_OF_BUCKET: Dict[str, Any] = {'lifecycle': LifecycleController}


class S3WithClasses(s3api.S3ApiMiddleware):
    """The WSGI filter; see the module."""

    def __call__(self, env: Env, start_response: Start) -> Body:
        env[_IS_OURS] = True
        answer: Body = super().__call__(env, start_response)
        return answer

    def handle_request(self, req: Any) -> Any:
        """The answer to a request that s3api has parsed."""
        if _HEADER_KEY in req.environ:
            req.headers[names.STORAGE_CLASS] = req.environ[_HEADER_KEY]
        return super().handle_request(req)


def _instead_of(req: Any, stock: Any) -> Any:
    """The controller of a request, given the one that s3api would take."""
    # With s3_acl Swift has no words for who may do these.
    if not req.conf.s3_acl:
        ours = _OF_QUERY if req.is_object_request else _OF_BUCKET
        for query, controller in ours.items():
            if query in req.params and req.container_name:
                return controller
    return _INSTEAD.get(stock, stock)


def install() -> None:
    """Let requests of our s3api say a storage class, and go to our
    controllers. Idempotent.

    Those of another s3api in this process go on as before.
    """
    stock = S3Request._validate_headers
    if getattr(stock, 'is_ours', False):
        return
    stock_controller = S3Request.controller.fget

    @functools.wraps(stock)
    def check(self: Any) -> None:
        env = self.environ
        hidden = {}
        if _IS_OURS in env:
            # Only a request of S3 comes here.
            note_s3(env)
            known = get_swift_info().get('dss', {}).get(
                's3_storage_classes', {})
            hidden = {key: env.pop(key) for key in (_HEADER_KEY, _TAGS_KEY)
                      if key in env and (key == _TAGS_KEY
                                         or env[key] in known)}
        try:
            stock(self)
        finally:
            env.update(hidden)

    check.is_ours = True  # type: ignore[attr-defined]
    S3Request._validate_headers = check

    def controller(self: Any) -> Any:
        # Swift's refuses some queries by an error of its constructor only.
        controller = stock_controller(self)
        return controller if seen_by_s3(self.environ) is None \
            else _instead_of(self, controller)

    S3Request.controller = property(controller)


def filter_factory(global_conf: Dict[str, str],
                   **local_conf: str) -> Callable[[App], S3WithClasses]:
    """paste.deploy's entry point."""
    stock = s3api.filter_factory(global_conf, **local_conf)
    conf = dict(global_conf, **local_conf)
    install()

    def s3api_filter(app: App) -> S3WithClasses:
        return S3WithClasses(stock(app).app, conf)

    return s3api_filter
