"""The S3 secret: a file of its own that only its owner may read.

The file has two lines, ``access_key = ...`` and ``secret_key = ...``
(``#`` starts a comment). Group or others being able to read it is an
error, not a warning: a secret that leaked is worth more than an upload
that waits. The file is read again when it changes, so keys rotate without
a restart. Neither key is ever part of a message, a repr or a status.
"""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import dataclass, field
from typing import Callable, Dict, Generic, Optional, Tuple, TypeVar

from swift_dss.core.errors import BadConfig
from swift_dss.io.start.text import open_file

_FIELDS = ('access_key', 'secret_key')
#: Two keys and comments; a bigger file is not a secret file.
_MAX_BYTES = 16384
Stamp = Tuple[int, int, int, int]
_Found = TypeVar('_Found')


@dataclass(frozen=True)
class Secret:
    """One pair of keys; printing it shows neither."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)


class OwnerFile(Generic[_Found]):
    """The contents of a private file, read again when it changes. Thread-safe.

    :param title: name of the file in errors
    :param parse: of (path, bytes); its errors MUST NOT show the contents
    :param most_bytes: limit of the file's size
    """

    def __init__(self, path: str, title: str,
                 parse: Callable[[str, bytes], _Found],
                 most_bytes: int) -> None:
        self._path = path
        self._what = title
        self._parse = parse
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._known: Optional[Tuple[_Found, Stamp]] = None

    def read(self) -> Tuple[_Found, Stamp]:
        """The contents, and a stamp that changes with the file.

        :raises BadConfig: missing, readable by others, or malformed; the text
            names the file and never shows its contents
        """
        with self._lock:
            try:
                file_fd = open_file(self._path)
            except OSError as err:
                raise BadConfig('%s %s: %s' % (
                    self._what, self._path, err.strerror)) from err
            try:
                # Check the open file, so that it cannot be swapped between the
                # check and the read.
                status = os.fstat(file_fd)
                stamp = (status.st_ino, status.st_mtime_ns, status.st_size,
                         status.st_mode)
                if self._known is None or stamp != self._known[1]:
                    _check_mode('%s %s' % (self._what, self._path),
                                self._path, status)
                    self._known = self._parse(self._path, os.read(
                        file_fd, self._most_bytes + 1)), stamp
            finally:
                os.close(file_fd)
            return self._known


class SecretFile:
    """The current secret of one file. Safe for threads."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = OwnerFile(path, 'secret file', _parse, _MAX_BYTES)

    def read(self) -> Tuple[Secret, Stamp]:
        """See :meth:`OwnerFile.read`."""
        if not self._path:
            raise BadConfig('[gateway] secret_file is not set')
        return self._file.read()


def _check_mode(named: str, path: str, status: os.stat_result) -> None:
    """:raises BadConfig: others than its owner may read an open file."""
    if not stat.S_ISREG(status.st_mode):
        raise BadConfig('%s: not a regular file' % named)
    loose = stat.S_IMODE(status.st_mode) & 0o177
    if loose:
        raise BadConfig(
            '%s: mode %04o is too open; run: chmod 0600 %s'
            % (named, stat.S_IMODE(status.st_mode), path))
    # root reads what the daemon's user owns: its commands run beside it.
    if os.geteuid() and status.st_uid not in (os.geteuid(), 0):
        raise BadConfig('%s: belongs to user %d, not to us (%d)'
                        % (named, status.st_uid, os.geteuid()))


def _parse(path: str, raw: bytes) -> Secret:
    if len(raw) > _MAX_BYTES:
        raise BadConfig('secret file %s: more than %d bytes'
                        % (path, _MAX_BYTES))
    values: Dict[str, str] = {}
    try:
        lines = raw.decode('utf-8').splitlines()
    except UnicodeDecodeError:
        raise BadConfig('secret file %s: not UTF-8 text' % path) from None
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith('#'):
            continue
        name, sign, value = line.partition('=')
        name, value = name.strip(), value.strip()
        if not sign or name not in _FIELDS or not value:
            raise BadConfig(
                'secret file %s, line %d: expected "access_key = ..." or '
                '"secret_key = ..."' % (path, number))
        values[name] = value
    missing = [name for name in _FIELDS if name not in values]
    if missing:
        raise BadConfig('secret file %s: %s is missing'
                        % (path, ' and '.join(missing)))
    return Secret(values['access_key'], values['secret_key'])
