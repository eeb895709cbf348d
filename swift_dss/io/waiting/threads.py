"""Requests in threads of their own: they wait as the operating system does.

The main thread accepts connections or is a tool's only one, and a pool's
thread has work already: these do a pool's work themselves. Every other
thread serves a request, hands its work over and waits.
"""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable, Iterator, List, Optional

from swift_dss.io import native

_mine = native.local()


class Mailbox:
    """The way of finished jobs back to the threads that wait for them."""

    def admit(self, pool: Any, job: Any) -> None:
        """Give a job to a pool. Blocks while the pool is full.

        :raises TimeoutError: :func:`limit` is over
        """
        with pool.room:
            if pool.outstanding >= pool.limit:
                pool.note_full()
            while pool.outstanding >= pool.limit:
                try:
                    pool.room.wait(left())
                except TimeoutError:
                    # We may have been chosen just before: pass the turn on.
                    pool.room.notify()
                    raise
            pool.enqueue(job)

    def enqueue(self, pool: Any, job: Any) -> None:
        """Give a job to a pool, full or not; never blocks."""
        with pool.room:
            pool.enqueue(job)

    def put(self, job: Any) -> None:
        """Hand a finished job over (called by pool threads)."""
        pool = job.pool
        with pool.room:
            pool.settle(job)
            pool.room.notify()
        waiter = job.waiter
        if waiter is not None:
            waiter.release()

    def wait(self, job: Any) -> None:
        """Block until a job has finished.

        :raises TimeoutError: :func:`limit` is over; the work goes on
        """
        bell = job.waiter = native.Lock()
        bell.acquire()
        # put() looks for a waiter after the job has finished, so one of
        # the two sees the other.
        try:
            if not job.finished:
                seconds = left()
                bell.acquire(True, -1 if seconds is None else seconds)
                left()
        finally:
            job.waiter = None


_BOX = Mailbox()


def mailbox() -> Optional[Mailbox]:
    """See :func:`swift_dss.io.waiting.mailbox`."""
    if native.get_ident() == native.MAIN_IDENT or \
            getattr(_mine, 'works', False):
        return None
    return _BOX


def work() -> None:
    """The calling thread is a pool's from now on."""
    _mine.works = True


def sleep(seconds: float) -> None:
    """See :func:`swift_dss.io.waiting.sleep`."""
    time.sleep(seconds)


def spawn(call: Callable[..., Any], *args: Any) -> None:
    """See :func:`swift_dss.io.waiting.spawn`."""
    thread = native.Thread(target=call, args=args)
    thread.daemon = True
    thread.start()


def together(call: Callable[[Any], Any],
             items: Iterable[Any]) -> Iterator[Any]:
    """See :func:`swift_dss.io.waiting.together`."""
    each = list(items)
    with ThreadPoolExecutor(max(1, len(each))) as executor:
        results: List[Any] = list(executor.map(call, each))
    return iter(results)


def left() -> Optional[float]:
    """Seconds until the innermost limit of this thread; None without one.

    :raises TimeoutError: there are none left
    """
    until = getattr(_mine, 'until', None)
    if until is None:
        return None
    seconds = float(until) - time.monotonic()
    if seconds <= 0:
        raise TimeoutError('this took too long')
    return seconds


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    """See :func:`swift_dss.io.waiting.limit`."""
    before = getattr(_mine, 'until', None)
    until = time.monotonic() + seconds
    _mine.until = until if before is None else min(before, until)
    try:
        yield
    finally:
        _mine.until = before


class _Socket(socket.socket):
    """Each wait is bounded by what is left of the thread's limit."""

    def recv_into(self, *args: Any) -> int:
        """See :meth:`socket.socket.recv_into`."""
        self.settimeout(left())
        return super().recv_into(*args)

    def sendall(self, *args: Any) -> None:
        """See :meth:`socket.socket.sendall`."""
        self.settimeout(left())
        super().sendall(*args)


class _Connection(http.client.HTTPConnection):

    def connect(self) -> None:
        """Connect within the limit."""
        plain = socket.create_connection((self.host, self.port), left())
        self.sock = _Socket(plain.family, plain.type, plain.proto,
                            plain.detach())
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class client:
    """As the module ``http.client``, within the thread's limit."""

    HTTPConnection = _Connection
    HTTPException = http.client.HTTPException


def until_writable(fd: int) -> None:
    """See :func:`swift_dss.io.waiting.until_writable`."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    seconds = left()
    poll.poll(None if seconds is None else seconds * 1000)
    left()
