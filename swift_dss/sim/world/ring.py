"""Which nodes an object's replicas belong on.

Rendezvous hashing stands for Swift's ring builder: an object's primaries
depend only on the nodes that are in the ring, and a node that joins or
leaves changes few of them.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from dataclasses import replace
from typing import (
    Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple)

from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.primaries import Primaries, Wanted
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.strategy.agreement import Answer

#: Few partitions, so that objects meet in one.
PART_POWER = 1
REPLICAS = 3
#: Storage policies: replicas, replicas with Swift's own diskfile, fragments.
OURS, STOCK, CODED = 0, 1, 2
#: Each node has one drive.
DEVICE = 'd1'
AskOne = Callable[[str, VersionId, bool], Optional[Answer]]


class SimRing:
    """The ring in force.

    :param names: nodes that are in it
    :param fragments: of an erasure-coded object
    """

    def __init__(self, names: Sequence[str],
                 fragments: int = REPLICAS) -> None:
        self.names = list(names)
        self.fragments = fragments
        #: Each fragment belongs on the node so many indexes further on.
        self.turned = 0
        #: So many nodes it needs at least.
        self.width = max(REPLICAS, fragments)

    def partition(self, object_hash: str) -> str:
        """The partition of an object."""
        return str(int(object_hash[:8], 16) >> (32 - PART_POWER))

    def primaries(self, partition: str, policy: int = OURS) -> List[str]:
        """The nodes of a partition's replicas, in ring order; of its
        fragments, each at its index."""
        order = self._order(partition)
        if policy != CODED:
            return order[:REPLICAS]
        indexed = _indexed(partition, tuple(order[:self.fragments]))
        at = self.turned % self.fragments
        return indexed[at:] + indexed[:at]

    def handoffs(self, partition: str, policy: int = OURS) -> List[str]:
        """The other nodes, in the order in which they stand in."""
        return self._order(partition)[
            self.fragments if policy == CODED else REPLICAS:]

    def of(self, object_hash: str, policy: int) -> List[str]:
        """The primaries of an object."""
        return self.primaries(self.partition(object_hash), policy)

    def _order(self, partition: str) -> List[str]:
        return list(_order(partition, tuple(self.names)))


@functools.lru_cache(maxsize=4096)
def _order(partition: str, names: Tuple[str, ...]) -> List[str]:
    return sorted(names, key=lambda name: hashlib.md5(
        ('%s %s' % (partition, name)).encode()).digest())


@functools.lru_cache(maxsize=4096)
def _indexed(partition: str, nodes: Tuple[str, ...]) -> List[str]:
    """Nodes at the indexes of their fragments: few others get another index
    when one joins or leaves."""
    at: Dict[int, str] = {}
    for name in nodes:
        wish = hashlib.md5(('%s at %s' % (partition, name)).encode()).digest()
        at[next(index for index in itertools.chain(
            range(wish[0] % len(nodes), len(nodes)), range(len(nodes)))
            if index not in at)] = name
    return [at[index] for index in range(len(nodes))]


class SimPrimaries(Primaries):
    """Asks the object servers that a node reaches.

    :param ask_one: a node's state of the object of a version: its timestamp,
        the key that its record names, if it has all bytes, and, if the last
        one is true, if it can read them now; None if it does not answer
    """

    def __init__(self, ring: SimRing, ask_one: AskOne) -> None:
        self._ring = ring
        self._ask_one = ask_one

    def ask(self, wanted: Sequence[Wanted],
            records: bool = False) -> List[List[Optional[Answer]]]:
        """See :meth:`Primaries.ask`."""
        answers = []
        for version in wanted:
            said = self._asked(version, False)
            answers.append([
                None if it is None else it._replace(is_proven=False)
                if records else Answer(it.timestamp) for it in said])
        return answers

    def prove(self, wanted: Wanted) -> List[Optional[Answer]]:
        """See :meth:`Primaries.prove`."""
        return self._asked(wanted._replace(version=replace(
            wanted.version, frag_index=None)), True)

    def _asked(self, wanted: Wanted, prove: bool) -> List[Optional[Answer]]:
        version = wanted.version
        return [self._ask_one(name, version, prove) for name in self._ring.of(
            version.object_hash, version.policy)]


class SimRanks(Ranks):
    """The product's ranks on one node, by the simulated ring."""

    def __init__(self, ring: SimRing, node: str) -> None:
        super().__init__('', {address_of(node)})
        self._sim_ring = ring

    def _ring(self, policy: int) -> Any:
        return RingView(self._sim_ring, policy)

    def _policies(self) -> List[int]:
        return [OURS, CODED]


class RingView:
    """Swift's ring interface, for the simulated one."""

    part_power = PART_POWER

    def __init__(self, ring: SimRing, policy: int) -> None:
        self._ring = ring
        self._policy = policy

    @property
    def devs(self) -> List[Dict[str, Any]]:
        return devices_of(self._ring.names)

    def get_part_nodes(self, part: int) -> List[Dict[str, Any]]:
        return devices_of(self._ring.primaries(str(part), self._policy))

    def get_more_nodes(self, part: int) -> Iterator[Dict[str, Any]]:
        return iter(devices_of(self._ring.handoffs(str(part), self._policy)))


def devices_of(nodes: Sequence[str]) -> List[Dict[str, Any]]:
    """As Swift's rings say it."""
    return [{'id': node, 'index': index, 'device': DEVICE,
             'ip': address_of(node), 'port': 6200,
             'replication_ip': address_of(node), 'replication_port': 6200}
            for index, node in enumerate(nodes)]


def address_of(node: str) -> str:
    """An IP address, so that no name has to be resolved."""
    return '127.1.0.%s' % node[1:]
