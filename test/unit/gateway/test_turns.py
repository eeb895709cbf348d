"""What is packed waits for its turn after an outage, and never for S3."""

from __future__ import annotations

import threading

import pytest
from support import wait_until

from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.turns import Baton, Turns


class Sender:
    """A thread that takes a turn and keeps it until it may end."""

    def __init__(self, turns):
        self.has_turn, self.may_end = threading.Event(), threading.Event()
        self._turns = turns
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        with self._turns.take():
            self.has_turn.set()
            self.may_end.wait(60)

    def end(self):
        self.may_end.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


class Rig:
    """A breaker after an outage: one may send."""

    def __init__(self):
        self.breaker = Breaker()
        self.stopping = threading.Event()
        self.turns = Turns(self.breaker, 3, self.stopping)
        self.asked = 0
        self.breaker.ramp()
        inner = self.breaker.background_slots

        def counted(limit):
            self.asked += 1
            return inner(limit)
        self.breaker.background_slots = counted

    def two(self):
        """One that sends, and one that has asked for its turn twice."""
        first = Sender(self.turns)
        assert first.has_turn.wait(60)
        before = self.asked
        second = Sender(self.turns)
        wait_until(lambda: self.asked >= before + 2, 60)
        assert not second.has_turn.is_set()
        return first, second


@pytest.fixture
def rig():
    made = Rig()
    yield made
    made.stopping.set()


def test_the_next_sends_when_the_first_is_done(rig):
    first, second = rig.two()
    first.end()
    assert second.has_turn.wait(60)
    second.end()


def test_more_send_side_by_side_when_s3_has_answered(rig):
    first, second = rig.two()
    rig.breaker.succeeded()
    assert second.has_turn.wait(60)
    first.end()
    second.end()


@pytest.mark.parametrize('verb', ['open', 'stop'])
def test_nobody_waits_for_an_s3_that_is_away_or_an_end(rig, verb):
    first, second = rig.two()
    if verb == 'open':
        rig.breaker.failed('away', for_sure=True)
    else:
        rig.stopping.set()
    assert second.has_turn.wait(60)
    first.end()
    second.end()


def test_a_turn_that_failed_is_given_back(rig):
    with pytest.raises(OSError), rig.turns.take():
        raise OSError('broken off')
    only = Sender(rig.turns)
    assert only.has_turn.wait(60)
    only.end()


def test_it_says_when_nobody_sends(rig):
    assert rig.turns.all_free
    with rig.turns.take():
        assert not rig.turns.all_free
    assert rig.turns.all_free


class Runner:
    """A thread that holds the baton when it may, and says so."""

    def __init__(self, baton, name, order):
        self._baton, self._name, self._order = baton, name, order
        self.may_end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        with self._baton.hold():
            self._order.append(self._name)
            self.may_end.wait(60)

    def end(self):
        self.may_end.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


def test_the_baton_goes_from_one_to_the_next_as_they_came():
    baton, order = Baton(), []
    runners = []
    with baton.hold():
        for name in 'abc':
            runners.append(Runner(baton, name, order))
            wait_until(lambda: len(baton._waiting) == len(runners), 60)
        assert not order
    expected = []
    for name, runner in zip('abc', runners):
        expected.append(name)
        wait_until(lambda: len(order) >= len(expected), 60)
        assert order == expected
        runner.end()
    with baton.hold():
        assert order == list('abc')


def test_who_had_the_baton_and_failed_gives_it_on():
    baton, order = Baton(), []
    with pytest.raises(OSError), baton.hold():
        runner = Runner(baton, 'a', order)
        wait_until(lambda: baton._waiting, 60)
        raise OSError('broken off')
    runner.end()
    assert order == ['a']


def test_one_that_waits_no_longer_is_passed_over():
    baton = Baton()
    with baton.hold():
        assert not baton.take(0.01)
    assert baton.take(0)
    baton.give()
    with baton.hold():
        pass
