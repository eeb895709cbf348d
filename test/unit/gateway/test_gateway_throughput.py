"""Throughput is measured while the link works, and never while it rests."""

from __future__ import annotations

import pytest
from support.clocks import StillClock

from swift_dss.gateway.link.throughput import TRAIL, Throughput, price


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
def meter(clock):
    return Throughput(clock, 1.0)


def send(meter, clock, length, seconds, operation='put_object'):
    with meter.calling(operation, length):
        clock.now += seconds


def test_an_idle_link_is_not_a_slow_one(meter, clock):
    for _ in range(5):
        send(meter, clock, 10_000_000, 1.0)
        clock.now += 3600
    assert meter.up.rate() == pytest.approx(1e7)
    assert meter.up.status()['mape'] == pytest.approx(0.0)


def test_transfers_side_by_side_share_their_time(meter, clock):
    with meter.up.busy():
        with meter.up.busy():
            clock.now += 2.0
            meter.up.moved(4_000_000)
        meter.up.moved(4_000_000)
        clock.now += 2.0
        meter.up.moved(4_000_000)
    assert meter.up.status()['bytes'] == 12_000_000
    assert [round(point[1]) for point in meter.up.status()['trail']] == [
        2_000_000, 4_000_000]


def test_a_request_that_fails_sent_nothing(meter, clock):
    with pytest.raises(OSError), meter.calling('put_object', 1000):
        clock.now += 5.0
        raise OSError('reset')
    assert meter.up.status()['bytes'] == 0
    assert meter.operations() == {'put_object': 1}


def test_drain_counts_looks_as_time_and_versions_as_gain(meter, clock):
    send(meter, clock, 0, 0.5, 'head_object')
    send(meter, clock, 1000, 1.5)
    send(meter, clock, 0, 5.0, 'get_object')
    meter.drain.moved(4000)
    assert meter.drain.rate() == pytest.approx(2000.0)


def test_what_was_predicted_is_kept_beside_what_came(meter, clock):
    for _ in range(4):
        send(meter, clock, 1000, 1.0)
    send(meter, clock, 5000, 1.0)
    assert meter.up.status()['trail'][-1][1:] == (5000.0, 1000.0)


def test_the_trail_is_bounded(meter, clock):
    for _ in range(3 * TRAIL):
        send(meter, clock, 1000, 1.0)
    assert len(meter.up.status()['trail']) == TRAIL


def test_cost_is_that_of_the_list(meter, clock):
    for _ in range(1000):
        send(meter, clock, 0, 0.0)
        send(meter, clock, 0, 0.0, 'get_object')
        send(meter, clock, 0, 0.0, 'delete_object')
    assert meter.status()['cost_dollars'] == pytest.approx(0.0054)
    assert price('complete_multipart_upload') == price('put_object')
