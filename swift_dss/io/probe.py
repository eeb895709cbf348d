"""What this kernel offers to reads of the page cache.

A read that the page cache can answer is a copy in memory: it costs less
than the trip to a pool thread, so the event loop may do it. ``RWF_NOWAIT``
makes sure of that: it answers with what is there, and starts the read-ahead
of what is not under the class of the calling thread.
"""

from __future__ import annotations

import os
from typing import Any, Optional

from swift_dss.io.carriers import Carrier

_NOWAIT: Any = getattr(os, 'RWF_NOWAIT', None)
#: The most that :meth:`PageCache.read_ahead` gives at once: it fits a
#: core's own cache, where it is hashed and sent from.
CHUNK_BYTES = 65536


class PageCache:
    """Reads what the page cache has of a file.

    For one thread only (it reuses its buffer).
    """

    def __init__(self) -> None:
        self._chunk = bytearray(CHUNK_BYTES)

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
