"""An object of Swift that is classified where it is stored.

A URL is ``dss://container/object`` of the account that the environment logs
in to (:mod:`swift_dss.client.fs.login`), or ``https://host/v1/account/
container/object`` of Swift's own API: of the same account, or of another one
whose token is in ``OS_AUTH_TOKEN``, and its URL in ``OS_STORAGE_URL``.
"""

from __future__ import annotations

import os
from typing import Any, Iterable, Optional, Tuple
from urllib.parse import unquote, urlsplit

from swift_dss.client.formats.contract import Reader, library
from swift_dss.client.formats.plan import Range
from swift_dss.client.formats.readers import Cached
from swift_dss.core.errors import BadClassInput

SCHEMES = ('dss://', 'http://', 'https://')


class Stored:
    """One object; its calls block.

    :param url: see the module
    :ivar reader: of the version that is there now
    :ivar max_spans: changes of class that its server takes
    :raises BadClassInput: the URL names no object, or another account's
    :raises OSError: there is no such object, or no such server
    """

    def __init__(self, url: str) -> None:
        self._fs, self._path = _opened(url)
        self._info = self._fs.info(self._path)
        if self._info['type'] != 'file':
            raise BadClassInput('URL', '%s is a directory'
                                % ascii(url[:200]))
        self.reader: Reader = Cached(self._info['size'], self._get)
        # Asks the server for its classes, and so for its limits.
        self._fs.class_id(0)
        self.max_spans: int = self._fs.max_spans

    def class_id(self, name: str, field: str) -> int:
        """The id of a class of the server.

        :raises BadClassInput: it has no such class
        """
        try:
            made: int = self._fs.class_id(name)
        except ValueError as err:
            raise BadClassInput(field, str(err)) from None
        return made

    def post(self, ranges: Iterable[Range], hot: int,
             cold: Optional[int]) -> None:
        """Give the ranges their class.

        :param cold: of all other bytes; None: the class of the object
        :raises OSError: the server refused, or the object was replaced
        """
        self._fs.set_ranges(self._path, ranges, hot, cold,
                            etag=self._info['etag'])

    def _get(self, start: int, end: int) -> bytes:
        raw: bytes = self._fs.cat_version(self._path, start, end,
                                          self._info['etag'])
        return raw


def _opened(url: str) -> Tuple[Any, str]:
    """(file system, container/object)."""
    fsspec = library('fsspec', 'dss://')
    if url.startswith('dss://'):
        return _checked(url, fsspec.filesystem('dss'), url[len('dss://'):])
    from swift_dss.client.fs.login import Login
    parts = urlsplit(url)
    names = parts.path.split('/', 4)
    if len(names) < 5 or parts.query or parts.fragment:
        raise BadClassInput('URL', '%s is not https://host/v1/account/'
                            'container/object' % ascii(url[:200]))
    account = '%s://%s/%s' % (parts.scheme, parts.netloc,
                              '/'.join(names[1:3]))
    if '@' in parts.netloc:
        raise BadClassInput('URL', 'has a user and a password, which belong '
                            'into the environment')
    words = {'storage_url': account,
             'token': os.environ.get('OS_AUTH_TOKEN', '')}
    if words['token'] and os.environ.get('OS_STORAGE_URL') != account:
        raise BadClassInput(
            'URL', 'is of the account %s; OS_AUTH_TOKEN is sent to that of '
            'OS_STORAGE_URL alone' % account)
    if not words['token']:
        words, access = {}, Login({}).access()
        if access.storage_url != account:
            raise BadClassInput(
                'URL', 'is of the account %s, and the environment logs in '
                'to %s; set OS_AUTH_TOKEN and OS_STORAGE_URL' % (
                    account, access.storage_url))
    return _checked(url, fsspec.filesystem('dss', **words),
                    '%s/%s' % (unquote(names[3]), unquote(names[4])))


def _checked(url: str, fs: Any, path: str) -> Tuple[Any, str]:
    container, _, name = path.partition('/')
    if not container or not name:
        raise BadClassInput('URL', '%s names no object'
                            % ascii(url[:200]))
    return fs, path
