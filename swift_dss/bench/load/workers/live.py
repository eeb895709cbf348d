"""Users of one process, from the first objects to the clean-up."""

from __future__ import annotations

import contextlib
import resource
import sys
import threading
import time
from typing import Any, Iterator, NamedTuple, Optional

from swift_dss.bench.load.content import Contents
from swift_dss.bench.load.objects import Objects
from swift_dss.bench.load.scenario import Scenario
from swift_dss.bench.load.turns import Pace, Share, Turns
from swift_dss.bench.load.users import Users
from swift_dss.bench.load.warpcsv import Lines

#: Between two words of a process.
TICK_SECONDS = 1.0
#: After so long, a user who is at work lets another one see its answer. At
#: Python's 5 ms, that wait was a part of every tenth latency.
_SWITCH_SECONDS = 0.0005


class Plan(NamedTuple):
    """How a scenario is run.

    :param epoch_ns: ``time.time_ns()`` at 0 of ``time.monotonic()``, for
        lines of requests; None: none are wanted
    """

    scenario: Scenario
    front: Any
    pace: Pace
    processes: int
    seed: str
    keep: bool
    epoch_ns: Optional[int]


def live(plan: Plan, number: int, pipe: Any, stop: Any) -> None:
    """Do all of it; says something once a tick, whatever it is at.

    :param pipe: has ``send``, ``poll`` and ``recv``, of the parent
    :param stop: has ``is_set``: no more requests begin
    :raises LoadFailed: the first objects cannot be written
    :raises EOFError: the parent has gone
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    each, more = divmod(plan.scenario.users, plan.processes)
    lines = None if plan.epoch_ns is None else Lines(
        'dss%d' % number, plan.front.place.endpoint, plan.epoch_ns)
    users = Users(
        plan.front,
        Objects(plan.scenario, plan.front.containers, number,
                plan.processes, plan.seed),
        Contents(plan.seed), each + (number < more), lines,
        plan.pace.rate is not None)
    with _signs_of_life(pipe):
        users.prepare()
    pipe.send(('ready', None))
    start = pipe.recv()
    cpu = _cpu_seconds()
    turns = Turns(plan.pace, number, plan.processes, start, time.monotonic)
    users.begin(turns, number * each + min(number, more))
    is_done = False
    while not is_done:
        is_done = users.wait(TICK_SECONDS)
        if stop.is_set():
            turns.stop()
        while not is_done and pipe.poll():
            turns.take_over(Share(*share) for share in pipe.recv())
        if lines is not None:
            _send_lines(lines, pipe, None if is_done else
                        time.monotonic() + TICK_SECONDS)
        pipe.send(('counts', {
            'counts': users.recorder.counts(), 'end': users.ended,
            'unlisted': 0 if lines is None else lines.missing,
            'cpu_seconds': _cpu_seconds() - cpu}))
    pipe.send(('done', None))
    left = 0
    if not _keeps(pipe):
        with _signs_of_life(pipe):
            left = users.clean()
    pipe.send(('cleaned', left))


def _keeps(pipe: Any) -> bool:
    """Whether objects are to stay; turns that come before are too late."""
    word = pipe.recv()
    while isinstance(word, list):
        word = pipe.recv()
    return bool(word)


def _send_lines(lines: Lines, pipe: Any, deadline: Optional[float]) -> None:
    """Those that wait, until a time; None: all of them."""
    for text in iter(lines.take, ''):
        pipe.send(('lines', text))
        if deadline is not None and time.monotonic() > deadline:
            break


@contextlib.contextmanager
def _signs_of_life(pipe: Any) -> Iterator[None]:
    """Say something once a tick, by a thread; nothing else may speak."""
    over = threading.Event()

    def speak() -> None:
        # The parent has gone: the next word of the main thread says so.
        with contextlib.suppress(OSError):
            while not over.wait(TICK_SECONDS):
                pipe.send(('alive', None))

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
