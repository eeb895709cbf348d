"""The rank of a device among an object's primaries decides who uploads.

Replicas share one S3 key. Rank 0, the first primary in ring order, uploads
at once; rank *n* only checks (HEAD) until ``n * take_over_seconds`` have
passed since it first saw the version, then uploads itself. A handoff has
the rank after the last primary: it acts only when every primary had its
turn, since replication will normally have emptied it by then. Two nodes
that upload at once do no harm: same key, same bytes. Every EC fragment archive
has its own key, so each device is rank 0 for its own archives.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import threading
import zlib
from typing import (
    Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Set, Tuple)

from swift.common.exceptions import SwiftException
from swift.common.ring import Ring
from swift.common.utils import (
    get_partition_for_hash, hash_path, set_swift_dir)

from swift_dss.core.config import Shard
from swift_dss.core.errors import BadConfig
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.here import Here
from swift_dss.wire.layout import data_dir_name

#: Errors of a ring file that is missing, cut off or not a ring.
_UNREADABLE = (OSError, EOFError, ValueError, SwiftException, zlib.error)
_RING_FILE = re.compile(r'^object(?:-([0-9]{1,9}))?\.ring\.gz\Z')


class NoRing(BadConfig):
    """A ring is missing or unreadable: the places of its objects are unknown.
    """


def ring_name(policy: int) -> str:
    """Swift's file name of a policy's ring, without the ending."""
    return data_dir_name(policy).replace('objects', 'object', 1)


# A ring seldom changes, and every pass asks for the same names.
@functools.lru_cache(maxsize=8)
def _owners(names: Tuple[str, ...], ips: FrozenSet[str]) -> List[str]:
    return [max(ips, key=lambda ip: hashlib.md5(
        ('%s %s' % (name, ip)).encode('ascii')).digest()) for name in names]


def open_ring(swift_dir: str, name: str) -> Any:
    """Swift's ring of this name.

    :raises NoRing: there is none that can be read
    """
    try:
        # A ring reads swift.conf, by default the one of /etc/swift.
        set_swift_dir(swift_dir)
        return Ring(swift_dir, ring_name=name)
    except SystemExit as err:
        # Without a salt of hashes, Swift's own code ends the process.
        raise NoRing('%s/swift.conf cannot be used: %s' % (
            swift_dir, err)) from err
    except _UNREADABLE as err:
        raise NoRing('%s/%s.ring.gz cannot be read: %s' % (
            swift_dir, name, err)) from err


def mark_of(ranks: Ranks, version: VersionId) -> str:
    """The mark by which a node knows what it has sent, whatever it has lost
    since: Swift's salted hash of its address in the ring. '' where it is no
    primary of the version, or no ring says so."""
    try:
        nodes = ranks.primaries(version.policy, version.object_hash)[1]
    except NoRing:
        return ''
    return next((str(hash_path(str(node.get('ip', '')))) for node in nodes
                 if ranks.is_here(node)), '')


class Ranks:
    """Ranks by the ring files of ``swift_dir``. Thread-safe.

    Hosts of a ring may be names: see ``gateway.here``. Questions about a
    policy without a ring raise :class:`NoRing`.

    A shard is a node of its own to the others, and to the shards beside
    it: *here* are its own devices.

    :param my_ips: addresses of this node; None asks the system
    :param shard: None: the whole node is meant
    """

    def __init__(self, swift_dir: str,
                 my_ips: Optional[Set[str]] = None,
                 shard: Optional[Shard] = None) -> None:
        self._swift_dir = swift_dir
        self._shard = shard
        self._here = Here(my_ips)
        self._lock = threading.Lock()
        self._rings: Dict[int, Any] = {}

    def primaries(self, policy: int, object_hash: str
                  ) -> Tuple[str, List[Dict[str, Any]]]:
        """(partition, primaries in ring order) of an object, by the ring
        in force.

        :raises NoRing: its policy has none here, or the object has no hash
        """
        if not object_hash:
            raise NoRing('an object without a hash is in no ring')
        with self._lock:
            ring = self._ring(policy)
            part = get_partition_for_hash(object_hash, ring.part_power)
            return str(part), list(ring.get_part_nodes(part))

    def is_here(self, node: Mapping[str, Any]) -> bool:
        """True if a device of the ring is here: at an address of this node,
        and one of the shard's."""
        if self._shard is not None and \
                node['device'] not in self._shard.devices:
            return False
        return self._here.is_here(node['ip']) or \
            self._here.is_here(node.get('replication_ip'))

    def shares(self, names: Iterable[str]) -> List[str]:
        """Those names of work that are this node's: each name is that of
        one node, and all nodes have about as many."""
        with self._lock:
            ips = {device['ip'] for policy in self._policies()
                   for device in self._ring(policy).devs
                   if device is not None}
        here = {ip for ip in ips if self._here.is_here(ip)}
        names = tuple(names)
        return [name for name, ip in zip(names, _owners(
            names, frozenset(ips))) if ip in here and self._is_mine(name)
            ] if here else []

    def _is_mine(self, name: str) -> bool:
        """Of the shards of a node, exactly one does a piece of work."""
        return self._shard is None or int(hashlib.md5(
            name.encode('ascii')).hexdigest(), 16) \
            % self._shard.count == self._shard.number

    def not_in_rings(self, names: Iterable[str]) -> List[str]:
        """Those of this node's devices that no ring has at an address of
        this node: they are handoffs of their objects. None where there is no
        ring that can be read."""
        try:
            with self._lock:
                nodes = [device for policy in self._policies()
                         for device in self._ring(policy).devs
                         if device is not None]
        except (OSError, NoRing):
            return []
        wanted = set(names) if nodes else set()
        return sorted(wanted - {
            node['device'] for node in nodes
            if node['device'] in wanted and self.is_here(node)})

    def is_primary(self, version: VersionId) -> bool:
        """True if a device of this node is one for the object."""
        return any(map(self.is_here, self.primaries(
            version.policy, version.object_hash)[1]))

    def belongs_here(self, version: VersionId) -> bool:
        """True if a device of this node is to hold just this."""
        nodes = self.primaries(version.policy, version.object_hash)[1]
        return any(map(self.is_here, nodes if version.frag_index is None
                       else nodes[version.frag_index:][:1]))

    def rank(self, version: VersionId) -> int:
        """0 for the uploader, up to the replica count for a handoff."""
        return 0 if version.frag_index is not None else self.place(
            version)[0]

    def place(self, version: VersionId) -> Tuple[int, int]:
        """(index of the version's device among the primaries of its object,
        how many there are); both are the same for a handoff."""
        with self._lock:
            ring = self._ring(version.policy)
            nodes = ring.get_part_nodes(get_partition_for_hash(
                version.object_hash, ring.part_power))
        for index, node in enumerate(nodes):
            if node['device'] == version.device and self.is_here(node):
                return index, len(nodes)
        return len(nodes), len(nodes)

    def partition(self, version: VersionId) -> str:
        """The partition that the ring in force gives the object."""
        with self._lock:
            ring = self._ring(version.policy)
            return str(get_partition_for_hash(
                version.object_hash, ring.part_power))

    def _policies(self) -> List[int]:
        indexes = []
        for name in os.listdir(self._swift_dir):
            match = _RING_FILE.match(name)
            if match:
                indexes.append(int(match.group(1) or 0))
        return indexes

    def _ring(self, policy: int) -> Any:
        if policy not in self._rings:
            self._rings[policy] = open_ring(
                self._swift_dir, ring_name(policy))
        return self._rings[policy]
