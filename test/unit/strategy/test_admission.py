"""Which writes come in, at what fill of the budget, and for which class."""

from __future__ import annotations

import dataclasses

import pytest

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.pressure import Backlog
from swift_dss.strategy.admission import (
    ACCEPTED, Answer, Verdict, budgets, decide, of_quorum, rank_position,
    rest_seconds, retry_seconds, room, with_uploads)

MIB = 1 << 20
GIB = 1 << 30
TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(5, 'silver', 50),
    ClassSpec(9, 'gold', 90), ClassSpec(7, 'here', 70,
                                        remote=RemoteMode.NEVER)])
IDLE = Backlog(0, 100 * MIB, 10 * MIB, 500 * MIB, 10.0 * MIB, True, 0.0,
               0.75, 2.0)


def backlog(**changes):
    return dataclasses.replace(IDLE, **changes)


def test_an_idle_link_takes_all():
    assert decide(IDLE, TABLE, {0}, MIB) == ACCEPTED


@pytest.mark.parametrize('class_id, limit', [
    (0, 100 * MIB), (5, 105 * MIB), (9, 110 * MIB)])
def test_each_class_has_its_limit_to_the_byte(class_id, limit):
    last = backlog(pending_bytes=limit - 10)
    assert decide(last, TABLE, {class_id}, 10).answer in (
        Answer.ACCEPT, Answer.THROTTLE)
    assert decide(last, TABLE, {class_id}, 11).answer is Answer.RETRY


def test_the_lowest_class_is_refused_first_and_the_top_class_last():
    """Fill it byte by byte with S3 away: the order of the refusals."""
    away = backlog(remote_up=False, drain_rate=0.0)
    refused = []
    for fill in range(95 * MIB, 115 * MIB, 64 * 1024):
        now = dataclasses.replace(away, pending_bytes=fill)
        for class_id in (9, 5, 0):
            if class_id not in refused and decide(
                    now, TABLE, {class_id}, 64 * 1024
                    ).answer is Answer.RETRY:
                refused.append(class_id)
    assert refused == [0, 5, 9]


def test_a_class_blind_twin_would_refuse_all_at_once():
    """The wrong twin of the test above: one limit for every class."""
    flat = ClassTable.of([ClassSpec(0, 'plain', 0)])
    full = backlog(pending_bytes=100 * MIB)
    assert {decide(full, flat, {class_id}, MIB).answer
            for class_id in (0, 5, 9)} == {Answer.RETRY}
    assert decide(full, TABLE, {9}, MIB).answer is not Answer.RETRY


def test_the_highest_class_speaks_for_a_mixed_object():
    full = backlog(pending_bytes=100 * MIB)
    assert decide(full, TABLE, {0, 9}, MIB).answer is Answer.THROTTLE


def test_what_is_on_its_way_counts():
    assert decide(IDLE, TABLE, {0}, MIB, 100 * MIB).answer is Answer.RETRY


def test_retry_is_the_time_in_which_the_rest_drains():
    verdict = decide(backlog(pending_bytes=100 * MIB), TABLE, {0}, 50 * MIB)
    assert verdict.answer is Answer.RETRY
    assert verdict.seconds == pytest.approx(5.0)


@pytest.mark.parametrize('changes, seconds', [
    ({'remote_up': False, 'probe_seconds': 42.0}, 42.0),
    ({'remote_up': False, 'probe_seconds': 0.0}, 15.0),
    ({'remote_refuses': True, 'probe_seconds': 42.0}, 42.0),
    ({'drain_rate': 0.0}, 15.0),
    ({'drain_rate': 1.0}, 3600.0),
    ({'drain_rate': 1e12}, 1.0)])
def test_retry_is_bounded_and_never_nothing(changes, seconds):
    assert retry_seconds(backlog(**changes), 50 * MIB) == seconds


def test_what_can_never_fit_is_refused_for_good():
    assert decide(IDLE, TABLE, {0}, 101 * MIB).answer is Answer.FULL
    assert decide(IDLE, TABLE, {9}, 101 * MIB).answer is not Answer.FULL


def test_no_room_is_for_later_if_something_will_leave():
    tight = backlog(room_bytes=MIB, pending_bytes=20 * MIB)
    assert decide(tight, TABLE, {0}, 10 * MIB).answer is Answer.RETRY
    nothing = backlog(room_bytes=MIB, pending_bytes=0)
    assert decide(nothing, TABLE, {0}, 10 * MIB).answer is Answer.FULL


def test_what_never_leaves_has_no_budget_but_needs_room():
    full = backlog(pending_bytes=200 * MIB)
    assert decide(full, TABLE, {7}, MIB) == ACCEPTED
    assert decide(backlog(room_bytes=0), TABLE, {7}, MIB
                  ).answer is Answer.FULL


def test_writes_wait_longer_the_fuller_it_is():
    slow = backlog(drain_rate=1.0)
    waits = [decide(dataclasses.replace(slow, pending_bytes=fill * MIB),
                    TABLE, {0}, 1).seconds for fill in (70, 80, 90, 99)]
    assert waits[0] == 0 and waits == sorted(waits)
    assert 0 < waits[1] < waits[3] < 2.0


def test_nobody_waits_longer_than_the_link_needs_or_the_class_allows():
    fast = backlog(pending_bytes=99 * MIB, drain_rate=1000.0 * MIB)
    assert decide(fast, TABLE, {0}, 1).seconds < 0.03
    table = ClassTable.of([dataclasses.replace(
        TABLE.spec(0), deadline_ms=100)])
    slow = backlog(pending_bytes=99 * MIB, drain_rate=1.0)
    assert decide(slow, table, {0}, 1).seconds <= 0.1


def test_an_empty_object_always_comes_in():
    assert decide(backlog(room_bytes=0, pending_bytes=1 << 50), TABLE, {0},
                  0) == ACCEPTED


def test_positions_leave_out_what_never_goes_to_s3():
    assert [rank_position(TABLE, TABLE.spec(class_id))
            for class_id in (0, 5, 9)] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize('configured, pending, free, want', [
    (0, 0, 125, (100, 25)), (40, 0, 110, (40, 10)),
    (1000, 60, 65, (100, 25)), (0, 0, 0, (0, 0))])
def test_budget_and_reserve_fit_what_there_is(configured, pending, free,
                                              want):
    assert tuple(budgets(configured, 0.25, pending, free)) == want


def test_uploads_under_way_are_in_the_room_again():
    seen = backlog(room_bytes=50, pending_bytes=10, untracked_bytes=60,
                   reserve_share=0.25, budget_bytes=48, reserve_bytes=12)
    pressure = with_uploads(seen, 40)
    assert (pressure.room_bytes, pressure.budget_bytes,
            pressure.reserve_bytes) == (
        90, 80, 20)
    assert with_uploads(seen, 1000).room_bytes == 110, 'no more than is taken'
    assert with_uploads(seen, 0) is seen
    capped = dataclasses.replace(seen, configured_bytes=50)
    assert with_uploads(capped, 40).budget_bytes == 50


def test_room_is_what_is_left_when_all_that_may_has_left():
    # 100 free; 300 of copies, of which 120 bytes are nowhere else.
    assert room(100, 300, 120, 30) == 250
    assert room(10, 120, 120, 30) == 0


def test_a_quorum_decides():
    later, sooner = Verdict(Answer.RETRY, 9.0), Verdict(Answer.RETRY, 3.0)
    assert of_quorum([later, ACCEPTED, ACCEPTED], 2) == ACCEPTED
    assert of_quorum([later, ACCEPTED, sooner], 2) == sooner
    assert of_quorum([later], 2) == later


WIDE = backlog(budget_bytes=1000 * GIB, room_bytes=2000 * GIB)


@pytest.mark.parametrize('changes, coming_bytes, seconds', [
    ({}, 0, 10.0),
    ({'budget_bytes': 100 * GIB}, 0, 75 / 16.0),
    ({'budget_bytes': 100 * GIB, 'pending_bytes': 43 * GIB}, 0, 2.0),
    ({'pending_bytes': 750 * GIB}, 0, 0.0),
    ({'pending_bytes': 990 * GIB}, 0, 0.0),
    ({'room_bytes': 32 * GIB}, 0, 2.0),
    ({'room_bytes': 0}, 0, 0.0),
    ({}, GIB, 10.0),
    ({}, 11 * GIB, 46 / 16.0),
    ({}, 12 * GIB, 0.0)])
def test_a_device_is_left_alone_while_nothing_could_fill_it(
        changes, coming_bytes, seconds):
    assert rest_seconds(dataclasses.replace(WIDE, **changes),
                        coming_bytes) == pytest.approx(seconds)


def test_what_rested_is_not_over_a_limit_after_it():
    """The fastest device, filled all the time of its rest."""
    for pending in range(0, 750, 7):
        now = dataclasses.replace(WIDE, pending_bytes=pending * GIB)
        then = dataclasses.replace(now, pending_bytes=now.pending_bytes + int(
            rest_seconds(now, 0) * 16 * GIB))
        assert decide(then, TABLE, {0}, 0) == ACCEPTED
        assert then.pending_bytes <= 750 * GIB
