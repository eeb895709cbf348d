"""What a cluster shows after everything was mended and has settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Tuple

from swift_dss.sim.traffic import posts
from swift_dss.sim.disks import hash_of
from swift_dss.sim.model import Violation
from swift_dss.sim.node import OPEN_EXPIRED, Node, Unreadable

if TYPE_CHECKING:
    from swift_dss.sim.cluster import Cluster


def check(cluster: Cluster) -> None:
    """After everything was mended and has settled.

    :raises Violation: a primary shows other than a name's history
        allows
    """
    for name, history in sorted(cluster.model.names.items()):
        object_hash = hash_of(name)
        allowed = {one.timestamp: one.body
                   for one in history.allowed()}
        for one in cluster.ring.primaries(
                cluster.ring.partition(object_hash)):
            try:
                stamp, body = _read_at_rest(cluster, name, cluster.nodes[one])
            except Unreadable as err:
                raise Violation('%s: %s (%s)' % (name, err, '; '.join(
                    cluster.traces(name)))) from err
            if not stamp and not history.acknowledged:
                continue
            if stamp not in allowed or allowed[stamp] != body:
                raise Violation(
                    '%s: %s shows %s, and %s was acknowledged' % (
                        name, one, stamp or 'nothing',
                        history.acknowledged))
            if body is not None:
                _check_registers(cluster, name, cluster.nodes[one], stamp)


def _read_at_rest(cluster: Cluster, name: str,
                  node: Node) -> Tuple[str, Optional[bytes]]:
    """As :meth:`Node.read`, also of an object whose time is over.

    :raises Violation: readers see it
    """
    stamp, body = node.read(name)
    if not cluster.is_over(name, node):
        return stamp, body
    if body is not None:
        raise Violation('%s: %s still shows what was to be deleted' % (
            name, node.name))
    return node.read(name, OPEN_EXPIRED)


def _check_registers(cluster: Cluster, name: str, node: Node,
                     stamp: str) -> None:
    history = cluster.model.name(name)
    wrote = history.wrote(stamp)
    assert wrote is not None
    wrong = posts.wrong(history, wrote, posts.shown(node, name))
    if wrong:
        raise Violation('%s: %s shows the %s' % (name, node.name, wrong))
