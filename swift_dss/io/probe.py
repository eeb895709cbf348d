"""What this kernel offers to reads of the page cache.

A read that the page cache can answer is a copy in memory: it costs less
than the trip to a pool thread, so the event loop may do it. It must be
certain first. ``cachestat`` (Linux 6.5) looks without touching: the way for
small reads, where nothing is to be read ahead. ``RWF_NOWAIT`` answers with
what is there and starts the read-ahead of what is not, under the class of
the calling thread: the way for the chunks of a large one.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any, Optional

from swift_dss.io.carriers import Carrier

_CACHESTAT = 451
_PAGE = mmap.PAGESIZE
_NOWAIT: Any = getattr(os, 'RWF_NOWAIT', None)
#: The most that :meth:`PageCache.read_ahead` gives at once: it fits a
#: core's own cache, where it is hashed and sent from.
CHUNK_BYTES = 65536


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
        self._chunk = bytearray(CHUNK_BYTES)

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

        :param length: at most ``CHUNK_BYTES``
        """
        if self.available:
            if not self.holds(fd, offset, length):
                return None
            return os.pread(fd, length, offset)
        if class_id or _NOWAIT is None:
            return None
        # An older kernel: ask for the bytes and see. What is missing is
        # read ahead without a class, which is the class of these bytes.
        data = self._without_waiting(fd, length, offset)
        return data if data is not None and len(data) == length else None

    def read_ahead(self, carrier: Carrier, fd: int, length: int, offset: int,
                   class_id: int) -> Optional[bytes]:
        """What can be had of a range without waiting for a disk.

        The kernel reads ahead of it meanwhile, and reads what was not
        there, under this class.

        :param length: at most ``CHUNK_BYTES``
        :returns: at least one byte from ``offset`` on; None if the first
            is not there now, or if this file system does not say
        """
        if _NOWAIT is None:
            return None
        if not class_id:
            return self._without_waiting(fd, length, offset)
        carrier.enter(class_id)
        try:
            return self._without_waiting(fd, length, offset)
        finally:
            carrier.leave()

    def _without_waiting(self, fd: int, length: int,
                         offset: int) -> Optional[bytes]:
        chunk = self._chunk
        into = chunk if length == CHUNK_BYTES else memoryview(chunk)[:length]
        try:
            got = os.preadv(fd, [into], offset, _NOWAIT)
        except OSError:
            # EAGAIN, EOPNOTSUPP; who reads it with waiting gets the rest.
            return None
        if got == CHUNK_BYTES:
            return bytes(chunk)
        return bytes(memoryview(chunk)[:got]) if got else None

    def _probe(self) -> bool:
        self._range.off, self._range.len = 0, _PAGE
        fd = os.open(os.__file__, os.O_RDONLY)
        try:
            return not self._call(
                _CACHESTAT, fd, self._range_ref, self._counts_ref, 0)
        finally:
            os.close(fd)
