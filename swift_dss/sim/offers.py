"""Check the bucket's versions for a restore, by the product's own walk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Set, Tuple

from swift_dss.core.classes import RemoteMode
from swift_dss.gateway.form.metadata import META_SUFFIX, merged
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import S3Client, S3Listed
from swift_dss.gateway.restore.catalog import Catalog, Held
from swift_dss.io import workers
from swift_dss.sim import pieces
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.model import Violation
from swift_dss.sim.server import policies
from swift_dss.sim.traffic import posts
from swift_dss.sim.world.ring import CODED
from swift_dss.wire import classmap

if TYPE_CHECKING:
    from swift_dss.sim.traffic.scene import Scene


def check(cluster: Scene) -> None:
    """Check the source of a lost node's restore.

    :raises Violation: the bucket offers a version older than the
        acknowledged one, which a restore would bring back; or its records of
        a version are older than an acknowledged POST; or it leaves out a
        version that a node has there
    """
    said: Dict[Tuple[str, str, int], Dict[str, Any]] = {}
    offered: Set[Tuple[str, str, int]] = set()
    #: Of an older version of which a primary may be left behind.
    behind: Dict[Tuple[str, str], Set[Optional[int]]] = {}
    for member in _catalog(cluster).walk():
        if not isinstance(member, Held):
            raise Violation('S3 has an unreadable key: %s' % (member,))
        stamp = member.record.version.timestamp
        acknowledged = cluster.model.name(member.name).acknowledged
        if stamp < acknowledged:
            indexes = behind.setdefault((member.name, stamp), set())
            indexes.add(member.record.version.frag_index)
            object_hash = hash_of(member.name)
            if policy_of(object_hash) == CODED \
                    and len(indexes) < policies.scheme.data \
                    and pieces.is_stuck(cluster, object_hash):
                continue  # too few for anybody to read
            raise Violation('%s: S3 still offers the version of %s, and %s '
                            'was acknowledged (%s, member %d)' % (
                                member.name, stamp, acknowledged,
                                member.remote.key, member.number))
        record = {'metadata': member.record.metadata,
                  'map': member.record.class_map_text}
        index = member.record.version.frag_index
        which = member.name, stamp, -1 if index is None else index
        offered.add(which)
        if member.remote.key + META_SUFFIX in cluster.bucket.forgotten:
            continue  # no node checks its record of a POST
        said[which] = merged(said.get(which, record), record)
    for (name, stamp, index), record in sorted(
            said.items(), key=lambda item: item[0]):
        _check_said(cluster, name, stamp, index, record)
    for name in sorted(cluster.model.names):
        _check_offered(cluster, name, offered)


def _check_offered(cluster: Scene, name: str,
                   offered: Set[Tuple[str, str, int]]) -> None:
    promised = cluster.model.name(name).promised()
    for node in cluster.nodes.values():
        for seen in node.all_of(hash_of(name)):
            index = -1 if seen.frag_index is None else seen.frag_index
            if promised is not None and seen.key in cluster.bucket.keys \
                    and seen.timestamp == promised.timestamp \
                    and (name, seen.timestamp, index) not in offered:
                raise Violation(
                    '%s: S3 does not offer the version of %s that %s has '
                    'there (%s)' % (name, seen.timestamp, node.name,
                                    seen.key))


def members_of(cluster: Scene, key: str) -> List[Held]:
    """All members of a bundle, the dead ones among them."""
    return [member for member in _catalog(cluster).members(S3Listed(
        key, len(cluster.bucket.keys[key].data), ''), set())
        if isinstance(member, Held)]


def _check_said(cluster: Scene, name: str, stamp: str, index: int,
                record: Dict[str, Any]) -> None:
    history = cluster.model.name(name)
    wrote = history.wrote(stamp)
    replicas = [seen for node in cluster.nodes.values()
                for seen in node.all_of(hash_of(name))]
    if wrote is None or history.allowed() != [wrote] or not any(
            seen.timestamp == stamp and seen.key
            and seen.frag_index == (None if index < 0 else index)
            for seen in replicas):
        return  # an upload that was broken off: no client relies on it
    if any(cluster.table.spec(classmap.decode(text).rest).remote
           is RemoteMode.NEVER
           for text in history.registers['map'].attempts.values()):
        return  # no node renews the record of a version that stays here
    wrong = posts.wrong(history, wrote, posts.of_record(
        record['metadata'], record['map']))
    if wrong:
        raise Violation('%s: S3 has of the version of %s%s the %s' % (
            name, stamp, '' if index < 0 else '#%d' % index, wrong))


def _catalog(cluster: Scene) -> Catalog:
    conf = next(iter(cluster.nodes.values())).around.conf.gateway
    return Catalog(conf, S3Client(
        conf, Breaker(), 1, connect=lambda *_: cluster.bucket.client(
            'judge')), workers.inline)
