"""Who comes in at the second miss, and how long a first one is remembered."""

import pytest

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadConfig
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


@pytest.mark.parametrize('text, wanted', [
    ('all', ('all', 0)), ('second', ('second', doorkeeper.DEFAULT_WINDOW)),
    ('second:1', ('second', 1)), ('second:64', ('second', 64))])
def test_names(text, wanted):
    assert doorkeeper.parse('--admit', text) == wanted


@pytest.mark.parametrize('text', [
    '', 'third', 'all:1', 'second:', 'second:0', 'second:65', 'second:-1',
    'second:1.5', 'second:x', 'second:\u00b2'])
def test_other_names_are_refused(text):
    with pytest.raises(BadConfig, match='--admit: .*1 to 64'):
        doorkeeper.parse('--admit', text)
