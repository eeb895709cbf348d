"""The passes of simulated replicators, and the duties of an ssync session.

A node offers each partition to its primaries where listings differ, and
removes a partition that it only stands in for once all primaries have it.
Swift promises this of its replicator, and only this is simulated; the sessions
themselves are real (``sim.traffic.ssync``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Tuple

from swift_dss.sim import judge
from swift_dss.sim.traffic import reconstructor, ssync
from swift_dss.sim.model import Violation
from swift_dss.sim.conf import PREFIX
from swift_dss.sim.disks import policy_of
from swift_dss.sim.node import Node
from swift_dss.sim.server import policies
from swift_dss.sim.world.ring import CODED, DEVICE
from swift_dss.wire import layout

if TYPE_CHECKING:
    from swift_dss.sim.judge import Replica
    from swift_dss.sim.traffic.scene import Scene

#: Of a session of a few objects; some end before theirs breaks.
_MOST_MESSAGES = 24


def one_pass(cluster: Scene, node: Node, breaks: bool = False) -> int:
    """Offer all that a node has; how many sessions that took.

    :param breaks: each connection breaks after a few messages
    :raises Violation: a session broke its contract
    """
    if node.name in cluster.cut:
        return 0
    return sum(
        reconstructor.one_pass(cluster, node, partition, breaks)
        if policy == CODED else
        _replicate(cluster, node, policy, partition, breaks)
        for policy, partition in node.partitions())


def _replicate(cluster: Scene, node: Node, policy: int,
               partition: str, breaks: bool) -> int:
    if node.name in cluster.ring.primaries(partition):
        return _push(cluster, node, policy, partition, breaks)[0]
    ring_policy = policies()[policy]
    with node.at_work(), node.server.managers[ring_policy].partition_lock(
            DEVICE, ring_policy, partition, name='replication', timeout=1):
        pushed, everywhere = _push(cluster, node, policy, partition, breaks)
        if everywhere:
            node.drop_partition(policy, partition)
    return pushed


def _push(cluster: Scene, node: Node, policy: int, partition: str,
          breaks: bool) -> Tuple[int, bool]:
    """Offer a partition to its primaries.

    :returns: how many sessions that took, and if all primaries have it
    """
    primaries = cluster.ring.primaries(partition)
    pushed = 0
    everywhere = True
    for peer in primaries:
        if peer == node.name:
            continue
        if peer in cluster.cut:
            everywhere = False
            continue
        target = cluster.nodes[peer]
        # A node that stands in offers all that it has.
        suffixes = [suffix for suffix in node.suffixes(policy, partition)
                    if node.name not in primaries
                    or node.listing(policy, partition, suffix)
                    != target.listing(policy, partition, suffix)]
        if not suffixes:
            continue
        cluster.dice.shuffle(suffixes)
        pushed += 1
        messages = cluster.dice.randint(1, _MOST_MESSAGES) if breaks else -1
        everywhere = _session(cluster, node, target, policy, partition,
                              suffixes, messages) and everywhere
    return pushed, everywhere


def _session(cluster: Scene, node: Node, target: Node, policy: int,
             partition: str, suffixes: List[str], messages: int) -> bool:
    """One session of ssync; True if it succeeded.

    :param messages: that pass before its connection breaks; -1: all
    :raises Violation: bytes of S3 were moved for it, or one object's
        failure was another's
    """
    reads = cluster.bucket.reads
    del reads[:]
    had = {object_hash: (node.look(object_hash, mounted=True),
                         target.look(object_hash))
           for object_hash in node.hashes()
           if cluster.ring.partition(object_hash) == partition
           and policy_of(object_hash) == policy}
    with node.at_work():
        done = ssync.session(
            node.server, target.server, partition, policy, suffixes,
            target.at_work, messages)
    at_hand = {object_hash for object_hash, (ours, _) in had.items()
               if ours is not None and _may_read(cluster, node, object_hash,
                                                 ours)}
    for key, _first, _end in reads:
        parsed = layout.parse_remote_key(PREFIX, key)
        # A bundle's index is read from its end, and a small bundle with it.
        if parsed is not None and parsed[0].object_hash not in at_hand:
            raise Violation('%s: a stub that moved from %s to %s has cost '
                            'bytes of S3' % (
                                partition, node.name, target.name))
    if done.is_cut:
        cluster.coverage.fault('session cut')
        return False
    for object_hash, (ours, theirs) in sorted(had.items()):
        if ours is None or not ours.local or (
                theirs is not None and theirs.timestamp >= ours.timestamp):
            continue
        now = target.look(object_hash)
        if now is None or now.timestamp < ours.timestamp:
            raise Violation(
                '%s: %s had all bytes of %s, and a session with %s has not '
                'brought them there' % (
                    cluster.name_of(object_hash), node.name, ours.timestamp,
                    target.name))
    return done.success


def _may_read(cluster: Scene, node: Node, object_hash: str,
              ours: Replica) -> bool:
    """Of bytes that the sender has, its daemon may put S3's copy right; and a
    place that no record names is proven by its bytes."""
    return ours.local or judge.key_of(
        node.paths(object_hash, ours)[0]) not in cluster.bucket.keys
