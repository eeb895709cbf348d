"""Workers and bytes of the link go where the shares say."""

from __future__ import annotations

import threading
import time

import pytest
from support import wait_until
from support.clocks import StillClock

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.gateway.link import wan
from swift_dss.gateway.link.fair_pool import FairPool
from swift_dss.gateway.link.wan import Lane, Sent, fill, upload

TABLE = ClassTable.of([ClassSpec(0, 'bulk', 0), ClassSpec(9, 'gold', 90)])
PIECE = 64 * 1024


@pytest.fixture
def pool():
    made = FairPool(4, 1, lambda: TABLE, 'test')
    yield made
    made.shutdown()


def test_work_is_done_and_its_result_and_error_come_back(pool):
    assert pool.submit(fill(0), lambda: 7).result(10) == 7
    with pytest.raises(ZeroDivisionError):
        pool.submit(fill(0), lambda: 1 // 0).result(10)
    assert pool.submit(fill(0), lambda: wan.current_flow()).result(
        10) == fill(0)
    assert wan.current_flow() is None


def test_a_flood_never_holds_the_reserved_worker(pool):
    hold = threading.Event()
    flood = [pool.submit(fill(0), hold.wait) for _ in range(50)]
    wait_until(lambda: pool.counts()[1] == 3)
    assert pool.submit(fill(9), lambda: 'gold').result(10) == 'gold'
    assert pool.counts() == (47, 3)
    hold.set()
    assert all(future.result(10) for future in flood)


def test_while_the_top_class_reads_others_get_what_is_left():
    clock = StillClock()
    pool = FairPool(5, 1, lambda: TABLE, 'linger', clock)
    hold = threading.Event()
    pool.submit(fill(9), lambda: None).result(10)
    wait_until(lambda: pool.counts() == (0, 0))
    flood = [pool.submit(fill(0), hold.wait) for _ in range(20)]
    wait_until(lambda: pool.counts()[1] == 1)
    clock.now += 2 * wan.LINGER_SECONDS
    wait_until(lambda: pool.counts()[1] == 4, 30, 'the top class has gone')
    hold.set()
    assert all(future.result(10) for future in flood)
    pool.shutdown()


def test_without_a_reserve_it_would():
    """The wrong twin."""
    pool = FairPool(4, 0, lambda: TABLE, 'twin')
    hold = threading.Event()
    flood = [pool.submit(fill(0), hold.wait) for _ in range(50)]
    wait_until(lambda: pool.counts()[1] == 4)
    late = pool.submit(fill(9), lambda: 'gold')
    assert not late.done()
    hold.set()
    assert late.result(10) == 'gold' and all(
        future.result(10) for future in flood)
    pool.shutdown()


def test_with_one_class_all_workers_work():
    pool = FairPool(4, 1, ClassTable, 'plain')
    hold = threading.Event()
    for _ in range(4):
        pool.submit(upload(0), hold.wait)
    wait_until(lambda: pool.counts()[1] == 4)
    hold.set()
    pool.shutdown()


def test_shutdown_does_what_waits():
    pool = FairPool(1, 0, lambda: TABLE, 'end')
    done = []
    for number in range(20):
        pool.submit(upload(0), done.append, number)
    pool.shutdown()
    assert done == list(range(20))
    with pytest.raises(RuntimeError):
        pool.submit(upload(0), done.append, 1)


class Wire:
    """A link that carries one piece at a time, as a real one does."""

    def __init__(self):
        self._lock = threading.Lock()

    def carry(self):
        with self._lock:
            time.sleep(0.001)


def race(lane, wire, flows, pieces):
    """All flows send; pieces of each once the first has sent its all."""
    counts = dict.fromkeys(flows, 0)
    over = threading.Event()

    def send(flow):
        with wan.working_for(flow), lane.transfer():
            while not over.is_set():
                lane.let_through(PIECE)
                wire.carry()
                counts[flow] += 1
                if flow == flows[0] and counts[flow] >= pieces:
                    over.set()

    threads = [threading.Thread(target=send, args=(flow,))
               for flow in flows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return counts


def test_the_top_class_has_its_reserve_of_the_bytes():
    sent = race(Lane(lambda: TABLE), Wire(), [fill(9), fill(0)], 300)
    assert sent[fill(9)] / sum(sent.values()) >= 0.6


def test_a_flow_alone_never_waits():
    lane = Lane(lambda: TABLE)
    with wan.working_for(fill(0)), lane.transfer():
        for _ in range(10000):
            lane.let_through(PIECE)
    assert lane.waited_seconds < 1.0
    assert lane.flows() == []


def test_a_flow_that_hangs_holds_nobody_up_for_long():
    lane = Lane(lambda: TABLE)
    hang, ready = threading.Event(), threading.Event()

    def stuck():
        with wan.working_for(fill(9)), lane.transfer():
            ready.set()
            hang.wait(60)

    thread = threading.Thread(target=stuck)
    thread.start()
    ready.wait(10)
    with wan.working_for(fill(0)), lane.transfer():
        for _ in range(2000):
            lane.let_through(PIECE)
    assert lane.waited_seconds < 5.0
    hang.set()
    thread.join()


def test_who_says_no_flow_is_not_held():
    lane = Lane(lambda: TABLE)
    with lane.transfer():
        lane.let_through(1 << 30)
    assert lane.flows() == []


def test_what_is_sent_reads_like_a_file():
    sent = Sent(b'0123456789', Lane(lambda: TABLE))
    assert (len(sent), sent.read(4), sent.tell()) == (10, b'0123', 4)
    assert sent.read() == b'456789' and sent.read() == b''
    assert sent.seek(0, 2) == 10 and sent.seek(-3, 1) == 7
    assert sent.read(99) == b'789' and sent.seekable()


def test_long_answers_give_way_while_the_top_class_is_at_work():
    clock = StillClock()
    lane = Lane(lambda: TABLE, clock)
    with wan.working_for(fill(0)):
        assert lane.most_at_once() is None, 'nobody else is there'
    with wan.working_for(fill(9)), lane.transfer():
        assert lane.most_at_once() is None, 'it is the top class itself'
        with wan.working_for(fill(0)):
            assert lane.most_at_once() == wan.SLICE_BYTES
    with wan.working_for(fill(0)):
        assert lane.most_at_once() == wan.SLICE_BYTES, 'it may come again'
        clock.now += wan.LINGER_SECONDS
        assert lane.most_at_once() is None
    assert lane.most_at_once() is None, 'who says no flow is not held'


def test_one_slice_is_under_way_at_a_time():
    lane = Lane(lambda: TABLE)
    order, asked = [], threading.Event()

    def ask():
        with wan.working_for(fill(0)):
            asked.set()
            lane.take_turn()
            order.append('second')
            lane.end_turn()

    with wan.working_for(fill(9)), lane.transfer():
        with wan.working_for(fill(0)):
            lane.take_turn()
        thread = threading.Thread(target=ask)
        thread.start()
        asked.wait(10)
        order.append('first')
        lane.end_turn()
        thread.join(60)
    assert order == ['first', 'second']


def test_a_slice_that_hangs_holds_up_the_next_one_for_a_while(monkeypatch):
    monkeypatch.setattr(wan, 'TURN_SECONDS', 0.05)
    lane = Lane(lambda: TABLE)
    with wan.working_for(fill(9)), lane.transfer(), \
            wan.working_for(fill(0)):
        lane.take_turn()
        lane.take_turn()
        lane.end_turn()
        lane.end_turn()
