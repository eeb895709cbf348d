"""The simulated cluster: proxies, replicators, nodes and S3.

Proxies write to a quorum of the nodes that they reach and hand off for the
others; replicators bring the newest file of each object to its primaries,
and remove handoffs that all primaries have. Swift promises this, and only this
is simulated of it.
"""

from __future__ import annotations

from typing import Dict, Iterable, Optional, Set

from swift_dss.core.spans import ClassMap
from swift_dss.gateway.bundle import since
from swift_dss.gateway.link.client import MARKS
from swift_dss.sim import offers, pieces
from swift_dss.sim.conf import PREFIX
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.judge import Replica
from swift_dss.sim.model import Attempt, Violation
from swift_dss.sim.node import Node, Unreadable
from swift_dss.sim.traffic import coded, posts, replicator
from swift_dss.sim.traffic.expirer import headers
from swift_dss.sim.traffic.scene import CLASSES, NAMES, REPLICATED, Scene
from swift_dss.sim.world.ring import CODED, STOCK
from swift_dss.wire import classmap
from swift_dss.wire.layout import parse_remote_key

__all__ = ['CLASSES', 'NAMES', 'REPLICATED', 'Cluster']


class Cluster(Scene):
    """A scene, with what clients and replicators do in it, and its judge."""

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

    def read(self, name: str) -> str:
        """A GET; raises :class:`Violation` for bytes that no client wrote.

        Swift may answer with an older version while replicas differ; so
        may we. Nobody may answer with bytes that are no version's.
        """
        object_hash = hash_of(name)
        if policy_of(object_hash) == CODED:
            return coded.get(self, name)
        partition = self.ring.partition(object_hash)
        for asked in self.ring.primaries(partition) + \
                self.ring.handoffs(partition):
            if asked in self.cut:
                continue
            said = self.read_from(name, self.nodes[asked])
            if said:
                return said
        return 'nothing'

    def read_from(self, name: str, node: Node) -> str:
        """The same of one node's replica; '' if it has nothing to give."""
        try:
            stamp, body = node.read(name)
        except Unreadable:
            return ''
        if not stamp:
            return ''
        if body is None and self.is_over(name, node):
            return '404 from %s, its time is over' % node.name
        wrote = self.model.name(name).wrote(stamp)
        if wrote is None or wrote.body != body:
            raise Violation('%s: %s answers with bytes that no client '
                            'wrote at %s' % (name, node.name, stamp))
        self.coverage.answered += 1
        return '%s from %s' % ('404' if body is None else '200', node.name)

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
        return {replica.key for node in self.nodes.values()
                for object_hash in node.hashes()
                for replica in node.all_of(object_hash) if not replica.local}

    def _check_untouched(self, name: str) -> None:
        for node in self.nodes.values():
            replica = node.look(hash_of(name))
            if replica is not None and (replica.key or not replica.local):
                raise Violation('%s: %s has touched a version of a policy '
                                'that is not ours' % (name, node.name))

    def _check(self, name: str, promised: Attempt) -> None:
        object_hash = hash_of(name)
        primaries = self.ring.primaries(self.ring.partition(object_hash))
        replicas: Dict[str, Optional[Replica]] = {}
        # Primaries first: one copy is enough.
        for node in primaries + [
                name for name in self.nodes if name not in primaries]:
            seen = replicas[node] = self.nodes[node].look(object_hash)
            if seen is not None and seen.timestamp == promised.timestamp \
                    and seen.body == promised.body:
                return
            if node == primaries[-1] and all(
                    had is not None and had.timestamp > promised.timestamp
                    for had in replicas.values()):
                self.outlived.add((object_hash, promised.timestamp))
        there = {node: seen for node, seen in replicas.items()
                 if seen is not None}
        is_outlived = (object_hash, promised.timestamp) in self.outlived
        waits = [] if is_outlived else [
            node for node in primaries if node in there
            and there[node].timestamp == promised.timestamp
            and node not in self.returned
            and there[node].key not in self.bucket.forgotten
            and (object_hash, promised.timestamp)
            not in self.nodes[node].lost_with_hdd]
        newer = [node for node, seen in there.items()
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
        for object_hash in sorted({object_hash for node in self.nodes.values()
                                   for object_hash in node.hashes()}):
            if policy_of(object_hash) == CODED:
                pieces.check_all(self, self.name_of(object_hash))
                continue
            versions = [(seen.timestamp, seen.is_tombstone or
                         seen.body is not None, node.stale)
                        for node in self.nodes.values()
                        for seen in node.all_of(object_hash)]
            whole = {at for at, is_whole, _ in versions if is_whole}
            if any(at not in whole and (object_hash, at) not in stale
                   for at, _, stale in versions):
                raise Violation('a version without bytes')

    def mount_hdds(self) -> None:
        """All that were away are back."""
        for node in self.nodes.values():
            node.mount_hdd()

    def check_bucket(self) -> None:
        """Check the bucket as the source of a restore: :mod:`sim.offers`."""
        offers.check(self)

    def orphans(self) -> Set[str]:
        """Keys that no record names, of versions that no node has."""
        needed: Set[str] = set()
        for node in self.nodes.values():
            for object_hash in node.hashes():
                for seen in node.all_of(object_hash):
                    # A stub whose bundle is gone reads its own key.
                    needed.update((seen.key, PREFIX + '%s/%s' % (
                        object_hash, seen.timestamp)))
        return {key for key in self.bucket.keys
                if not key.endswith(MARKS)
                and not needed & _means(key)}

def _means(key: str) -> Set[str]:
    """A key, that of the data which it lies beside, and its version."""
    parsed = parse_remote_key(PREFIX, key)
    if parsed is None:
        return {since.bundle_of(key) or key}
    version, suffix = parsed
    return {key[:len(key) - len(suffix)], PREFIX + '%s/%s' % (
        version.object_hash, version.timestamp)}
