"""Which nodes an object's replicas belong on.

Rendezvous hashing stands for Swift's ring builder: an object's primaries
depend only on the nodes that are in the ring, and a node that joins or
leaves changes few of them.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from swift_dss.gateway.peers.primaries import Primaries, Wanted
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.strategy.agreement import Answer

#: Few partitions, so that objects meet in one.
PART_POWER = 1
REPLICAS = 3
#: Each node has one drive.
DEVICE = 'd1'


class SimRing:
    """The ring in force.

    :param names: nodes that are in it
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)

    def partition(self, object_hash: str) -> str:
        """The partition of an object."""
        return str(int(object_hash[:8], 16) >> (32 - PART_POWER))

    def primaries(self, partition: str) -> List[str]:
        """The nodes of a partition's replicas, in ring order."""
        return self._order(partition)[:REPLICAS]

    def handoffs(self, partition: str) -> List[str]:
        """The other nodes, in the order in which they stand in."""
        return self._order(partition)[REPLICAS:]

    def _order(self, partition: str) -> List[str]:
        return list(_order(partition, tuple(self.names)))


@functools.lru_cache(maxsize=4096)
def _order(partition: str, names: Tuple[str, ...]) -> List[str]:
    return sorted(names, key=lambda name: hashlib.md5(
        ('%s %s' % (partition, name)).encode()).digest())


class SimPrimaries(Primaries):
    """Asks the object servers that a node reaches.

    :param ask_one: a node's state of an object: its timestamp, the key that
        its record names, if it has all bytes, and if it can read them now;
        None if it does not answer
    """

    def __init__(self, ring: SimRing, ask_one: Callable[
            [str, str], Optional[Answer]]) -> None:
        self._ring = ring
        self._ask_one = ask_one

    def ask(self, wanted: Sequence[Wanted],
            records: bool = False) -> List[List[Optional[Answer]]]:
        """See :meth:`Primaries.ask`."""
        answers = []
        for one in wanted:
            said = [self._ask_one(name, one.version.object_hash)
                    for name in self._ring.primaries(self._ring.partition(
                        one.version.object_hash))]
            answers.append([
                None if it is None else it._replace(is_proven=False)
                if records else Answer(it.timestamp) for it in said])
        return answers


    def prove(self, wanted: Wanted) -> List[Optional[Answer]]:
        """See :meth:`Primaries.prove`."""
        return [self._ask_one(name, wanted.version.object_hash)
                for name in self._ring.primaries(self._ring.partition(
                    wanted.version.object_hash))]


class SimRanks(Ranks):
    """The product's ranks on one node, by the simulated ring."""

    def __init__(self, ring: SimRing, node: str) -> None:
        super().__init__('', {address_of(node)})
        self._sim_ring = ring

    def _ring(self, policy: int) -> Any:
        return _RingView(self._sim_ring)

    def _policies(self) -> List[int]:
        return [0]


class _RingView:
    """Swift's ring interface, for the simulated one."""

    part_power = PART_POWER

    def __init__(self, ring: SimRing) -> None:
        self._ring = ring

    @property
    def devs(self) -> List[Dict[str, Any]]:
        return devices_of(self._ring.names)

    def get_part_nodes(self, part: int) -> List[Dict[str, Any]]:
        return devices_of(self._ring.primaries(str(part)))


def devices_of(nodes: Sequence[str]) -> List[Dict[str, Any]]:
    """As Swift's rings say it."""
    return [{'ip': address_of(node), 'port': 6200, 'device': DEVICE}
            for node in nodes]


def address_of(node: str) -> str:
    """An IP address, so that no name has to be resolved."""
    return '127.1.0.%s' % node[1:]
