"""Pools' threads, which requests of both forms wait for."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace
from typing import Any, List

import pytest

from swift_dss.io import native, pools, waiting
from swift_dss.io.pools import Job, Pool
from swift_dss.io.waiting import threads


def _nothing_in_hand(pool: Pool) -> bool:
    """A caller may have its answer before the pool's books say so."""
    with pool.room:
        return not pool.outstanding


def test_a_tool_does_the_work_itself() -> None:
    undone: List[int] = []
    pool = Pool('t', 2, 2, lambda: undone.append(1))
    assert pool.run(threading.get_ident) == threading.get_ident()
    job = pool.submit(lambda: 5)
    assert job.wait() == 5 and undone == [1, 1]


def test_work_runs_in_another_thread_and_others_go_on(form: Any) -> None:
    pool = Pool('t', 2, 2)
    gate = threading.Event()
    order: List[str] = []
    slow = form.begin(lambda: (
        pool.run(gate.wait), order.append('slow')))
    form.until(lambda: pool.outstanding == 1)
    assert pool.run(threading.get_ident) != threading.get_ident()
    order.append('fast')
    gate.set()
    slow.wait()
    assert order == ['fast', 'slow']


def test_work_in_a_pool_does_the_work_of_other_pools_itself(
        form: Any) -> None:
    """Two pools that wait for each other would stand still for ever."""
    first, second = Pool('t', 1, 0), Pool('u', 1, 0)
    both = first.run(lambda: (
        threading.get_ident(), second.run(threading.get_ident),
        first.run(threading.get_ident)))
    assert len(set(both)) == 1


def test_errors_come_back(form: Any) -> None:
    pool = Pool('t', 1, 1)
    with pytest.raises(ZeroDivisionError):
        pool.run(lambda: 1 // 0)
    assert pool.run(lambda: 7) == 7


def test_never_more_than_its_threads_and_its_queue(form: Any) -> None:
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

    requests = [form.begin(pool.run, work) for _ in range(20)]
    form.until(lambda: pool.back_pressure == 15)
    assert pool.snapshot()['outstanding'] == 5
    assert told == ['full'] * 15
    waiting.sleep(0.005)
    gate.set()
    for request in requests:
        request.wait()
    form.until(lambda: _nothing_in_hand(pool))
    # At least the three that were in the queue meanwhile.
    assert told.count('waited') == pool.slow_starts >= 3
    assert max(most) <= 2 and pool.snapshot()['outstanding'] == 0
    assert pool.jobs == 20 and pool.most_outstanding == 5


def test_a_thread_that_sees_room_has_it(monkeypatch: Any) -> None:
    """Or it would wait without being counted."""
    monkeypatch.setattr(Pool, '_start', lambda pool: None)
    pool, box = Pool('t', 1, 0), threads.Mailbox()

    class Room(native.Condition):  # type: ignore[misc]
        """Another request comes as soon as one gives the lock back."""

        def __exit__(self, *error: Any) -> None:
            super().__exit__(*error)
            if pool.outstanding < pool.limit:
                pool.enqueue(Job(pool, box, int, ()))

    pool.room = Room(native.Lock())
    with threads.limit(0):
        box.admit(pool, Job(pool, box, int, ()))
    assert (pool.outstanding, pool.back_pressure) == (1, 0)
    with threads.limit(0), pytest.raises(TimeoutError):
        box.admit(pool, Job(pool, box, int, ()))
    assert (pool.outstanding, pool.back_pressure) == (1, 1)


def test_many_requests_get_each_its_own_answer(form: Any) -> None:
    pool = Pool('t', 3, 4)

    def ask(number: int) -> None:
        for turn in range(50):
            assert pool.run(divmod, number * 50 + turn, 50) == (number, turn)

    requests = [form.begin(ask, number) for number in range(30)]
    for request in requests:
        request.wait()
    form.until(lambda: _nothing_in_hand(pool))
    assert pool.jobs == 30 * 50
    assert pool.most_outstanding <= 7


def test_a_time_out_leaves_the_wait_and_not_the_work(form: Any) -> None:
    pool = Pool('t', 1, 8)
    begun, gate, done, closed = (threading.Event() for _ in range(4))
    job = pool.submit(lambda: (begun.set(), gate.wait(), done.set()))
    # Else it is cancelled, as ``queued`` is.
    form.until(begun.is_set)
    with pytest.raises(TimeoutError):
        with waiting.limit(0.01):
            job.wait()
    queued = pool.submit(lambda: 1 // 0)
    queued.when_finished(lambda: None)  # cancelled before it began
    job.when_finished(closed.set)
    assert not closed.is_set()
    gate.set()
    assert pool.run(lambda: 3) == 3
    assert done.is_set() and closed.is_set() and queued.finished


def test_a_caller_that_times_out_passes_its_turn_on(form: Any) -> None:
    pool = Pool('t', 1, 0)
    gate = threading.Event()
    first = form.begin(pool.run, gate.wait)
    form.until(lambda: pool.outstanding == 1)

    def impatient() -> str:
        try:
            with waiting.limit(0.01):
                pool.run(lambda: None)
            return 'ran'
        except TimeoutError:
            return 'left'

    second = form.begin(impatient)
    form.until(lambda: pool.back_pressure == 1)
    third = form.begin(pool.run, lambda: 'ran')
    assert second.wait() == 'left'
    gate.set()
    first.wait()
    assert third.wait() == 'ran'


def test_a_limit_inside_another_one_ends_first(form: Any) -> None:
    pool = Pool('t', 1, 0)
    gate = threading.Event()
    job = pool.submit(gate.wait)
    with waiting.limit(60):
        with pytest.raises(TimeoutError), waiting.limit(0.01):
            job.wait()
        gate.set()
        assert job.wait()


def test_a_fork_starts_threads_of_its_own(form: Any) -> None:
    pool = Pool('t', 1, 1)
    assert pool.run(os.getpid) == os.getpid()
    child = os.fork()
    if not child:
        if form.name == 'green':
            from eventlet import hubs
            hubs.use_hub()
        os._exit(0 if pool.run(os.getpid) == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_background_work_is_never_refused(form: Any) -> None:
    pool = Pool('t', 1, 0)
    done: List[int] = []
    for number in range(50):
        pool.background(done.append, number)
    pool.run(lambda: None)
    assert done == list(range(50))


class Queue:
    """A pool whose jobs end when the test says so.

    :ivar now: the time
    """

    def __init__(self, monkeypatch: Any) -> None:
        self.now = 100.0
        monkeypatch.setattr(pools, 'time', SimpleNamespace(
            monotonic=lambda: self.now))
        monkeypatch.setattr(Pool, '_start', lambda pool: None)
        self.pool = Pool('t', 8, 1000)
        self._jobs: List[Job] = []

    def ask(self, jobs: int) -> None:
        for _ in range(jobs):
            self._jobs.append(Job(self.pool, None, int, ()))
            self.pool.enqueue(self._jobs[-1])

    def end(self, jobs: int, seconds: float) -> None:
        """The next jobs end, each so long after the one before."""
        for _ in range(jobs):
            self.now += seconds
            job = self._jobs.pop(0)
            job.ended_at = self.now
            self.pool.settle(job)


@pytest.fixture
def queue(monkeypatch: Any) -> Queue:
    return Queue(monkeypatch)


def test_the_backlog_is_what_is_in_hand_at_the_pace_of_late(
        queue: Queue) -> None:
    assert queue.pool.backlog_seconds() == 0.0
    queue.ask(30)
    queue.end(10, 0.01)
    assert queue.pool.backlog_seconds() == pytest.approx(0.2)
    queue.ask(20)
    assert queue.pool.backlog_seconds() == pytest.approx(0.4)
    queue.end(40, 0.01)
    assert queue.pool.backlog_seconds() == 0.0


def test_idle_time_is_no_part_of_the_pace(queue: Queue) -> None:
    for _ in range(20):
        queue.now += 60.0
        queue.ask(1)
        queue.end(1, 0.01)
    queue.ask(5)
    assert queue.pool.backlog_seconds() == pytest.approx(0.05)


def test_the_pace_follows_the_disk(queue: Queue) -> None:
    queue.ask(200)
    queue.end(50, 0.01)
    queue.end(50, 0.1)
    assert queue.pool.backlog_seconds() == pytest.approx(10.0, rel=0.01)


def test_processes_that_share_a_disk_say_the_same_as_one(
        monkeypatch: Any) -> None:
    """The disk ends jobs of both in turn."""
    both = Queue(monkeypatch)
    both.ask(60)
    both.end(20, 0.01)
    one_of_two = Queue(monkeypatch)
    one_of_two.ask(30)
    one_of_two.end(10, 0.02)
    assert one_of_two.pool.backlog_seconds() == pytest.approx(
        both.pool.backlog_seconds())


def test_a_disk_that_hangs_is_not_taken_for_a_fast_one(
        queue: Queue) -> None:
    queue.ask(2)
    queue.end(1, 0.001)
    queue.now += 7.0
    assert queue.pool.backlog_seconds() == pytest.approx(7.0)
    fresh = Pool('u', 1, 0)
    fresh.enqueue(Job(fresh, None, int, ()))
    queue.now += 2.0
    assert fresh.backlog_seconds() == pytest.approx(2.0)


def test_threads_note_when_a_job_ends(form: Any) -> None:
    pool = Pool('t', 1, 9)
    gate = threading.Event()
    begun = time.monotonic()
    requests = [form.begin(pool.run, gate.wait) for _ in range(3)]
    form.until(lambda: pool.outstanding == 3)
    assert 0.0 < pool.backlog_seconds() <= time.monotonic() - begun
    gate.set()
    for request in requests:
        request.wait()
    form.until(lambda: _nothing_in_hand(pool))
    assert pool.backlog_seconds() == 0.0
