"""The doorkeeper that is learned: least writes, and no hits lost for them."""

import itertools
import random

import pytest

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.objects import doorkeeper, learned, orders
from swift_dss.strategy.eviction.objects.smallfirst import SmallFirst
from swift_dss.strategy.eviction.objects.verbs import BYPASS, HIT, MISS

ROOM = 10000


def once_and_hot(seed=7, hot=120):
    """Half of the reads are of hot objects, half of objects read once."""
    dice = random.Random(seed)
    for once in itertools.count(10 ** 6):
        yield dice.randrange(hot), 100, 0
        yield once, 100, 0


def soon_again():
    """Each object is read twice, with five others between, and never again."""
    for number in itertools.count(1000):
        yield number, 100, 1
        if number >= 1003:
            yield number - 3, 100, 1


def learned_door(room, strategy, weights):
    return learned.Learned(room, lambda room: orders.make(
        strategy, room, ClassTable()), weights)


def played(load, accesses, door=None, strategy='lru', weights=()):
    """(hits, misses that came in, the doorkeeper) of the last half."""
    cache = orders.make(strategy, ROOM, ClassTable())
    if door is not None:
        cache.doorkeeper = door(ROOM, strategy, dict(weights))
    outcomes = [cache.access(*row)
                for row in itertools.islice(load, accesses)][accesses // 2:]
    return outcomes.count(HIT), outcomes.count(MISS), cache.doorkeeper


EVERY = pytest.mark.parametrize('strategy', ['lru', 's3fifo', 'class-lru'])


@EVERY
def test_where_most_is_read_once_it_writes_little_and_hits_more(strategy):
    hits, written, _ = played(once_and_hot(), 20000, strategy=strategy)
    hits_now, written_now, door = played(
        once_and_hot(), 20000, learned_door, strategy)
    assert written_now < 0.5 * written
    assert hits_now >= hits
    assert door.in_force


@EVERY
def test_where_each_object_comes_back_once_it_lets_all_in(strategy):
    hits, _, _ = played(soon_again(), 20000, strategy=strategy)
    waiting, _, _ = played(
        soon_again(), 20000,
        lambda room, *_: doorkeeper.SecondTouch(4 * room), strategy)
    hits_now, _, _ = played(soon_again(), 20000, learned_door, strategy)
    assert waiting < 0.01 * hits
    # 10,000 accesses are looked at; twice the slack, for the shadows' error.
    assert hits_now >= hits - 2 * learned.SLACK * 10000


def test_it_follows_a_load_that_changes():
    both = itertools.chain(itertools.islice(once_and_hot(), 40000),
                           soon_again())
    hits, _, door = played(both, 160000, learned_door)
    assert hits > 0.9 * 40000
    assert door.in_force == 0


def mixed():
    for one, other in zip(once_and_hot(hot=10), soon_again()):
        yield one
        yield other


def test_hits_count_as_much_as_their_class_weighs():
    alike, _, door = played(mixed(), 40000, learned_door)
    assert door.in_force == 0
    weighted, _, door = played(mixed(), 40000, learned_door,
                               weights=[(0, 1.0), (1, 0.001)])
    assert door.in_force
    # Those of class 1 are gone.
    assert weighted < alike


def test_shadows_stay_small(monkeypatch):
    monkeypatch.setattr(learned, 'MOST', 50)
    cache = orders.make('lru', 10 ** 6, ClassTable())
    made = []

    def make(room):
        made.append(room)
        return orders.make('lru', room, ClassTable())

    cache.doorkeeper = learned.Learned(10 ** 6, make, {})
    for key in range(20000):
        cache.access(key, 100)
    # A shadow of 50 objects, up to the next look at it, is a share of these.
    assert made[-1] < 10 ** 6 / 50
    assert made[0] == 10 ** 6


def test_clients_bytes_and_deletes_reach_the_shadows():
    cache = orders.make('lru', ROOM, ClassTable())
    made = []

    def make(room):
        made.append(orders.make('lru', room, ClassTable()))
        return made[-1]

    cache.doorkeeper = learned.Learned(ROOM, make, {})
    assert cache.write(1, 100) == MISS
    assert [1 in shadow for shadow in made] == [True] * 4
    assert cache.remove(1)
    assert [1 in shadow for shadow in made] == [False] * 4


def test_small_objects_come_at_once_and_large_ones_at_the_second_miss():
    door = SmallFirst(ROOM, 4 * ROOM)
    said = [(door.admits(key, 10, 0), door.admits(-key, 1000, 0))
            for key in range(1, 60)]
    assert said[-20:] == [(True, False)] * 20
    assert door.admits(-59, 1000, 0)


def test_where_all_are_of_a_size_none_is_small():
    door = SmallFirst(ROOM, 4 * ROOM)
    assert not any(door.admits(key, 100, 0) for key in range(500))


def test_small_objects_wait_too_once_much_is_written():
    cache = orders.make('lru', ROOM, ClassTable())
    cache.doorkeeper = SmallFirst(ROOM, 4 * ROOM)
    for key in range(1000, 1100):
        cache.write(key, 1000)
    assert cache.access(1, 10) == BYPASS
