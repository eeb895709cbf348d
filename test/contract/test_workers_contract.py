"""Clocks and pools, of the machine and of the simulation alike."""

from __future__ import annotations

import contextlib
import random
import threading
import time
import uuid
from concurrent.futures import Executor, Future
from typing import Any, Iterator, List

import pytest

from swift_dss.io import workers
from swift_dss.sim.world import clock as simulated

#: Longer than any clock's tick, and over soon.
SECONDS = 0.02
#: The last digits of a time of this century.
ROUNDED = 1e-6
POOL = pytest.mark.parametrize('pool', [
    workers.threads, workers.inline], ids=['threads', 'inline'])


@pytest.fixture(params=['machine', 'simulated'])
def clock(request: Any) -> Iterator[workers.Clock]:
    if request.param == 'machine':
        yield workers.Clock()
        return
    made = simulated.Clock(random.Random(1))
    with simulated.installed(made):
        yield made


# -- clocks ------------------------------------------------------------------

def test_both_times_go_on_by_as_much(clock: workers.Clock) -> None:
    wall, monotonic = clock.wall(), clock.monotonic()
    threading.Event().wait(SECONDS)
    passed = clock.monotonic() - monotonic
    assert passed >= SECONDS - ROUNDED
    assert clock.wall() - wall == pytest.approx(passed, abs=5.0)
    assert clock.wall() - wall > 0.0


def test_no_time_goes_back(clock: workers.Clock) -> None:
    seen = []
    for _ in range(50):
        seen.append((clock.monotonic(), clock.wall()))
        threading.Event().wait(0.0001)
    assert seen == sorted(seen)


def test_it_is_the_time_of_the_process(clock: workers.Clock) -> None:
    """Swift's code asks ``time`` itself."""
    assert clock.wall() <= time.time() <= clock.wall() + 5.0
    assert clock.monotonic() <= time.monotonic() <= clock.monotonic() + 5.0
    # After 2001, and not in milliseconds.
    assert 1e9 < clock.wall() < 1e10


def test_a_wait_ends_when_the_event_is_set_or_the_time_is_over(
        clock: workers.Clock) -> None:
    event = threading.Event()
    began = clock.monotonic()
    assert event.wait(SECONDS) is False
    between = clock.monotonic()
    assert between - began >= SECONDS - ROUNDED
    event.set()
    assert event.wait(1000.0) is True
    assert clock.monotonic() - between < 1000.0


@pytest.mark.parametrize('seconds', [0.0, -1.0])
def test_a_wait_for_no_time_is_over_at_once(clock: workers.Clock,
                                            seconds: float) -> None:
    began = clock.monotonic()
    assert threading.Event().wait(seconds) is False
    assert 0.0 <= clock.monotonic() - began < 5.0


def test_another_thread_can_end_a_wait(clock: workers.Clock) -> None:
    """Without an end of its own."""
    event = threading.Event()
    waits = threading.Thread(target=event.wait)
    waits.start()
    event.set()
    waits.join(30)
    assert not waits.is_alive()


def test_a_sleep_takes_its_time(clock: workers.Clock) -> None:
    began = clock.monotonic()
    time.sleep(SECONDS)
    assert clock.monotonic() - began >= SECONDS - ROUNDED


@pytest.mark.parametrize('seconds', [-1.0, -0.001])
def test_nobody_sleeps_into_the_past(clock: workers.Clock,
                                     seconds: float) -> None:
    began = clock.monotonic()
    with pytest.raises(ValueError):
        time.sleep(seconds)
    assert clock.monotonic() >= began


def test_no_two_ids_are_the_same(clock: workers.Clock) -> None:
    made = {uuid.uuid4() for _ in range(100)}
    assert len(made) == 100 and {number.version for number in made} == {4}


# -- pools -------------------------------------------------------------------

@contextlib.contextmanager
def made(pool: workers.Pool, size: int = 2) -> Iterator[Executor]:
    executor = pool(size, 'contract')
    try:
        yield executor
    finally:
        executor.shutdown()


@POOL
def test_work_gives_its_result(pool: workers.Pool) -> None:
    with made(pool) as executor:
        future = executor.submit(lambda *args, **named: (args, named), 1, 2,
                                 a=3)
        assert isinstance(future, Future)
        assert future.result(30) == ((1, 2), {'a': 3})
        assert future.done() and not future.cancelled()
        assert future.exception(30) is None and not future.cancel()


@POOL
def test_an_error_is_in_the_result_and_ends_nothing(
        pool: workers.Pool) -> None:
    error = ValueError('work')

    def fail() -> None:
        raise error
    with made(pool, 1) as executor:
        first, second = executor.submit(fail), executor.submit(lambda: 2)
        assert first.exception(30) is error
        with pytest.raises(ValueError):
            first.result(30)
        assert second.result(30) == 2


@POOL
def test_each_piece_of_work_is_done_once(pool: workers.Pool) -> None:
    done: List[int] = []
    with made(pool, 3) as executor:
        for future in [executor.submit(done.append, number)
                       for number in range(40)]:
            future.result(30)
    assert sorted(done) == list(range(40))


@POOL
def test_one_worker_keeps_the_order(pool: workers.Pool) -> None:
    done: List[int] = []
    with made(pool, 1) as executor:
        for number in range(40):
            executor.submit(done.append, number)
    assert done == list(range(40))


@POOL
def test_results_of_a_map_are_in_order(pool: workers.Pool) -> None:
    with made(pool) as executor:
        assert list(executor.map(lambda number: number * 2, range(9))) == [
            number * 2 for number in range(9)]


@POOL
def test_who_asks_is_told_at_the_end_of_work(pool: workers.Pool) -> None:
    told: List[Any] = []
    with made(pool) as executor:
        future = executor.submit(lambda: 7)
        future.add_done_callback(told.append)
    assert told == [future]


@POOL
def test_work_may_give_more_work(pool: workers.Pool) -> None:
    with made(pool, 1) as executor:
        outer = executor.submit(lambda: executor.submit(lambda: 5))
        assert outer.result(30).result(30) == 5


@POOL
def test_a_pool_that_was_shut_takes_no_work(pool: workers.Pool) -> None:
    done: List[int] = []
    with pool(2, 'contract') as executor:
        executor.submit(done.append, 1)
    # What was taken was done.
    assert done == [1]
    executor.shutdown()
    executor.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(RuntimeError):
        executor.submit(done.append, 2)
    assert done == [1]
