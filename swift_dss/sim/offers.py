"""Check the bucket's versions for a restore, by the product's own walk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from swift_dss.gateway.form.metadata import merged
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import S3Client, S3Listed
from swift_dss.gateway.restore.catalog import Catalog, Held
from swift_dss.io import workers
from swift_dss.sim import posts
from swift_dss.sim.model import Violation
from swift_dss.sim.node import hash_of

if TYPE_CHECKING:
    from swift_dss.sim.cluster import Cluster


def check(cluster: Cluster) -> None:
    """Check the source of a lost node's restore.

    :raises Violation: the bucket offers a version that is older than what was
        acknowledged: a restore would bring it back; or what bundles say of a
        version is older than an acknowledged POST
    """
    said: Dict[Tuple[str, str], Dict[str, Any]] = {}
    for one in _catalog(cluster).walk():
        if not isinstance(one, Held):
            raise Violation('S3 has an unreadable key: %s' % (one,))
        stamp = one.record.metadata['X-Timestamp']
        acknowledged = cluster.model.name(one.name).acknowledged
        if stamp < acknowledged:
            raise Violation('%s: S3 still offers the version of %s, and %s '
                            'was acknowledged (%s, member %d)' % (
                                one.name, stamp, acknowledged,
                                one.remote.key, one.number))
        if one.bundle is not None:
            place = one.name, one.record.version.timestamp
            record = {'metadata': one.record.metadata,
                      'map': one.record.class_map_text}
            said[place] = merged(said.get(place, record), record)
    for (name, stamp), record in sorted(said.items()):
        _check_said(cluster, name, stamp, record)


def members_of(cluster: Cluster, key: str) -> List[Held]:
    """All members of a bundle, the dead ones among them."""
    return [one for one in _catalog(cluster).members(S3Listed(
        key, len(cluster.bucket.keys[key].data), ''), set())
        if isinstance(one, Held)]


def _check_said(cluster: Cluster, name: str, stamp: str,
                record: Dict[str, Any]) -> None:
    history = cluster.model.name(name)
    wrote = history.wrote(stamp)
    found = [node.look(hash_of(name)) for node in cluster.nodes.values()]
    if wrote is None or not any(
            seen is not None and seen.timestamp == stamp and seen.key
            for seen in found):
        return  # an upload that was broken off: no client relies on it
    shown = posts.of_record(record['metadata'], record['map'])
    for register, put, value in (
            ('meta', '', shown.meta), ('type', 'text/plain', shown.type),
            ('map', wrote.class_map, shown.map)):
        if value not in history.registers[register].allowed(stamp, put):
            raise Violation(
                '%s: S3 has the %s %r of the version of %s, and what POST '
                'set at %s was acknowledged' % (
                    name, register, value, stamp,
                    history.registers[register].acknowledged))


def _catalog(cluster: Cluster) -> Catalog:
    conf = next(iter(cluster.nodes.values())).around.conf.gateway
    return Catalog(conf, S3Client(
        conf, Breaker(), 1, connect=lambda *_: cluster.bucket.client(
            'judge')), workers.inline)
