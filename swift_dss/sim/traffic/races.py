"""Writes that race.

Several PUTs and DELETEs of one object are in flight at a time, and each
replica takes them in an order of its own: an older one may come after a newer
one, or be overtaken while it waits for its bytes. Swift decides by timestamps,
so the newest that was acknowledged MUST be what all show at rest, whatever
came last. A daemon may hear of an older one last, too.
"""

from __future__ import annotations

import functools
from typing import (
    TYPE_CHECKING, Callable, Dict, Iterable, List, NamedTuple, Optional, Set)

from swift_dss.core.spans import ClassMap
from swift_dss.sim import server
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.model import Attempt
from swift_dss.sim.node import Node
from swift_dss.sim.traffic import coded, indexed
from swift_dss.sim.world.ring import CODED
from swift_dss.wire import classmap

if TYPE_CHECKING:
    from swift_dss.sim.traffic.scene import Scene


class Write(NamedTuple):
    """A PUT on its way; a DELETE without a body.

    :param lost: nodes that it does not reach
    """

    at: str
    body: Optional[bytes]
    class_id: int
    lost: Set[str]


#: The nodes that one request does not reach.
Misses = Callable[[], Iterable[str]]


def writes(cluster: Scene, name: str, class_id: int, count: int,
           misses: Misses) -> str:
    """``count`` PUTs and DELETEs at a time; the answers to their clients."""
    dice = cluster.dice
    made = [Write(cluster.stamp(), None if dice.randrange(4) == 0 else
                  dice.randbytes(dice.choice((0, 700, 5000))), class_id,
                  set(misses()) | cluster.cut) for _ in range(count)]
    history = cluster.model.name(name)
    for write in made:
        history.tried(Attempt(write.at, write.body, classmap.encode(
            ClassMap.uniform(class_id if write.body is not None else 0))))
    is_coded = policy_of(hash_of(name)) == CODED
    took = (_in_turns if is_coded else _mixed)(cluster, name, made)
    for write, number in zip(made, took):
        quorum = coded.quorum() if is_coded and write.body is not None \
            else cluster.quorum(policy_of(hash_of(name)))
        if number >= quorum:
            cluster.coverage.acknowledged += 1
            cluster.coverage.written_bytes += len(write.body or b'')
            history.acknowledge(write.at)
        else:
            cluster.coverage.refused += 1
    return ', '.join('%s %d took' % ('PUT' if write.body is not None else
                                     'DELETE', number)
                     for write, number in zip(made, took))


def _mixed(cluster: Scene, name: str, made: List[Write]) -> List[int]:
    """Each replica has an order of its own, in which a write may begin before
    another one is over; how many took each write.

    :raises Violation: a daemon that has heard of all knows of a version that
        is not there
    """
    took = [0] * len(made)
    coming: Dict[str, List[int]] = {}
    for number, write in enumerate(made):
        for node in cluster.targets(name, write.lost).values():
            coming.setdefault(node.name, []).append(number)
    for at, numbers in sorted(coming.items()):
        cluster.dice.shuffle(numbers)
        if numbers != sorted(numbers):
            cluster.coverage.fault('writes exchanged')
        node = cluster.nodes[at]
        server.meanwhile.do(
            [functools.partial(_arrive, cluster, node, name, made, took,
                               number) for number in numbers],
            functools.partial(_begins, cluster))
        if cluster.dice.randrange(2) and not node.work(parts=()):
            indexed.check(node, hash_of(name),
                          [made[number].at for number in numbers])
    return took


def _begins(cluster: Scene) -> bool:
    """Does the next write come before this one is over?"""
    if cluster.dice.randrange(2):
        return False
    cluster.coverage.fault('writes in flight')
    return True


def _arrive(cluster: Scene, node: Node, name: str, made: List[Write],
            took: List[int], number: int) -> None:
    write = made[number]
    took[number] += node.delete(name, write.at) if write.body is None else \
        node.put(name, write.at, write.body, write.class_id)
    if not cluster.dice.randrange(3):
        # The daemon hears of it before those that wait are over.
        node.work(parts=())


def _in_turns(cluster: Scene, name: str, made: List[Write]) -> List[int]:
    """Of an erasure-coded object: a proxy that meets something newer breaks
    off before any server has stored a fragment."""
    order = list(range(len(made)))
    cluster.dice.shuffle(order)
    took = [0] * len(made)
    for number in order:
        write = made[number]
        nodes = cluster.targets(name, write.lost).values()
        is_late = any(_newest(node, name) > write.at for node in nodes)
        if is_late:
            cluster.coverage.fault('writes exchanged')
        if write.body is None:
            took[number] = sum(node.delete(name, write.at) for node in nodes)
        elif not is_late:
            took[number] = coded.put(cluster, name, write.at, write.body,
                                     write.class_id, write.lost, {})
    return took


def _newest(node: Node, name: str) -> str:
    seen = node.look(hash_of(name))
    return '' if seen is None else seen.timestamp
