"""What every eviction strategy must keep, whatever the numbers."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swift_dss.core.classes import Allocate, ClassSpec, ClassTable
from swift_dss.strategy.eviction import STRATEGIES
from swift_dss.strategy.eviction.bytes.verbs import Occupancy
from swift_dss.strategy.promotion import admit

ROOM = 1000


@st.composite
def nodes(draw):
    """(class table, occupancies) of a device."""
    class_ids = draw(st.lists(st.integers(0, 31), min_size=1, max_size=6,
                              unique=True))
    ranks = draw(st.permutations(range(len(class_ids))))
    specs, occupancies = [], {}
    for class_id, rank in zip(class_ids, ranks):
        floor = draw(st.sampled_from((0.0, 0.0, 0.1, 0.3)))
        cap = draw(st.sampled_from((1.0, 1.0, 0.5, 0.3)))
        specs.append(ClassSpec(
            class_id, 'c%d' % class_id, rank, floor=floor,
            weight=1 + class_id % 5,
            cap=max(floor, cap), pin=draw(st.booleans()),
            allocate=draw(st.sampled_from(list(Allocate)))))
        used = draw(st.integers(0, 400))
        occupancies[class_id] = Occupancy(used, draw(st.integers(0, used)))
    return ClassTable.of(specs), occupancies


STRATEGY = pytest.mark.parametrize(
    'strategy', [STRATEGIES[name] for name in (
        'class_ordered', 'weighted', 'lru')])  # All blind ones are alike.
ORDERED = STRATEGIES['class_ordered']


def total(takes):
    """Bytes of all takes."""
    return sum(take.length for take in takes)


def taken(takes):
    """Bytes by class, of takes of one class each."""
    lengths = {}
    for take in takes:
        class_id, = take.class_ids
        lengths[class_id] = lengths.get(class_id, 0) + take.length
    return lengths


def given_by(asked, amount=1):
    """Bytes by class that leave in pieces of ``amount``."""
    lengths = {}
    giver = asked.next()
    while giver is not None:
        assert asked.most(giver) > 0
        assert giver.loose > 0
        gone = min(amount, giver.loose)
        giver.gave(gone)
        asked.left(giver, gone)
        for class_id in giver.class_ids[:1]:
            lengths[class_id] = lengths.get(class_id, 0) + gone
        giver = asked.next()
    return lengths


def make_way(strategy, occupancies, table, need, class_id):
    """What leaves for a newcomer where nothing is free; None: it stays out.
    """
    entry = strategy.entry(occupancies, table, ROOM, 0, class_id, need)
    return None if entry.is_refused else given_by(entry)


@STRATEGY
@given(nodes(), st.integers(0, 2000))
def test_it_takes_no_more_than_needed_and_never_nothing(
        strategy, node, need):
    table, occupancies = node
    takes = strategy.plan(occupancies, table, ROOM, need)
    assert total(takes) <= need
    assert all(take.length > 0 for take in takes)


@STRATEGY
@given(nodes(), st.integers(1, 2000))
def test_it_never_takes_dirty_or_pinned_bytes(strategy, node, need):
    table, occupancies = node
    for take in strategy.plan(occupancies, table, ROOM, need):
        assert not any(table.spec(class_id).pin for class_id in take.class_ids)
        assert take.length <= sum(occupancies[class_id].evictable_bytes
                                  for class_id in take.class_ids)


@STRATEGY
@given(nodes(), st.integers(1, 2000), st.integers(0, 31))
def test_way_is_made_whole_or_not_at_all(strategy, node, need, class_id):
    table, occupancies = node
    gave = make_way(strategy, occupancies, table, need, class_id)
    assert gave is None or sum(gave.values()) >= need


@STRATEGY
@given(nodes(), st.integers(1, 2000))
def test_it_is_pure(strategy, node, need):
    table, occupancies = node
    before = dict(occupancies)
    first = strategy.plan(occupancies, table, ROOM, need)
    assert first == strategy.plan(occupancies, table, ROOM, need)
    assert occupancies == before


@given(nodes(), st.integers(1, 2000))
def test_no_class_goes_below_its_floor(node, need):
    table, occupancies = node
    takes = ORDERED.plan(occupancies, table, ROOM, need)
    for class_id, length in taken(takes).items():
        floor = int(table.spec(class_id).floor * ROOM)
        assert occupancies[class_id].used_bytes - length >= floor


@given(nodes(), st.integers(1, 2000))
@settings(max_examples=300)
def test_a_class_gives_only_when_all_below_it_have_given(node, need):
    table, occupancies = node
    gave = taken(ORDERED.plan(occupancies, table, ROOM, need))
    for class_id, length in gave.items():
        spec = table.spec(class_id)
        over = occupancies[class_id].used_bytes - int(spec.cap * ROOM)
        if length <= over:
            continue  # its surplus over its cap, whatever its rank
        for lower, occupancy in occupancies.items():
            below = table.spec(lower)
            if below.rank >= spec.rank or below.pin:
                continue
            floor = int(below.floor * ROOM)
            could = min(occupancy.evictable_bytes,
                        max(0, occupancy.used_bytes - floor))
            assert gave.get(lower, 0) == could


@given(nodes(), st.integers(1, 2000), st.integers(0, 31))
@example((ClassTable.of([ClassSpec(0, 'alone', 0, floor=0.1)]),
          {0: Occupancy(1, 1)}), 1, 0)
def test_a_newcomer_displaces_nobody_above_it_but_for_its_floor(
        node, need, class_id):
    table, occupancies = node
    gave = make_way(ORDERED, occupancies, table, need, class_id)
    spec = table.spec(class_id)
    own = occupancies.get(class_id, Occupancy(0, 0)).used_bytes
    claims = own + need <= int(spec.floor * ROOM)
    for other, length in (gave or {}).items():
        assert claims or table.spec(other).rank <= spec.rank
        if other != class_id:
            floor = int(table.spec(other).floor * ROOM)
            assert occupancies[other].used_bytes - length >= floor
        elif claims:
            # It exchanges its own only where all others have given.
            others = sum(gave.values()) - length
            assert others == ORDERED.claims(
                occupancies, table, ROOM).get(class_id, 0) < need


@STRATEGY
@given(nodes())
def test_way_is_made_for_exactly_what_may_be_claimed(strategy, node):
    table, occupancies = node
    claims = strategy.claims(occupancies, table, ROOM)
    for class_id, spec in table.specs.items():
        own = occupancies.get(class_id, Occupancy(0, 0)).used_bytes
        left = int(spec.floor * ROOM) - own
        claim = claims.get(class_id, 0)
        assert claim <= max(0, left)
        if claim and spec.allocate is Allocate.ALWAYS:
            assert make_way(strategy, occupancies, table, claim,
                            class_id) is not None
            mine = occupancies.get(class_id, Occupancy(0, 0))
            if claim < left and (spec.pin or not mine.evictable_bytes):
                # Else it exchanges its own.
                assert make_way(strategy, occupancies, table, claim + 1,
                                class_id) is None


def test_a_class_without_anything_claims_its_floor_from_above():
    table = ClassTable.of([ClassSpec(1, 'low', 1, floor=0.1),
                           ClassSpec(2, 'high', 2)])
    full = {2: Occupancy(1000, 1000)}
    assert make_way(ORDERED, full, table, 100, 1) == {2: 100}
    assert make_way(ORDERED, full, table, 101, 1) is None


@given(nodes(), st.integers(1, 2000))
@settings(max_examples=300)
def test_weighted_takes_level_the_classes_by_their_weights(node, need):
    table, occupancies = node
    gave = taken(STRATEGIES['weighted'].plan(
        occupancies, table, ROOM, need))
    left = {class_id: (occupancies[class_id].used_bytes - gave.get(class_id,
                                                                   0))
            / table.spec(class_id).weight for class_id in occupancies}
    for class_id, length in gave.items():
        spec = table.spec(class_id)
        if length <= occupancies[class_id].used_bytes - int(spec.cap * ROOM):
            continue  # over its cap
        for other, occupancy in occupancies.items():
            below = table.spec(other)
            could = min(occupancy.evictable_bytes, max(
                0, occupancy.used_bytes - int(below.floor * ROOM)))
            # Who could still give is not heavier than who gave.
            assert below.pin or gave.get(other, 0) >= could or \
                left[other] <= left[class_id] + 1 + 1 / spec.weight


def test_a_class_at_its_floor_exchanges_its_own_bytes():
    table = ClassTable.of([ClassSpec(1, 'low', 1, floor=0.1),
                           ClassSpec(2, 'high', 2)])
    full = {1: Occupancy(100, 100), 2: Occupancy(900, 900)}
    assert make_way(ORDERED, full, table, 40, 1) == {1: 40}
    assert taken(ORDERED.plan(full, table, ROOM, 1000)) == {2: 900}


@given(nodes(), st.integers(1, 400), st.data())
@settings(max_examples=300)
def test_what_is_admitted_fits_and_keeps_to_its_cap(node, need, data):
    table, occupancies = node
    class_id = data.draw(st.sampled_from(sorted(occupancies)))
    used = sum(occupancy.used_bytes for occupancy in occupancies.values())
    entry = admit(ORDERED, occupancies, table, ROOM, used, 700, 850,
                  class_id, need)
    spec = table.spec(class_id)
    if entry.is_refused:
        return
    gave = given_by(entry)
    assert spec.allocate is not Allocate.NEVER
    own = occupancies[class_id].used_bytes + need - gave.get(class_id, 0)
    assert own <= int(spec.cap * ROOM)
    if spec.allocate is Allocate.ROOM:
        assert not gave and used + need <= 700
    else:
        assert used - sum(gave.values()) + need <= 850


@pytest.mark.parametrize('strategy', [
    STRATEGIES[name] for name in ('class_ordered', 'weighted', 'lru')])
@given(nodes(), st.integers(1, 2000), st.integers(1, 200))
@settings(max_examples=200)
def test_pieces_relieve_as_much_as_may_leave(strategy, node, need, amount):
    table, occupancies = node
    could = total(strategy.plan(occupancies, table, ROOM, 10 ** 9))
    gave = given_by(strategy.relief(occupancies, table, ROOM, need), amount)
    left = sum(gave.values())
    assert left >= min(need, could)
    # What the last piece takes too much is less than that piece.
    assert left < need + amount


@given(nodes())
def test_what_is_over_caps_leaves_and_nothing_else(node):
    table, occupancies = node
    gave = given_by(ORDERED.relief(occupancies, table, ROOM, None))
    for class_id, occupancy in occupancies.items():
        spec = table.spec(class_id)
        over = max(0, occupancy.used_bytes - int(spec.cap * ROOM))
        assert gave.get(class_id, 0) == (
            0 if spec.pin else min(over, occupancy.evictable_bytes))


@pytest.mark.parametrize('strategy', [
    STRATEGIES[name] for name in ('class_ordered', 'weighted')])
@given(nodes(), st.integers(1, 400), st.integers(0, 31), st.booleans())
@settings(max_examples=300)
def test_as_much_as_may_leave_at_once_leaves_as_if_one_by_one(
        strategy, node, need, class_id, comes):
    table, occupancies = node

    def ask():
        if comes:
            return strategy.entry(occupancies, table, ROOM, 0, class_id,
                                  need)
        return strategy.relief(occupancies, table, ROOM, need)

    if comes and ask().is_refused:
        return
    asked, lengths = ask(), {}
    giver = asked.next()
    while giver is not None:
        most = min(asked.most(giver), giver.loose)
        giver.gave(most)
        asked.left(giver, most)
        lengths[giver.class_ids[0]] = lengths.get(giver.class_ids[0], 0) + most
        giver = asked.next()
    assert lengths == given_by(ask())
