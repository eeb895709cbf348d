"""The link to S3, shared by class: threads that take waiting work.

:class:`FairPool` takes work in the fair order of ``strategy.wan``. Some of its
threads do only demand reads of the top class, so that no flood of others holds
all of them.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from typing import Any, Callable, Optional, Tuple

from swift_dss.gateway.link.wan import LINGER_SECONDS, RESERVE, working_for
from swift_dss.gateway.ports import TableSource
from swift_dss.io.workers import CLOCK, Clock
from swift_dss.strategy.wan import SPARE, FairQueue, Flow, top_flow


class FairPool:
    """Threads that do waiting work in fair order.

    While the top class is at work, others have only the workers that the
    reserve leaves: bytes that a server has sent cannot be held back, but the
    next request for more can.

    :param workers: threads, of which ``reserved`` only ever do demand
        reads of the top class
    :param inline: no threads: work is done before ``submit`` returns
    """

    def __init__(self, workers: int, reserved: int, table: TableSource,
                 name: str, clock: Clock = CLOCK,
                 inline: bool = False) -> None:
        self._table = table
        self._clock = clock
        self._running_top = 0
        self._running_spare = 0
        self._top_at = -LINGER_SECONDS
        self._reserved = min(reserved, workers - 1)
        self._workers = workers
        self._changed = threading.Condition()
        self._queue: FairQueue[Tuple[
            Flow, Future[Any], Callable[..., Any], Tuple[Any, ...]]] = \
            FairQueue()
        self._running = 0
        self._closed = False
        self._inline = inline
        self._threads = [] if inline else [threading.Thread(
            target=self._run, name='%s-%d' % (name, number), daemon=True)
            for number in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, flow: Flow, work: Callable[..., Any],
               *arguments: Any) -> Future[Any]:
        """Have it done for ``flow``; its result comes as a future."""
        future: Future[Any] = Future()
        if self._inline:
            with working_for(flow):
                _carry_out(future, work, arguments)
            return future
        with self._changed:
            if self._closed:
                raise RuntimeError('the pool is shut down')
            self._queue.put(flow, (flow, future, work, arguments))
            self._changed.notify()
        return future

    def counts(self) -> Tuple[int, int]:
        """(waiting, running)."""
        with self._changed:
            return len(self._queue), self._running

    def shutdown(self) -> None:
        """Do the waiting work, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                ticket = self._next()
                while ticket is None:
                    if self._closed and not len(self._queue):
                        return
                    self._changed.wait(LINGER_SECONDS if len(self._queue)
                                       else None)
                    ticket = self._next()
                flow, future, work, arguments = ticket
                is_top = self.is_top(flow)
                is_spare = flow.work in SPARE
                self._running += 1
                self._running_top += is_top
                self._running_spare += is_spare
            try:
                with working_for(flow):
                    _carry_out(future, work, arguments)
            finally:
                with self._changed:
                    self._running -= 1
                    self._running_top -= is_top
                    self._running_spare -= is_spare
                    if is_top:
                        self._top_at = self._clock.monotonic()
                    self._changed.notify_all()

    def _next(self) -> Optional[Tuple[Flow, Future[Any], Callable[..., Any],
                                      Tuple[Any, ...]]]:
        if self._running >= self._workers:
            return None
        others = self._workers - self._reserved
        if self._running_top or \
                self._clock.monotonic() - self._top_at < LINGER_SECONDS:
            others = max(1, int(self._workers * (1.0 - RESERVE)))
        scarce = self._running - self._running_top >= others and \
            not self._closed
        return self._queue.take(
            self._table(), RESERVE, only_top=scarce and self.reserves(),
            may_spare=self._closed
            or self._running_spare < max(1, self._workers // 2))

    def is_top(self, flow: Flow) -> bool:
        """Is it a demand read of the top class?"""
        return top_flow([flow], self._table()) is not None

    def reserves(self) -> bool:
        """With one class no workers are reserved."""
        return len({spec.rank for spec in
                    self._table().specs.values()}) > 1


def _carry_out(future: Future[Any], work: Callable[..., Any],
               arguments: Tuple[Any, ...]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work(*arguments)
    except Exception as err:
        # A waiting caller gets it raised; without one the log has it.
        logging.getLogger(__name__).debug('work ended: %r', err)
        future.set_exception(err)
    else:
        future.set_result(result)
