"""Which nodes an object's replicas belong on.

Rendezvous hashing stands for Swift's ring builder: an object's primaries
depend only on the nodes that are in the ring, and a node that joins or
leaves changes few of them.
"""

from __future__ import annotations

import hashlib
from typing import (
    Callable, Dict, List, Mapping, Optional, Sequence, Tuple)

from swift_dss.core.version import VersionId
from swift_dss.gateway.primaries import Primaries, Wanted
from swift_dss.strategy.agreement import Answer

PART_POWER = 3
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
        return sorted(self.names, key=lambda name: hashlib.md5(
            ('%s %s' % (partition, name)).encode()).digest())


class SimPrimaries(Primaries):
    """Asks the object servers that a node reaches.

    :param node: who asks
    :param ask_one: what a node has of an object, its timestamp and the key
        that its record names; None if it does not answer
    """

    def __init__(self, ring: SimRing, node: str, ask_one: Callable[
            [str, str], Optional[Tuple[str, str]]]) -> None:
        self._ring = ring
        self._node = node
        self._ask_one = ask_one

    def ask(self, wanted: Sequence[Wanted], records: bool = False,
            elsewhere: bool = False) -> List[List[Optional[Answer]]]:
        """See :meth:`Primaries.ask`."""
        answers = []
        for one in wanted:
            said = [self._ask_one(name, one.version.object_hash)
                    for name in self._ring.primaries(self._ring.partition(
                        one.version.object_hash))
                    if not (elsewhere and name == self._node)]
            answers.append([None if it is None else Answer(
                it[0], it[1] if records else '') for it in said])
        return answers


class SimRanks:
    """The gateway's view of the ring, on one node."""

    def __init__(self, ring: SimRing, node: str) -> None:
        self.ring = ring
        self._node = node

    def rank(self, version: VersionId) -> int:
        """See :meth:`swift_dss.gateway.ranks.Ranks.rank`."""
        primaries = self.ring.primaries(
            self.ring.partition(version.object_hash))
        return primaries.index(self._node) if self._node in primaries \
            else len(primaries)

    def partition(self, version: VersionId) -> str:
        """See :meth:`swift_dss.gateway.ranks.Ranks.partition`."""
        return self.ring.partition(version.object_hash)

    def primaries(self, policy: int, object_hash: str
                  ) -> Tuple[str, List[Dict[str, str]]]:
        """See :meth:`swift_dss.gateway.ranks.Ranks.primaries`."""
        partition = self.ring.partition(object_hash)
        return partition, [{'ip': name, 'device': DEVICE}
                           for name in self.ring.primaries(partition)]

    def is_here(self, node: Mapping[str, str]) -> bool:
        """See :meth:`swift_dss.gateway.ranks.Ranks.is_here`."""
        return node['ip'] == self._node

    def is_primary(self, version: VersionId) -> bool:
        """See :meth:`swift_dss.gateway.ranks.Ranks.is_primary`."""
        return self._node in self.ring.primaries(
            self.ring.partition(version.object_hash))

    def shares(self, name: str) -> bool:
        """See :meth:`swift_dss.gateway.ranks.Ranks.shares`."""
        return max(self.ring.names, key=lambda one: hashlib.md5(
            ('%s %s' % (name, one)).encode()).digest()) == self._node
