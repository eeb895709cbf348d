"""What this kernel offers to reads of the page cache.

A read that the page cache can answer is a copy in memory: it costs less
than the trip to a pool thread, so the event loop may do it. It must be
certain first: ``RWF_NOWAIT`` alone starts the read-ahead of what is
missing under the class of the event loop's thread. ``cachestat`` (Linux
6.5) looks without touching.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Optional

_CACHESTAT = 451
_PAGE = mmap.PAGESIZE
_NOWAIT = getattr(os, 'RWF_NOWAIT', None)


class _Range(ctypes.Structure):
    _fields_ = [('off', ctypes.c_uint64), ('len', ctypes.c_uint64)]


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        'cached', 'dirty', 'writeback', 'evicted', 'recently_evicted')]


class PageCache:
    """Answers whether a range of a file is in the page cache.

    For one thread only (it reuses its buffers).
    """

    def __init__(self) -> None:
        self._call = ctypes.PyDLL(None, use_errno=True).syscall
        self._range = _Range()
        self._counts = _Counts()
        self._range_ref = ctypes.byref(self._range)
        self._counts_ref = ctypes.byref(self._counts)
        self.available = self._probe()

    def holds(self, fd: int, offset: int, length: int) -> bool:
        """True if every page of the range is cached right now."""
        if not self.available:
            return False
        first = offset // _PAGE
        pages = (offset + length + _PAGE - 1) // _PAGE - first
        self._range.off = first * _PAGE
        self._range.len = pages * _PAGE
        if self._call(_CACHESTAT, fd, self._range_ref, self._counts_ref, 0):
            return False
        return int(self._counts.cached) >= pages

    def read(self, fd: int, length: int, offset: int,
             class_id: int) -> Optional[bytes]:
        """The bytes, if they can be had without any I/O; else None.

        Never blocks on a disk and never starts read-ahead for a class.
        """
        if self.available:
            if not self.holds(fd, offset, length):
                return None
            return os.pread(fd, length, offset)
        if class_id or _NOWAIT is None:
            return None
        # An older kernel: ask for the bytes and see. What is missing is
        # read ahead without a class, which is the class of these bytes.
        data = bytearray(length)
        try:
            got = os.preadv(fd, [data], offset, _NOWAIT)
        except OSError:
            return None  # EAGAIN, or EOPNOTSUPP of this file system
        return bytes(data) if got == length else None

    def _probe(self) -> bool:
        self._range.off, self._range.len = 0, _PAGE
        fd = os.open(os.__file__, os.O_RDONLY)
        try:
            return not self._call(
                _CACHESTAT, fd, self._range_ref, self._counts_ref, 0)
        finally:
            os.close(fd)
