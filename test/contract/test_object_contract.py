"""What every order and every cache of objects must keep."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rigs.simple_caches import SIMPLE

from swift_dss.core.classes import Allocate, ClassSpec, ClassTable
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.classes import ClassedCache
from swift_dss.strategy.eviction.objects.verbs import BYPASS, HIT, MISS

ORDER = pytest.mark.parametrize('name', list(orders.ORDERS))
CACHE = pytest.mark.parametrize('name', orders.names())
ROOM = 100
TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(1, 'low', 10, floor=0.1),
    ClassSpec(2, 'middle', 20, cap=0.5), ClassSpec(3, 'high', 30),
    ClassSpec(4, 'room', 40, allocate=Allocate.ROOM),
    ClassSpec(5, 'never', 50, allocate=Allocate.NEVER),
    ClassSpec(6, 'pinned', 60, pin=True)])
#: (what, key, size, class): sizes and classes go with keys, mostly.
CALLS = st.lists(st.tuples(
    st.sampled_from(('access',) * 12 + (
        'fill', 'remove', 'set_dirty', 'set_clean', 'pin')),
    st.integers(0, 40), st.booleans()), max_size=300)


def facts(key):
    return 1 + key * 7 % 13, key % 7


@ORDER
@given(CALLS)
@settings(max_examples=60, deadline=None)
def test_an_order_gives_each_candidate_once_and_counts_its_bytes(
        name, calls):
    order_keeps_its_contract(orders.ORDERS[name](ROOM), calls)


def order_keeps_its_contract(order, calls):
    """Whatever is asked of an order, beside a plain dictionary."""
    there = {}
    for call, key, sequential in calls:
        size = facts(key)[0]
        if call == 'remove':
            assert order.remove(key) == there.pop(key, 0)
        elif call == 'set_dirty' and there:
            gone, gone_size = order.evict()
            assert there.pop(gone) == gone_size
        else:
            assert order.touch(key, sequential) == (key in there)
            if key not in there and order.miss(key, size, sequential):
                order.insert(key, size, sequential=sequential)
                there[key] = size
        assert order.used_bytes == sum(there.values())
        assert len(order) == len(there)
        assert (key in order) == (key in there)
    while there:
        gone, gone_size = order.evict()
        assert there.pop(gone) == gone_size
    assert order.used_bytes == 0


def drive(cache, calls):
    """The calls, against a plain set of what must be there."""
    there, dirty, pinned = {}, set(), set()
    cache.evicted = []
    for call, key, sequential in calls:
        size, class_id = facts(key)
        if call in ('access', 'fill'):
            verb = getattr(cache, call)
            answer = verb(key, size, class_id, sequential)
            if call == 'access':
                assert (answer == HIT) == (key in there)
            came = answer in (True, MISS, HIT) if call == 'access' \
                else answer
            if answer != BYPASS and came:
                there[key] = size
        elif call == 'remove':
            assert cache.remove(key) == (there.pop(key, None) is not None)
            dirty.discard(key)
            pinned.discard(key)
        else:
            known = key in there
            before = key in dirty if call == 'set_clean' else known
            assert getattr(cache, call)(key) == before
            if call == 'set_clean':
                dirty.discard(key)
            elif known:
                (pinned if call == 'pin' else dirty).add(key)
        for gone in cache.evicted:
            assert gone not in dirty and gone not in pinned, \
                'a held object left'
            if isinstance(cache, ClassedCache):
                assert not TABLE.spec(facts(gone)[1]).pin
            del there[gone]
        cache.evicted.clear()
        assert cache.used_bytes == sum(there.values()) <= ROOM
        assert len(cache) == len(there)
        assert all(member in cache for member in there)
        assert all(cache.is_dirty(member) == (member in dirty)
                   for member in there)
    return there


@CACHE
@given(CALLS)
@settings(max_examples=60, deadline=None)
def test_a_cache_keeps_within_its_room_and_never_gives_what_is_held(
        name, calls):
    drive(orders.make(name, ROOM, TABLE), calls)


@CACHE
def test_what_is_all_dirty_gives_no_room(name):
    cache = orders.make(name, ROOM, ClassTable())
    for key in range(ROOM):
        cache.access(key, 1)
        assert cache.set_dirty(key)
    assert cache.access(1000, 1) == BYPASS
    assert cache.held_bytes() == ROOM
    assert cache.set_clean(17)
    cache.evicted = []
    assert cache.access(1000, 1) == MISS
    assert cache.evicted == [17]


@CACHE
def test_a_last_chance_keeps_it_once(name):
    cache = orders.make(name, 100, ClassTable())
    spared = []

    def spare(key):
        if key in spared:
            return False
        spared.append(key)
        return True

    cache.last_chance = spare
    for key in range(300):
        cache.access(key, 1)
        assert cache.used_bytes <= 100
    assert spared


@CACHE
def test_a_newcomer_that_cannot_have_room_sends_nobody_away(name):
    cache = orders.make(name, 100, TABLE)
    for key in range(20):
        cache.access(key, 4, 3)
    cache.evicted = []
    assert cache.access(99, 101, 3) == BYPASS
    assert cache.evicted == []


# Class order.


def ask(cache, keys, size, class_id):
    return [cache.access(key, size, class_id) for key in keys]


@pytest.mark.parametrize('inner', list(orders.ORDERS))
def test_lowest_class_first_and_none_above_the_newcomer(inner):
    cache = orders.make('class-' + inner, 100, TABLE)
    cache.evicted = []
    ask(cache, range(10), 5, 0)
    ask(cache, range(10, 20), 5, 3)
    assert ask(cache, range(20, 26), 5, 3) == [MISS] * 6
    assert set(cache.evicted) <= set(range(10))
    assert ask(cache, range(30, 34), 10, 3) == [MISS] * 4
    assert cache.access(50, 20, 0) == BYPASS


@pytest.mark.parametrize('inner', list(orders.ORDERS))
def test_a_floor_holds_to_the_object_and_a_cap_to_the_byte(inner):
    cache = orders.make('class-' + inner, 1000, TABLE)
    ask(cache, range(20), 30, 1)
    ask(cache, range(100, 200), 30, 3)
    assert 70 < cache.bytes_of(1) <= 130
    ask(cache, range(300, 400), 30, 2)
    assert cache.bytes_of(2) <= 500


def test_a_class_at_its_floor_exchanges_its_own():
    cache = orders.make('class-lru', 1000, TABLE)
    ask(cache, range(10), 10, 1)
    ask(cache, range(100, 190), 10, 3)
    cache.evicted = []
    assert ask(cache, [50, 51], 10, 1) == [MISS, MISS]
    assert cache.evicted == [0, 1]


@pytest.mark.parametrize('inner', list(orders.ORDERS))
def test_a_floor_is_claimed_from_above_and_kept_whatever_the_sizes(inner):
    cache = orders.make('class-' + inner, 10000, TABLE)
    dice = random.Random(4)
    for turn in range(2000):
        cache.access(turn, dice.randrange(1, 40), 3)
    assert cache.bytes_of(1) == 0
    least = 10000
    for turn in range(6000):
        cache.access(10000 + turn, dice.randrange(1, 90), 1)
        cache.access(2000 + turn, dice.randrange(1, 40), 3)
        if turn > 500:
            least = min(least, cache.bytes_of(1))
    # The floor is 1,000; the largest object 89.
    assert 1000 - 2 * 90 <= least <= cache.bytes_of(1) <= 1000 + 90


def test_room_takes_only_what_is_free_and_never_nothing():
    cache = orders.make('class-lru', 100, TABLE)
    assert ask(cache, range(3), 40, 4) == [MISS, MISS, BYPASS]
    assert cache.access(9, 1, 5) == BYPASS


def test_weights_share_the_room_out():
    cache = orders.make('weighted-lru', 10000, ClassTable(),
                         {1: 1.0, 2: 3.0})
    dice = random.Random(1)
    for turn in range(5000):
        cache.access(2 * turn, dice.randrange(1, 20), 1)
        cache.access(2 * turn + 1, dice.randrange(1, 20), 2)
    assert cache.bytes_of(1) == pytest.approx(2500, abs=60)
    assert cache.bytes_of(2) == pytest.approx(7500, abs=60)


def test_a_hit_of_another_class_moves_the_object_and_0_leaves_it():
    cache = orders.make('class-lru', 100, TABLE)
    cache.access(1, 10, 1)
    cache.access(1, 10, 3)
    assert (cache.bytes_of(1), cache.bytes_of(3)) == (0, 10)
    cache.access(1, 10, 0)
    assert cache.bytes_of(3) == 10


def test_a_class_whose_objects_all_moved_gives_no_room():
    cache = orders.make('class-lru', 100, TABLE)
    ask(cache, range(10), 10, 1)
    ask(cache, range(10), 10, 3)
    assert (cache.bytes_of(1), cache.bytes_of(3)) == (0, 100)
    assert cache.access(50, 20, 1) == BYPASS


# A second implementation of each, to the last request.


def sized_trace(seed, length):
    dice = random.Random(seed)
    sizes = [1 + int(200 * dice.random() ** 4) for _ in range(600)]
    recent = [0]
    for _ in range(length):
        key = int(600 * dice.random() ** 2) if dice.random() < 0.8 \
            else dice.choice(recent[-50:])
        recent.append(key)
        yield key, sizes[key]


@pytest.mark.parametrize('seed', [1, 2])
@pytest.mark.parametrize('room', [300, 3000])
@pytest.mark.parametrize('name', list(SIMPLE))
def test_it_hits_where_a_second_implementation_hits(name, room, seed):
    ours = orders.make(name, room, ClassTable())
    other = SIMPLE[name](room)
    hits = 0
    for turn, (key, size) in enumerate(sized_trace(seed, 8000)):
        hit = other.access(key, size)
        hits += hit
        assert (ours.access(key, size) == HIT) == hit, \
            'request %d, seed %d' % (turn, seed)
    assert 200 < hits < 7500


def test_gdsf_weighs_with_what_a_miss_costs():
    def cost(size, class_id=0):
        return 1000.0 + 3.0 * size
    ours = orders.make('gdsf', 3000, ClassTable(), cost=cost)
    other = SIMPLE['gdsf'](3000, cost)
    plain = orders.make('gdsf', 3000, ClassTable())
    differs = 0
    for key, size in sized_trace(3, 8000):
        hit = ours.access(key, size) == HIT
        assert hit == other.access(key, size)
        differs += hit != (plain.access(key, size) == HIT)
    assert differs


class Wrong(SIMPLE['sieve']):
    """The hand starts anew at every eviction: FIFO with second chances."""

    def evict(self):
        self.hand = None
        super().evict()


def test_a_twin_that_is_wrong_in_one_place_is_seen():
    ours, other = orders.make('sieve', 3000, ClassTable()), Wrong(3000)
    assert any((ours.access(key, size) == HIT) != other.access(key, size)
               for key, size in sized_trace(1, 8000))
