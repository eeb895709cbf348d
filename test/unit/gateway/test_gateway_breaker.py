"""When requests may go out, with a clock and dice of our own."""

from __future__ import annotations

import random

import pytest
from support.clocks import StillClock

from swift_dss.gateway.link.breaker import Breaker, BreakerState, Trust
from swift_dss.gateway.link.retry import Backoff


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
def breaker(clock):
    return Breaker(threshold=3, base_seconds=1.0, cap_seconds=8.0,
                   clock=clock, dice=random.Random(1))


def _fail(breaker, times):
    for _ in range(times):
        assert breaker.allow()
        breaker.failed('500')


def test_it_opens_after_failures_in_a_row_only(breaker):
    _fail(breaker, 2)
    assert breaker.allow()
    breaker.succeeded()
    _fail(breaker, 2)
    assert breaker.state is BreakerState.CLOSED
    _fail(breaker, 1)
    assert breaker.state is BreakerState.OPEN
    assert not breaker.allow()
    assert breaker.last_error == '500'


def test_what_is_sure_opens_it_at_once(breaker):
    assert breaker.allow()
    breaker.failed('no such bucket', for_sure=True)
    assert breaker.state is BreakerState.OPEN and not breaker.allow()


def test_one_probe_goes_out_when_the_wait_is_over(breaker, clock):
    _fail(breaker, 3)
    assert 0.5 <= breaker.seconds_until_probe() <= 1.0
    clock.now += 1.0
    assert breaker.allow()
    assert breaker.state is BreakerState.HALF_OPEN
    assert not breaker.allow(), 'a second probe'
    breaker.succeeded()
    assert breaker.state is BreakerState.CLOSED
    assert breaker.allow()


def test_waits_grow_to_the_cap_while_probes_fail(breaker, clock):
    _fail(breaker, 3)
    waits = []
    for _ in range(6):
        waits.append(breaker.seconds_until_probe())
        clock.now += waits[-1]
        _fail(breaker, 1)
    assert waits == sorted(waits[:4]) + waits[4:]
    assert all(4.0 <= wait <= 8.0 for wait in waits[3:])


def test_a_probe_that_said_nothing_gives_its_slot_back(breaker, clock):
    _fail(breaker, 3)
    clock.now += 1.0
    assert breaker.allow()
    breaker.unknown()
    assert breaker.allow()


def test_background_work_comes_back_one_by_one(breaker, clock):
    assert breaker.background_slots(4) == 4
    _fail(breaker, 3)
    assert breaker.background_slots(4) == 0
    clock.now += 1.0
    assert breaker.allow()
    breaker.succeeded()
    slots = []
    for _ in range(5):
        slots.append(breaker.background_slots(4))
        breaker.succeeded()
    assert slots == [1, 2, 3, 4, 4]


def test_backoff_is_jittered_between_half_and_all_of_its_step():
    backoff = Backoff(2.0, 64.0, random.Random(7))
    for attempt, step in ((1, 2.0), (2, 4.0), (6, 64.0), (5000, 64.0)):
        waits = {backoff.seconds(attempt) for _ in range(50)}
        assert all(step / 2 <= wait <= step for wait in waits)
        assert len(waits) == 50


@pytest.fixture
def trust(clock):
    return Trust(threshold=3, base_seconds=1.0, cap_seconds=8.0,
                 clock=clock, dice=random.Random(1))


def test_one_that_takes_uploads_and_keeps_none_gets_trials(trust, clock):
    for _ in range(2):
        trust.unproven()
    assert not trust.is_lost and trust.slots(4) == 4
    trust.unproven()
    assert trust.is_lost and trust.slots(4) == 0
    waits = []
    for _ in range(6):
        waits.append(trust.seconds_until_trial())
        clock.now += waits[-1]
        assert trust.slots(4) == 1, 'one trial, however many workers'
        trust.unproven()
    assert waits[0] <= 1.0 and waits[-1] > 3.9 and max(waits) <= 8.0
    assert trust.proven(), 'it had been lost'
    assert not trust.is_lost and trust.slots(4) == 4
    assert trust.seconds_until_trial() == 0.0


def test_single_versions_that_s3_refuses_cost_no_trust(trust):
    for _ in range(5):
        trust.unproven()
        trust.unproven()
        assert not trust.proven()
    assert not trust.is_lost
