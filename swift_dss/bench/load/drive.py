"""One run: containers, processes, their start at one time, and the end."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from dataclasses import dataclass
from typing import (
    Any, Callable, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence)

from swift_dss.bench.load.fronts import Ask
from swift_dss.bench.load.link import Link
from swift_dss.bench.load.records import Counts, merged
from swift_dss.bench.load.users import LoadFailed
from swift_dss.bench.load.warpcsv import Numbered
from swift_dss.bench.load.workers.here import Here
from swift_dss.bench.load.workers.live import Plan
from swift_dss.bench.load.workers.shares import Shares
from swift_dss.bench.load.workers.worker import Loss, Worker, each_look

#: Between two looks at the numbers.
_TICK_SECONDS = 1.0
#: From the word to the start, so that all processes have heard it.
_LEAD_SECONDS = 0.1
_TRIES = 3
_AGAIN_SECONDS = 0.25
_GONE = frozenset((404,))

#: Called about once a second with the seconds since the start and the counts.
Show = Callable[[float, Counts], None]


class Part(NamedTuple):
    """One process of a run.

    :param machine: its specification; ``here``
    :param counts: None: none came
    :param turns: that it was to have, without those that others took over;
        None: as many as it could
    :param unlisted: requests that are not in the lines of requests
    :param loss: None: it was there until the end
    :param is_measured: it has all of its turns behind it
    :param is_given: it was lost, and others have taken over its turns
    """

    machine: str
    number: int
    counts: Optional[Counts]
    turns: Optional[int]
    cpu_seconds: float
    unlisted: int
    loss: Optional[Loss]
    is_measured: bool
    is_given: bool = False


@dataclass(frozen=True)
class Outcome:
    """A run.

    :param start: ``time.monotonic()`` of the first turn
    :param seconds: from the start to the end of the last request
    :param left: objects and containers that the clean-up did not get rid
        of, but for objects of processes that were lost
    :param is_cleaned: False: an interrupt ended the clean-up, or came before
    """

    parts: List[Part]
    start: float
    seconds: float
    left: int
    interrupted: bool
    is_cleaned: bool

    @property
    def counts(self) -> Counts:
        """Of all processes."""
        return merged([part.counts for part in self.parts if part.counts])


def run(plan: Plan, show: Show, machines: Sequence[Any] = (),
        lines: Optional[Numbered] = None) -> Outcome:
    """Do all of it; blocks until the end.

    An interrupt ends the measurement early; a second one ends all that is
    still at work, and the clean-up. The numbers stay. So do those of a process
    that is lost, until its last word, and the others go on; at a rate they
    take over its turns.

    :param machines: :class:`~.workers.machines.Machine` for each process
        that is not here
    :param lines: takes each request, if the plan wants them

    :raises LoadFailed: containers or first objects cannot be written, a
        process is lost before the measurement, or all are and no numbers came
    """
    _each_container(plan, plan.front.make, plan.front.made, must=True)
    here = plan.processes - len(machines)
    workers: List[Worker] = [Here(plan, number) for number in range(here)]
    workers += [machine.worker(plan, number)
                for number, machine in enumerate(machines, here)]
    try:
        for worker in workers:
            worker.lines = lines
        for _ in each_look(workers, 'ready'):
            _refuse_losses(workers)
        _refuse_losses(workers)
        start = time.monotonic() + _LEAD_SECONDS
        shares = Shares(plan.pace, plan.processes, plan.scenario.users,
                        start)
        for worker in workers:
            worker.tell(start)
        left, interrupted, is_cleaned = 0, False, False
        try:
            interrupted = _watch(workers, shares, start, show)
            if not any(worker.counts for worker in workers):
                _refuse_losses(workers)
            left = _clean(workers, plan)
            is_cleaned = True
        except KeyboardInterrupt:
            # Nobody waits for the end; figures that came are told.
            interrupted = True
            if not any(worker.counts for worker in workers):
                raise
    finally:
        _end(workers)
    return Outcome([_part(worker, shares) for worker in workers], start, max(
        worker.words['counts']['end'] for worker in workers
        if worker.counts) - start, left, interrupted, is_cleaned)


def _clean(workers: List[Worker], plan: Plan) -> int:
    """Delete all that the run wrote; how many did not go."""
    for worker in workers:
        worker.tell(plan.keep)
    for _ in each_look(workers, 'cleaned'):
        pass
    for worker in workers:
        worker.part()
    left: int = sum(worker.words.get('cleaned', 0) for worker in workers)
    if not plan.keep:
        left += _each_container(plan, plan.front.unmake, _GONE, must=False)
    return left


def _end(workers: List[Worker]) -> None:
    """End all at once: one that stands still takes a while."""
    threads = [threading.Thread(target=worker.end) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _part(worker: Worker, shares: Shares) -> Part:
    told = worker.words.get('counts', {})
    # One that has cleaned up ends at once; that is no loss.
    loss = None if 'cleaned' in worker.words else worker.loss
    return Part(
        worker.machine, worker.number, worker.counts,
        shares.turns(worker.number),
        told.get('cpu_seconds', 0.0), told.get('unlisted', 0), loss,
        'done' in worker.words, shares.is_given(worker.number))


def _refuse_losses(workers: List[Worker]) -> None:
    for worker in workers:
        if worker.loss is not None:
            raise worker.failed()


def _watch(workers: List[Worker], shares: Shares, start: float,
           show: Show) -> bool:
    """Show numbers until all are done; was there an interrupt?"""
    told = start - _TICK_SECONDS
    with _interrupts() as interrupted:
        for is_new in each_look(workers, 'done'):
            if interrupted.is_set():
                for worker in workers:
                    worker.stop()
            else:
                shares.give_on(workers)
            now = time.monotonic()
            if is_new and now - told > _TICK_SECONDS / 4:
                show(now - start, merged([
                    worker.counts for worker in workers if worker.counts]))
                told = now
            for worker in workers:
                worker.reassure()
        return interrupted.is_set()


@contextlib.contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """The first interrupt is an event, as an exception would cut what a
    process says; the second is one as always."""
    event = threading.Event()

    def interrupt(number: int, frame: Any) -> None:  # noqa: ARG001
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


def _each_container(plan: Plan, verb: Callable[[str], Any],
                    fine: FrozenSet[int], must: bool) -> int:
    """Make or unmake all containers, some at a time.

    :param fine: statuses other than 2xx that are no failure
    :param must: each has to work
    :returns: how many did not
    """
    names: queue.Queue[str] = queue.Queue()
    for name in plan.front.all_containers:
        names.put(name)
    failures: List[str] = []

    def work() -> None:
        link = Link(plan.front.place)
        with contextlib.suppress(queue.Empty):
            while not (must and failures):
                name = names.get_nowait()
                error = _try(link, verb(name), fine)
                if error:
                    failures.append('%s: %s' % (name, error))
        link.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(
        plan.scenario.container_concurrency,
        len(plan.front.all_containers)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if must and failures:
        raise LoadFailed('container ' + failures[0])
    return len(failures)


def _try(link: Link, ask: Ask, fine: FrozenSet[int]) -> str:
    """'' or why it did not work."""
    error = ''
    for number in range(_TRIES):
        # A container's database hears of the last DELETE a moment later.
        time.sleep(number * _AGAIN_SECONDS)
        answer = link.send(ask)
        if answer.status // 100 == 2 or answer.status in fine:
            return ''
        error = answer.error or 'status %d' % answer.status
    return error
