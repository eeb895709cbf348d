"""Fragments of erasure-coded objects: what is needed to read a version.

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
    from swift_dss.sim.cluster import Cluster
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
    some = list(fragments.values())[:policies.scheme.data]
    return b''.join(policy.pyeclib_driver.decode(
        [one[at:at + step] for one in some])
        for at in range(0, len(some[0]), step))


def check(cluster: Cluster, name: str, promised: Attempt) -> None:
    """Check that a version can be read while a primary shows it: see
    :meth:`Cluster.check`.

    :raises Violation: too few of its fragments are left
    """
    object_hash = hash_of(name)
    primaries = cluster.ring.of(object_hash, CODED)
    seen: _Seen = {}
    good: Set[int] = set()
    durable = False
    for one in primaries + [one for one in cluster.nodes
                            if one not in primaries]:
        seen[one] = cluster.nodes[one].fragments(object_hash)
        found = whole(seen[one], promised)
        good.update(found)
        durable = durable or any(found.values())
        if durable and len(good) >= policies.scheme.data:
            return
    waits = [one for one in primaries for fragment in seen[one]
             if fragment.timestamp == promised.timestamp
             == _shown(seen[one])
             and fragment.durable and fragment.body is None
             and one not in cluster.returned
             and fragment.key not in cluster.bucket.forgotten
             and (object_hash, promised.timestamp)
             not in cluster.nodes[one].lost_with_hdd]
    newer = {fragment.timestamp for fragments in seen.values()
             for fragment in fragments
             if fragment.timestamp > promised.timestamp}
    if waits or not any(_is_there(cluster, name, seen, one)
                        for one in sorted(newer)):
        raise Violation('%s: %d fragments are left of the version of %s, '
                        'made from %d (%s)' % (
                            name, len(good), promised.timestamp,
                            policies.scheme.data,
                            '; '.join(cluster.traces(name))),
                        len(promised.body or b''))


def _shown(fragments: Iterable[Replica]) -> str:
    """The version that a node shows, of all that it has."""
    return max((one.timestamp for one in fragments if one.durable),
               default='')


def check_all(cluster: Cluster, name: str) -> None:
    """Check that no node's newest version lacks bytes: see
    :meth:`Cluster.check_all`.

    :raises Violation: it does
    """
    seen = {one: node.fragments(hash_of(name))
            for one, node in cluster.nodes.items()}
    for fragments in seen.values():
        newest = next((one for one in fragments if one.durable), None)
        if newest is not None and not _is_there(
                cluster, name, seen, newest.timestamp):
            raise Violation('a version without bytes')


def can_be_made(cluster: Cluster, name: str, timestamp: str,
                nodes: Iterable[Node]) -> bool:
    """True if these nodes have enough of a version."""
    return _is_there(cluster, name, {
        node.name: node.fragments(hash_of(name)) for node in nodes},
        timestamp)


def whole(fragments: Iterable[Replica], wrote: Attempt) -> Dict[int, bool]:
    """Indexes of the right fragments of a version, and whether each is
    durable."""
    right = archives(wrote.body or b'')
    found: Dict[int, bool] = {}
    for one in fragments:
        index = one.frag_index
        if one.timestamp == wrote.timestamp and index is not None \
                and one.body == right[index]:
            found[index] = found.get(index, False) or one.durable
    return found


def _is_there(cluster: Cluster, name: str, seen: _Seen,
              timestamp: str) -> bool:
    """True of a version that can be read, and of a tombstone."""
    wrote = cluster.model.name(name).wrote(timestamp)
    if wrote is None:
        return False
    if wrote.body is None:
        return any(one.is_tombstone and one.timestamp == timestamp
                   for fragments in seen.values() for one in fragments)
    found: Dict[int, bool] = {}
    for fragments in seen.values():
        for index, durable in whole(fragments, wrote).items():
            found[index] = found.get(index, False) or durable
    return len(found) >= policies.scheme.data and any(found.values())
