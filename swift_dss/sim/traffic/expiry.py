"""Objects that delete themselves: X-Delete-At, and a pass of the expirer.

A pass sends a DELETE with X-If-Delete-At for each entry of the queue
(:mod:`swift_dss.sim.traffic.expirer`) whose time has come, and each replica
decides by itself whether that is its time. One that does not know yet of a
POST may take a DELETE that the others refuse. Swift promises no more, so such
a DELETE is one that was not acknowledged.
"""

from __future__ import annotations

from typing import Iterable, Set, Tuple

from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.model import Attempt, Violation
from swift_dss.sim.traffic import posts
from swift_dss.sim.traffic.scene import Scene


def one_pass(scene: Scene, misses: Iterable[str] = ()) -> Tuple[int, int]:
    """Delete all objects that are due.

    :returns: their number, and the number of replicas that took a DELETE

    :param misses: nodes that no request reaches
    :raises Violation: one took it that has another time, or none
    """
    deleted = took = 0
    lost = set(misses) | scene.cut
    for until, name in scene.expirer.due(scene.clock.now):
        taken, refused = _delete(scene, until, name, lost)
        took += taken
        quorum = scene.quorum(policy_of(hash_of(name)))
        if taken >= quorum:
            deleted += 1
        if taken >= quorum or refused >= quorum:
            # Done, or something newer is there.
            scene.expirer.done(until, name)
    return deleted, took


def _delete(scene: Scene, until: str, name: str,
            lost: Set[str]) -> Tuple[int, int]:
    """How many took it, and how many have something newer."""
    object_hash, stamp = hash_of(name), '%s.00000' % until
    policy = policy_of(object_hash)
    history = scene.model.name(name)
    taken = refused = 0
    for holder in scene.ring.of(object_hash, policy):
        if holder in lost:
            continue
        node = scene.nodes[holder]
        had = posts.until(node, object_hash)
        status = node.ask('DELETE', name, {
            'X-Timestamp': stamp, 'X-If-Delete-At': until,
            'X-Backend-Clean-Expiring-Object-Queue': 'no'}).status_int
        if status == 204 and had != until:
            raise Violation(
                '%s: %s has deleted at %s an object due at %s' % (
                    name, holder, until, had or 'no time'))
        taken += status == 204
        refused += status == 409
    if taken and history.wrote(stamp) is None:
        history.tried(Attempt(stamp, None))
    if taken >= scene.quorum(policy):
        history.acknowledge(stamp)
    return taken, refused
