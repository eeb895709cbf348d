"""Seed after seed, until told to stop, on every processor.

Each process takes the next free seed, so a campaign ends with all seeds below
one number done, and can be continued from there.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import queue
import signal
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, List, Optional, Set

from swift_dss.sim.coverage import Coverage, Transition
from swift_dss.sim.runs import plan, run

#: Python looks for garbage after so many new objects.
_OBJECTS = 50000


@dataclass
class Failed:
    """A seed whose run broke a promise.

    :param bytes_lost: of acknowledged versions, as far as bytes were lost
    """

    seed: int
    violation: str
    bytes_lost: int


@dataclass
class Sum:
    """The results of a campaign so far.

    :param first: its first seed
    :param cpu_seconds: of its processes, while they ran seeds
    :param interrupted: it was told to stop
    """

    first: int
    seeds: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    interrupted: bool = False
    failed: List[Failed] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def following(self) -> int:
        """The seed from which the campaign goes on."""
        return self.first + self.seeds

    @property
    def rate(self) -> float:
        """Seeds a second."""
        return self.seeds / max(1e-9, self.seconds)

    @property
    def core_rate(self) -> float:
        """Seeds in each second of a processor."""
        return self.seeds / max(1e-9, self.cpu_seconds)

    @property
    def bytes_lost(self) -> int:
        """Of acknowledged versions."""
        return sum(run.bytes_lost for run in self.failed)


@dataclass
class _Said:
    """A process's report on a seed."""

    seed: int
    violation: str
    bytes_lost: int
    cpu_seconds: float
    coverage: Coverage


def campaign(first: int, seeds: Optional[int], seconds: Optional[float],
             jobs: int, nodes: int, steps: int, most_failures: int,
             progress: Callable[[Sum], None]) -> Sum:
    """Run seeds from ``first`` on; blocks until it is over.

    SIGINT and SIGTERM end it: seeds that have begun are finished first.

    :param seeds: how many; None runs until ``seconds`` are over, or for ever
    :param most_failures: stop after so many seeds that fail
    :param progress: told about once a second
    """
    began = time.monotonic()
    total = Sum(first)
    told = began
    # multiprocessing starts a process with the first of its objects.
    with _ended_by_signals(total) as stop:
        said: multiprocessing.Queue[_Said] = multiprocessing.Queue()
        following = multiprocessing.Value('q', first)
        workers = [multiprocessing.Process(
            target=_work, args=(said, stop, following,
                                None if seeds is None else first + seeds,
                                nodes, steps), daemon=True)
            for _ in range(jobs)]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers) or \
                not said.empty():
            _count_one(said, total)
            now = time.monotonic()
            total.seconds = now - began
            if total.interrupted or len(total.failed) >= most_failures or (
                    seconds is not None and total.seconds > seconds):
                stop.set()
            if now - told >= 1.0:
                told = now
                progress(total)
    total.failed.sort(key=lambda run: run.seed)
    crashed = [worker.exitcode for worker in workers if worker.exitcode]
    if crashed:
        raise RuntimeError('%d of %d processes of the campaign ended with '
                           'exit code %s' % (len(crashed), len(workers),
                                             crashed[0]))
    return total


@contextlib.contextmanager
def _ended_by_signals(total: Sum) -> Iterator[Any]:
    """Signals interrupt the campaign; an error stops its processes.

    :returns: the event that does so
    """
    def interrupt(*_: Any) -> None:
        # No more: the loop may be inside ``stop`` just now.
        total.interrupted = True

    before = [(number, signal.signal(number, interrupt))
              for number in (signal.SIGINT, signal.SIGTERM)]
    stop = multiprocessing.Event()
    try:
        yield stop
    finally:
        stop.set()
        for number, handler in before:
            signal.signal(number, handler)


def _count_one(said: Any, total: Sum) -> None:
    """Wait up to a second for the outcome of a seed, and count it."""
    try:
        outcome: _Said = said.get(timeout=1.0)
    except queue.Empty:
        return
    total.seeds += 1
    total.cpu_seconds += outcome.cpu_seconds
    total.coverage.add(outcome.coverage)
    if outcome.violation:
        total.failed.append(Failed(outcome.seed, outcome.violation,
                                   outcome.bytes_lost))


def _work(said: Any, stop: Any, following: Any, end: Optional[int],
          nodes: int, steps: int) -> None:
    """Run seeds until there is none; the parent is told to stop, not we."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    known: Set[Transition] = set()
    # Imported modules stay for ever, and a run leaves little behind.
    gc.freeze()
    gc.set_threshold(_OBJECTS)
    while not stop.is_set():
        with following.get_lock():
            seed = following.value
            if end is not None and seed >= end:
                return
            following.value = seed + 1
        began = time.process_time()
        outcome = run(plan(seed, nodes, steps), nodes, seed)
        # Do not pass on the results that this process has already reported.
        new = outcome.coverage.transitions - known
        known |= new
        outcome.coverage.transitions = new
        said.put(_Said(seed, outcome.violation, outcome.bytes_lost,
                       time.process_time() - began, outcome.coverage))
