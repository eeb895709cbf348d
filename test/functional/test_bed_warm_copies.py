"""One warm copy of each object, on a bed: stays, is read, is handed on."""

from __future__ import annotations

import itertools
import json
import os
from typing import Any, Dict, List, Sequence

import pytest
from support import pattern, wait_until
from support.nodes.beds import ask, bed

from swift_dss.strategy.eviction.warmth import rank_of

pytestmark = [pytest.mark.cluster, pytest.mark.root]

SIZE = 200000
COUNT = 24
MIB = 1024 * 1024


@pytest.fixture(scope='module')
def made():
    """Four nodes; their SSDs have room for 40 % of the copies."""
    if os.geteuid() != 0:
        pytest.skip('needs root')
    copies = 3 * COUNT * SIZE
    with bed(nodes=4, options={
            'gateway': {'enabled': 'false'},
            'tier': {'ssd_bytes': str(int(0.4 * copies / 4 / 0.9)),
                     'low_watermark': '0.88', 'high_watermark': '0.9',
                     'clean_after_seconds': '0.1',
                     'interval_seconds': '0.5'}}) as new_bed:
        yield new_bed


@pytest.fixture(scope='module')
def bodies(made) -> Dict[str, bytes]:
    """What was uploaded, and settled: each node has as many warm ones."""
    client = made.client()
    client.container('warm')
    written: Dict[str, bytes] = {}
    warm = dict.fromkeys(made.plan.nodes, 0)
    for number in itertools.count():
        if len(written) == COUNT:
            break
        name = 'warm/%d' % number
        node = by_rank(made, name)[0]
        if warm[node] == COUNT // 4:
            continue
        warm[node] += 1
        written[name] = pattern(SIZE, name)
        assert client.put(name, written[name], {
            'X-DSS-Object-Class': 'gold'}).status == 201
        # Before cold copies are on the HDD too they cannot leave, and uploads
        # that find the SSD full go to the HDD.
        settle(made, by_rank(made, name))
    return written


def settle(made, nodes: Sequence[str] = ()) -> None:
    for node in nodes or made.plan.nodes:
        assert ask(made, node, 'settle')['settled']


def by_rank(made, name: str) -> List[str]:
    """Nodes of the primaries, the one with the warm copy first."""
    path = '/AUTH_test/' + name
    primaries = made.primaries(path)
    return sorted(primaries, key=lambda node: rank_of(
        made.hash_of(path), primaries.index(node), len(primaries)))


def on_ssd(made, name: str) -> List[str]:
    return sorted(file.node for file in made.files('/AUTH_test/' + name)
                  if 'ssd' in file.tiers)


def listed(made, node: str) -> Dict[str, Any]:
    done = made.tool(node, 'tier', 'ls', '--container', 'AUTH_test/warm',
                     '--json', '--config', '{conf}')
    assert done.returncode == 0, done.stderr
    return {row['name']: row for row in json.loads(done.stdout)}


def row_of(made, node: str, name: str) -> Dict[str, Any]:
    """What a node lists of an object, once it does."""
    row: Dict[str, Any] = wait_until(
        lambda: listed(made, node).get('/AUTH_test/' + name), 30,
        '%s in the listing of %s' % (name, node))
    return row


def test_under_pressure_one_copy_of_each_stays_on_ssd(made, bodies):
    for name in bodies:
        assert by_rank(made, name)[0] in on_ssd(made, name), name
    copies = sum(len(on_ssd(made, name)) for name in bodies)
    assert copies < 1.5 * COUNT, copies


def test_the_listing_says_ranks(made, bodies):
    rows = {node: listed(made, node) for node in made.plan.nodes}
    for name in bodies:
        for rank, node in enumerate(by_rank(made, name)):
            row = rows[node]['/AUTH_test/' + name]
            assert row['copy_rank'] == rank
            assert [shown['warmth'] for shown in row['classes']] == [
                'cold' if rank else 'warm']


def test_every_read_finds_the_warm_copy(made, bodies):
    client = made.client()
    for _ in range(3):
        for name, body in bodies.items():
            reply = client.get(name)
            assert reply.body == body
            assert 'ssd' in reply.headers['x-dss-tier'], name


def test_the_role_of_a_lost_copy_is_handed_on(made, bodies):
    client = made.client()
    lost = made.plan.nodes[0]
    mine = [name for name in bodies if by_rank(made, name)[0] == lost]
    assert mine

    def is_read_from(name: str, second: str) -> bool:
        # A read is what moves a copy: where the SSD was full just then, the
        # next one does.
        assert client.get(name).body == bodies[name]
        return second in on_ssd(made, name)

    made.node(lost).kill()
    try:
        for name in mine:
            second = by_rank(made, name)[1]
            wait_until(lambda name=name, second=second:
                       is_read_from(name, second), 30,
                       '%s on the SSD of %s' % (name, second))
            assert 'ssd' in client.get(name).headers['x-dss-tier']
    finally:
        made.node(lost).start()
        made.await_all()
    for name, body in bodies.items():
        assert client.get(name).body == body


def test_a_handoff_is_cold_and_the_place_it_is_for_is_not(made, bodies):
    client = made.client()
    lost = made.plan.nodes[1]
    name = next(name for name in ('warm/late%d' % number
                                  for number in itertools.count())
                if by_rank(made, name)[0] == lost)
    handoff, = set(made.plan.nodes) - set(by_rank(made, name))
    body = pattern(SIZE, name)

    def reaches_the_handoff() -> bool:
        # The proxy passes over a node that failed seconds ago.
        assert client.put(name, body, {
            'X-DSS-Object-Class': 'gold'}).status == 201
        return handoff in {file.node
                           for file in made.files('/AUTH_test/' + name)}

    made.node(lost).kill()
    try:
        wait_until(reaches_the_handoff, 30, 'a copy on ' + handoff)
        settle(made, [handoff])
        row = row_of(made, handoff, name)
        assert (row['copy_rank'], row['classes'][0]['warmth']) == (3, 'cold')
    finally:
        made.node(lost).start()
        made.await_all()
    made.node(handoff).run_once('object-replicator')
    settle(made)
    row = row_of(made, lost, name)
    assert (row['copy_rank'], row['classes'][0]['warmth']) == (0, 'warm')
    assert client.get(name).body == body


def test_ranks_go_with_places_in_a_rebalance(made, bodies):
    client = made.client()
    made.add()
    made.rebalance()
    settle(made)
    rows = {node: listed(made, node) for node in made.plan.nodes}
    for name, body in bodies.items():
        assert client.get(name).body == body
        for rank, node in enumerate(by_rank(made, name)):
            assert rows[node]['/AUTH_test/' + name]['copy_rank'] == rank
    came = listed(made, 'n5')
    assert came
    for name, row in came.items():
        rank = by_rank(made, name[len('/AUTH_test/'):]).index('n5')
        assert {shown['warmth'] for shown in row['classes']} == {
            'cold' if rank else 'warm'}
