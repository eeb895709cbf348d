"""Check the bucket's versions for a restore, by the product's own walk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from swift_dss.core.classes import RemoteMode
from swift_dss.gateway.form.metadata import META_SUFFIX, merged
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
    said: Dict[Tuple[str, str, int], Dict[str, Any]] = {}
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
        if one.remote.key + META_SUFFIX in cluster.bucket.forgotten:
            continue  # nobody looks whether it still has what a POST set
        index = one.record.version.frag_index
        which = one.name, stamp, -1 if index is None else index
        said[which] = merged(said.get(which, record), record)
    for (name, stamp, index), record in sorted(
            said.items(), key=lambda found: found[0]):
        _check_said(cluster, name, stamp, index, record)


def members_of(cluster: Cluster, key: str) -> List[Held]:
    """All members of a bundle, the dead ones among them."""
    return [one for one in _catalog(cluster).members(S3Listed(
        key, len(cluster.bucket.keys[key].data), ''), set())
        if isinstance(one, Held)]


def _check_said(cluster: Cluster, name: str, stamp: str, index: int,
                record: Dict[str, Any]) -> None:
    history = cluster.model.name(name)
    wrote = history.wrote(stamp)
    found = [seen for node in cluster.nodes.values()
             for seen in node.all_of(hash_of(name))]
    if wrote is None or history.allowed() != [wrote] or not any(
            seen.timestamp == stamp and seen.key
            and seen.frag_index == (None if index < 0 else index)
            for seen in found):
        return  # an upload that was broken off: no client relies on it
    if any(cluster.table.spec(classmap.decode(one).rest).remote
           is RemoteMode.NEVER
           for one in history.registers['map'].attempts.values()):
        return  # no node renews the record of what is to stay here
    wrong = posts.wrong(history, wrote, posts.of_record(
        record['metadata'], record['map']))
    if wrong:
        raise Violation('%s: S3 has of the version of %s%s the %s' % (
            name, stamp, '' if index < 0 else '#%d' % index, wrong))


def _catalog(cluster: Cluster) -> Catalog:
    conf = next(iter(cluster.nodes.values())).around.conf.gateway
    return Catalog(conf, S3Client(
        conf, Breaker(), 1, connect=lambda *_: cluster.bucket.client(
            'judge')), workers.inline)
