"""What did not work is left alone, longer each time."""

from __future__ import annotations

from swift_dss.strategy.pauses import Pauses


def tries(pauses, until, step=1.0, key='one'):
    """When a key may be tried by who asks all the time."""
    return [now for now in (step * number
                            for number in range(int(until / step)))
            if pauses.may_try(key, now)]


def test_each_pause_is_twice_as_long_up_to_a_cap():
    assert tries(Pauses(10.0, 35.0, 5), 140) == [0, 10, 30, 65, 100, 135]


def test_keys_do_not_wait_for_one_another():
    pauses = Pauses(10.0, 35.0, 5)
    assert pauses.may_try('one', 0.0) and pauses.may_try('two', 1.0)
    assert not pauses.may_try('one', 2.0)
    assert not pauses.may_try('two', 10.5)


def test_what_worked_begins_anew():
    pauses = Pauses(10.0, 35.0, 5)
    assert tries(pauses, 20) == [0, 10]
    pauses.worked('one')
    pauses.worked('never tried')
    assert tries(pauses, 20) == [0, 10]


def test_what_was_tried_longest_ago_is_forgotten_first():
    pauses = Pauses(10.0, 35.0, 3)
    for number in range(3):
        assert pauses.may_try(number, number)
    assert pauses.may_try(0, 10.0)
    assert pauses.may_try(3, 10.1)
    assert len(pauses) == 3
    assert not pauses.may_try(0, 10.2) and not pauses.may_try(2, 10.2)
    assert pauses.may_try(1, 10.2)
