"""Bounded pools of native threads that green threads can wait for.

One pool serves one tier of one device, so that a slow disk delays only
requests to that disk. Work is a function and its arguments; the calling green
thread sleeps until the answer is there, while the event loop serves others.

Rules for work in a pool thread: no green primitive, no logger but a manager's,
no reference to the request. It may block.

- Threads start when they are first needed, after a fork too.
- At most ``threads`` jobs run and ``queue_depth`` wait. Past that the
  *green thread* that asks is put to sleep, never the event loop.
- Answers are handed over in batches: one wake-up of the loop serves all jobs
  that have finished.
- Without an event loop (daemons, tools, threads of other pools) the caller
  runs the work itself.
"""

from __future__ import annotations

import collections
import errno
import os
import time
from typing import Any, Callable, Deque, Dict, List, Optional

from swift_dss.io import native

_QUEUED, _RUNNING, _FINISHED, _CANCELLED = range(4)
_SLOW_WAIT_SECONDS = 0.001


class Job:
    """One piece of work on its way through a pool."""

    __slots__ = ('_call', '_args', '_pool', '_box', '_state', '_value',
                 '_error', '_waiter', '_cleanups', '_lock', '_asked_at',
                 'waited')

    def __init__(self, pool: Pool, box: Optional[_Mailbox],
                 call: Callable[..., Any], args: Any) -> None:
        self._call = call
        self._args = args
        self._pool = pool
        self._box = box
        self._state = _QUEUED
        self._value: Any = None
        self._error: Optional[BaseException] = None
        self._waiter: Any = None
        self._cleanups: List[Callable[[], None]] = []
        self._lock = pool.lock
        self._asked_at = time.monotonic()
        #: True if no thread took it up at once (``_SLOW_WAIT_SECONDS``).
        self.waited = False

    @property
    def finished(self) -> bool:
        """True if it will not run any more."""
        return self._state >= _FINISHED

    def wait(self) -> Any:
        """Return the work's result; raise its exception.

        Blocks the green thread. May be left by an exception (a time-out,
        say): the work then goes on, see :meth:`when_finished`.
        """
        if self._box is None:
            self._execute()
            self._pool.leave_inline()
        while self._state < _FINISHED:
            hub = native.hub()
            if hub is None:
                raise RuntimeError('a pool job awaited outside its hub')
            self._waiter = native.current_green()
            try:
                hub.switch()
            finally:
                self._waiter = None
        error = self._error
        if error is not None:
            self._error = None
            raise error
        return self._value

    def when_finished(self, call: Callable[[], None]) -> None:
        """Run ``call`` when the work no longer uses its arguments.

        Work that has not begun is cancelled. ``call`` runs at once, or in the
        pool thread right after the work; it MUST NOT raise.
        """
        with self._lock:
            if self._state == _QUEUED:
                self._state = _CANCELLED
            if self._state == _RUNNING:
                self._cleanups.append(call)
                return
        call()

    def _execute(self) -> None:
        with self._lock:
            if self._state != _QUEUED:
                return
            self._state = _RUNNING
        try:
            self._value = self._call(*self._args)
        except BaseException as err:
            self._error = err
        self._call = self._args = None  # type: ignore[assignment]
        with self._lock:
            self._state = _FINISHED
            cleanups, self._cleanups = self._cleanups, []
        for call in cleanups:
            call()

    def deliver(self) -> None:
        """Wake the green thread that waits (called by the event loop)."""
        waiter = self._waiter
        if waiter is not None:
            waiter.switch()


class _Mailbox:
    """Finished jobs on their way back into one event loop."""

    def __init__(self, hub: Any) -> None:
        self.pid = os.getpid()
        self._done: Deque[Job] = collections.deque()
        self._signalled = False
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)
        hub.add(hub.READ, self._read_fd, self._collect, self._closed,
                lambda: None)

    def put(self, job: Job) -> None:
        """Hand a finished job over (called by pool threads)."""
        self._done.append(job)
        if not self._signalled:
            self._signalled = True
            native.poke(self._write_fd)

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
            job._pool.settle(job)
            job.deliver()

    def _closed(self, _error: Any) -> None:
        raise OSError(errno.EBADF, 'the mailbox of the pools was closed')


def _mailbox(hub: Any) -> _Mailbox:
    box = getattr(hub, 'swift_dss_mailbox', None)
    if box is None or box.pid != os.getpid():
        box = hub.swift_dss_mailbox = _Mailbox(hub)
    return box


class Pool:
    """A bounded pool of native threads for one tier of one device.

    :param name: for thread names and metrics, e.g. ``ssd``
    :param threads: jobs that run at once
    :param queue_depth: jobs that may wait
    :param after_inline: called when the caller's own thread did the work, to
        restore that thread's state (its I/O priority)
    :param told: called in the event loop with ``waited`` for a job that no
        thread took up at once, with ``full`` for one that the queue had no
        room for
    """

    def __init__(self, name: str, threads: int, queue_depth: int,
                 after_inline: Callable[[], None] = lambda: None,
                 told: Callable[[str], None] = lambda what: None) -> None:
        self.name = name
        self.threads = max(1, threads)
        self.limit = self.threads + max(0, queue_depth)
        self.lock = native.Lock()
        self._after_inline = after_inline
        self._told = told
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._queue: Any = native.SimpleQueue()
        self._started = 0
        self._outstanding = 0
        self._blocked: Deque[Any] = collections.deque()
        self.jobs = 0
        self.back_pressure = 0
        self.slow_starts = 0
        self.most_outstanding = 0

    def submit(self, call: Callable[..., Any], *args: Any) -> Job:
        """Begin work; blocks the green thread while the pool is full."""
        hub = native.hub()
        if hub is None:
            return self.inline(call, *args)
        self._renew()
        while self._outstanding >= self.limit:
            self._sleep(hub)
        job = Job(self, _mailbox(hub), call, args)
        self._enqueue(job)
        return job

    def _renew(self) -> None:
        if self._pid != os.getpid():
            self.lock = native.Lock()
            self._reset()

    def _enqueue(self, job: Job) -> None:
        self.jobs += 1
        self._outstanding += 1
        if self._outstanding > self.most_outstanding:
            self.most_outstanding = self._outstanding
        if self._started < self.threads and \
                self._started < self._outstanding:
            self._start()
        self._queue.put(job)

    def background(self, call: Callable[..., Any], *args: Any) -> None:
        """Begin work without a waiting caller; never refused, never blocks.

        Its exceptions are lost, so it MUST handle its own errors.
        """
        if native.loop() is None:
            self.run(call, *args)
            return
        self._renew()
        self._enqueue(Job(self, _mailbox(native.loop()), call, args))

    def inline(self, call: Callable[..., Any], *args: Any) -> Job:
        """Work that the caller will do itself, in :meth:`Job.wait`."""
        return Job(self, None, call, args)

    def run(self, call: Callable[..., Any], *args: Any) -> Any:
        """Do work and wait for it: :meth:`submit` and :meth:`Job.wait`."""
        if native.hub() is None:
            try:
                return call(*args)
            finally:
                self.leave_inline()
        return self.submit(call, *args).wait()

    def leave_inline(self) -> None:
        """Restore the state of a caller's thread that did the work itself."""
        self._after_inline()

    def settle(self, job: Job) -> None:
        """Book a finished job out (called by the event loop)."""
        self._outstanding -= 1
        if job.waited:
            self.slow_starts += 1
            self._told('waited')
        if self._blocked:
            self._blocked.popleft().switch()

    def snapshot(self) -> Dict[str, int]:
        """Counters since the process started, and the present load."""
        return {'jobs': self.jobs, 'outstanding': self._outstanding,
                'threads': self._started,
                'back_pressure': self.back_pressure,
                'slow_starts': self.slow_starts,
                'most_outstanding': self.most_outstanding}

    def _sleep(self, hub: Any) -> None:
        self.back_pressure += 1
        self._told('full')
        me = native.current_green()
        self._blocked.append(me)
        try:
            hub.switch()
        except BaseException:
            if me in self._blocked:
                self._blocked.remove(me)
            elif self._blocked and self._outstanding < self.limit:
                # We were chosen and then interrupted: pass the turn on.
                hub.schedule_call_global(0, self._blocked.popleft().switch)
            raise

    def _start(self) -> None:
        self._started += 1
        thread = native.Thread(
            target=_work, args=(self._queue,),
            name='dss-%s-%d' % (self.name, self._started))
        thread.daemon = True
        thread.start()


def _work(queue: Any) -> None:
    """The life of one pool thread."""
    while True:
        job = queue.get()
        job.waited = time.monotonic() - job._asked_at > _SLOW_WAIT_SECONDS
        job._execute()
        job._box.put(job)
        # Hold nothing while idle: a buffer of a megabyte, for one.
        del job
