"""The scene of a simulation: nodes, ring, clock, S3, the model.

It draws nothing and judges nothing. Verbs and passes get it, change it, and
tell the model what was acknowledged; :mod:`swift_dss.sim.cluster` offers them
as one cluster.
"""

from __future__ import annotations

import functools
import logging
import os
import random
from typing import Dict, List, Optional, Sequence, Set, Tuple

from swift_dss.core.classes import (
    Allocate, ClassSpec, ClassTable, RemoteMode)
from swift_dss.core.config import Admit
from swift_dss.core.version import VersionId
from swift_dss.sim.conf import swift_conf
from swift_dss.sim.coverage import Coverage
from swift_dss.sim.disks import CODED_NAMES, hash_of, policy_of
from swift_dss.sim.model import Model
from swift_dss.sim.node import Node
from swift_dss.sim.server import policies
from swift_dss.sim.traffic.expirer import Expirer
from swift_dss.sim.world.clock import Clock
from swift_dss.sim.world.power import Mains
from swift_dss.sim.world.ring import CODED, REPLICAS, RingView, SimRing
from swift_dss.sim.world.s3 import Bucket
from swift_dss.sim.world.worn import Worn
from swift_dss.strategy.agreement import Answer

#: Names that all clients share, and the class of each: few, so that
#: histories meet. Those of class 1 share bundles, as they have the same
#: primaries. The last one is in the policy that is not ours.
REPLICATED = {'/a/c0/k': 3, '/a/c1/l': 1, '/a/c4/r': 1, '/a/c2/t': 1,
              '/a/c0/o': 3, '/a/c1/n': 2, '/a/c2/x': 4, '/a/c0/m': 0}
#: With those of the erasure-coded policy.
CLASSES = dict(REPLICATED, **dict(zip(CODED_NAMES, (3, 1))))
NAMES = tuple(CLASSES)
TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 10, remote=RemoteMode.BACK),
    ClassSpec(1, 'small', 20, remote=RemoteMode.ONLY, bundle=True),
    ClassSpec(2, 'gold', 90, remote=RemoteMode.BACK),
    ClassSpec(3, 'cloud', 5, remote=RemoteMode.ONLY),
    ClassSpec(4, 'disk', 5, allocate=Allocate.NEVER,
              remote=RemoteMode.NEVER)])
_SILENT = logging.getLogger('swift_dss.sim')
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def _write_secret(path: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), 'w') as out:
        out.write('access_key = a\nsecret_key = s\n')


class Scene:
    """The state of a simulated cluster, at one instant.

    :param root: an empty folder, on a file system with user attributes
    :param nodes: how many there are; all are in the ring at first
    :param hdds: every other node has one
    :param mains: stores that a power cut will hit; None: no cut is ahead
    :param worn: the reader of their bytes
    :param admits: the option of each; none: all first reads come in
    """

    # long: all of a cluster's state is made here.
    def __init__(self, root: str, nodes: int, dice: random.Random,
                 clock: Clock, hdds: bool = True,
                 mains: Optional[Mains] = None,
                 worn: Optional[Worn] = None,
                 admits: Sequence[Admit] = ()) -> None:
        self.clock = clock
        self.dice = dice
        self.bucket = Bucket(dice)
        self.model = Model()
        self.expirer = Expirer(self.model)
        self.coverage = Coverage()
        self.table = TABLE
        self.classes = sorted(TABLE.specs)
        names = ['n%d' % number for number in range(1, nodes + 1)]
        self.ring = SimRing(names, policies.scheme.fragments)
        policies()[CODED].object_ring = RingView(self.ring, CODED)
        os.mkdir(os.path.join(root, 'etc'))
        with open(os.path.join(root, 'etc', 'swift.conf'), 'w') as out:
            out.write(swift_conf(policies.scheme))
        _write_secret(os.path.join(root, 'secret'))
        self.nodes: Dict[str, Node] = {
            name: Node(name, root, self.bucket, self.ring, clock, TABLE,
                       _SILENT, self._reached, self.expirer.heard,
                       hdds and number % 2 == 0, worn, admit)
            for number, (name, admit) in enumerate(zip(
                names, admits or [Admit()] * nodes))}
        self.mains = mains
        for node in self.nodes.values():
            node.power = mains and mains.power
        #: Nodes that are cut off.
        self.cut: Set[str] = set()
        #: Nodes that were once out of the ring: their versions may be older
        #: than any wait.
        self.returned: Set[str] = set()
        #: Hashes and versions that all primaries had something newer of at a
        #: time: from then on keys of them may go, and a handoff that keeps
        #: one may become a primary.
        self.outlived: Set[Tuple[str, str]] = set()
        self._last_stamp = 0.0
        for node in self.nodes.values():
            node.around.ask = functools.partial(self._asked, node.name)

    def _reached(self, node: str, step: str) -> None:
        self.coverage.reached(self.bucket.mood, node, step)

    def close(self) -> None:
        """Let threads and files go."""
        for node in self.nodes.values():
            node.kill()

    def quorum(self, policy: int) -> int:
        """Servers that have to take a DELETE or a POST, or replicas."""
        return (1 + (self.ring.fragments if policy == CODED
                     else REPLICAS)) // 2

    def targets(self, name: str, lost: Set[str]) -> Dict[int, Node]:
        """The nodes that a write reaches, each at the rank of the primary
        that it is or stands in for.

        :param lost: nodes that are not reached
        """
        partition = self.ring.partition(hash_of(name))
        policy = policy_of(hash_of(name))
        handoffs = [holder for holder in self.ring.handoffs(partition, policy)
                    if holder not in lost]
        by_rank = {}
        for rank, holder in enumerate(self.ring.primaries(partition, policy)):
            if holder not in lost:
                by_rank[rank] = self.nodes[holder]
            elif handoffs:
                by_rank[rank] = self.nodes[handoffs.pop(0)]
        return by_rank

    def traces(self, name: str) -> List[str]:
        """Each node's state of a name, in words."""
        said = []
        for node in self.nodes.values():
            for replica in node.all_of(hash_of(name)):
                said.append('%s: %s%s%s' % (
                    node.name, replica.timestamp if replica.frag_index is None
                    else replica.file_name,
                    ' deleted' if replica.is_tombstone else
                    ' whole' if replica.body is not None
                    else ' ' + replica.why,
                    '' if replica.local else ', in S3 as ' + replica.key))
        return said or ['no node has anything']

    def name_of(self, object_hash: str) -> str:
        """The name with a hash."""
        return next(name for name in self.model.names
                    if hash_of(name) == object_hash)

    def stamp(self) -> str:
        """Of a client's request; no two have the same."""
        self._last_stamp = max(self.clock.now, self._last_stamp + 0.00001)
        if self.expirer.is_taken(self._last_stamp):
            self._last_stamp += 0.00001
        return '%016.5f' % self._last_stamp

    def _asked(self, asker: str, name: str, version: VersionId,
               prove: bool) -> Optional[Answer]:
        if name != asker and (name in self.cut or asker in self.cut):
            return None
        object_hash = version.object_hash
        if version.policy == CODED:
            return self.nodes[name].newest(
                object_hash, version.frag_index, prove)
        at_rest, now = (self.nodes[name].look(object_hash, mounted)
                        for mounted in (False, True))
        return Answer() if at_rest is None or now is None else Answer(
            at_rest.timestamp, at_rest.key,
            at_rest.local and at_rest.body is not None,
            is_proven=now.local and now.body is not None)
