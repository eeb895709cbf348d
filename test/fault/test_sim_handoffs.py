"""A node that leaves the ring gives up no byte that the others need.

Real senders, receivers, object servers and daemons, in the simulation.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Iterator, List

import pytest

from swift_dss.objserver.travel import parting
from swift_dss.sim.cluster import CLASSES, Cluster
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.node import Node
from swift_dss.sim.studies.stage import stage

#: S3 is to have the only copy of each; of a class that is sent at once.
REPLICA, OTHER = '/a/c0/k', '/a/c0/o'
FRAGMENT = '/a/e0/k'
BODY = random.Random(1).randbytes(9000)


@pytest.fixture
def scene() -> Iterator[Cluster]:
    with stage(random.Random(1211), 5, hdds=False) as cluster:
        yield cluster


def leaver_of(scene: Cluster, name: str, recorded: bool) -> Node:
    """The node that had a version before its primaries changed, and has all
    bytes of it: they have stubs.

    :param recorded: it knows that S3 has the version, too
    """
    assert scene.write(name, BODY, CLASSES[name], ()).startswith('ack')
    leaver = scene.nodes[scene.ring.of(
        hash_of(name), policy_of(hash_of(name)))[0]]
    others = [node for node in scene.nodes.values() if node is not leaver]
    for _ in range(4):
        if recorded:
            leaver.work(parts=('gateway',))
        for node in others:
            node.work()
        scene.clock.pass_(60.0)
    scene.ring.names.remove(leaver.name)
    for _ in range(2):
        for node in others:
            scene.replicate(node.name)
            node.work()
            node.demote()
    assert has_bytes(leaver, name)
    assert bool(leaver.look(hash_of(name)).key) is recorded
    for node in primaries_of(scene, name):
        seen = node.look(hash_of(name))
        assert seen is not None and not seen.local, scene.traces(name)
    scene.clock.pass_(60.0)
    scene.bucket.counts.clear()
    return leaver


def primaries_of(scene: Cluster, name: str) -> List[Node]:
    return [scene.nodes[primary] for primary in scene.ring.of(
        hash_of(name), policy_of(hash_of(name)))]


def has_bytes(node: Node, name: str) -> bool:
    seen = node.look(hash_of(name))
    return seen is not None and seen.local and seen.body is not None


def key_of(node: Node, name: str) -> str:
    """Of the version, or the fragment, that a node has."""
    seen = node.look(hash_of(name))
    assert seen is not None
    key, = [key for key in node.bucket.keys if key.endswith('%s/%s%s' % (
        hash_of(name), seen.timestamp, '' if seen.frag_index is None
        else '#%d' % seen.frag_index))]
    return key


def asked(scene: Cluster, node: Node) -> dict:
    return {verb: number for (name, verb), number
            in scene.bucket.counts.items() if name == node.name}


@pytest.mark.parametrize('name', [REPLICA, FRAGMENT])
@pytest.mark.parametrize('recorded', [True, False], ids=['known', 'dirty'])
def test_a_key_that_s3_lost_is_sent_again_by_who_leaves(
        scene: Cluster, name: str, recorded: bool) -> None:
    leaver = leaver_of(scene, name, recorded)
    key = key_of(leaver, name)
    del scene.bucket.keys[key]
    for _ in range(4):
        scene.replicate(leaver.name)
        if key not in scene.bucket.keys:
            assert has_bytes(leaver, name)
        leaver.work()
        scene.clock.pass_(60.0)
    assert leaver.look(hash_of(name)) is None
    assert key in scene.bucket.keys
    assert scene.read(name).startswith('200')
    scene.check()


@pytest.mark.parametrize('name', [REPLICA, FRAGMENT])
def test_other_bytes_under_a_key_are_put_right_by_who_leaves(
        scene: Cluster, name: str) -> None:
    leaver = leaver_of(scene, name, True)
    key = key_of(leaver, name)
    right = scene.bucket.keys[key]
    scene.bucket.keys[key] = replace(right, data=b'x' + right.data[1:],
                                     etag='')
    for _ in range(4):
        scene.replicate(leaver.name)
        if scene.bucket.keys[key].data != right.data:
            assert has_bytes(leaver, name)
        leaver.work()
        scene.clock.pass_(60.0)
    assert leaver.look(hash_of(name)) is None
    assert scene.bucket.keys[key].data == right.data
    scene.check()


@pytest.mark.parametrize('name', [REPLICA, FRAGMENT])
def test_who_leaves_asks_once_for_each_version(
        scene: Cluster, name: str) -> None:
    """Three primaries want to know."""
    leaver = leaver_of(scene, name, True)
    scene.replicate(leaver.name)
    assert leaver.look(hash_of(name)) is None
    assert asked(scene, leaver) == {'HEAD': 1}
    assert scene.bucket.by_verb() == {'HEAD': 1}


@pytest.mark.parametrize('name', [REPLICA, FRAGMENT])
def test_a_sign_of_life_fails_no_session(
        scene: Cluster, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that waits for S3 posts to an object that is not there."""
    leaver = leaver_of(scene, name, True)
    posted = []
    for node in primaries_of(scene, name):
        app = node.server.app

        def answer(request: Any, name: str = node.name,
                   post: Any = app.POST) -> Any:
            posted.append((name, request.path.split('/', 3)[3]))
            return post(request)
        monkeypatch.setattr(app, 'POST', answer)
    monkeypatch.setattr(parting, '_SIGN_OF_LIFE_SECONDS', 0.0)
    scene.replicate(leaver.name)
    assert leaver.look(hash_of(name)) is None
    assert posted and {path for _node, path in posted} == {
        '.dss/.dss/notice'}
    assert all(node.hashes() == [hash_of(name)]
               for node in primaries_of(scene, name))


def test_nobody_is_asked_about_bytes_that_the_primaries_have(
        scene: Cluster) -> None:
    scene.write(REPLICA, BODY, CLASSES[REPLICA], ())
    leaver = primaries_of(scene, REPLICA)[0]
    leaver.work(parts=('gateway',))
    scene.ring.names.remove(leaver.name)
    scene.bucket.counts.clear()
    scene.replicate(leaver.name)
    assert leaver.look(hash_of(REPLICA)) is None
    assert all(has_bytes(node, REPLICA)
               for node in primaries_of(scene, REPLICA))
    assert not scene.bucket.counts


def test_a_silent_s3_keeps_one_version_and_no_other(
        scene: Cluster) -> None:
    leaver = leaver_of(scene, REPLICA, True)
    # The same node has this one, too, and a primary lacks it.
    mate = next(name for name in CLASSES if name != REPLICA
                and scene.ring.partition(hash_of(name))
                == scene.ring.partition(hash_of(REPLICA))
                and policy_of(hash_of(name)) == 0)
    stamp = scene.stamp()
    assert leaver.put(mate, stamp, BODY, CLASSES[mate])
    scene.bucket.mood = 'away'
    scene.replicate(leaver.name)
    assert has_bytes(leaver, REPLICA)
    for node in primaries_of(scene, mate):
        assert node.look(hash_of(mate)).timestamp == stamp
    scene.bucket.mood = 'well'
    scene.clock.pass_(600.0)
    leaver.work(parts=())
    scene.replicate(leaver.name)
    assert leaver.look(hash_of(REPLICA)) is None
