"""What is in S3 alone moves among nodes, and not a byte of it moves."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator, List

import pytest
from beds import bed
from support import md5, pattern, wait_until

from swift_dss.aio.bed.bed import Bed

pytestmark = [pytest.mark.cluster, pytest.mark.root]

#: Of each kind; 500 stubs and more in all.
COUNT = int(os.environ.get('SWIFT_DSS_BED_STUBS', '12'))
#: Container to policy, size and class.
KINDS = {'far-single': ('dss', 30000, 'gold'),
         'far-bundled': ('dss', 2000, 'tiny'),
         'far-ec': ('dss-ec', 60000, 'gold')}
NEAR = {'near': ('dss', 30000, 'near'), 'near-ec': ('dss-ec', 60000, 'near')}
CLASSES = """
[class:5]
name = tiny
rank = 5
bundle = true
[class:6]
name = near
rank = 6
remote = never
"""


@pytest.fixture(scope='module')
def made() -> Iterator[Bed]:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    with bed(nodes=3, options={'gateway': {
            'remote_after_seconds': '1'}}) as one:
        for name in one.plan.nodes + one.plan.proxies:
            _add_classes(one, name)
        yield one


def _add_classes(made: Bed, name: str) -> None:
    with open(made.plan.conf(name).path('etc', 'dss-classes.conf'),
              'a') as target:
        target.write(CLASSES)
    if name in made.plan.nodes:
        made.set_options({}, [name])
    else:
        made.member(name).restart('proxy-server')


@pytest.fixture(scope='module')
def bodies(made: Bed) -> Dict[str, bytes]:
    """Objects that nobody but S3 has."""
    found = _put(made, KINDS)
    wait_until(lambda: _all_away(made, found), 120, 'bytes to leave')
    return found


def _put(made: Bed, kinds: Any) -> Dict[str, bytes]:
    client = made.client()
    found = {}
    for container, (policy, size, name) in kinds.items():
        client.container(container, policy)
        for number in range(COUNT):
            path = '%s/%d' % (container, number)
            found[path] = pattern(size + number, path)
            assert client.put(path, found[path], {
                'X-DSS-Object-Class': name}).status == 201
    return found


def _all_away(made: Bed, bodies: Dict[str, bytes]) -> bool:
    for node in made.plan.nodes:
        for container in KINDS:
            made.tool(node, 'tier', 'demote', '--to', 'remote', '--container',
                      'AUTH_test/' + container, '--config', '{conf}')
    return all(tiers == ['remote'] * 3
               for tiers in _tiers(made, bodies).values())


def _tiers(made: Bed, bodies: Dict[str, bytes]) -> Dict[str, List[str]]:
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(bodies, pool.map(lambda path: [
            one.tiers for one in made.files('/AUTH_test/' + path)
            if one.kind == 'data'], bodies)))


def _asked(made: Bed) -> Dict[str, List[str]]:
    """Who asked for what since the last reset, but for probes."""
    found: Dict[str, List[str]] = {'GET': [], 'PUT': [], 'HEAD': []}
    for one in made.s3.requests():
        if one['operation'] in found and '.dss' not in one['key']:
            found[one['operation']].append('%s %s: %d' % (
                one['node'], one['key'], one['got']))
    return found


def _moved(made: Bed, bodies: Dict[str, bytes], what: str) -> None:
    made.s3.counts(reset=True)
    passes = made.rebalance()
    asked = _asked(made)
    came = sum(sum(one.arrived.values()) for one in passes)
    print('figure: %s: %d objects, %d files came, S3 asked for %s' % (
        what, len(bodies), came, ', '.join('%d %s' % (
            len(keys), kind) for kind, keys in asked.items())))
    assert not asked['PUT'], asked
    # A bundle's index says what its members are: each node reads it once,
    # in two requests, whatever number of members comes. Of no version is a
    # byte read for itself.
    indexes = Counter(said.rpartition(':')[0] for said in asked['GET'])
    assert all(said.split()[1].startswith('bundles/')
               for said in indexes), asked['GET']
    assert all(number <= 2 for number in indexes.values()), indexes
    # Each node for a stub that came to it, and for a bundle a minute.
    assert len(set(asked['HEAD'])) == len(asked['HEAD']), asked['HEAD']
    for path, tiers in _tiers(made, bodies).items():
        assert tiers == ['remote'] * 3, path


def _read_all(made: Bed, bodies: Dict[str, bytes]) -> None:
    client = made.client()
    for path, body in bodies.items():
        reply = client.get(path)
        assert (reply.status, md5(reply.body)) == (200, md5(body)), path


def test_all_that_is_near_comes_back_while_s3_is_away(
        made: Bed, bodies: Dict[str, bytes]) -> None:
    """One drive is new; one pass, beside stubs that have to wait."""
    near = _put(made, NEAR)
    wait_until(lambda: all(len(tiers) == 3 for tiers in _tiers(
        made, near).values()), 30, 'three copies')
    made.lose_drive('n3', 'd1')
    made.s3.fault('refuse')
    try:
        for daemon in ('object-replicator', 'object-reconstructor'):
            for node in ('n1', 'n2'):
                made.node(node).run_once(daemon)
        back = _of_node(made, near, 'n3')
        print('figure: S3 away, one drive replaced: %d of %d near objects '
              'came back in one pass' % (len(back), len(near)))
        assert back == sorted(near)
        assert not _of_node(made, bodies, 'n3')
        _read_all(made, near)
    finally:
        made.s3.heal()
    # The breaker asks S3 again by itself, before long.
    wait_until(lambda: _healed(made, bodies), 120, 'stubs to come back')
    assert not made.quarantined()


def _healed(made: Bed, bodies: Dict[str, bytes]) -> bool:
    made.rebalance()
    return _of_node(made, bodies, 'n3') == sorted(bodies)


def test_stubs_join_leave_and_survive_a_lost_ssd(
        made: Bed, bodies: Dict[str, bytes]) -> None:
    new = made.add()
    _add_classes(made, new)
    _moved(made, bodies, 'join')
    assert _of_node(made, bodies, new)
    made.remove('n1')
    _moved(made, bodies, 'leave')
    before = _of_node(made, bodies, 'n2')
    made.lose_drive('n2', 'd1')
    assert not _of_node(made, bodies, 'n2')
    _moved(made, bodies, 'lost SSD')
    assert _of_node(made, bodies, 'n2') == before
    assert not made.quarantined()
    _read_all(made, bodies)


def _of_node(made: Bed, bodies: Dict[str, bytes], node: str) -> Any:
    return sorted(path for path in bodies for one in made.files(
        '/AUTH_test/' + path) if one.kind == 'data' and one.node == node)
