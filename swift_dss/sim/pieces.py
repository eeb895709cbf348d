"""Fragments of erasure-coded objects: enough of them give a version.

A version can be read while as many of its fragments as it is made from can be
had, from any node's SSD, HDD or S3, and one of them is durable. The bytes of
each fragment are compared with those that a proxy made.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Dict, Iterable, List, Set, Tuple

from swift_dss.sim.conf import SEGMENT_BYTES, Scheme
from swift_dss.sim.disks import hash_of
from swift_dss.sim.judge import Replica
from swift_dss.sim.model import Attempt, Violation
from swift_dss.sim.server import policies
from swift_dss.sim.world.ring import CODED

if TYPE_CHECKING:
    from swift_dss.sim.traffic.scene import Scene
    from swift_dss.sim.node import Node

#: A node's name to all that it has of an object.
_Seen = Dict[str, List[Replica]]


def archives(body: bytes) -> List[bytes]:
    """Each fragment of an object, as a proxy sends it."""
    return list(_archives(policies.scheme, body))


@functools.lru_cache(maxsize=256)
def _archives(scheme: Scheme, body: bytes) -> Tuple[bytes, ...]:
    driver = policies()[CODED].pyeclib_driver
    segments = [driver.encode(body[at:at + SEGMENT_BYTES])
                for at in range(0, len(body), SEGMENT_BYTES)]
    return tuple(b''.join(segment[index] for segment in segments)
                 for index in range(scheme.fragments))


def body_of(fragments: Dict[int, bytes]) -> bytes:
    """The object, from as many of its fragments as that takes.

    :param fragments: index to bytes
    """
    policy = policies()[CODED]
    step = policy.fragment_size
    archives = list(fragments.values())[:policies.scheme.data]
    return b''.join(policy.pyeclib_driver.decode(
        [archive[at:at + step] for archive in archives])
        for at in range(0, len(archives[0]), step))


def check(cluster: Scene, name: str, promised: Attempt) -> None:
    """Check that a version can be read while a primary shows it: see
    :meth:`swift_dss.sim.cluster.Cluster.check`.

    :raises Violation: too few of its fragments are left
    """
    object_hash = hash_of(name)
    primaries = cluster.ring.of(object_hash, CODED)
    seen: _Seen = {}
    good: Set[int] = set()
    durable = False
    for node in primaries + [node for node in cluster.nodes
                             if node not in primaries]:
        seen[node] = cluster.nodes[node].fragments(object_hash)
        durables = whole(seen[node], promised)
        good.update(durables)
        durable = durable or any(durables.values())
        if durable and len(good) >= policies.scheme.data:
            return
    waits = [node for node in primaries for fragment in seen[node]
             if fragment.timestamp == promised.timestamp
             == _shown(seen[node])
             and fragment.durable and fragment.body is None
             and node not in cluster.returned
             and fragment.key not in cluster.bucket.forgotten
             and (object_hash, promised.timestamp)
             not in cluster.nodes[node].lost_with_hdd]
    newer = {fragment.timestamp for fragments in seen.values()
             for fragment in fragments
             if fragment.timestamp > promised.timestamp}
    if waits or not any(_is_there(cluster, name, seen, stamp)
                        for stamp in sorted(newer)):
        raise Violation('%s: %d fragments are left of the version of %s, '
                        'made from %d (%s)' % (
                            name, len(good), promised.timestamp,
                            policies.scheme.data,
                            '; '.join(cluster.traces(name))),
                        len(promised.body or b''))


def _shown(fragments: Iterable[Replica]) -> str:
    """The version that a node shows, of all that it has."""
    return max((fragment.timestamp for fragment in fragments
                if fragment.durable),
               default='')


def check_all(cluster: Scene, name: str) -> None:
    """Check that no node's newest version lacks bytes: see
    :meth:`swift_dss.sim.cluster.Cluster.check_all`.

    :raises Violation: it does
    """
    seen = {holder: node.fragments(hash_of(name))
            for holder, node in cluster.nodes.items()}
    for holder, fragments in seen.items():
        newest = next((it for it in fragments if it.durable), None)
        if newest is not None and not _is_there(
                cluster, name, seen, newest.timestamp) and (
                    hash_of(name), newest.timestamp) not in \
                cluster.nodes[holder].stale:
            raise Violation('a version without bytes')


def is_stuck(cluster: Scene, object_hash: str) -> bool:
    """True where Swift leaves nodes as they are: it reverts the newest write
    of a handoff alone, and sends nothing that lies behind a write that nobody
    committed."""
    return any(not replica.durable for node in cluster.nodes.values()
               for replica in node.all_of(object_hash))


def can_be_made(cluster: Scene, name: str, timestamp: str,
                nodes: Iterable[Node]) -> bool:
    """True if these nodes have enough of a version."""
    return _is_there(cluster, name, {
        node.name: node.fragments(hash_of(name)) for node in nodes},
        timestamp)


def whole(fragments: Iterable[Replica], wrote: Attempt) -> Dict[int, bool]:
    """Indexes of the right fragments of a version, and whether each is
    durable."""
    right = archives(wrote.body or b'')
    durables: Dict[int, bool] = {}
    for fragment in fragments:
        index = fragment.frag_index
        if fragment.timestamp == wrote.timestamp and index is not None \
                and fragment.body == right[index]:
            durables[index] = durables.get(index, False) or fragment.durable
    return durables


def _is_there(cluster: Scene, name: str, seen: _Seen,
              timestamp: str) -> bool:
    """True of a version that can be read, and of a tombstone."""
    wrote = cluster.model.name(name).wrote(timestamp)
    if wrote is None:
        return False
    if wrote.body is None:
        return any(fragment.is_tombstone and fragment.timestamp == timestamp
                   for fragments in seen.values() for fragment in fragments)
    durables: Dict[int, bool] = {}
    for fragments in seen.values():
        for index, durable in whole(fragments, wrote).items():
            durables[index] = durables.get(index, False) or durable
    return len(durables) >= policies.scheme.data and any(durables.values())
