"""SARC's published behaviour: neither list starves the other."""

import random

import pytest

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.plain import PlainCache
from swift_dss.strategy.eviction.objects.sarc import SarcOrder
from swift_dss.strategy.eviction.objects.verbs import HIT

ROOM = 1000


def mixed(name, room, streams, turns):
    """Shares of random hits and of late sequential reads; see
    :func:`read_into`."""
    return read_into(orders.make(name, room, ClassTable()), streams, turns)


def read_into(cache, streams, turns, seed=1, prefetched=8):
    """Random reads while streams are read: each stream is fetched
    ``prefetched`` ahead and read once."""
    dice = random.Random(seed)
    heads = [10 ** 6 * (1 + at) for at in range(streams)]
    random_hits = random_reads = stream_misses = stream_reads = 0
    for turn in range(turns):
        if streams and turn % 2:
            at = dice.randrange(streams)
            heads[at] += 1
            key = heads[at]
            stream_reads += 1
            stream_misses += cache.access(key, 1, 0, True) != HIT
            if key % prefetched == 0:
                for ahead in range(1, prefetched + 1):
                    cache.fill(key + ahead, 1, 0, True)
        else:
            random_reads += 1
            random_hits += cache.access(
                int(3000 * dice.random() ** 3), 1) == HIT
    return random_hits / random_reads, \
        stream_misses / max(1, stream_reads)


def test_streams_do_not_take_the_room_of_the_rest():
    alone, _ = mixed('lru', ROOM, 0, turns=20000)
    lru, lru_missed = mixed('lru', ROOM, 4, turns=40000)
    sarc, missed = mixed('sarc', ROOM, 4, turns=40000)
    assert lru < alone - 0.15
    assert sarc > alone - 0.06
    # Half of all reads are of either kind: more hits in all.
    assert sarc - missed > lru - lru_missed


def test_what_streams_get_grows_with_their_number():
    held = []
    for streams in (4, 40, 100):
        order = SarcOrder(ROOM)
        read_into(PlainCache(order, ROOM), streams, turns=40000)
        held.append(order.seq_bytes)
    assert held[0] < 200 < 350 < held[1] < 650 < held[2]


def test_more_room_never_means_more_misses_of_streams():
    """The sequential anomaly: with LRU lists of prefetched tracks, a larger
    cache may miss more."""
    misses = [mixed('sarc', room, 40, turns=30000)[1]
              for room in (200, 400, 800, 1600)]
    for small, large in zip(misses, misses[1:]):
        assert large <= small + 0.005


def test_what_turns_out_to_be_a_stream_changes_lists():
    order = SarcOrder(100)
    order.insert(1, 10)
    assert order.seq_bytes == 0
    order.touch(1, sequential=True)
    assert order.seq_bytes == 10


@pytest.mark.parametrize('asked', [False, True])
def test_hits_at_the_old_end_of_random_are_held_against_stream_misses(asked):
    """What is fetched ahead is no sequential miss."""
    order = SarcOrder(100)
    for key in range(50):
        order.insert(key, 1)
    for key in range(100, 150):
        order.miss(key, 1, True, asked)
        order.insert(key, 1, sequential=True)
    order.desired_bytes = 50.0
    order.touch(0)
    for _ in range(4):
        order.evict()
    assert order.desired_bytes == (52.0 if asked else 48.0)
