"""What this kernel offers to reads of the page cache.

A read that the page cache can answer is a copy in memory: it costs less
than the trip to a pool thread, so the event loop may do it. ``RWF_NOWAIT``
makes sure of that: it answers with what is there, and starts the read-ahead
of what is not under the class of the calling thread.
"""

from __future__ import annotations

import os
from typing import Any, List, Sequence

from swift_dss.io.carriers import Carrier

_NOWAIT: Any = getattr(os, 'RWF_NOWAIT', None)
#: Of the pieces that :meth:`PageCache.read_ahead` gives: they fit a core's
#: own cache, where they are hashed and sent from.
CHUNK_BYTES = 65536
#: The most that it gives at once. Each call costs three system calls where
#: the bytes have a class, and one where they have none.
AHEAD_BYTES = 4 * CHUNK_BYTES


class PageCache:
    """Reads what the page cache has of a file.

    For one thread only (it reuses its buffers).
    """

    def __init__(self) -> None:
        self._chunks = [bytearray(CHUNK_BYTES)
                        for _ in range(AHEAD_BYTES // CHUNK_BYTES)]

    def read_ahead(self, carrier: Carrier, fd: int, length: int, offset: int,
                   class_id: int) -> Sequence[bytes]:
        """What can be had of a range without waiting for a disk.

        The kernel reads ahead of it meanwhile, and reads what was not
        there, under this class.

        :param length: at most ``AHEAD_BYTES``
        :returns: the bytes from ``offset`` on, in pieces of
            ``CHUNK_BYTES``, the last perhaps smaller; nothing if the first
            byte is not there now, or if this file system does not say
        """
        if _NOWAIT is None:
            return ()
        if not class_id:
            return self._without_waiting(fd, length, offset)
        carrier.enter(class_id)
        try:
            return self._without_waiting(fd, length, offset)
        finally:
            carrier.leave()

    def _without_waiting(self, fd: int, length: int,
                         offset: int) -> Sequence[bytes]:
        whole, rest = divmod(length, CHUNK_BYTES)
        into: List[Any] = self._chunks[:whole]
        if rest:
            into.append(memoryview(self._chunks[whole])[:rest])
        try:
            got = os.preadv(fd, into, offset, _NOWAIT)
        except OSError:
            # EAGAIN, EOPNOTSUPP; who reads it with waiting gets the rest.
            return ()
        whole, rest = divmod(got, CHUNK_BYTES)
        pieces = [bytes(chunk) for chunk in self._chunks[:whole]]
        if rest:
            pieces.append(bytes(memoryview(self._chunks[whole])[:rest]))
        return pieces
