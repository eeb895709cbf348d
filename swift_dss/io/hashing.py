"""MD5 of large uploads, of many of them in one pass.

A core does some 500 MB/s of MD5, as each of its steps waits for the one
before; an ETag is one stream and cannot be cut. But uploads come side by
side, and the registers of a vector unit take one stream a lane: eight
streams take as long as one (``md5_lanes.c``). So windows of uploads wait
here for a thread that hashes all that are there at a time, and the event
loop goes on receiving meanwhile.

Who finds no compiled module here hashes as Swift does, where bytes arrive.
"""

from __future__ import annotations

import collections
from typing import Any, Callable, Deque, List, Optional, Sequence

from swift_dss.io import native
from swift_dss.io.pools import Job, Pool

try:
    from swift_dss.io import md5_lanes
except ImportError:
    md5_lanes = None  # type: ignore[assignment]

#: Of each stream in one pass: windows that come meanwhile join the next.
_PASS_BYTES = 256 * 1024
#: Windows that may wait; an upload has one at a time.
_QUEUE_DEPTH = 4096


class _Window:
    """Bytes that one stream goes on with."""

    __slots__ = ('digest', 'chunks', 'index', 'at', 'finished')

    def __init__(self, digest: Any, chunks: Sequence[bytes]) -> None:
        self.digest = digest
        self.chunks = [chunk for chunk in chunks if chunk]
        self.index = 0
        self.at = 0
        self.finished = not self.chunks

    def ahead(self) -> int:
        """Bytes of the chunk it is at that are to be hashed."""
        return len(self.chunks[self.index]) - self.at

    def hashed(self, length: int) -> None:
        """Go on by so many, at most :meth:`ahead`."""
        self.at += length
        if self.at == len(self.chunks[self.index]):
            self.at = 0
            self.index += 1
            self.finished = self.index == len(self.chunks)


class Hasher:
    """One thread that hashes for all uploads of a process.

    :param told: of the pool, see :class:`Pool`
    """

    def __init__(self, told: Callable[[str], None] = lambda what: None
                 ) -> None:
        # With a second thread each would find half of the streams.
        self.pool = Pool('md5', 1, _QUEUE_DEPTH, told=told)
        self._asked: Deque[_Window] = collections.deque()
        self._under_way: List[_Window] = []
        #: Passes, and streams that were in them.
        self.passes = 0
        self.streams = 0

    @staticmethod
    def is_there() -> bool:
        """Was the module compiled for this interpreter?"""
        return md5_lanes is not None

    def stream(self) -> Stream:
        """A new MD5; only where :meth:`is_there`."""
        return Stream(self, md5_lanes.Digest())

    def submit(self, window: _Window) -> Optional[Job]:
        """Begin to hash; None if it is done already."""
        if window.finished:
            return None
        if native.hub() is None:
            while not window.finished:
                self._pass([window])
            return None
        self._asked.append(window)
        try:
            return self.pool.submit(self._finish, window)
        except BaseException:
            # Left while the pool was full: nobody waits for it now.
            if window in self._asked:
                self._asked.remove(window)
            raise

    def _finish(self, window: _Window) -> None:
        """In the pool's thread: until the window is hashed.

        What others asked for meanwhile goes along: their turn may find
        nothing left to do. Theirs come in the order in which they asked, so
        the window of this turn is always one of the oldest.
        """
        try:
            while not window.finished:
                while self._asked:
                    self._under_way.append(self._asked.popleft())
                self._pass(self._under_way[:md5_lanes.LANES])
                self._under_way = [one for one in self._under_way
                                   if not one.finished]
        finally:
            # One that cannot be hashed must not stand in others' way.
            if not window.finished and window in self._under_way:
                self._under_way.remove(window)

    def _pass(self, windows: List[_Window]) -> None:
        length = min(min(window.ahead() for window in windows), _PASS_BYTES)
        md5_lanes.update([
            (window.digest, window.chunks[window.index], window.at,
             window.at + length) for window in windows])
        for window in windows:
            window.hashed(length)
        self.passes += 1
        self.streams += len(windows)


class Stream:
    """The MD5 of one upload."""

    def __init__(self, hasher: Hasher, digest: Any) -> None:
        self._hasher = hasher
        self._digest = digest

    def begin(self, chunks: Sequence[bytes]) -> Optional[Job]:
        """Go on with these, which MUST NOT change any more.

        The one before MUST have finished.

        :returns: what to wait for; None if it is done already
        """
        return self._hasher.submit(_Window(self._digest, chunks))

    def hexdigest(self) -> str:
        """The MD5; nothing is under way then."""
        return str(self._digest.hexdigest())
