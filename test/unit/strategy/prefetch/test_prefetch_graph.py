"""GRAPH: nodes, edges, expansion, adaptation, memory."""

from __future__ import annotations

import json
import random
import tracemalloc

import pytest
from support.rigs.prefetch_host import Host

from swift_dss.strategy.prefetch.base import Access, Settings
from swift_dss.strategy.prefetch.graph import Graph
from swift_dss.strategy.prefetch.graph_nodes import (
    DECAY_COUNT, MAX_EDGES, Nodes)

UNIT = 10
SETTINGS = Settings(UNIT, max_degree=32)
END = 1 << 40
PLACE = ('a', 'x')


def read(graph, start, length=UNIT, hit=False, client='c', account='a',
         object_id='x', room=1 << 40):
    """What is wanted after a read, as (offset, length)."""
    return [(want.offset, want.length) for want in graph.on_request(
        Access(account, client, object_id, start, length, END, hit, 0.0),
        room)]


def lose(graph):
    """All that was read leaves the cache."""
    for node in list(graph.nodes):
        graph.on_evict(*node.place, node.start, node.end - node.start, True,
                       0.0)


def chain(graph, places, **how):
    """Read places one after another, all of them misses."""
    return [read(graph, place, **how) for place in places]


def ranges(nodes):
    return sorted((node.start, node.end) for node in nodes)


def nodes_of(graph):
    return ranges(graph.nodes)


# -- nodes -----------------------------------------------------------------


def test_a_range_is_a_node_as_it_was_read():
    nodes = Nodes(1 << 20)
    first, = nodes.read(PLACE, 100, 200)
    assert nodes.read(PLACE, 100, 200) == [first]
    assert ranges(nodes) == [(100, 200)]


@pytest.mark.parametrize('start,end,expected', [
    (150, 180, [(100, 150), (150, 180), (180, 200)]),
    (50, 150, [(50, 100), (100, 150), (150, 200)]),
    (150, 250, [(100, 150), (150, 200), (200, 250)]),
    (50, 250, [(50, 100), (100, 200), (200, 250)]),
    (200, 300, [(100, 200), (200, 300)]),
    (0, 100, [(0, 100), (100, 200)])])
def test_a_partial_overlap_splits_nodes(start, end, expected):
    nodes = Nodes(1 << 20)
    nodes.read(PLACE, 100, 200)
    covering = nodes.read(PLACE, start, end)
    assert ranges(nodes) == expected
    assert covering[0].start == start and covering[-1].end == end


def test_what_came_before_and_after_a_node_survives_its_split():
    nodes = Nodes(1 << 20)
    before, = nodes.read(PLACE, 0, 10)
    node, = nodes.read(PLACE, 100, 200)
    after, = nodes.read(PLACE, 500, 510)
    node.count = 3
    nodes.follow(before, node)
    nodes.follow(node, after)
    second, = nodes.read(PLACE, 150, 200)
    assert before.edges == {node.number: 1}
    assert node.edges == {second.number: 3} and second.edges == {
        after.number: 1}
    assert nodes.edges == 3


def test_a_node_keeps_its_most_frequent_edges():
    nodes = Nodes(1 << 20)
    node, = nodes.read(PLACE, 0, 10)
    others = [nodes.read(PLACE, n * 100, n * 100 + 10)[0]
              for n in range(1, MAX_EDGES + 2)]
    for other in others[:MAX_EDGES]:
        nodes.follow(node, other)
        nodes.follow(node, other)
    nodes.follow(node, others[0])
    nodes.follow(node, others[-1])
    assert len(node.edges) == nodes.edges == MAX_EDGES
    assert others[-1].number in node.edges and \
        others[0].number in node.edges


def test_counts_decay():
    nodes = Nodes(1 << 20)
    node, = nodes.read(PLACE, 0, 10)
    often, = nodes.read(PLACE, 100, 110)
    once, = nodes.read(PLACE, 200, 210)
    for _ in range(DECAY_COUNT - 1):
        nodes.count(node)
        nodes.follow(node, often)
    nodes.follow(node, once)
    nodes.count(node)
    assert node.count == DECAY_COUNT // 2
    assert node.edges == {often.number: (DECAY_COUNT - 1) // 2}
    assert nodes.edges == 1


def test_nodes_are_found_where_they_are_whatever_is_read():
    """Against the plainest list of borders there is."""
    rng = random.Random(7)
    nodes = Nodes(1 << 24)
    covered, cuts = set(), set()
    for _ in range(300):
        start = rng.randrange(500)
        end = start + rng.randrange(1, 40)
        nodes.read(PLACE, start, end)
        covered.update(range(start, end))
        cuts.update((start, end))
    spans = ranges(nodes)
    assert {start for start, _ in spans} == {
        byte for byte in covered if byte in cuts or byte - 1 not in covered}
    assert all(span[1] <= next_span[0]
               for span, next_span in zip(spans, spans[1:]))
    assert sum(end - start for start, end in spans) == len(covered)


# -- what follows what ------------------------------------------------------


def test_a_chain_that_comes_again_is_fetched_from_its_first_miss_on():
    graph = Graph(SETTINGS)
    chain(graph, (100, 900, 300, 700, 500))
    assert read(graph, 5000) == []
    lose(graph)
    wants = chain(graph, (100,))[0]
    assert wants == [(900, 10), (300, 10), (700, 10), (500, 10)]


def test_the_likely_comes_first_and_the_unlikely_not_at_all():
    graph = Graph(SETTINGS, window=1, miss_threshold=0.25)
    for client, after in enumerate((900, 900, 900, 300, 300, 5000)):
        chain(graph, (100, after), client=client)
    lose(graph)
    assert read(graph, 100) == [(900, 10), (300, 10)]


def test_expansion_is_balanced_over_depth_and_breadth():
    """Two steps of 0.9 and 0.9 go before one of 0.5: neither depth nor
    breadth first would."""
    graph = Graph(SETTINGS, window=1)
    nodes = graph.nodes
    root, near, far, side = (
        nodes.read(PLACE, n * 100, n * 100 + 10)[0] for n in range(1, 5))
    for node in (root, near, far, side):
        node.count = 20
    root.edges = {near.number: 18, side.number: 10}
    near.edges = {far.number: 18}
    root.degree = 8
    assert [(round(want.confidence, 2), want.offset) for want
            in graph.on_request(Access('a', 'c', 'x', 100, 10, END, False,
                                       0.0), 1 << 40)] == [
        (0.9, 200), (0.81, 300), (0.5, 400)]


def test_a_miss_has_a_lower_threshold_than_a_trigger():
    graph = Graph(SETTINGS, window=1, miss_threshold=0.2,
                  ahead_threshold=0.6)
    for after in (900, 300):
        chain(graph, (100, after), client=after)
    lose(graph)
    assert read(graph, 100) == [(900, 10), (300, 10)]
    for after in (600, 700):
        chain(graph, (500, after), client=after)
    lose(graph)
    node = graph.nodes.overlapping(PLACE, 500, 510)[0]
    node.tag, node.root = True, node.number
    assert read(graph, 500, hit=True, client='t') == []
    assert len(read(graph, 500, client='m')) == 2


def test_reads_of_two_clients_do_not_follow_one_another():
    graph = Graph(SETTINGS)
    for first, second in ((100, 150), (300, 350), (500, 550)):
        read(graph, first, client='c')
        read(graph, second, client='d')
    lose(graph)
    assert read(graph, 100, client='e') == [(300, 10), (500, 10)]


def test_the_window_bridges_a_stranger():
    graph = Graph(SETTINGS, window=2)
    chain(graph, (100, 900, 300))
    read(graph, 70000)
    chain(graph, (100, 4444, 900, 300))
    read(graph, 90000)
    read(graph, 90500)
    lose(graph)
    assert (900, 10) in read(graph, 100)


def test_accounts_share_nothing():
    graph = Graph(SETTINGS)
    for _ in range(3):
        chain(graph, (100, 900, 300), account='a')
        read(graph, 70000)
    lose(graph)
    assert read(graph, 100, account='b') == []
    assert read(graph, 100, account='a') != []


# -- streams ---------------------------------------------------------------


def test_reads_of_a_stream_do_not_enter_the_graph():
    graph = Graph(SETTINGS)
    for unit in range(50):
        assert read(graph, unit * UNIT) == []
    assert nodes_of(graph) == [(0, 500)]
    assert graph.counts()['edges'] == 0


def test_a_stream_that_comes_again_is_fetched_whole():
    graph = Graph(SETTINGS)
    for unit in range(20):
        read(graph, unit * UNIT)
    read(graph, 9000)
    lose(graph)
    wants = read(graph, 0)
    assert wants == [(10, 190), (9000, 10)]
    arrive(graph, wants)
    for unit in range(1, 20):
        assert read(graph, unit * UNIT, hit=True) == []
    assert nodes_of(graph) == [(0, 10), (10, 200), (9000, 9010)]


def test_no_want_is_longer_than_the_largest_degree():
    graph = Graph(SETTINGS)
    for unit in range(100):
        read(graph, unit * UNIT)
    lose(graph)
    assert read(graph, 0) == [(10, 32 * UNIT)]


def test_what_follows_a_stream_follows_its_end():
    graph = Graph(SETTINGS)
    for _ in range(2):
        chain(graph, (0, 10, 20, 9000))
        read(graph, 70000)
    lose(graph)
    wants = chain(graph, (0,))[0]
    assert wants[:2] == [(10, 20), (9000, 10)]


# -- adaptation and memory --------------------------------------------------


def begun(length=12):
    """A chain that is known: every place, and its graph."""
    graph = Graph(SETTINGS)
    places = [n * 1000 for n in range(1, length + 1)]
    chain(graph, places)
    read(graph, 500000)
    lose(graph)
    return graph, places


def arrive(graph, wants, waited=False):
    for offset, length in wants:
        graph.on_arrival('a', 'x', offset, length, waited, 0.0)


def test_a_tagged_hit_brings_the_next_ones():
    graph, places = begun()
    wants = read(graph, places[0])
    assert wants == [(place, 10) for place in places[1:5]]
    arrive(graph, wants)
    assert read(graph, places[1], hit=True) == []
    # p = 4 and g = 2: places[2] has the tag.
    more = read(graph, places[2], hit=True)
    assert more == [(place, 10) for place in places[5:9]]


def test_the_degree_grows_when_the_last_is_read():
    graph, places = begun()
    arrive(graph, read(graph, places[0]))
    root = graph.nodes.overlapping(PLACE, places[0], places[0] + 1)[0]
    assert (root.degree, root.trigger) == (4, 2)
    node = graph.nodes.overlapping(PLACE, places[4], places[4] + 1)[0]
    node.tag = False
    read(graph, places[4], hit=True)
    assert root.degree == 5


def test_a_reader_that_waits_moves_the_trigger():
    graph, places = begun()
    read(graph, places[0])
    read(graph, places[1])                    # it is on its way
    root = graph.nodes.overlapping(PLACE, places[0], places[0] + 1)[0]
    assert (root.degree, root.trigger) == (4, 3)


def test_what_leaves_unread_is_kept_once_and_lowers_the_degree():
    graph, places = begun()
    arrive(graph, read(graph, places[0]))
    root = graph.nodes.overlapping(PLACE, places[0], places[0] + 1)[0]
    where = ('a', 'x', places[1], 10, 0.0)
    assert graph.on_last_chance(*where)
    assert not graph.on_last_chance(*where)
    assert (root.degree, root.trigger) == (3, 1)


@pytest.mark.parametrize('elsewhere, kept', [(3, True), (4, False)])
def test_what_its_reader_has_left_behind_is_not_kept(elsewhere, kept):
    """The fourth after a place: in vain once four others were read."""
    graph, places = begun()
    arrive(graph, read(graph, places[0]))
    for turn in range(elsewhere):
        read(graph, 90000 + 100 * turn)
    assert graph.on_last_chance('a', 'x', places[4], 10, 0.0) == kept


def test_what_was_fetched_in_vain_is_not_fetched_again_until_it_is_read():
    graph, places = begun()
    arrive(graph, read(graph, places[0]))
    graph.on_evict('a', 'x', places[1], 10, False, 0.0)
    for place in places[2:5]:
        graph.on_evict('a', 'x', place, 10, True, 0.0)
    assert (places[1], 10) not in read(graph, places[0])
    lose(graph)
    read(graph, places[1], client='d')
    lose(graph)
    assert (places[1], 10) in read(graph, places[0])


def test_what_its_reader_never_came_near_was_not_in_vain():
    """He left the chain after the first: that the second comes next was
    wrong, of the third nothing is known."""
    graph, places = begun()
    arrive(graph, read(graph, places[0]))
    for place in places[1:5]:
        graph.on_evict('a', 'x', place, 10, False, 0.0)
    graph.on_evict('a', 'x', places[0], 10, True, 0.0)
    wants = read(graph, places[0], client='d')
    assert (places[1], 10) not in wants
    assert wants[:3] == [(place, 10) for place in places[2:5]]


def test_of_a_stream_only_what_was_not_read_is_wrong():
    graph = Graph(SETTINGS)
    for unit in range(20):
        read(graph, unit * UNIT)
    read(graph, 9000)
    lose(graph)
    arrive(graph, read(graph, 0))
    for unit in range(10, 20):
        graph.on_evict('a', 'x', unit * UNIT, UNIT, False, 0.0)
    for unit in range(1, 10):
        graph.on_evict('a', 'x', unit * UNIT, UNIT, True, 0.0)
    wants = read(graph, 0)
    assert (10, 90) in wants and (100, 100) not in wants


def test_a_chain_behind_a_slow_back_end_is_read_without_misses():
    """Forty places over and over, in a cache that holds thirty of them and
    behind a second of latency."""
    graph = Graph(Settings(UNIT, 32))
    host = Host(graph, UNIT, 30, lambda n: 1.0)
    rng = random.Random(3)
    places = rng.sample(range(0, 100000, 2), 40)
    at = 0.0
    waits = []
    for _ in range(30):
        for place in places:
            waits.append(host.read(at, place))
            at += waits[-1] + 0.2
    assert all(waits[:40])
    assert sum(wait > 0 for wait in waits[-400:]) < 40
    assert host.count['wasted'] <= host.count['useful'] * 0.1


# -- bounds and restarts -----------------------------------------------------


def test_a_hostile_trace_stays_within_the_bound_of_bytes():
    """Ranges that split one another without end, accounts and clients
    without end, nothing ever again; what is allocated is what is said."""
    limit = 3 << 20
    rng = random.Random(11)
    tracemalloc.start()
    graph = Graph(Settings(4096, state_bytes=limit))
    before = tracemalloc.get_traced_memory()[0]
    for number in range(20000):
        graph.on_request(Access(
            'a%d' % rng.randrange(50), number, 'o%d' % rng.randrange(200),
            rng.randrange(1 << 22), rng.randrange(1, 1 << 16), 1 << 23,
            False, float(number)), 1 << 40)
        assert graph.state_bytes() <= limit
    took = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert graph.state_bytes() > limit * 0.6
    assert took <= limit


def test_what_is_known_survives_a_restart():
    graph, places = begun()
    again = Graph(SETTINGS)
    again.load(json.loads(json.dumps(graph.save())))
    assert read(again, places[0]) == read(graph, places[0]) != []


@pytest.mark.parametrize('damage', [
    {}, {'version': 2, 'nodes': []}, {'version': 1},
    {'version': 1, 'nodes': [[1, 'a', 'x']]},
    {'version': 1, 'nodes': [[1, 'a', 'x', 9, 3, 1, 0, 0, 0, []]]},
    {'version': 1, 'nodes': [[1, 'a', 'x', 0, 3, 1, 0, 0, 0, [[2, 'y']]]]},
    {'version': 1, 'nodes': [[1, 'a', 'x', 0, 9, 1, 0, 0, 0, []],
                             [2, 'a', 'x', 5, 12, 1, 0, 0, 0, []]]}])
def test_a_damaged_save_changes_nothing(damage):
    graph, places = begun()
    before = graph.save()
    with pytest.raises(ValueError):
        graph.load(damage)
    assert graph.save() == before


def test_a_damaged_save_leads_from_no_account_to_another():
    graph = Graph(SETTINGS)
    graph.load({'version': 1, 'nodes': [
        [1, 'a', 'x', 0, 10, 3, 0, 0, 0, [[2, 3]]],
        [2, 'b', 'x', 50, 60, 3, 0, 0, 0, []]]})
    assert read(graph, 0) == []
