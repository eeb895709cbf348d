"""A reader's way through a fetch, part by part, as strategies see it."""

from __future__ import annotations

import abc
import threading
import time

from swift_dss.gateway.ports import Sink
from swift_dss.tier.prefetch.book import Piece
from swift_dss.wire.control import FetchReply, FetchRequest

#: Bytes that come sooner than this after the last were here already: a
#: local read, not an answer of S3.
_AT_ONCE_SECONDS = 0.004


class Ahead(abc.ABC):
    """Hears of the readers of S3's bytes."""

    @abc.abstractmethod
    def demanded(self, length: int) -> None:
        """A reader took bytes."""

    @abc.abstractmethod
    def comes_to(self, request: FetchRequest, offset: int, length: int,
                 there: bool) -> None:
        """A reader begins to read a part of its request.

        :param there: a local tier had it
        """


class Watched(Sink):
    """Passes bytes on and tells of each part that its reader comes to: a
    long read is a stream as much as many short ones."""

    def __init__(self, ahead: Ahead, request: FetchRequest,
                 sink: Sink, part_bytes: int) -> None:
        self._ahead = ahead
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
        self._ahead.demanded(len(data))
        self._asked_at = time.monotonic()

    def _tell(self, there: bool) -> None:
        if self._told >= self._end:
            return
        offset = self._told
        border = offset - offset % self._part_bytes + self._part_bytes
        self._told = min(self._end, border)
        self._ahead.comes_to(self._request, offset, self._told - offset,
                             there)


class Nobody(Sink):
    """Takes the bytes of a piece without a reader.

    :param piece: if it is cancelled, the fetch ends at the next block
    :param stopping: ends it likewise
    """

    def __init__(self, piece: Piece, stopping: threading.Event) -> None:
        self._piece = piece
        self._stopping = stopping
        self.status = 0
        self.reason = ''
        self.taken = 0

    def begin(self, reply: FetchReply) -> None:
        """See :meth:`Sink.begin`."""
        self.status, self.reason = reply.status, reply.reason

    def write(self, data: bytes) -> None:
        """See :meth:`Sink.write`."""
        if self._piece.cancelled or self._stopping.is_set():
            raise BrokenPipeError('cancelled by a reader')
        self.taken += len(data)
