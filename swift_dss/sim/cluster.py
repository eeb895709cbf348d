"""The simulated cluster: proxies, replicators, nodes and S3.

Proxies write to a quorum of the nodes that they reach and hand off for the
others; replicators bring the newest file of each object to its primaries,
and remove handoffs that all primaries have. Swift promises this, and only this
is simulated of it.
"""

from __future__ import annotations

import functools
import logging
import os
import random
from typing import Dict, Iterable, List, Optional, Set

from swift_dss.core.classes import (
    Allocate, ClassSpec, ClassTable, RemoteMode)
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.bundle import since
from swift_dss.gateway.link.client import OWNER_KEY
from swift_dss.core.version import VersionId
from swift_dss.sim import offers, pieces
from swift_dss.sim.traffic import coded, posts, replicator
from swift_dss.sim.coverage import Coverage
from swift_dss.sim.traffic.expiry import Expirer, headers
from swift_dss.sim.judge import Replica
from swift_dss.sim.model import Attempt, Model, Violation
from swift_dss.sim.conf import PREFIX, swift_conf
from swift_dss.sim.disks import CODED_NAMES, hash_of, policy_of
from swift_dss.sim.node import Node, Unreadable
from swift_dss.sim.world.clock import Clock
from swift_dss.sim.world.power import Mains
from swift_dss.sim.server import policies
from swift_dss.sim.world.ring import (
    CODED, REPLICAS, STOCK, RingView, SimRing)
from swift_dss.sim.world.s3 import Bucket
from swift_dss.sim.world.worn import Worn
from swift_dss.strategy.agreement import Answer
from swift_dss.wire import classmap
from swift_dss.wire.layout import parse_remote_key

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


class Cluster:
    """Everything there is, at one instant.

    :param root: an empty folder, on a file system with user attributes
    :param nodes: how many there are; all are in the ring at first
    :param hdds: every other node has one
    :param mains: of a run with a power cut ahead: what it will take
    :param worn: what their bytes are read from
    """

    def __init__(self, root: str, nodes: int, dice: random.Random,
                 clock: Clock, hdds: bool = True,
                 mains: Optional[Mains] = None,
                 worn: Optional[Worn] = None) -> None:
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
        secret = os.path.join(root, 'secret')
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600),
                  'w') as out:
            out.write('access_key = a\nsecret_key = s\n')
        self.nodes: Dict[str, Node] = {
            name: Node(name, root, self.bucket, self.ring, clock, TABLE,
                       _SILENT, self._reached, self.expirer.heard,
                       hdds and number % 2 == 0, worn)
            for number, name in enumerate(names)}
        self.mains = mains
        for one in self.nodes.values():
            one.power = mains and mains.power
        #: Nodes that are cut off.
        self.cut: Set[str] = set()
        #: Nodes that were once out of the ring: their versions may be older
        #: than any wait.
        self.returned: Set[str] = set()
        self._last_stamp = 0.0
        for node in self.nodes.values():
            node.around.ask = functools.partial(self._asked, node.name)

    def _reached(self, node: str, step: str) -> None:
        self.coverage.reached(self.bucket.mood, node, step)

    def close(self) -> None:
        """Let threads and files go."""
        for node in self.nodes.values():
            node.kill()

    # -- clients ---------------------------------------------------------

    def write(self, name: str, body: Optional[bytes], class_id: int,
              misses: Iterable[str], until: str = '') -> str:
        """A PUT, or a DELETE without a body; the client's answer.

        :param misses: nodes that this request does not reach
        :param until: the object's X-Delete-At; '' none
        """
        stamp = self.stamp()
        history = self.model.name(name)
        history.tried(Attempt(stamp, body, classmap.encode(
            ClassMap.uniform(class_id)), until))
        lost = set(misses) | self.cut
        policy = policy_of(hash_of(name))
        quorum = coded.quorum() if policy == CODED and body is not None \
            else self.quorum(policy)
        took = coded.put(self, name, stamp, body, class_id, lost,
                         headers(until)) \
            if policy == CODED and body is not None else sum(
                node.delete(name, stamp) if body is None else
                node.put(name, stamp, body, class_id, headers(until))
                for node in self.targets(name, lost).values())
        if took >= quorum:
            self.coverage.acknowledged += 1
            self.coverage.written_bytes += len(body or b'')
            history.acknowledge(stamp)
            return 'acknowledged by %d' % took
        self.coverage.refused += 1
        return 'refused, %d took it' % took

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
        handoffs = [one for one in self.ring.handoffs(partition, policy)
                    if one not in lost]
        found = {}
        for rank, one in enumerate(self.ring.primaries(partition, policy)):
            if one not in lost:
                found[rank] = self.nodes[one]
            elif handoffs:
                found[rank] = self.nodes[handoffs.pop(0)]
        return found

    def read(self, name: str) -> str:
        """A GET; raises :class:`Violation` for bytes that no client wrote.

        Swift may answer with an older version while replicas differ; so
        may we. Nobody may answer with bytes that are no version's.
        """
        object_hash = hash_of(name)
        if policy_of(object_hash) == CODED:
            return coded.get(self, name)
        partition = self.ring.partition(object_hash)
        for one in self.ring.primaries(partition) + \
                self.ring.handoffs(partition):
            if one in self.cut:
                continue
            try:
                stamp, body = self.nodes[one].read(name)
            except Unreadable:
                continue
            if not stamp:
                continue
            if body is None and self.is_over(name, self.nodes[one]):
                return '404 from %s, its time is over' % one
            wrote = self.model.name(name).wrote(stamp)
            if wrote is None or wrote.body != body:
                raise Violation('%s: %s answers with bytes that no client '
                                'wrote at %s' % (name, one, stamp))
            self.coverage.answered += 1
            return '%s from %s' % ('404' if body is None else '200', one)
        return 'nothing'

    def is_over(self, name: str, node: Node) -> bool:
        """True if an object is there whose time is over."""
        until = posts.until(node, hash_of(name)) if \
            self.model.name(name).expires else ''
        return bool(until) and int(until) <= self.clock.now

    def replicate(self, name: str, breaks: bool = False) -> int:
        """One pass of a node's replicator; how many sessions it had.

        :param breaks: each connection breaks after a few messages
        """
        return replicator.one_pass(self, self.nodes[name], breaks)

    def _asked(self, asker: str, name: str, version: VersionId,
               prove: bool) -> Optional[Answer]:
        if name != asker and (name in self.cut or asker in self.cut):
            return None
        object_hash = version.object_hash
        if version.policy == CODED:
            return self.nodes[name].newest(
                object_hash, version.frag_index, prove)
        found, now = (self.nodes[name].look(object_hash, mounted)
                      for mounted in (False, True))
        return Answer() if found is None or now is None else Answer(
            found.timestamp, found.key,
            found.local and found.body is not None,
            is_proven=now.local and now.body is not None)

    # -- the judge -------------------------------------------------------

    def check(self) -> None:
        """Check that promised versions still exist.

        While a primary shows the newest acknowledged version of a name, its
        bytes MUST be somewhere: a write that reached other replicas, and
        was not acknowledged, may be lost with them. A stub whose key S3 has
        forgotten is a replica that was lost, as with its drive.

        :raises Violation: the bytes are on no disk and not in S3; or no trace
            of the name is left
        """
        self.expirer.check()
        for name, history in sorted(self.model.names.items()):
            if policy_of(hash_of(name)) == STOCK:
                self._check_untouched(name)
            promised = history.promised()
            if promised is not None and promised.body is not None:
                (pieces.check if policy_of(hash_of(name)) == CODED
                 else Cluster._check)(self, name, promised)
            gone = posts.lost(history, self.nodes.values(), hash_of(name))
            if gone:
                raise Violation('%s: no node has the %s' % (name, gone))

    def read_keys(self) -> Set[str]:
        """Keys in S3 that some node reads from just now."""
        return {found.key for node in self.nodes.values()
                for one in node.hashes() for found in node.all_of(one)
                if not found.local}

    def _check_untouched(self, name: str) -> None:
        for node in self.nodes.values():
            found = node.look(hash_of(name))
            if found is not None and (found.key or not found.local):
                raise Violation('%s: %s has touched a version of a policy '
                                'that is not ours' % (name, node.name))

    def _check(self, name: str, promised: Attempt) -> None:
        object_hash = hash_of(name)
        partition = self.ring.partition(object_hash)
        found: Dict[str, Optional[Replica]] = {}
        # Those that should have it first: one copy is enough.
        for one in self.ring.primaries(partition) + [
                name for name in self.nodes
                if name not in self.ring.primaries(partition)]:
            seen = found[one] = self.nodes[one].look(object_hash)
            if seen is not None and seen.timestamp == promised.timestamp \
                    and seen.body == promised.body:
                return
        there = {one: seen for one, seen in found.items()
                 if seen is not None}
        waits = [one for one in self.ring.primaries(partition) if one in there
            and there[one].timestamp == promised.timestamp
            and one not in self.returned
            and there[one].key not in self.bucket.forgotten
            and (object_hash, promised.timestamp)
            not in self.nodes[one].lost_with_hdd]
        newer = [one for one, seen in there.items()
                 if seen.timestamp > promised.timestamp and (
                     seen.is_tombstone or seen.body is not None)]
        if waits or not newer:
            raise Violation('%s: no copy is left of the version of %s (%s)'
                            % (name, promised.timestamp,
                               '; '.join(self.traces(name))),
                            len(promised.body or b''))

    def check_all(self) -> None:
        """The same, and no node's newest version lacks its bytes, because a
        reader may get unacknowledged versions too. Some node knows of each
        acknowledged delete.

        :raises Violation: a fault of this kind would prove nothing
        """
        self.check()
        for name, history in self.model.names.items():
            promised = history.promised()
            if promised is not None and promised.body is None and not any(
                    seen is not None
                    and seen.timestamp >= promised.timestamp
                    for seen in (node.look(hash_of(name))
                                 for node in self.nodes.values())):
                raise Violation('%s: no node knows that it is deleted' % name)
        for object_hash in sorted({one for node in self.nodes.values()
                                   for one in node.hashes()}):
            if policy_of(object_hash) == CODED:
                pieces.check_all(self, self.name_of(object_hash))
                continue
            found = [seen for seen in (
                node.look(object_hash) for node in self.nodes.values())
                if seen is not None]
            whole = {seen.timestamp for seen in found
                     if seen.is_tombstone or seen.body is not None}
            if any(seen.timestamp not in whole for seen in found):
                raise Violation('a version without bytes')

    def mount_hdds(self) -> None:
        """All that were away are back."""
        for node in self.nodes.values():
            node.mount_hdd()

    def traces(self, name: str) -> List[str]:
        """Each node's state of a name, in words."""
        said = []
        for node in self.nodes.values():
            for found in node.all_of(hash_of(name)):
                said.append('%s: %s%s%s' % (
                    node.name, found.timestamp if found.frag_index is None
                    else found.file_name,
                    ' deleted' if found.is_tombstone else
                    ' whole' if found.body is not None else ' ' + found.why,
                    '' if found.local else ', in S3 as ' + found.key))
        return said or ['no node has anything']

    def check_bucket(self) -> None:
        """Check the bucket as the source of a restore: :mod:`sim.offers`."""
        offers.check(self)

    def orphans(self) -> Set[str]:
        """Keys that no record names, of versions that no node has."""
        needed: Set[str] = set()
        for node in self.nodes.values():
            for one in node.hashes():
                for seen in node.all_of(one):
                    # A stub whose bundle is gone reads its own key.
                    needed.update((seen.key, PREFIX + '%s/%s' % (
                        one, seen.timestamp)))
        return {key for key in self.bucket.keys
                if not key.endswith(OWNER_KEY)
                and not needed & _means(key)}

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


def _means(key: str) -> Set[str]:
    """A key, that of the data which it lies beside, and its version."""
    parsed = parse_remote_key(PREFIX, key)
    if parsed is None:
        return {since.bundle_of(key) or key}
    version, suffix = parsed
    return {key[:len(key) - len(suffix)], PREFIX + '%s/%s' % (
        version.object_hash, version.timestamp)}
