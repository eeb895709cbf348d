"""Containers hear the class of an object.

A row has no column for it: the class stands behind the content type, and the
proxy's filter takes it off. A container server believes the content type of
the newest timestamp; after a POST that is the newer one of content type and
class.

``listed_classes`` in ``[app:object-server]`` says whose class is told:
``all`` objects' (the default), ``s3`` for those whose class has a name in S3's
words (``s3_storage_class``), or ``none``.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadConfig
from swift_dss.objserver import tags
from swift_dss.objserver.posts import Post
from swift_dss.wire import names, registers

OPTION = 'listed_classes'
ALL, S3, NONE = 'all', 's3', 'none'
_TYPE = 'x-content-type'
_TYPE_AT = 'x-content-type-timestamp'


def which_of(conf: Mapping[str, str]) -> str:
    """The value of the option.

    :raises BadConfig: there is no such value
    """
    text = str(conf.get(OPTION, ALL)).strip().lower()
    if text not in (ALL, S3, NONE):
        raise BadConfig('%s: %s is none of %s, %s and %s' % (
            OPTION, ascii(text[:48]), ALL, S3, NONE))
    return text


class Updates:
    """Adds classes to the updates of containers.

    :param conf: of the object server
    :raises BadConfig: ``listed_classes`` has no such value
    """

    def __init__(self, conf: Mapping[str, str], logger: Any) -> None:
        self._which = which_of(conf)
        self._logger = logger

    def add_class(self, headers: Any, request: Any, post: Optional[Post],
                  opened: Any, manager: Any) -> None:
        """Add the class to the headers of a container update.

        :param headers: of the update; changed
        :param request: a PUT, or a POST of which ``post`` says what it sets
        :param opened: the diskfile as it was before the POST
        :param manager: of the object's policy; Swift's own has no class table
        """
        if _TYPE not in headers:
            return
        if post is None:
            rest = tags.of_request(request, self._logger).rest \
                if request.method == 'PUT' else 0
            self._append(headers, rest, manager)
            return
        before = registers.of_post(opened.get_metafile_metadata() or {
            'X-Timestamp': registers.NEVER})
        sets = bool(post.class_at) and post.class_at >= before.class_at
        metadata: Mapping[str, str] = request.headers if sets \
            else opened.get_metadata()
        self._append(headers, tags.of_metadata(metadata, self._logger).rest,
                     manager)
        class_at = post.class_at if sets else before.class_at
        if class_at > headers.get(_TYPE_AT, ''):
            headers[_TYPE_AT] = class_at

    def _append(self, headers: Any, class_id: int, manager: Any) -> None:
        told = class_id if self._is_told(class_id, manager) else 0
        # A content type of a client that looks like ours gets one behind it.
        if told or names.LISTED_CLASS in headers[_TYPE]:
            headers[_TYPE] += '%s%d' % (names.LISTED_CLASS, told)

    def _is_told(self, class_id: int, manager: Any) -> bool:
        if self._which != S3:
            return self._which == ALL
        node = getattr(manager, 'dss_node', None)
        table: ClassTable = node.class_table if node else ClassTable()
        return bool(table.storage_class_of(class_id))
