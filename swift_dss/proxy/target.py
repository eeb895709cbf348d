"""Which account, container and object a request is about.

Middleware above us makes names of its own: versions live in containers
and under objects that start with NUL, parts of an S3 multipart upload in
``<bucket>+segments``. Rules and defaults speak of the names that users
know, so those are here too.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

from swift.common.request_helpers import split_reserved_name
from swift.common.swob import str_to_wsgi, wsgi_to_str

from swift_dss.proxy.bodies import versioned
from swift_dss.proxy.wsgi import Env


SEGMENTS_SUFFIX = '+segments'
_RESERVED = '\x00'
_S3_SOURCES = ('S3', 'SSC')
_UPLOAD_ID_HEADER = 'HTTP_X_OBJECT_SYSMETA_S3API_UPLOAD_ID'
#: s3api's upload ids are base64 of 36 random bytes, without slashes.
_PART = re.compile(r'^(?P<marker>.+/[^/]{40,})/\d{1,5}$', re.DOTALL)
_MARKER = re.compile(r'^(?P<key>.+)/[^/]{40,}$', re.DOTALL)


class Target(NamedTuple):
    """The parts of a request's path, as WSGI strings.

    ``container`` and ``obj`` are empty where the path stops earlier.
    """

    account: str
    container: str = ''
    obj: str = ''

    @classmethod
    def of(cls, env: Env) -> Optional[Target]:
        """The target of ``env``; None if it is not a storage path."""
        pieces = env['PATH_INFO'].split('/', 4)
        if len(pieces) < 3 or pieces[0] or not pieces[2] or \
                pieces[1] not in ('v1', 'v1.0'):
            return None
        return cls(*pieces[2:])

    def user_names(self, source: Optional[str]) -> Target:
        """The user's names of it, as plain strings.

        :param source: the request's ``swift.source``
        """
        account, container, obj = (wsgi_to_str(name) for name in self)
        if container.startswith(_RESERVED):
            container = _first_user_part(container)
        if obj.startswith(_RESERVED):
            obj = _first_user_part(obj)
        if source in _S3_SOURCES and container.endswith(SEGMENTS_SUFFIX):
            match = _PART.match(obj)
            match = _MARKER.match(match.group('marker') if match else obj)
            if match:
                container = container[:-len(SEGMENTS_SUFFIX)]
                obj = match.group('key')
        return Target(account, container, obj)

    def user_container(self, source: Optional[str]) -> str:
        """The container whose default class counts, as a WSGI string."""
        named = self.user_names(source).container
        if named == wsgi_to_str(self.container):
            return self.container
        return str(str_to_wsgi(named))

    def upload_marker(self, env: Env) -> Optional[Target]:
        """The marker of the multipart upload this PUT belongs to.

        s3api keeps the headers of the initiate request in an empty object;
        parts and the final manifest are PUT without it.
        """
        source = env.get('swift.source')
        upload_id = env.get(_UPLOAD_ID_HEADER)
        if upload_id and versioned.is_upload(env):
            return Target(
                self.account, self.user_container(None) + SEGMENTS_SUFFIX,
                '%s/%s' % (str_to_wsgi(self.user_names(None).obj),
                           upload_id))
        if source not in _S3_SOURCES:
            return None
        if self.container.endswith(SEGMENTS_SUFFIX):
            match = _PART.match(self.obj)
            return match and self._replace(obj=match.group('marker'))
        if source != 'S3' or not upload_id:
            return None
        return Target(self.account, self.container + SEGMENTS_SUFFIX,
                      '%s/%s' % (self.obj, upload_id))

    def is_upload_marker(self, source: Optional[str]) -> bool:
        """True for the empty object that stands for a multipart upload."""
        return (source == 'S3' and self.container.endswith(SEGMENTS_SUFFIX)
                and not _PART.match(self.obj)
                and bool(_MARKER.match(self.obj)))

    @property
    def path(self) -> str:
        """The path, unquoted, as WSGI has it."""
        return '/v1/' + '/'.join(name for name in self if name)


def _first_user_part(reserved: str) -> str:
    try:
        parts = split_reserved_name(reserved)
    except ValueError:
        return reserved
    # '\0versions\0<container>' and '\0<object>\0<timestamp>'
    where = 1 if parts[0] == 'versions' and len(parts) > 1 else 0
    return str(parts[where])
