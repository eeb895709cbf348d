"""Bytes that are on an HDD, and readers who come back to them.

Each read there is a wish for the SSD, and the node's ``admit`` says which of
them is granted. Whether or not a version comes in, its bytes on the HDD MUST
stay until the SSD has them, and every answer is the version that was written.
"""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING, Dict, Optional

from swift_dss.core.errors import DssError
from swift_dss.sim.daemon import PARTS
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.judge import Replica
from swift_dss.sim.model import Violation
from swift_dss.sim.node import Node
from swift_dss.sim.traffic.scene import CLASSES, REPLICATED
from swift_dss.sim.verbs import Step, Verb
from swift_dss.sim.world.ring import STOCK
from swift_dss.strategy.eviction.warmth import Warmth, rank_of

if TYPE_CHECKING:
    from swift_dss.sim.cluster import Cluster

#: Objects of our policy whose copies are whole.
OFTEN = [name for name in REPLICATED if policy_of(hash_of(name)) != STOCK]


def _come_back(cluster: Cluster, step: Step,
               dice: random.Random) -> Optional[str]:
    pairs = [(name, node) for name, node in (
        (name, _first(cluster, name)) for name in OFTEN)
        if node.around.conf.capacity and not node.hdd_is_away
        and node.name not in cluster.cut]
    if not pairs:
        return None
    name, node = dice.choice(
        [pair for pair in pairs if pair[0] == step.name] or pairs)
    if not _may_come_back(node, name):
        cluster.write(name, dice.randbytes(dice.choice((1400, 4000, 5000))),
                      CLASSES[name], ())
        # Its daemon hears of it, and sends nothing yet.
        node.work(parts=PARTS[1:])
    if not _may_come_back(node, name) or not _to_hdd(node, hash_of(name)):
        return None
    said = ['%s of %s' % (name, node.name)]
    for _ in range(1 + step.number % 4):
        cluster.clock.pass_(dice.choice((1.0, 15.0)))
        said.append(cluster.read_from(name, node))
        # A daemon may die before it has heard of a read, or while it moves.
        crash = 1 + step.number % 3 if dice.random() < 0.1 else 0
        before = node.look(hash_of(name))
        said.append(node.work(crash, parts=dice.choice((PARTS, PARTS[1:]))))
        said.append(_heard(cluster, node))
        _require_kept(node, name, before)
    return ', '.join(filter(None, said))


def _first(cluster: Cluster, name: str) -> Node:
    """The node whose copy is the warm one."""
    object_hash = hash_of(name)
    primaries = cluster.ring.primaries(cluster.ring.partition(object_hash))
    return next(cluster.nodes[primary]
                for index, primary in enumerate(primaries)
                if rank_of(object_hash, index, len(primaries)) == 0)


def _may_come_back(node: Node, name: str) -> bool:
    """True if a version has bytes on this SSD that readers would bring there
    again from its HDD."""
    seen = node.look(hash_of(name))
    if node.daemon is None or seen is None or not seen.body \
            or not seen.local:
        return False
    with node.at_work():
        row = node.daemon.index.get(
            node.version(hash_of(name), seen.timestamp))
    return row is not None and any(
        span.ssd_bytes and span.warmth is not Warmth.COLD
        for span in row.spans)


def _to_hdd(node: Node, object_hash: str) -> bool:
    """``swift-dss tier demote --to hdd``; False if it does not leave the
    SSD."""
    seen = node.look(object_hash)
    if seen is None or node.daemon is None:
        return False
    with node.at_work(), contextlib.suppress(DssError):
        node.daemon.local.demote(
            node.version(object_hash, seen.timestamp),
            node.ring.partition(object_hash))
        return True
    return False


def _require_kept(node: Node, name: str, before: Optional[Replica]) -> None:
    """Nothing has happened but reads, and the daemon's work. Readers put
    aside versions of which a disk gives other bytes.

    :raises Violation: the copy was whole before it, and is not now
    """
    now = node.look(hash_of(name))
    if before is not None and before.body is not None and (
            now is not None and now.timestamp == before.timestamp
            and now.body != before.body):
        raise Violation('%s: %s has lost the bytes of the version of %s, '
                        'which was only read' % (name, node.name,
                                                 before.timestamp))


def _heard(cluster: Cluster, node: Node) -> str:
    """Whether a newcomer stays out now."""
    if node.daemon is None or not len(
            node.daemon.keeper.duties.doorkeeper):
        return ''
    cluster.coverage.fault('first read kept out')
    return 'a first read is kept out'


#: Those of this module.
VERBS: Dict[str, Verb] = {'come-back': _come_back}
