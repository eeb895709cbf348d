"""Who comes in at the second miss, and how long a first one is remembered."""

import pytest

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.objects import doorkeeper, orders
from swift_dss.strategy.eviction.objects.verbs import BYPASS, HIT, MISS

EVERY_CACHE = pytest.mark.parametrize('strategy', ['lru', 'class-lru'])


def cache_of(strategy, capacity_bytes=100, window_bytes=100):
    cache = orders.make(strategy, capacity_bytes, ClassTable())
    cache.doorkeeper = doorkeeper.SecondTouch(window_bytes)
    return cache


@EVERY_CACHE
def test_free_room_is_for_all_and_a_full_cache_for_second_misses(strategy):
    cache = cache_of(strategy)
    assert [cache.access(key, 50) for key in (1, 2, 3, 3, 3)] == [
        MISS, MISS, BYPASS, MISS, HIT]
    assert 1 not in cache and 2 in cache


@EVERY_CACHE
def test_a_first_miss_is_forgotten_behind_a_window_of_others(strategy):
    cache = cache_of(strategy)
    cache.access(1, 100)
    assert [cache.access(key, 40) for key in (2, 3, 4, 2, 4)] == [
        BYPASS, BYPASS, BYPASS, BYPASS, MISS]


@EVERY_CACHE
def test_what_came_in_starts_anew_after_it_left(strategy):
    cache = cache_of(strategy)
    cache.access(1, 100)
    assert [cache.access(key, 100) for key in (2, 2, 3, 3, 2)] == [
        BYPASS, MISS, BYPASS, MISS, BYPASS]


@EVERY_CACHE
def test_clients_bytes_and_prefetched_ones_pass(strategy):
    cache = cache_of(strategy)
    cache.access(1, 100)
    assert cache.write(2, 100) == MISS
    assert cache.fill(3, 100)
    assert cache.access(4, 100) == BYPASS


def test_it_remembers_no_more_than_its_window():
    door = doorkeeper.SecondTouch(1000)
    for key in range(5000):
        assert not door.admits(key, 10, 0)
    assert len(door) == 100


def test_it_remembers_no_more_keys_than_it_may():
    door = doorkeeper.SecondTouch(1 << 60, most_keys=7)
    for key in range(5000):
        assert not door.admits(key, 10, 0)
    assert len(door) == 7
    assert door.admits(4999, 10, 0)


def test_misses_of_one_read_count_once():
    door = doorkeeper.SecondTouch(1000)
    assert [door.admits(1, 10, 0, read) for read in (5, 5, 6, 6)] == [
        False, False, True, False]
