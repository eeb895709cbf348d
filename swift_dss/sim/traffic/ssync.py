"""Sessions of ssync between simulated nodes: Swift's own sender and receiver
at two ends of a pipe.

The sender writes a whole part of the protocol before it reads, so the
receiver can work when its answer is read: no thread is needed. A pipe may
break after any message, in either direction, as a connection does; bytes
of TCP are never lost or exchanged.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import (
    Any, Callable, ContextManager, Dict, Iterator, List, Tuple)

from swift.common.swob import Request, Response
from swift.obj import ssync_sender

from swift_dss.sim.server import ObjectServer, Quiet, policies
from swift_dss.sim.world.ring import DEVICE

_SECONDS = 60.0
#: Makes the context in which a node works: by its own clock.
Works = Callable[[], ContextManager[None]]


class Cut(OSError):
    """The network broke."""


class _Pipe:
    """The sender's connection.

    :param messages: that pass before it breaks; -1: it never does
    """

    def __init__(self, messages: int) -> None:
        self._left = messages
        self._data = bytearray()
        self.closed = False
        self.is_cut = False

    def pass_one(self) -> None:
        """A message passes, either way.

        :raises Cut: it does not
        """
        if self._left == 0:
            self.is_cut = True
            raise Cut('the connection broke')
        self._left -= 1

    def send(self, chunk: bytes) -> None:
        """One chunk, with its length before it."""
        self.pass_one()
        length, _, rest = chunk.partition(b'\r\n')
        self._data += rest[:int(length, 16)]
        self.closed = self.closed or length == b'0'

    def close(self) -> None:
        self.closed = True

    # -- the receiver's input --------------------------------------------

    def readline(self, most: int) -> bytes:
        end = self._data.find(b'\n', 0, most)
        return self._take(most if end < 0 else end + 1)

    def read(self, most: int) -> bytes:
        return self._take(most)

    def _take(self, most: int) -> bytes:
        if not self._data and (self.is_cut or not self.closed):
            raise Cut('the sender is gone')
        taken = bytes(self._data[:most])
        del self._data[:most]
        return taken


class _Reply:
    """The sender's input."""

    def __init__(self, response: Response, parts: Iterator[bytes],
                 pipe: _Pipe) -> None:
        self.status = response.status_int
        self._headers = response.headers
        self._parts = parts
        self._pipe = pipe
        self._rest = b''

    def getheader(self, name: str, default: Any = None) -> Any:
        return self._headers.get(name, default)

    def readline(self, size: int) -> bytes:
        self._pipe.pass_one()
        while b'\n' not in self._rest:
            part = next(self._parts, b'')
            if not part:
                break
            self._rest += part
        end = self._rest.find(b'\n') + 1 or len(self._rest)
        line, self._rest = self._rest[:end], self._rest[end:]
        return line


class Sender(ssync_sender.Sender):
    """Swift's, and its connection to a server of this process."""

    def __init__(self, target: ObjectServer, works: Works,
                 messages: int, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._target = target
        self._works = works
        self.pipe = _Pipe(messages)
        #: The receiver lacked something.
        self.is_wanted = False
        self._parts: Iterator[bytes] = iter(())

    def updates(self, connection: Any, response: Any, send_map: Any) -> None:
        self.is_wanted = bool(send_map)
        super().updates(connection, response, send_map)

    def connect(self) -> Tuple[_Pipe, _Reply]:
        request = Request.blank(
            '/%s/%s' % (DEVICE, self.job['partition']), environ={
                'REQUEST_METHOD': 'SSYNC', 'wsgi.input': self.pipe})
        request.headers['X-Backend-Storage-Policy-Index'] = str(
            int(self.job['policy']))
        index = self.node.get('backend_index')
        if index is not None:
            request.headers['X-Backend-Ssync-Frag-Index'] = str(index)
        response = request.get_response(self._target.app)
        self._parts = self._by_its_clock(iter(response.app_iter))
        return self.pipe, _Reply(response, self._parts, self.pipe)

    def _by_its_clock(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        while True:
            with self._works():
                try:
                    part = next(parts)
                except StopIteration:
                    return
            yield part

    def disconnect(self, connection: Any) -> None:
        super().disconnect(connection)
        # The receiver sees the end, and lets its locks go.
        for _part in self._parts:
            pass


class Session:
    """The outcome of a session.

    :param success: as the replicator is told
    :param in_sync: hashes that the receiver has now, by the sender's word
    :param is_cut: the connection broke
    """

    def __init__(self, success: bool, in_sync: Dict[str, Any],
                 is_cut: bool) -> None:
        self.success = success
        self.in_sync = in_sync
        self.is_cut = is_cut


def session(source: ObjectServer, target: ObjectServer,
            partition: str, policy: int, suffixes: List[str],
            works: Works, messages: int = -1) -> Session:
    """Offer what ``source`` has to ``target``.

    :param works: makes the context in which the target's node works
    :param messages: that pass before the connection breaks; -1: all
    """
    ring_policy = policies()[policy]
    daemon = SimpleNamespace(
        conn_timeout=_SECONDS, node_timeout=_SECONDS, http_timeout=_SECONDS,
        network_chunk_size=65536, logger=Quiet(),
        _df_router={ring_policy: source.managers[ring_policy]})
    sender = Sender(
        target, works, messages, daemon,
        {'replication_ip': 'sim', 'replication_port': 0, 'device': DEVICE},
        {'device': DEVICE, 'partition': partition, 'policy': ring_policy},
        suffixes)
    success, in_sync = sender()
    return Session(success, in_sync, sender.pipe.is_cut)
