"""A link that is far away: a TCP proxy that hands bytes on later.

Each direction has half of the round trip; bytes that follow one another
stay so, and nothing is lost or made slower than late.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Optional, Set, Tuple

_PIECE_BYTES = 65536


class DelayedLink:
    """Listens on a port of the loopback address while the block lasts.

    :param port: where it leads to, on the same address
    :param rtt_seconds: there and back
    :ivar port: where it listens
    :ivar connections: that were made over it
    """

    #: Pieces that are on their way in one direction of a connection, at
    #: most: a window of 16 MiB.
    window = 256

    def __init__(self, port: int, rtt_seconds: float) -> None:
        self._to = port
        self._half = rtt_seconds / 2
        self.port = 0
        self.connections = 0
        self._loop = asyncio.new_event_loop()
        self._tasks: Set[Any] = set()
        self._server: Any = None
        self._thread = threading.Thread(
            target=self._loop.run_forever, name='dss-delay', daemon=True)

    def __enter__(self) -> DelayedLink:
        self._thread.start()
        self._call(self._open())
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, '127.0.0.1', 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: Any, writer: Any) -> None:
        self.connections += 1
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await self._join(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _join(self, reader: Any, writer: Any) -> None:
        there, back = await asyncio.open_connection('127.0.0.1', self._to)
        try:
            await asyncio.gather(self._pass(reader, back),
                                 self._pass(there, writer))
        finally:
            back.close()

    async def _pass(self, source: Any, target: Any) -> None:
        """Pieces come out half a round trip after they came in."""
        held: asyncio.Queue[Tuple[float, Optional[bytes]]] = \
            asyncio.Queue(self.window)
        reading = asyncio.ensure_future(self._read(source, held))
        try:
            while True:
                due, piece = await held.get()
                await asyncio.sleep(due - self._loop.time())
                if piece is None:
                    target.write_eof()
                    return
                target.write(piece)
                await target.drain()
        finally:
            reading.cancel()

    async def _read(self, source: Any, held: Any) -> None:
        while True:
            try:
                piece = await source.read(_PIECE_BYTES)
            except OSError:
                piece = b''
            await held.put((self.leaves_at(source, len(piece)) + self._half,
                            piece or None))
            if not piece:
                return

    def leaves_at(self, source: Any, length: int) -> float:
        """When so many bytes that have come from a source are on their
        way, by the loop's clock."""
        return self._loop.time()
