"""The far link of the bench of bundles, in a process of its own.

In the measured process it would share the interpreter's lock, and a real link
takes nothing from an edge's processor.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from typing import Any, Dict, NamedTuple

from swift_dss.bench.cluster.delay import DelayedLink

#: Seconds that a process may need to start on a busy machine.
_START_SECONDS = 60.0


class Link:
    """A link to a port while the block lasts: far, slow, counted.

    :param port: where it leads to, on the loopback address
    :param rtt_seconds: there and back
    :param bits_per_second: each way
    :ivar to: where it leads to
    :ivar port: where it listens
    """

    def __init__(self, port: int, rtt_seconds: float,
                 bits_per_second: float) -> None:
        # A fork would take the threads' locks along as they are.
        context = multiprocessing.get_context('spawn')
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_carry, args=(
            theirs, port, rtt_seconds, bits_per_second), daemon=True)
        self.to = port
        self.port = 0

    def __enter__(self) -> Link:
        self._process.start()
        if not self._ours.poll(_START_SECONDS):
            self._process.kill()
            raise OSError('the link does not begin')
        self.port = self._ours.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.send('end')
        self._process.join(_START_SECONDS)
        if self._process.is_alive():
            self._process.kill()

    def cut(self) -> None:
        """From now on every connection ends, at once."""
        self._ask('cut')

    def mend(self) -> None:
        """The link is there again."""
        self._ask('mend')

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the link so far."""
        seconds: float = self._ask('cpu')
        return seconds

    @property
    def sent(self) -> Dict[str, int]:
        """Bytes that went ``up`` and ``down`` so far."""
        counts: Dict[str, int] = self._ask('sent')
        return counts

    def _ask(self, word: str) -> Any:
        self._ours.send(word)
        return self._ours.recv()


def _carry(pipe: Any, port: int, rtt_seconds: float,
           bits_per_second: float) -> None:
    with Paced(port, rtt_seconds, bits_per_second) as link:
        pipe.send(link.port)
        while True:
            word = pipe.recv()
            if word == 'end':
                return
            if word == 'cpu':
                pipe.send(time.process_time())
                continue
            if word != 'sent':
                link.set_cut(word == 'cut')
            pipe.send(dict(link.pace.sent))


class Pace:
    """A line at a rate, one in each direction, and counted.

    The delivery time of each byte follows from its arrival and the bytes
    before it, not from when this process gets to run: on a busy machine the
    process is late at times, and a link that lost that time would be slower.

    :ivar sent: bytes that went ``up`` and ``down``
    """

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._free_at: Dict[str, float] = {}
        self.sent = {'up': 0, 'down': 0}

    def leaves_at(self, direction: str, length: int, now: float) -> float:
        """When so many bytes that have come by now are on their way."""
        self.sent[direction] += length
        at = max(now, self._free_at.get(direction, 0.0)) + length / self._rate
        self._free_at[direction] = at
        return at


class Paced(DelayedLink):
    """A far link at a rate, both ways, and counted."""

    #: As little as makes up for being 40 ms late at 100 Mbit/s.
    window = 8

    def __init__(self, port: int, rtt_seconds: float,
                 bits_per_second: float) -> None:
        super().__init__(port, rtt_seconds)
        self.pace = Pace(bits_per_second / 8)
        self._is_cut = False

    def __enter__(self) -> Paced:
        super().__enter__()
        return self

    def set_cut(self, is_cut: bool) -> None:
        """Cut the link, or restore it."""
        self._is_cut = is_cut
        if is_cut:
            self._loop.call_soon_threadsafe(self._drop)

    def _drop(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def _join(self, reader: Any, writer: Any) -> None:
        if self._is_cut:
            return
        there, back = await asyncio.open_connection('127.0.0.1', self._to)
        try:
            await asyncio.gather(
                self._pass(_Source('up', reader), back),
                self._pass(_Source('down', there), writer))
        finally:
            back.close()

    def leaves_at(self, source: Any, length: int) -> float:
        """See :meth:`DelayedLink.leaves_at`."""
        return self.pace.leaves_at(source.direction, length,
                                   self._loop.time())


class _Source(NamedTuple):
    """Bytes of one connection, and which way they go."""

    direction: str
    reader: Any

    async def read(self, most: int) -> bytes:
        """Some of them."""
        piece: bytes = await self.reader.read(most)
        return piece
