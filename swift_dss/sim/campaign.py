"""Seed after seed, until told to stop, on every processor.

Each process takes the seeds that are its own, so nothing is shared and a
campaign can be continued by its first seed.
"""

from __future__ import annotations

import multiprocessing
import queue
import time
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional

from swift_dss.sim.runs import plan, run

#: How long a process may be silent before it is taken for dead: many times
#: what one seed needs on a busy machine.
_SILENT_SECONDS = 300.0


@dataclass
class Failed:
    """A seed whose run broke a promise."""

    seed: int
    violation: str


@dataclass
class Sum:
    """What a campaign has seen so far."""

    seeds: int = 0
    seconds: float = 0.0
    failed: List[Failed] = field(default_factory=list)


def campaign(first: int, seeds: Optional[int], seconds: Optional[float],
             jobs: int, nodes: int, steps: int, most_failures: int,
             progress: Callable[[Sum], None]) -> Sum:
    """Run seeds from ``first`` on; blocks until it is over.

    :param seeds: how many; None runs until ``seconds`` are over, or for ever
    :param most_failures: stop after so many seeds that fail
    :param progress: told about once a second
    """
    began = time.monotonic()
    total = Sum()
    said: multiprocessing.Queue[Any] = multiprocessing.Queue()
    stop = multiprocessing.Event()
    workers = [multiprocessing.Process(
        target=_work, args=(said, stop, first + number, jobs,
                            None if seeds is None else first + seeds,
                            nodes, steps), daemon=True)
        for number in range(jobs)]
    for worker in workers:
        worker.start()
    told = began
    try:
        while any(worker.is_alive() for worker in workers) or \
                not said.empty():
            _count_one(said, total)
            now = time.monotonic()
            total.seconds = now - began
            if len(total.failed) >= most_failures or (
                    seconds is not None and total.seconds > seconds):
                stop.set()
            if now - told >= 1.0:
                told = now
                progress(total)
    finally:
        stop.set()
        for worker in workers:
            worker.join(_SILENT_SECONDS)
            worker.terminate()
    total.failed.sort(key=lambda one: one.seed)
    crashed = [worker.exitcode for worker in workers if worker.exitcode]
    if crashed:
        raise RuntimeError('%d of %d processes of the campaign ended with '
                           'exit code %s' % (len(crashed), len(workers),
                                             crashed[0]))
    return total


def _count_one(said: Any, total: Sum) -> None:
    """Wait up to a second for the outcome of a seed, and count it."""
    try:
        seed, violation = said.get(timeout=1.0)
    except queue.Empty:
        return
    total.seeds += 1
    if violation:
        total.failed.append(Failed(seed, violation))


def _work(said: Any, stop: Any, seed: int, stride: int,
          end: Optional[int], nodes: int, steps: int) -> None:
    while not stop.is_set() and (end is None or seed < end):
        said.put((seed, run(plan(seed, nodes, steps), nodes,
                            seed).violation))
        seed += stride
