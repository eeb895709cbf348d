"""The text of a configuration file."""

from __future__ import annotations

import os
import stat

from swift_dss.core.errors import BadConfig

_KINDS = ((stat.S_ISDIR, 'a folder'), (stat.S_ISFIFO, 'a named pipe'),
          (stat.S_ISCHR, 'a character device'),
          (stat.S_ISBLK, 'a block device'), (stat.S_ISSOCK, 'a socket'))


def read_text(path: str) -> str:
    """All of a file. It waits for its disk alone.

    :raises BadConfig: it cannot be read, is no regular file, or is no text
    """
    try:
        with open(open_file(path), encoding='utf-8') as source:
            text = source.read()
    except (OSError, ValueError) as err:  # also of a path that cannot be
        raise BadConfig('%s: %s' % (path, err)) from err
    before, zero, _after = text.partition('\0')
    if zero:
        raise BadConfig('%s:%d: a byte of 0: this is no text' % (
            path, before.count('\n') + 1))
    return text


def open_file(path: str) -> int:
    """A descriptor that reads a regular file.

    :raises BadConfig: it is something else. The opening of a pipe would wait
        for a writer, and the reading of a terminal for its user
    :raises OSError: it cannot be opened
    """
    file_fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
                      | os.O_CLOEXEC)
    mode = os.fstat(file_fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(file_fd)
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)),
                    'no regular file')
        raise BadConfig('%s: it is %s, and a file is wanted' % (path, kind))
    return file_fd
