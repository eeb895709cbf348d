"""Check the bucket's versions for a restore, by the product's own walk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from swift_dss.core.classes import RemoteMode
from swift_dss.gateway.form.metadata import merged
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import S3Client, S3Listed
from swift_dss.gateway.restore.catalog import Catalog, Held
from swift_dss.io import workers
from swift_dss.sim.disks import hash_of
from swift_dss.sim.model import Violation
from swift_dss.sim.traffic import posts
from swift_dss.wire import classmap

if TYPE_CHECKING:
    from swift_dss.sim.cluster import Cluster


def check(cluster: Cluster) -> None:
    """Check the source of a lost node's restore.

    :raises Violation: the bucket offers a version that is older than what was
        acknowledged: a restore would bring it back; or all that the bucket
        says of a version is older than an acknowledged POST
    """
    said: Dict[Tuple[str, str], Dict[str, Any]] = {}
    for one in _catalog(cluster).walk():
        if not isinstance(one, Held):
            raise Violation('S3 has an unreadable key: %s' % (one,))
        stamp = one.record.version.timestamp
        acknowledged = cluster.model.name(one.name).acknowledged
        if stamp < acknowledged:
            raise Violation('%s: S3 still offers the version of %s, and %s '
                            'was acknowledged (%s, member %d)' % (
                                one.name, stamp, acknowledged,
                                one.remote.key, one.number))
        record = {'metadata': one.record.metadata,
                  'map': one.record.class_map_text}
        said[one.name, stamp] = merged(
            said.get((one.name, stamp), record), record)
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
    if wrote is None or history.allowed() != [wrote] or not any(
            seen is not None and seen.timestamp == stamp and seen.key
            for seen in found):
        return  # an upload that was broken off: no client relies on it
    if any(cluster.table.spec(classmap.decode(one).rest).remote
           is RemoteMode.NEVER
           for one in history.registers['map'].attempts.values()):
        return  # no node renews the record of what is to stay here
    wrong = posts.wrong(history, wrote, posts.of_record(
        record['metadata'], record['map']))
    if wrong:
        raise Violation('%s: S3 has of the version of %s the %s' % (
            name, stamp, wrong))


def _catalog(cluster: Cluster) -> Catalog:
    conf = next(iter(cluster.nodes.values())).around.conf.gateway
    return Catalog(conf, S3Client(
        conf, Breaker(), 1, connect=lambda *_: cluster.bucket.client(
            'judge')), workers.inline)
