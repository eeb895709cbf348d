"""Requests in green threads of eventlet: they wait in its event loop.

One loop runs in the main thread, and a fork keeps that. Pool threads hand
finished jobs over in batches: one wake-up of the loop serves all jobs that
have finished.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import os
from typing import Any, Callable, Deque, Iterable, Iterator, Optional

import eventlet
from eventlet.green.http import client
from eventlet.hubs import get_hub, trampoline
from greenlet import getcurrent

from swift_dss.io import native
from swift_dss.io.waiting import threads

__all__ = ['client']


class Mailbox(threads.Mailbox):
    """Finished jobs on their way back into one event loop.

    Pools' books are kept by the loop's thread alone, so they need no lock.
    """

    def __init__(self, hub: Any) -> None:
        self.pid = os.getpid()
        self._hub = hub
        self._done: Deque[Any] = collections.deque()
        self._signalled = False
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)
        hub.add(hub.READ, self._read_fd, self._collect, self._closed,
                lambda: None)

    def admit(self, pool: Any, job: Any) -> None:
        """See :meth:`threads.Mailbox.admit`. Blocks the green thread only."""
        while pool.outstanding >= pool.limit:
            self._sleep(pool)
        pool.enqueue(job)

    def enqueue(self, pool: Any, job: Any) -> None:
        """See :meth:`threads.Mailbox.enqueue`."""
        pool.enqueue(job)

    def put(self, job: Any) -> None:
        """See :meth:`threads.Mailbox.put`."""
        self._done.append(job)
        if not self._signalled:
            self._signalled = True
            native.poke(self._write_fd)

    def wait(self, job: Any) -> None:
        """See :meth:`threads.Mailbox.wait`. May be left by any exception
        that another green thread throws."""
        hub, me = get_hub(), getcurrent()
        if native.get_ident() != native.MAIN_IDENT or me is hub.greenlet:
            raise RuntimeError('a pool job awaited outside its hub')
        job.waiter = me
        try:
            hub.switch()
        finally:
            job.waiter = None

    def _sleep(self, pool: Any) -> None:
        pool.note_full()
        me = getcurrent()
        pool.blocked.append(me)
        try:
            self._hub.switch()
        except BaseException:
            if me in pool.blocked:
                pool.blocked.remove(me)
            elif pool.blocked and pool.outstanding < pool.limit:
                # We were chosen and then interrupted: pass the turn on.
                self._hub.schedule_call_global(
                    0, pool.blocked.popleft().switch)
            raise

    def _collect(self, _fd: int) -> None:
        try:
            native.read(self._read_fd, 512)
        except BlockingIOError:
            pass
        # Cleared before the queue is emptied: a job that is put after the
        # last look below writes a byte of its own.
        self._signalled = False
        while True:
            try:
                job = self._done.popleft()
            except IndexError:
                return
            pool = job.pool
            pool.settle(job)
            if pool.blocked:
                pool.blocked.popleft().switch()
            if job.waiter is not None:
                job.waiter.switch()

    def _closed(self, _error: Any) -> None:
        raise OSError(errno.EBADF, 'the mailbox of the pools was closed')


def mailbox(waits: bool) -> Optional[Mailbox]:
    """See :func:`swift_dss.io.waiting.mailbox`."""
    if native.get_ident() != native.MAIN_IDENT:
        return None
    hub = get_hub()
    if waits and getcurrent() is hub.greenlet:
        return None
    box = getattr(hub, 'swift_dss_mailbox', None)
    if box is None or box.pid != os.getpid():
        box = hub.swift_dss_mailbox = Mailbox(hub)
    return box


def may_wait() -> bool:
    """True in a green thread; the loop's own callbacks must not wait."""
    return bool(native.get_ident() == native.MAIN_IDENT
                and getcurrent() is not get_hub().greenlet)


def later(seconds: float, call: Callable[[], None]) -> bool:
    """See :func:`swift_dss.io.waiting.later`."""
    if native.get_ident() != native.MAIN_IDENT:
        return False
    get_hub().schedule_call_global(seconds, call)
    return True


def sleep(seconds: float) -> None:
    """See :func:`swift_dss.io.waiting.sleep`."""
    eventlet.sleep(seconds)


def spawn(call: Callable[..., Any], *args: Any) -> None:
    """See :func:`swift_dss.io.waiting.spawn`."""
    eventlet.spawn_n(call, *args)


def together(call: Callable[[Any], Any],
             items: Iterable[Any]) -> Iterator[Any]:
    """See :func:`swift_dss.io.waiting.together`."""
    each = list(items)
    results: Iterator[Any] = eventlet.GreenPool(
        max(1, len(each))).imap(call, each)
    return results


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    """See :func:`swift_dss.io.waiting.limit`."""
    timer = eventlet.Timeout(seconds)
    try:
        yield
    except eventlet.Timeout as err:
        if err is not timer:
            raise
        raise TimeoutError('this took too long') from None
    finally:
        timer.cancel()


def until_writable(fd: int) -> None:
    """See :func:`swift_dss.io.waiting.until_writable`."""
    trampoline(fd, write=True)
