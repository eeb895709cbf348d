"""A storage node's network link, as WSGI middleware of an object server.

In the laboratory the network costs nothing: all servers are in one guest.
A disk faster than its node's link would then give figures that no real cluster
has. This middleware lets the bytes of requests and answers pass at a rate,
each direction of each device by itself, as if each device were a node with a
full-duplex link of its own::

    [filter:link]
    paste.filter_factory = swift_dss.bench.lab.cacs_link:filter_factory
    bytes_per_second = 117000000
    folder = /run/links

The folder is where the workers of a server find each other's bytes: they share
the link of a device.

Bytes of a request wait on their way in, bytes of an answer on their way out;
headers cost nothing.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from typing import Any, Callable, Dict, Iterable, Iterator, Tuple

from swift_dss.io import waiting
from swift_dss.io.waiting import exact

App = Callable[..., Iterable[bytes]]
IN, OUT = 'in', 'out'
#: Shorter waits are added up: in a guest in virtual time each wait costs real
#: time, and 1 ms is 117 KB of a link of 1 Gbit/s.
LEAST_WAIT_SECONDS = 0.001
_FREE = struct.Struct('d')


class Link:
    """One direction: a request that comes while it is busy waits for its turn.

    :param path: of a file that all processes with this link have open: when
        the link is free
    :param rate: bytes a second
    """

    def __init__(self, path: str, rate: float,
                 clock: Callable[[], float] = time.monotonic,
                 wait: Callable[[float], Any] = waiting.sleep) -> None:
        self._rate = rate
        self._clock = clock
        self._wait = wait
        # Not for appending: then pwrite() would append, whatever it is told.
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600),
                               'r+b', 0)

    def take(self, count: int) -> None:
        """Let so many bytes pass; returns when the last one has."""
        now = self._clock()
        free = self._book(now, count / self._rate)
        if count and free - now >= LEAST_WAIT_SECONDS:
            self._wait(free - now)

    def _book(self, now: float, seconds: float) -> float:
        fd = self._file.fileno()
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            before = os.pread(fd, _FREE.size, 0)
            free = max(now, *_FREE.unpack(before)) if before else now
            os.pwrite(fd, _FREE.pack(free + seconds), 0)
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)
        return free + seconds


class Input:
    """``wsgi.input`` behind a link; all else is the input's own."""

    def __init__(self, source: Any, link: Link) -> None:
        self._source = source
        self._link = link

    def read(self, *size: int) -> bytes:
        """As the input's, later."""
        return self._passed(self._source.read(*size))

    def readline(self, *size: int) -> bytes:
        """As the input's, later."""
        return self._passed(self._source.readline(*size))

    def _passed(self, data: bytes) -> bytes:
        self._link.take(len(data))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class Answer:
    """The bytes of an answer behind a link."""

    def __init__(self, source: Iterable[bytes], link: Link) -> None:
        self._source = source
        self._link = link

    def __iter__(self) -> Iterator[bytes]:
        for data in self._source:
            self._link.take(len(data))
            yield data

    def close(self) -> None:
        """As WSGI asks: the answer's own."""
        close = getattr(self._source, 'close', None)
        if close:
            close()


class LinkMiddleware:
    """The first part of a path names the device, and so the link."""

    def __init__(self, app: App, folder: str, rate: float) -> None:
        self._app = app
        self._folder = folder
        self._rate = rate
        self._links: Dict[Tuple[str, str], Link] = {}

    def __call__(self, env: Dict[str, Any],
                 start_response: Callable[..., Any]) -> Iterable[bytes]:
        device = env.get('PATH_INFO', '').split('/')[1:2]
        name = device[0] if device else ''
        env['wsgi.input'] = Input(env['wsgi.input'], self._link(name, IN))
        return Answer(self._app(env, start_response), self._link(name, OUT))

    def _link(self, name: str, direction: str) -> Link:
        key = (name, direction)
        if key not in self._links:
            self._links[key] = Link(os.path.join(
                self._folder, '%s-%s' % (name, direction)), self._rate)
        return self._links[key]


def filter_factory(global_conf: Dict[str, str],
                   **local_conf: str) -> Callable[[App], App]:
    """For paste.deploy: ``bytes_per_second`` and ``folder`` are asked for."""
    exact.enable()
    conf = dict(global_conf, **local_conf)
    os.makedirs(conf['folder'], exist_ok=True)

    def factory(app: App) -> App:
        return LinkMiddleware(app, conf['folder'],
                              float(conf['bytes_per_second']))
    return factory
