"""Disks that do not give their bytes: EIO, of one file or of all there are.

The product reads by ``os.pread`` and ``os.preadv`` alone, so these are
exchanged while a run lasts. Writes, names and attributes are as ever, and the
judge does not read this way.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Any, Dict, Iterator, List, Set, Tuple

_pread, _preadv = os.pread, os.preadv


class Worn:
    """The disks of a whole simulation."""

    def __init__(self) -> None:
        #: Open, so that no other file gets their inodes.
        self._bad: Dict[Tuple[int, int], int] = {}
        self._failing: Set[str] = set()
        #: How often that has changed.
        self.changes = 0

    def spoil(self, path: str) -> None:
        """The bytes of a file cannot be read any more, whatever its name."""
        self.changes += 1
        fd = os.open(path, os.O_RDONLY)
        if self._bad.setdefault(_inode(fd), fd) != fd:
            os.close(fd)

    def mend(self, path: str) -> None:
        """They can."""
        self.changes += 1
        fd = os.open(path, os.O_RDONLY)
        os.close(self._bad.pop(_inode(fd), os.dup(fd)))
        os.close(fd)

    def fail(self, folder: str) -> None:
        """No byte of any file under a folder can be read for a while."""
        self.changes += 1
        self._failing.add(os.path.realpath(folder) + os.sep)

    def recover(self, folder: str) -> bool:
        """They can; False if they always could."""
        name = os.path.realpath(folder) + os.sep
        is_failing = name in self._failing
        self.changes += is_failing
        self._failing.discard(name)
        return is_failing

    def is_any(self) -> bool:
        """True if the bytes of any file cannot be read now."""
        return bool(self._bad or self._failing)

    def is_spoilt(self, path: str) -> bool:
        """True if the bytes of a file are lost."""
        if not self._bad:
            return False
        try:
            file_stat = os.stat(path)
        except OSError:
            return False
        return (file_stat.st_dev, file_stat.st_ino) in self._bad

    def is_silent(self, path: str) -> bool:
        """True if its bytes cannot be read now."""
        return bool(self._failing) and self._fails(
            os.path.realpath(path)) or self.is_spoilt(path)

    def close(self) -> None:
        """Let go of files."""
        for fd in self._bad.values():
            os.close(fd)
        self._bad.clear()

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        """``os.pread`` of these disks."""
        self._require(fd)
        return _pread(fd, length, offset)

    def preadv(self, fd: int, into: List[Any], offset: int,
               flags: int = 0) -> int:
        """``os.preadv`` of these disks."""
        self._require(fd)
        return _preadv(fd, into, offset, flags)

    def _require(self, fd: int) -> None:
        if not self.is_any():
            return
        if _inode(fd) in self._bad or self._fails(
                os.readlink('/proc/self/fd/%d' % fd)):
            raise OSError(errno.EIO, 'the disk does not answer')

    def _fails(self, path: str) -> bool:
        return any(path.startswith(folder) for folder in self._failing)


def _inode(fd: int) -> Tuple[int, int]:
    fd_stat = os.fstat(fd)
    return fd_stat.st_dev, fd_stat.st_ino


@contextlib.contextmanager
def installed(worn: Worn) -> Iterator[None]:
    """Have the whole process read by way of ``worn``."""
    before = os.pread, os.preadv
    exchanged: Any = os
    exchanged.pread, exchanged.preadv = worn.pread, worn.preadv
    try:
        yield
    finally:
        os.pread, os.preadv = before
        worn.close()
