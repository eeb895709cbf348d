"""Native threads that green threads wait for."""

from __future__ import annotations

import os
import threading
from typing import Any, Iterator, List

import eventlet
import pytest
from eventlet import hubs

from swift_dss.io import native
from swift_dss.io.pools import Pool


@pytest.fixture
def green(monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setattr(native, 'loop', hubs.get_hub)
    yield


def test_without_a_loop_the_caller_does_the_work() -> None:
    undone: List[int] = []
    pool = Pool('t', 2, 2, lambda: undone.append(1))
    assert pool.run(threading.get_ident) == threading.get_ident()
    job = pool.submit(lambda: 5)
    assert job.wait() == 5 and undone == [1, 1]


def test_work_runs_in_another_thread_and_others_go_on(
        green: None) -> None:
    pool = Pool('t', 2, 2)
    gate = threading.Event()
    order: List[str] = []
    waiting = eventlet.spawn(lambda: (
        pool.run(gate.wait), order.append('slow')))
    eventlet.sleep(0)
    assert pool.run(threading.get_ident) != threading.get_ident()
    order.append('fast')
    gate.set()
    waiting.wait()
    assert order == ['fast', 'slow']


def test_errors_come_back(green: None) -> None:
    pool = Pool('t', 1, 1)
    with pytest.raises(ZeroDivisionError):
        pool.run(lambda: 1 // 0)
    assert pool.run(lambda: 7) == 7


def test_never_more_than_its_threads_and_its_queue(green: None) -> None:
    told: List[str] = []
    pool = Pool('t', 2, 3, told=told.append)
    gate = threading.Event()
    running: List[int] = []
    most: List[int] = []

    def work() -> None:
        running.append(1)
        most.append(len(running))
        gate.wait()
        running.pop()

    greens = [eventlet.spawn(pool.run, work) for _ in range(20)]
    eventlet.sleep(0)
    assert pool.snapshot()['outstanding'] <= 5
    assert pool.back_pressure == 15
    assert told == ['full'] * 15
    eventlet.sleep(0.005)
    gate.set()
    for one in greens:
        one.wait()
    # The three that were in the queue meanwhile, at least.
    assert told.count('waited') == pool.slow_starts >= 3
    assert max(most) <= 2 and pool.snapshot()['outstanding'] == 0
    assert pool.jobs == 20 and pool.most_outstanding == 5


def test_a_time_out_leaves_the_wait_and_not_the_work(
        green: None) -> None:
    pool = Pool('t', 1, 8)
    gate, done, closed = (threading.Event() for _ in range(3))
    job = pool.submit(lambda: (gate.wait(), done.set()))
    with pytest.raises(eventlet.Timeout):
        with eventlet.Timeout(0.01):
            job.wait()
    queued = pool.submit(lambda: 1 // 0)
    queued.when_finished(lambda: None)  # cancelled before it began
    job.when_finished(closed.set)
    assert not closed.is_set()
    gate.set()
    assert pool.run(lambda: 3) == 3
    assert done.is_set() and closed.is_set() and queued.finished


def test_a_sleeper_that_times_out_passes_its_turn_on(
        green: None) -> None:
    pool = Pool('t', 1, 0)
    gate = threading.Event()
    first = eventlet.spawn(pool.run, gate.wait)
    eventlet.sleep(0)

    def impatient() -> str:
        with eventlet.Timeout(0.01, False):
            pool.run(lambda: None)
            return 'ran'
        return 'left'

    second = eventlet.spawn(impatient)
    third = eventlet.spawn(pool.run, lambda: 'ran')
    assert second.wait() == 'left'
    gate.set()
    first.wait()
    assert third.wait() == 'ran'


def test_a_fork_starts_threads_of_its_own(green: None) -> None:
    pool = Pool('t', 1, 1)
    assert pool.run(os.getpid) == os.getpid()
    child = os.fork()
    if not child:
        hubs.use_hub()
        os._exit(0 if pool.run(os.getpid) == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_background_work_is_never_refused(green: None) -> None:
    pool = Pool('t', 1, 0)
    done: List[int] = []
    for number in range(50):
        pool.background(done.append, number)
    pool.run(lambda: None)
    assert done == list(range(50))
