"""What every prefetch strategy must keep, whatever it is told."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift_dss.strategy.prefetch import STRATEGIES
from swift_dss.strategy.prefetch.base import (
    ITEM_BYTES, Access, Settings, Urgency, Want, clip)

UNIT = 1000
OBJECT_BYTES = 40 * UNIT
SETTINGS = Settings(UNIT, max_degree=16, state_bytes=64 * ITEM_BYTES)

NAMES = sorted(STRATEGIES)
STRATEGY = pytest.mark.parametrize('name', NAMES)

_RANGE = st.tuples(
    st.sampled_from(('anna', 'bert')), st.sampled_from(('x', 'y', 'z')),
    st.integers(0, OBJECT_BYTES - 1), st.integers(1, 5 * UNIT))
_STEP = st.one_of(
    st.tuples(st.just('read'), _RANGE, st.booleans()),
    st.tuples(st.just('next'), st.integers(0, 3), st.booleans()),
    st.tuples(st.sampled_from(('arrived', 'dropped', 'last', 'gone')),
              _RANGE, st.booleans()),
    st.tuples(st.sampled_from(('arrived', 'dropped', 'last', 'gone')),
              st.just(None), st.booleans()))
STEPS = st.lists(_STEP, max_size=60)
FEW = settings(max_examples=40, deadline=None)
ROOM = st.sampled_from((0, 1, 700, 5 * UNIT, 1 << 40))


class Told:
    """Tells a strategy of anything, likely or not, and looks at what it
    answers."""

    def __init__(self, strategy, room=1 << 40, accounts=None):
        self.strategy = strategy
        self.room = room
        self.accounts = accounts
        self.now = 0.0
        self.wants = []
        self.answers = []
        self.ends = [('anna', 'x', 0)] * 4

    def step(self, kind, target, flag):
        self.now += 0.25
        if kind == 'next':
            account, object_id, end = self.ends[target]
            if end < OBJECT_BYTES:
                self.read(account, object_id, end, UNIT, flag, target)
            return
        if target is None:
            if not self.wants:
                return
            target = self.wants[-1][:1] + self.wants[-1][1:4]
        account, object_id, offset, length = target
        if kind == 'read':
            self.read(account, object_id, offset, length, flag, 0)
        elif self.accounts is None or account in self.accounts:
            call = {'arrived': self.strategy.on_arrival,
                    'dropped': lambda *a: self.strategy.on_dropped(
                        *a[:4], a[5]),
                    'last': lambda *a: self.strategy.on_last_chance(
                        *a[:4], a[5]),
                    'gone': self.strategy.on_evict}[kind]
            call(account, object_id, offset, length, flag, self.now)

    def read(self, account, object_id, offset, length, hit, client):
        length = min(length, OBJECT_BYTES - offset)
        self.ends = [*self.ends[1:], (account, object_id, offset + length)]
        if self.accounts is not None and account not in self.accounts:
            return
        answer = self.strategy.on_request(
            Access(account, client, object_id, offset, length, OBJECT_BYTES,
                   hit, self.now), self.room)
        self.wants += answer
        self.answers.append((account, answer))


def told(name, steps, **how):
    """A new strategy that has been told ``steps``."""
    made = Told(STRATEGIES[name](SETTINGS), **how)
    for step in steps:
        made.step(*step)
    return made


@STRATEGY
@given(steps=STEPS, room=ROOM)
@FEW
def test_wants_are_of_the_reader_and_inside_the_object_and_the_room(
        name, steps, room):
    made = told(name, steps, room=room)
    for account, wants in made.answers:
        assert sum(want.length for want in wants) <= room
        assert [want.urgency for want in wants] == sorted(
            want.urgency for want in wants)
        for want in wants:
            assert want.account == account
            assert want.offset >= 0 and want.length > 0
            assert want.offset + want.length <= OBJECT_BYTES
            assert want.length <= SETTINGS.max_degree * UNIT
            assert 0 < want.confidence <= 1
            assert want.strategy in STRATEGIES


@STRATEGY
@given(steps=STEPS)
@FEW
def test_it_is_pure(name, steps):
    assert told(name, steps).wants == told(name, steps).wants


@STRATEGY
@given(steps=STEPS)
@FEW
def test_what_one_account_does_changes_nothing_for_another(name, steps):
    """Without the bound of the state, which all share."""
    both = told(name, steps)
    alone = told(name, steps, accounts=('anna',))
    assert [answer for account, answer in both.answers
            if account == 'anna'] == [
                answer for account, answer in alone.answers]


@STRATEGY
@given(steps=STEPS)
@FEW
def test_it_goes_on_after_a_restart(name, steps):
    before = told(name, steps).strategy
    saved = json.loads(json.dumps(before.save()))
    after = STRATEGIES[name](SETTINGS)
    after.load(saved)
    assert after.save() == saved


@STRATEGY
@given(steps=STEPS)
@FEW
def test_nothing_is_kept_twice_on_its_last_chance(name, steps):
    made = told(name, steps)
    for want in made.wants:
        asked = [made.strategy.on_last_chance(*want[:4], made.now)
                 for _ in range(2)]
        assert asked != [True, True]


@STRATEGY
def test_its_state_stays_within_its_bound(name):
    """Accounts, objects and places without end; and what a strategy says
    that it takes is about what it takes."""
    made = STRATEGIES[name](SETTINGS)
    for number in range(3000):
        made.on_request(Access(
            'a%d' % (number % 7), number % 5, number % 1001,
            number * 7919 % OBJECT_BYTES, 1, OBJECT_BYTES, number % 3 == 0,
            float(number)), 1 << 40)
        assert made.state_bytes() <= SETTINGS.state_bytes
    assert deep_bytes(made) <= SETTINGS.state_bytes * 1.25 + 20000


def deep_bytes(thing, seen=None):
    """What an object and all that it refers to takes."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, (type, type(sys))) or \
            callable(thing) and hasattr(thing, '__code__'):
        return 0
    seen.add(id(thing))
    parts = []
    if isinstance(thing, dict):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, (list, tuple, set, frozenset)):
        parts = list(thing)
    for name in getattr(type(thing), '__slots__', ()):
        parts.append(getattr(thing, name))
    parts += vars(thing).values() if hasattr(thing, '__dict__') else []
    return sys.getsizeof(thing) + sum(
        deep_bytes(part, seen) for part in parts)


def test_the_room_is_filled_in_order_and_never_exceeded():
    wants = [Want('a', 'x', n * 10, 10, Urgency.AHEAD, 1.0, 'seq')
             for n in range(3)]
    assert [(want.offset, want.length) for want in clip(wants, 25)] == [
        (0, 10), (10, 10), (20, 5)]
    assert clip(wants, 0) == []
