"""Check the answers of a cluster that was mended and has settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Optional, Tuple

from swift_dss.sim.traffic import posts
from swift_dss.sim import pieces
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.model import Violation
from swift_dss.sim.node import OPEN_EXPIRED, Node, Unreadable
from swift_dss.sim.world.ring import CODED

if TYPE_CHECKING:
    from swift_dss.sim.cluster import Cluster


def check(cluster: Cluster) -> None:
    """After everything was mended and has settled.

    :raises Violation: a primary shows other than a name's history
        allows, or, of an erasure-coded object, not its own fragment
    """
    for name in sorted(cluster.model.names):
        check_name(cluster, name)


def check_name(cluster: Cluster, name: str) -> None:
    """The same of one name.

    :raises Violation: as :func:`check`
    """
    object_hash = hash_of(name)
    history = cluster.model.name(name)
    allowed = {attempt.timestamp: attempt.body
               for attempt in history.allowed()}
    is_stuck = pieces.is_stuck(cluster, object_hash)
    if policy_of(object_hash) == CODED and not is_stuck:
        _check_own(cluster, name)
    for asked in cluster.ring.of(object_hash, policy_of(object_hash)):
        try:
            stamp, body = _read_at_rest(cluster, name, cluster.nodes[asked])
        except Unreadable as err:
            raise Violation('%s: %s (%s)' % (name, err, '; '.join(
                cluster.traces(name)))) from err
        if not stamp and (is_stuck or not history.acknowledged):
            continue
        wrote = history.wrote(stamp)
        if is_stuck and wrote is not None and wrote.body == body \
                and stamp < history.acknowledged:
            # The newer fragment does not reach this node. Readers get it:
            # Cluster.check has seen to that.
            continue
        if stamp not in allowed or allowed[stamp] != body:
            raise Violation('%s: %s shows %s, and %s was acknowledged' % (
                name, asked, stamp or 'nothing', history.acknowledged))
        if body is not None:
            _check_registers(cluster, name, cluster.nodes[asked], stamp)


def _check_own(cluster: Cluster, name: str) -> None:
    partition = cluster.ring.partition(hash_of(name))
    primaries = cluster.ring.primaries(partition, CODED)
    for node in cluster.nodes.values():
        index = primaries.index(node.name) if node.name in primaries else None
        for seen in node.fragments(hash_of(name)):
            if seen.frag_index not in (index, None):
                raise Violation('%s: %s still has fragment %d (%s)' % (
                    name, node.name, seen.frag_index, '; '.join(
                        cluster.traces(name))))


def _read_at_rest(cluster: Cluster, name: str,
                  node: Node) -> Tuple[str, Optional[bytes]]:
    """As :meth:`Node.read`, also of an object whose time is over.

    :raises Violation: readers see it
    """
    stamp, body = _shown(cluster, name, node)
    if not cluster.is_over(name, node):
        return stamp, body
    if body is not None:
        raise Violation('%s: %s still shows an object whose time is over' % (
            name, node.name))
    return _shown(cluster, name, node, OPEN_EXPIRED)


def _shown(cluster: Cluster, name: str, node: Node,
           more: Mapping[str, str] = {}) -> Tuple[str, Optional[bytes]]:
    """As :meth:`Node.read`; of a node with the right bytes of its fragment
    those of the object."""
    got = node.read_fragment(name, more=more)
    wrote = cluster.model.name(name).wrote(got.timestamp)
    if policy_of(hash_of(name)) == CODED and wrote is not None and \
            wrote.body is not None and got.body == \
            pieces.archives(wrote.body)[got.frag_index]:
        return got.timestamp, wrote.body
    return got.timestamp, got.body


def _check_registers(cluster: Cluster, name: str, node: Node,
                     stamp: str) -> None:
    history = cluster.model.name(name)
    wrote = history.wrote(stamp)
    assert wrote is not None
    wrong = posts.wrong(history, wrote, posts.shown(node, name))
    if wrong:
        raise Violation('%s: %s shows the %s' % (name, node.name, wrong))
