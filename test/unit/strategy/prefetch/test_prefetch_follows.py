"""Readers that follow the graph, and those that leave it: what is fetched in
vain is paid for."""

from __future__ import annotations

import random

import pytest

from swift_dss.strategy.prefetch.base import Access, Settings
from swift_dss.strategy.prefetch.follows import PRIOR, REMEMBERED, Follows
from swift_dss.strategy.prefetch.graph import Graph

LENGTH = 12
CHAINS = [[(chain * 100 + place) * 1000 for place in range(1, LENGTH + 1)]
          for chain in range(16)]
PLACES = [place for places in CHAINS for place in places]


def read(graph, start, client='c', account='a', length=10):
    """A miss; where the wanted ranges begin."""
    return [want.offset for want in graph.on_request(
        Access(account, client, 'x', start, length, 1 << 40, False, 0.0),
        1 << 40)]


def lose(graph, starts=None):
    """What begins there (None: all) leaves the cache, on its way or read."""
    for node in list(graph.nodes):
        if starts is None or node.start in starts:
            where = (*node.place, node.start, node.end - node.start)
            graph.on_dropped(*where, 0.0)
            graph.on_evict(*where, True, 0.0)


def known(*accounts):
    """A graph of the chains, which each account read twice."""
    graph = Graph(Settings(10, max_degree=32))
    for account in accounts or ('a',):
        for places in CHAINS * 2:
            for place in places:
                read(graph, place, account=account)
    lose(graph)
    return graph


def hop(graph, times, account='a'):
    """A stranger reads places of chains in no order; how many of these reads
    brought something."""
    rng = random.Random(5)
    brought = 0
    for _ in range(times):
        place = rng.choice(PLACES)
        wants = read(graph, place, 'hopper', account)
        lose(graph, {place, *wants})
        brought += bool(wants)
    return brought


def test_places_of_chains_that_are_read_in_no_order_soon_bring_nothing():
    graph = known()
    assert hop(graph, 4) == 4
    assert hop(graph, 80) <= 20  # Some come in line by chance.


def test_who_follows_a_chain_beside_hoppers_has_it_from_its_second_place_on():
    graph = known()
    hop(graph, 80)
    wants = [read(graph, place, 'follower') for place in CHAINS[2][:2]]
    assert wants[0] == []
    assert wants[1][:3] == CHAINS[2][2:5]


def test_hoppers_of_an_account_take_nothing_from_another():
    graph = known('a', 'b')
    hop(graph, 80, 'b')
    assert read(graph, CHAINS[0][0], 'new', 'b') == []
    assert read(graph, CHAINS[0][0], 'new', 'a') != []


def test_readers_that_follow_again_are_believed_again():
    graph = known()
    hop(graph, 80)
    assert read(graph, CHAINS[0][0], 'first') == []
    for reader in range(200):
        for place in CHAINS[reader % 16][:2]:
            read(graph, place, reader)
        lose(graph)
    assert read(graph, CHAINS[0][0], 'last') != []


def test_a_stream_that_goes_on_as_before_counts_as_followed():
    """Its second read is of the stream, and the graph gets to hear of it
    another way than of the places of a chain."""
    graph = Graph(Settings(10, max_degree=32))
    rng = random.Random(5)
    streams = [(number + 1) * 1000 for number in range(40)]
    for _ in range(400):
        first = rng.choice(streams)
        for unit in range(4):
            read(graph, first + unit * 10)
    for first in streams:
        lose(graph)
        assert first + 10 in read(graph, first, client=first)


@pytest.mark.parametrize('reads,followed,chance', [
    (0, 0, 1.0), (4, 0, 0.5), (8, 8, 1.0), (12, 4, 0.5), (60, 0, 4 / 64)])
def test_chances_are_of_the_reads_that_were_counted(reads, followed, chance):
    follows = Follows(4)
    for number in range(reads):
        follows.told('a', True, number < followed)
    assert follows.chance('a', True) == pytest.approx(chance)
    assert follows.chance('a', False) == 1.0


def test_old_reads_fade():
    follows = Follows(4)
    for _ in range(int(10 * REMEMBERED)):
        follows.told('a', False, False)
    for _ in range(int(2 * REMEMBERED)):
        follows.told('a', False, True)
    assert follows.chance('a', False) > 0.5


def test_accounts_are_bounded_and_the_least_recently_used_is_forgotten():
    follows = Follows(2)
    for account in ('a', 'b'):
        for _ in range(int(PRIOR) * 4):
            follows.told(account, True, False)
    assert follows.chance('a', True) < 0.5
    follows.told('c', True, True)
    assert follows.chance('a', True) < 0.5
    assert follows.chance('b', True) == 1.0
