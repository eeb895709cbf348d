"""A reader's way through a fetch, part by part, as strategies see it."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Callable

from swift_dss.gateway.ports import Sink
from swift_dss.wire.control import FetchReply, FetchRequest

if TYPE_CHECKING:
    from swift_dss.tier.prefetch.service import Prefetcher

#: Bytes that come sooner than this after the last were here already: a
#: local read, not an answer of S3.
_AT_ONCE_SECONDS = 0.004


class Watched(Sink):
    """Passes bytes on and tells of each part that its reader comes to: a
    long read is a stream as much as many short ones."""

    def __init__(self, prefetcher: Prefetcher, request: FetchRequest,
                 sink: Sink, part_bytes: int) -> None:
        self._prefetcher = prefetcher
        self._request = request
        self._sink = sink
        self._part_bytes = part_bytes
        self._at = request.offset
        self._told = request.offset
        self._end = request.offset + request.length
        self._asked_at = time.monotonic()
        self._tell(False)

    def begin(self, reply: FetchReply) -> None:
        """See :meth:`Sink.begin`."""
        self._sink.begin(reply)

    def write(self, data: bytes) -> None:
        """See :meth:`Sink.write`."""
        if self._at + len(data) > self._told:
            waited = time.monotonic() - self._asked_at
            self._tell(waited < _AT_ONCE_SECONDS)
        self._sink.write(data)
        self._at += len(data)
        self._prefetcher.spare.demanded(len(data))
        self._asked_at = time.monotonic()

    def _tell(self, there: bool) -> None:
        if self._told >= self._end:
            return
        offset = self._told
        border = offset - offset % self._part_bytes + self._part_bytes
        self._told = min(self._end, border)
        # The last read of a stream's part is still on its way to us when
        # the first of the next part is here.
        self._prefetcher.in_order(partial(
            self._prefetcher.on_read, self._request.version,
            self._request.partition, offset, self._told - offset, there,
            self._request.class_id, self._request.client, time.time()))


class Nobody(Sink):
    """Takes the bytes of a piece without a reader.

    :param wanted: False ends the fetch at the next block
    """

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted
        self.status = 0
        self.reason = ''
        self.taken = 0

    def begin(self, reply: FetchReply) -> None:
        """See :meth:`Sink.begin`."""
        self.status, self.reason = reply.status, reply.reason

    def write(self, data: bytes) -> None:
        """See :meth:`Sink.write`."""
        if not self._wanted():
            raise BrokenPipeError('cancelled by a reader')
        self.taken += len(data)
