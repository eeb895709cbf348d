"""One run: containers, processes, their start at one time, and the end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import resource
import signal
import threading
import time
from dataclasses import dataclass
from multiprocessing import connection
from typing import (
    Any, Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional,
    Sequence)

from swift_dss.bench.load.content import Contents
from swift_dss.bench.load.fronts import Ask
from swift_dss.bench.load.link import Link
from swift_dss.bench.load.objects import Objects
from swift_dss.bench.load.records import Counts, merged
from swift_dss.bench.load.scenario import Scenario
from swift_dss.bench.load.turns import Pace, Turns
from swift_dss.bench.load.users import LoadFailed, Users
from swift_dss.bench.load.warpcsv import Lines

_FORK = multiprocessing.get_context('fork')
#: Between two looks at the numbers.
_TICK_SECONDS = 1.0
#: Without a word from a process, which says numbers with each tick.
_SILENCE_SECONDS = 30.0
#: From the word to the start, so that all processes have heard it.
_LEAD_SECONDS = 0.1
_TRIES = 3
_AGAIN_SECONDS = 0.25
_GONE = frozenset((404,))

#: Called about once a second with the seconds since the start and the counts.
Show = Callable[[float, Counts], None]


class Plan(NamedTuple):
    """How a scenario is run.

    :param lines: a path for each process' requests; empty: none are written
    """

    scenario: Scenario
    front: Any
    pace: Pace
    processes: int
    seed: str
    keep: bool
    lines: List[str]


@dataclass(frozen=True)
class Outcome:
    """A run.

    :param start: ``time.monotonic()`` of the first turn
    :param seconds: from the start to the end of the last request
    :param cpu_seconds: of all users' processes in that time
    :param left: objects and containers that the clean-up did not get rid of
    """

    counts: Counts
    start: float
    seconds: float
    cpu_seconds: float
    left: int
    interrupted: bool


def run(plan: Plan, show: Show, machines: Sequence[Any] = ()) -> Outcome:
    """Do all of it; blocks until the end.

    An interrupt ends the measurement early; its numbers stay.

    :param machines: :class:`~.machines.Machine` for each process that is not
        here

    :raises LoadFailed: containers or first objects cannot be written, or a
        process died
    """
    _each_container(plan, plan.front.make, plan.front.made, must=True)
    here = plan.processes - len(machines)
    workers: List[Worker] = [_Local(plan, number) for number in range(here)]
    workers += [machine.worker(plan, number)
                for number, machine in enumerate(machines, here)]
    try:
        for worker in workers:
            worker.hear('ready')
        start = time.monotonic() + _LEAD_SECONDS
        for worker in workers:
            worker.begin(start)
        interrupted = _watch(workers, start, show)
        ends = [worker.last for worker in workers]
        for worker in workers:
            worker.tell(plan.keep)
        left = sum(worker.hear('cleaned') for worker in workers)
    finally:
        for worker in workers:
            worker.end()
    if not plan.keep:
        left += _each_container(plan, plan.front.unmake, _GONE, must=False)
    return Outcome(
        merged([end['counts'] for end in ends]), start,
        max(end['end'] for end in ends) - start,
        sum(end['cpu_seconds'] for end in ends), left, interrupted)


def _watch(workers: List[Worker], start: float, show: Show) -> bool:
    """Show numbers until all are done; was there an interrupt?"""
    with _interrupts() as interrupted:
        while True:
            connection.wait([worker.pipe for worker in workers
                             if not worker.is_done], _TICK_SECONDS / 4)
            if interrupted.is_set():
                for worker in workers:
                    worker.stop()
            news = [worker.look() for worker in workers]
            for worker in workers:
                worker.refuse_silence(_SILENCE_SECONDS)
            if any(news):
                show(time.monotonic() - start, merged(
                    [worker.last['counts'] for worker in workers
                     if worker.last]))
            if all(worker.is_done for worker in workers):
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


class Worker:
    """The parent's side of one process.

    :param pipe: readable when it has said something
    :param name: of its machine, for errors
    """

    def __init__(self, pipe: Any, name: str) -> None:
        self.pipe = pipe
        self._name = name
        self.last: Dict[str, Any] = {}
        self.is_done = False
        self._heard_at = time.monotonic()

    def tell(self, message: Any) -> None:
        """Give it the next word."""
        try:
            self.pipe.send(message)
        except OSError as err:
            raise self.died() from err

    def begin(self, start: float) -> None:
        """Let its users work from ``start`` on."""
        self._heard_at = start
        self.tell(start)

    def hear(self, name: str) -> Any:
        """Wait for a word.

        :raises LoadFailed: it died, or says why it cannot go on
        """
        while True:
            try:
                said, value = self.pipe.recv()
            except (EOFError, OSError) as err:
                raise self.died() from err
            if said == 'failed':
                raise LoadFailed(value)
            if said == name:
                return value

    def refuse_silence(self, seconds: float) -> None:
        """:raises LoadFailed: it has said nothing for so long"""
        if not self.is_done and \
                time.monotonic() - self._heard_at > seconds:
            raise self._failed('has said nothing for %.0f seconds' % seconds)

    def died(self) -> LoadFailed:
        """Its process is not there any more."""
        return self._failed('died')

    def _failed(self, words: str) -> LoadFailed:
        return LoadFailed('a process of users %s%s' % (
            words, self._name and ': ' + self._name))

    def look(self) -> bool:
        """Take the numbers that it has sent; are there new ones?"""
        is_new = False
        while not self.is_done and self.pipe.poll():
            self.last = self.hear('counts')
            self._heard_at = time.monotonic()
            self.is_done = self.last['is_done']
            is_new = True
        return is_new

    def stop(self) -> None:
        """Begin no more requests."""
        raise NotImplementedError

    def end(self) -> None:
        """See that the process is not there any more."""
        raise NotImplementedError


class _Local(Worker):
    """A process of this machine."""

    def __init__(self, plan: Plan, number: int) -> None:
        mine, theirs = multiprocessing.Pipe()
        super().__init__(mine, '')
        self._stop = _FORK.Event()
        self._process = _FORK.Process(
            target=_child, args=(plan, number, theirs, self._stop),
            daemon=True)
        self._process.start()
        theirs.close()

    def stop(self) -> None:
        """Begin no more requests."""
        self._stop.set()

    def end(self) -> None:
        """See that the process is not there any more."""
        self.pipe.close()
        self._process.join(1.0)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()


def _child(plan: Plan, number: int, pipe: Any, stop: Any) -> None:
    # An interrupt is the parent's: it asks for the numbers so far.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _lines(plan, number) as lines:
            live(plan, number, pipe, stop, lines)
    except LoadFailed as err:
        pipe.send(('failed', str(err)))
    except (EOFError, BrokenPipeError):
        # The parent has gone: nobody wants the numbers.
        os._exit(1)


@contextlib.contextmanager
def _lines(plan: Plan, number: int) -> Iterator[Optional[Lines]]:
    if not plan.lines:
        yield None
        return
    with open(plan.lines[number], 'w', encoding='utf-8') as out:
        yield Lines(out, 'dss%d' % number, plan.front.place.endpoint)


def live(plan: Plan, number: int, pipe: Any, stop: Any,
         lines: Optional[Lines]) -> None:
    """Users of one process, from the first objects to the clean-up.

    :param pipe: has ``send`` and ``recv``, of the parent
    :param stop: has ``is_set``: no more requests begin
    :raises LoadFailed: the first objects cannot be written
    :raises EOFError: the parent has gone
    """
    each, more = divmod(plan.scenario.users, plan.processes)
    users = Users(
        plan.front,
        Objects(plan.scenario, plan.front.containers, number,
                plan.processes, plan.seed),
        Contents(plan.seed), each + (number < more), lines,
        plan.pace.rate is not None)
    users.prepare()
    pipe.send(('ready', None))
    start = pipe.recv()
    cpu = _cpu_seconds()
    turns = Turns(plan.pace, number, plan.processes, start, time.monotonic)
    users.begin(turns, number * each + min(number, more))
    is_done = False
    while not is_done:
        is_done = users.wait(_TICK_SECONDS)
        if stop.is_set():
            turns.stop()
        pipe.send(('counts', {
            'counts': users.recorder.counts(), 'is_done': is_done,
            'end': users.ended, 'cpu_seconds': _cpu_seconds() - cpu}))
    pipe.send(('cleaned', 0 if pipe.recv() else users.clean()))


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


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
