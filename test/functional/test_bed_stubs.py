"""What is in S3 alone moves among nodes, and not a byte of it moves."""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Dict, Iterator, List

import pytest
from support import md5, pattern, wait_until
from support.nodes.beds import add_classes, ask, bed

from swift_dss.aio.bed.bed import Bed

pytestmark = [pytest.mark.cluster, pytest.mark.root]

#: A bundle whose HEAD is older may have gone, and is asked for again.
KNOWN_SECONDS = 5.0
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
            'remote_after_seconds': '1'}}) as new_bed:
        add_classes(new_bed, CLASSES)
        yield new_bed


@pytest.fixture(scope='module')
def bodies(made: Bed) -> Dict[str, bytes]:
    """Objects that nobody but S3 has."""
    written = _put(made, KINDS)
    wait_until(lambda: _all_away(made, written), 120, 'bytes to leave')
    return written


def _put(made: Bed, kinds: Any) -> Dict[str, bytes]:
    client = made.client()
    written = {}
    for container, (policy, size, name) in kinds.items():
        client.container(container, policy)
        for number in range(COUNT):
            path = '%s/%d' % (container, number)
            written[path] = pattern(size + number, path)
            assert client.put(path, written[path], {
                'X-DSS-Object-Class': name}).status == 201
    return written


def _all_away(made: Bed, bodies: Dict[str, bytes]) -> bool:
    for node in made.plan.nodes:
        for container in KINDS:
            ask(made, node, 'demote', to='remote',
                container='AUTH_test/' + container)
    return all(tiers == ['remote'] * 3
               for tiers in _tiers(made, bodies).values())


def _tiers(made: Bed, bodies: Dict[str, bytes]) -> Dict[str, List[str]]:
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(bodies, pool.map(lambda path: [
            file.tiers for file in made.files('/AUTH_test/' + path)
            if file.kind == 'data'], bodies)))


def _asked(made: Bed) -> Dict[str, List[str]]:
    """Who asked for what since the last reset, but for probes."""
    by_verb: Dict[str, List[str]] = {'GET': [], 'PUT': [], 'HEAD': []}
    for request in made.s3.requests():
        if request['operation'] in by_verb and '.dss' not in request['key']:
            by_verb[request['operation']].append('%s %s: %d' % (
                request['node'], request['key'], request['got']))
    return by_verb


def _twice(made: Bed, new: str) -> Dict[str, List[Any]]:
    """HEADs of one node for one key, if it knew the answer: when each came,
    how long it took, and its status.

    :param new: a node that may ask once more for a bundle (``_moved``)
    """
    by_key: Dict[str, List[Any]] = {}
    for request in made.s3.requests():
        if request['operation'] == 'HEAD' and '.dss' not in request['key']:
            by_key.setdefault('%s %s' % (request['node'], request['key']),
                              []).append(
                (request['time'], request['seconds'], request['status']))
    return {key: same for key, same in by_key.items() if sum(
        ' bundles/' not in key or after[0] - before[0] < KNOWN_SECONDS
        for before, after in pairwise(sorted(same)))
        > key.startswith(new + ' bundles/')}


def _moved(made: Bed, bodies: Dict[str, bytes], label: str,
           new: str) -> None:
    """Move stubs, and look at what S3 is asked for.

    :param new: a node with a new book of bundles. If stubs came before its
        daemon had looked for records that name a bundle, it may look once
        if it kept that bundle: one HEAD.
    """
    made.s3.counts(reset=True)
    passes = made.rebalance()
    asked = _asked(made)
    came = sum(sum(node_pass.arrived.values()) for node_pass in passes)
    print('figure: %s: %d objects, %d files came, S3 asked for %s' % (
        label, len(bodies), came, ', '.join('%d %s' % (
            len(keys), kind) for kind, keys in asked.items())))
    assert not asked['PUT'], asked
    # A bundle's proofs say what its members are, and its index does: a node
    # reads the one in one request, or the other in two, whatever number of
    # members comes. Of no version is a byte read for itself.
    indexes = Counter(said.rpartition(':')[0] for said in asked['GET'])
    assert all(said.split()[1].startswith('bundles/')
               for said in indexes), asked['GET']
    assert max(indexes.values(), default=0) <= 2, indexes
    # Each node at most once for a stub that came to it: for a bundle at once
    # for all members that come within seconds.
    assert len(asked['HEAD']) <= came, asked['HEAD']
    assert not _twice(made, new), _twice(made, new)
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
    # Members of a bundle that S3 had seconds ago are taken in without S3.
    time.sleep(KNOWN_SECONDS)
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
    add_classes(made, CLASSES, [new])
    _moved(made, bodies, 'join', new)
    assert _of_node(made, bodies, new)
    made.remove('n1')
    _moved(made, bodies, 'leave', new)
    before = _of_node(made, bodies, 'n2')
    made.lose_drive('n2', 'd1')
    assert not _of_node(made, bodies, 'n2')
    _moved(made, bodies, 'lost SSD', new)
    assert _of_node(made, bodies, 'n2') == before
    assert not made.quarantined()
    _read_all(made, bodies)


def _of_node(made: Bed, bodies: Dict[str, bytes], node: str) -> Any:
    return sorted(path for path in bodies for file in made.files(
        '/AUTH_test/' + path) if file.kind == 'data' and file.node == node)
