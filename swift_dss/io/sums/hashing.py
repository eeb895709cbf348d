"""MD5 of large uploads, of many of them in one pass.

A core does some 500 to 900 MB/s of MD5, as each of its steps waits for the one
before; an ETag is one stream and cannot be cut. But uploads come side by
side, and the registers of a vector unit take one stream a lane: sixteen
streams take as long as eight, some three times as long as one
(``md5_lanes.c``). So windows of uploads wait here for a thread that hashes all
waiting windows at once, while the event loop goes on receiving.

Without the compiled module, bytes are hashed where they arrive, as in Swift.
"""

from __future__ import annotations

import collections
import contextlib
from typing import Any, Callable, Deque, List, Optional, Sequence

from swift_dss.io import waiting
from swift_dss.io.pools import Job, Pool

try:
    from swift_dss.io import md5_lanes
except ImportError:
    md5_lanes = None  # type: ignore[assignment]

#: Of each stream in one pass: windows that come during it join the next.
_PASS_BYTES = 256 * 1024
#: Windows that may wait; an upload has one at a time.
_QUEUE_DEPTH = 4096


class _Window:
    """Bytes that one stream goes on with."""

    __slots__ = ('digest', 'chunks', 'index', 'at', 'finished', 'given_up',
                 'job')

    def __init__(self, digest: Any, chunks: Sequence[bytes]) -> None:
        self.digest = digest
        self.chunks = [chunk for chunk in chunks if chunk]
        self.index = 0
        self.at = 0
        self.finished = not self.chunks
        self.given_up = False
        self.job: Optional[Job] = None

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

    It begins when every upload has a window here, or there is one for each
    lane, or one waits for its own: an empty lane costs as much as a full one.

    :param told: of the pool, see :class:`Pool`
    """

    def __init__(self, told: Callable[[str], None] = lambda event: None
                 ) -> None:
        # With a second thread each would find half of the streams.
        self.pool = Pool('md5', 1, _QUEUE_DEPTH, told=told)
        self._asked: Deque[_Window] = collections.deque()
        self._under_way: List[_Window] = []
        self._open = 0
        #: Passes, and streams that were in them.
        self.passes = 0
        self.streams = 0

    @staticmethod
    def is_there() -> bool:
        """Was the module compiled for this interpreter?"""
        return md5_lanes is not None

    def stream(self) -> Stream:
        """A new MD5, to be closed; only where :meth:`is_there`."""
        self._open += 1
        return Stream(self, md5_lanes.Digest())

    def _begin(self, window: _Window) -> None:
        if not waiting.is_green():
            while not window.finished:
                self._pass([window])
            return
        self._asked.append(window)
        # Never waits: no more windows than uploads, and room for thousands.
        if len(self._asked) >= min(md5_lanes.LANES, self._open):
            window.job = self.pool.submit(self._finish, window)

    def _wait(self, window: _Window) -> None:
        if window.job is None and not window.finished:
            # Windows of others whose bytes are there already join the pass.
            waiting.sleep(0)
        if window.finished:
            return
        if window.job is None or window.job.finished:
            window.job = self.pool.submit(self._finish, window)
        window.job.wait()

    def _forget(self, window: Optional[_Window]) -> None:
        self._open -= 1
        if window is not None:
            window.given_up = True
            with contextlib.suppress(ValueError):
                self._asked.remove(window)

    def _finish(self, window: _Window) -> None:
        """In the pool's thread: until the window is hashed, together with all
        others here: the turns of those may find nothing left.
        """
        try:
            while not (window.finished or window.given_up):
                while self._asked:
                    self._under_way.append(self._asked.popleft())
                if window not in self._under_way:
                    self._under_way.append(window)
                try:
                    self._pass(self._under_way[:md5_lanes.LANES])
                except Exception:
                    # Nothing of any window has been hashed. The window at
                    # fault raises again in its own pass.
                    self._pass([window])
                self._under_way = [
                    hashing for hashing in self._under_way
                    if not (hashing.finished or hashing.given_up)]
        finally:
            if window in self._under_way:
                self._under_way.remove(window)

    def _pass(self, windows: List[_Window]) -> None:
        """One step of them all; of none, if it raises."""
        length = min(window.ahead() for window in windows)
        if len(windows) < md5_lanes.LANES:
            length = min(length, _PASS_BYTES)
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
        self._hasher: Optional[Hasher] = hasher
        self._digest = digest
        self._window: Optional[_Window] = None

    def begin(self, chunks: Sequence[bytes]) -> None:
        """Hash these next; they MUST NOT change any more.

        Does not block. The caller MUST have waited for the windows before.
        """
        self._window = _Window(self._digest, chunks)
        if self._hasher is not None and not self._window.finished:
            self._hasher._begin(self._window)

    def wait(self) -> None:
        """Wait until all windows so far are hashed. Blocks the green thread.
        """
        if self._window is not None and self._hasher is not None:
            self._hasher._wait(self._window)
            self._window = None

    def hexdigest(self) -> str:
        """The MD5; nothing is under way then."""
        return str(self._digest.hexdigest())

    def close(self) -> None:
        """Nothing comes any more; a pass under way may be given up."""
        if self._hasher is not None:
            self._hasher._forget(self._window)
            self._hasher = self._window = None
