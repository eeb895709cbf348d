"""Bounded pools of native threads that requests can wait for.

One pool serves one tier of one device, so that a slow disk delays only
requests to that disk. Work is a function and its arguments; the caller, a
green thread or a thread, sleeps until the answer is there, while others go
on. ``io.waiting`` says how it waits.

Rules for work in a pool thread: no green primitive, no logger but a manager's,
no reference to the request. It may block.

- Threads start when they are first needed, after a fork too.
- At most ``threads`` jobs run and ``queue_depth`` wait. Past that the *caller*
  is put to sleep, never an event loop.
- Who serves no request (daemons, tools, threads of other pools) runs the work
  itself.
"""

from __future__ import annotations

import collections
import os
import time
from typing import Any, Callable, Deque, Dict, List, Optional

from swift_dss.io import native, waiting
from swift_dss.io.waiting.threads import Mailbox

_QUEUED, _RUNNING, _FINISHED, _CANCELLED = range(4)
_SLOW_WAIT_SECONDS = 0.001
#: Share of the newest job in the mean time between two.
_NEWEST = 0.1


class Job:
    """One piece of work on its way through a pool."""

    __slots__ = ('_call', '_args', 'pool', '_box', '_state', '_value',
                 '_error', 'waiter', '_cleanups', '_lock', 'asked_at',
                 'ended_at', 'waited')

    def __init__(self, pool: Pool, box: Optional[Mailbox],
                 call: Callable[..., Any], args: Any) -> None:
        self._call = call
        self._args = args
        self.pool = pool
        self._box = box
        self._state = _QUEUED
        self._value: Any = None
        self._error: Optional[BaseException] = None
        #: The mailbox's own: how the caller is woken.
        self.waiter: Any = None
        self._cleanups: List[Callable[[], None]] = []
        self._lock = pool.lock
        self.asked_at = self.ended_at = time.monotonic()
        #: True if no thread took it up at once (``_SLOW_WAIT_SECONDS``).
        self.waited = False

    @property
    def finished(self) -> bool:
        """True if it will not run any more."""
        return self._state >= _FINISHED

    def wait(self) -> Any:
        """Return the work's result; raise its exception.

        Blocks the caller alone. May be left by an exception (a time-out,
        say): the work then goes on, see :meth:`when_finished`.
        """
        box = self._box
        if box is None:
            self._execute()
            self.pool.leave_inline()
        else:
            while self._state < _FINISHED:
                box.wait(self)
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


class Pool:
    """A bounded pool of native threads for one tier of one device.

    :param name: for thread names and metrics, e.g. ``ssd``
    :param threads: jobs that run at once
    :param queue_depth: jobs that may wait
    :param after_inline: called when the caller's own thread did the work, to
        restore that thread's state (its I/O priority)
    :param told: called with ``waited`` for a job that no thread took up at
        once, with ``full`` for one that the queue had no room for

    Its books are kept by one mailbox at a time: an event loop's thread, or
    all threads under ``room``.
    """

    def __init__(self, name: str, threads: int, queue_depth: int,
                 after_inline: Callable[[], None] = lambda: None,
                 told: Callable[[str], None] = lambda event: None) -> None:
        self.name = name
        self.threads = max(1, threads)
        self.limit = self.threads + max(0, queue_depth)
        self._after_inline = after_inline
        self._told = told
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self.lock = native.Lock()
        self.room: Any = native.Condition(native.Lock())
        self._queue: Any = native.SimpleQueue()
        self._started = 0
        self.outstanding = 0
        self.blocked: Deque[Any] = collections.deque()
        self.jobs = 0
        self.back_pressure = 0
        self.slow_starts = 0
        self.most_outstanding = 0
        #: Mean seconds from the end of a job to that of the next, while
        #: there are jobs; 0 before the first.
        self._pace = 0.0
        #: When the last job ended, or the pool was last without any.
        self._since = 0.0

    def submit(self, call: Callable[..., Any], *args: Any) -> Job:
        """Begin work; blocks the caller while the pool is full."""
        box = waiting.mailbox()
        if box is None:
            return self.inline(call, *args)
        self._renew()
        job = Job(self, box, call, args)
        box.admit(self, job)
        return job

    def _renew(self) -> None:
        if self._pid != os.getpid():
            self._reset()

    def enqueue(self, job: Job) -> None:
        """Book a job in and give it to a thread (called by mailboxes)."""
        self.jobs += 1
        if not self.outstanding:
            self._since = max(self._since, job.asked_at)
        self.outstanding += 1
        if self.outstanding > self.most_outstanding:
            self.most_outstanding = self.outstanding
        if self._started < self.threads and \
                self._started < self.outstanding:
            self._start()
        self._queue.put(job)

    def background(self, call: Callable[..., Any], *args: Any) -> None:
        """Begin work without a waiting caller; never refused, never blocks.

        Its exceptions are lost, so it MUST handle its own errors.
        """
        box = waiting.mailbox(waits=False)
        if box is None:
            self.run(call, *args)
            return
        self._renew()
        box.enqueue(self, Job(self, box, call, args))

    def inline(self, call: Callable[..., Any], *args: Any) -> Job:
        """Work that the caller will do itself, in :meth:`Job.wait`."""
        return Job(self, None, call, args)

    def run(self, call: Callable[..., Any], *args: Any) -> Any:
        """Do work and wait for it: :meth:`submit` and :meth:`Job.wait`."""
        box = waiting.mailbox()
        if box is None:
            try:
                return call(*args)
            finally:
                self.leave_inline()
        self._renew()
        job = Job(self, box, call, args)
        box.admit(self, job)
        return job.wait()

    def leave_inline(self) -> None:
        """Restore the state of a caller's thread that did the work itself."""
        self._after_inline()

    def settle(self, job: Job) -> None:
        """Book a finished job out (called by mailboxes).

        A caller that found its job finished may be a moment ahead of this.
        """
        self.outstanding -= 1
        if job.ended_at > self._since:
            took = job.ended_at - self._since
            self._pace += (took - self._pace) * (
                _NEWEST if self._pace else 1.0)
            self._since = job.ended_at
        if job.waited:
            self.slow_starts += 1
            self._told('waited')

    def backlog_seconds(self) -> float:
        """How long the jobs in hand will take, about: the wait of the next.

        By Little's law: as many as there are, running and queued, times the
        mean time from the end of one to the end of the next while there
        were any. Threads that work side by side, and processes that share
        the disk, are in that mean: of two processes each has half of the
        jobs and sees twice the time. A disk that hangs ends no job, so the
        answer is no less than the time since the last end. 0 if there are
        none.
        """
        if not self.outstanding:
            return 0.0
        return max(self.outstanding * self._pace,
                   time.monotonic() - self._since)

    def note_full(self) -> None:
        """The caller has to wait for room (called by mailboxes)."""
        self.back_pressure += 1
        self._told('full')

    def snapshot(self) -> Dict[str, int]:
        """Counters since the process started, and the present load."""
        return {'jobs': self.jobs, 'outstanding': self.outstanding,
                'threads': self._started,
                'back_pressure': self.back_pressure,
                'slow_starts': self.slow_starts,
                'most_outstanding': self.most_outstanding}

    def _start(self) -> None:
        self._started += 1
        thread = native.Thread(
            target=_work, args=(self._queue,),
            name='dss-%s-%d' % (self.name, self._started))
        thread.daemon = True
        thread.start()


def _work(queue: Any) -> None:
    """The life of one pool thread."""
    waiting.threads.work()
    while True:
        job = queue.get()
        job.waited = time.monotonic() - job.asked_at > _SLOW_WAIT_SECONDS
        job._execute()
        job.ended_at = time.monotonic()
        job._box.put(job)
        # Hold nothing while idle: a buffer of a megabyte, for one.
        del job
