"""Count the changes of files by this process.

The disks of a node that was at work are the same if the count is.

Only calls that make, name or write a file count: the own state of a daemon
is on no disk that a judge looks at. A call that is not listed here
may change a file only if that was opened for it within the same work.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from typing import Any, Callable, Iterator

_NAMES = ('link', 'mkdir', 'pwrite', 'pwritev', 'remove', 'removexattr',
          'rename', 'replace', 'rmdir', 'setxattr', 'unlink', 'write',
          'writev')
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
#: Part of the path of each file of a daemon's state.
_STATE = '/state/'
#: Where nobody counts, something may have changed at any time.
_unknown = itertools.count(1)
_count = 0
_is_installed = False


def so_far() -> int:
    """A number that differs from the one before if a file may have
    changed."""
    return _count if _is_installed else -next(_unknown)


def _counted(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(target: Any, *args: Any, **named: Any) -> Any:
        global _count
        if type(target) is not str or _STATE not in target:
            _count += 1
        return real(target, *args, **named)
    return call


def _counted_open(real: Callable[..., int]) -> Callable[..., int]:
    counted = _counted(real)

    @functools.wraps(real)
    def call(path: Any, flags: int, *args: Any, **named: Any) -> int:
        return (counted if flags & _WRITES else real)(
            path, flags, *args, **named)
    return call


@contextlib.contextmanager
def counted() -> Iterator[None]:
    """Count them in the whole process."""
    global _is_installed
    before = {name: getattr(os, name) for name in ('open',) + _NAMES}
    was_installed, _is_installed = _is_installed, True
    for name in _NAMES:
        setattr(os, name, _counted(before[name]))
    os.open = _counted_open(before['open'])
    try:
        yield
    finally:
        _is_installed = was_installed
        for name, value in before.items():
            setattr(os, name, value)
