"""Shares of the link: weights, floors, the reserve, and fairness."""

from __future__ import annotations

import itertools
import random

import pytest

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.strategy.wan import (
    FLOORS, FairQueue, Flow, Work, plenty, shares, top_flow)

TABLE = ClassTable.of([
    ClassSpec(0, 'bulk', 0), ClassSpec(5, 'silver', 50, wan_share=4),
    ClassSpec(9, 'gold', 90, wan_share=4)])
ALL = [Flow(work, class_id) for work in Work for class_id in (0, 5, 9)]


def test_alone_a_flow_has_all():
    assert shares([Flow(Work.SCRUB, 0)], TABLE, 0.5) == {
        Flow(Work.SCRUB, 0): pytest.approx(1.0)}


def test_classes_share_by_their_weight():
    by_flow = shares([Flow(Work.UPLOAD, 0), Flow(Work.UPLOAD, 5)], TABLE, 0.5)
    assert by_flow[Flow(Work.UPLOAD, 5)] == pytest.approx(0.8)


@pytest.mark.parametrize('count', range(1, 5))
def test_every_set_of_flows_keeps_every_promise(count):
    for flows in itertools.combinations(ALL, count):
        by_flow = shares(flows, TABLE, 0.5)
        assert sum(by_flow.values()) == pytest.approx(1.0)
        top = top_flow(flows, TABLE)
        scale = 1.0
        if top is not None and len(flows) > 1:
            assert by_flow[top] >= 0.5 - 1e-9
            scale = 0.5
        for work in {flow.work for flow in flows}:
            share = sum(by_flow[flow] for flow in flows
                        if flow.work is work)
            assert share >= FLOORS[work] * scale - 1e-9, (flows, work)


def test_without_floors_and_reserve_scrub_would_all_but_starve():
    """The wrong twin: weights alone."""
    table = ClassTable.of([ClassSpec(0, 'a', 0), ClassSpec(
        9, 'b', 9, wan_share=1000)])
    flows = [Flow(Work.UPLOAD, 9), Flow(Work.SCRUB, 0)]
    assert 1 / (8 * 1000 + 1) < 0.001
    assert shares(flows, table, 0.5)[flows[1]] >= FLOORS[Work.SCRUB]


def test_with_one_class_nobody_is_the_top():
    assert top_flow([Flow(Work.FILL, 0)], ClassTable.of(
        [ClassSpec(0, 'a', 5)])) is None


def served(queue, table, rounds):
    counts = {}
    for _ in range(rounds):
        flow = queue.take(table, 0.5)
        counts[flow] = counts.get(flow, 0) + 1
        queue.put(flow, flow)
    return counts


def test_backlogged_flows_get_their_shares_over_time():
    queue = FairQueue()
    flows = [Flow(Work.UPLOAD, 0), Flow(Work.UPLOAD, 5),
             Flow(Work.BUNDLE, 0)]
    for flow in flows:
        for _ in range(3):
            queue.put(flow, flow)
    counts = served(queue, TABLE, 6000)
    want = shares(flows, TABLE, 0.5)
    for flow in flows:
        assert counts[flow] / 6000 == pytest.approx(want[flow], abs=0.02)


def test_a_newcomer_is_next_and_has_saved_up_nothing():
    queue = FairQueue()
    low, high = Flow(Work.FILL, 0), Flow(Work.FILL, 9)
    for _ in range(1000):
        queue.put(low, low)
    for _ in range(500):
        queue.take(TABLE, 0.5)
    for _ in range(100):
        queue.put(high, high)
    first = [queue.take(TABLE, 0.5) for _ in range(20)]
    assert high in first[:2]
    assert 0 < first.count(low) < 10


def test_order_inside_a_flow_is_that_of_arrival():
    queue = FairQueue()
    for number in range(50):
        queue.put(Flow(Work.UPLOAD, 0), number)
    assert [queue.take(TABLE, 0.5) for _ in range(50)] == list(range(50))


def test_reserved_workers_are_only_for_the_top_class():
    queue = FairQueue()
    queue.put(Flow(Work.FILL, 0), 'bulk')
    queue.put(Flow(Work.FILL, 5), 'silver')
    assert queue.take(TABLE, 0.5, only_top=True) is None
    queue.put(Flow(Work.FILL, 9), 'gold')
    assert queue.take(TABLE, 0.5, only_top=True) == 'gold'


def test_spare_work_waits_until_nobody_wants_the_link():
    queue = FairQueue()
    queue.put(Flow(Work.PREFETCH, 9), 'ahead')
    assert queue.take(TABLE, 0.5, may_spare=False) is None
    queue.put(Flow(Work.UPLOAD, 0), 'upload')
    assert queue.take(TABLE, 0.5) == 'upload'
    assert queue.take(TABLE, 0.5) == 'ahead'


def test_nobody_starves_whatever_comes():
    dice = random.Random(7)
    queue = FairQueue()
    flows = [flow for flow in ALL if flow.work not in (
        Work.PREFETCH, Work.SCRUB)]
    waiting, worst = {}, 0
    for step in range(5000):
        for flow in flows:
            if flow not in waiting and dice.random() < 0.9:
                queue.put(flow, flow)
                waiting[flow] = step
        taken = queue.take(TABLE, 0.5)
        if taken is not None:
            worst = max(worst, step - waiting.pop(taken))
    print('wan: longest wait of any of %d flows %d turns' % (
        len(flows), worst))
    assert worst < 200


def test_plenty_is_an_idle_link_that_answers():
    assert plenty(0, 1, 4, True)
    assert not plenty(1, 0, 4, True)
    assert not plenty(0, 2, 4, True)
    assert not plenty(0, 0, 4, False)
