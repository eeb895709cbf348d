"""Read from the page cache without waiting, if the kernel can.

A read that the page cache can answer is a copy in memory: it costs less
than the trip to a pool thread, so the event loop may do it. ``RWF_NOWAIT``
makes sure of that: it returns cached bytes, and starts the read-ahead of the
rest under the class of the calling thread.
"""

from __future__ import annotations

import os
from typing import Any, List

from swift_dss.io.carriers import Carrier

_NOWAIT: Any = getattr(os, 'RWF_NOWAIT', None)
#: Of the pieces that :class:`PageCache` gives: they fit a core's own cache,
#: where they are hashed and sent from.
CHUNK_BYTES = 65536
#: The most that it reads at once. Each call costs three system calls where
#: the bytes have a class, and one where they have none.
AHEAD_BYTES = 4 * CHUNK_BYTES


class PageCache:
    """Reads the cached bytes of a file.

    For one thread only (it reuses its buffers).
    """

    def __init__(self) -> None:
        #: The bytes that :meth:`look` read last, from its offset on.
        self.chunks = [bytearray(CHUNK_BYTES)
                       for _ in range(AHEAD_BYTES // CHUNK_BYTES)]
        self._views = [memoryview(chunk) for chunk in self.chunks]

    def look(self, carrier: Carrier, fd: int, length: int, offset: int,
             class_id: int) -> int:
        """Read the cached part of a range without waiting for a disk.

        The kernel then reads the rest and reads ahead, under this class.

        :param length: at most ``AHEAD_BYTES``
        :returns: how many bytes from ``offset`` on are in ``chunks`` until
            the next look; 0 if the first byte is not there now, or if this
            file system does not say
        """
        if _NOWAIT is None:
            return 0
        whole = length // CHUNK_BYTES
        into: List[Any] = self.chunks[:whole]
        if length % CHUNK_BYTES:
            into.append(self._views[whole][:length % CHUNK_BYTES])
        if class_id:
            carrier.enter(class_id)
        try:
            return os.preadv(fd, into, offset, _NOWAIT)
        except OSError:
            # EAGAIN, EOPNOTSUPP; a read that waits gets the rest.
            return 0
        finally:
            if class_id:
                carrier.leave()

    def taken(self, start: int, stop: int) -> List[bytes]:
        """Copies of bytes that :meth:`look` read, in pieces that end where
        a chunk does; in one, if they are no more than a chunk.

        :param start: counted from the offset of the look
        """
        if not start and not stop % CHUNK_BYTES:
            # All of a large read but its end.
            return [*map(bytes, self.chunks[:stop // CHUNK_BYTES])]
        if stop <= CHUNK_BYTES:
            return [bytes(self._views[0][start:stop])]
        pieces: List[Any] = []
        end = 0
        for chunk, view in zip(self.chunks, self._views):
            at, end = end, end + CHUNK_BYTES
            if start < end:
                pieces.append(chunk if start <= at and end <= stop
                              else view[max(start - at, 0):stop - at])
            if stop <= end:
                break
        if len(pieces) > 1 and stop - start <= CHUNK_BYTES:
            return [b''.join(pieces)]
        return [bytes(piece) for piece in pieces]
