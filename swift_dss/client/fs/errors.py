"""Statuses of Swift as the errors of Python's own files."""

from __future__ import annotations

import errno
import os
from typing import Type, TypeVar

#: Characters of an answer's body that an error repeats.
_SHOWN_CHARS = 300

_ERRNOS = {400: errno.EINVAL, 405: errno.EINVAL, 409: errno.ENOTEMPTY,
           413: errno.EFBIG, 414: errno.ENAMETOOLONG, 422: errno.EIO,
           507: errno.ENOSPC}
_KINDS = {401: PermissionError, 403: PermissionError,
          404: FileNotFoundError, 412: FileExistsError,
          408: TimeoutError, 504: TimeoutError}
_ERRNO_OF_KIND = {PermissionError: errno.EACCES,
                  FileNotFoundError: errno.ENOENT,
                  FileExistsError: errno.EEXIST,
                  TimeoutError: errno.ETIMEDOUT}
_Error = TypeVar('_Error', bound=BaseException)
_UNSURE = 'dss_unsure'


def error_of(status: int, method: str, path: str, body: bytes) -> OSError:
    """The error that an answer of ``status`` stands for.

    :param path: ``container/object``, or what is there of it
    :param body: the answer's; its first line tells the reason
    """
    kind: Type[OSError] = _KINDS.get(status, OSError)
    number = _ERRNO_OF_KIND.get(kind, _ERRNOS.get(status, errno.EIO))
    text = '%s: %s was answered %d%s' % (
        os.strerror(number), method, status, _reason(body))
    error = kind(number, text, 'dss://' + path)
    return marked_unsure(error) if status >= 500 else error


def marked_unsure(error: _Error) -> _Error:
    """The same error, of a request that may have been done."""
    setattr(error, _UNSURE, True)
    return error


def is_unsure(error: BaseException) -> bool:
    """May the request have been done? No answer came to one try of it, or
    too few of Swift's servers took it: others get it from those later."""
    return isinstance(error, (TimeoutError, ConnectionError)) or \
        getattr(error, _UNSURE, False)


def changed(path: str) -> OSError:
    """The error of a reader whose object was replaced under it."""
    return OSError(errno.ESTALE, 'the object was replaced while it was '
                   'read; open it again', 'dss://' + path)


def missing(path: str) -> FileNotFoundError:
    """The error of a path that is neither object nor directory."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT),
                             'dss://' + path)


def _reason(body: bytes) -> str:
    lines = body[:4096].decode('utf-8', 'replace').strip().splitlines()
    if not lines or lines[0].startswith('<'):
        return ''
    return ': ' + lines[0][:_SHOWN_CHARS]
