"""``swift-dss gateway restore`` on a simulated node: the product's own, put
together as the command does it. Account and container servers are not
simulated: they take all that they are told.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from swift.common import storage_policy, utils

from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.pack import book_path
from swift_dss.gateway.collect.keys import restore_state
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import S3Client
from swift_dss.gateway.peers.ranks import ring_name
from swift_dss.gateway.restore.adopt import Adoption
from swift_dss.gateway.restore.catalog import Catalog
from swift_dss.gateway.restore.places import Servers
from swift_dss.gateway.restore.run import Cluster, Restore, Restored
from swift_dss.gateway.restore.trust import Trust
from swift_dss.gateway.restore.write import PlaceWriter, Writer
from swift_dss.io import workers
from swift_dss.sim.daemon import Surroundings
from swift_dss.sim.world.ring import (
    CODED, OURS, STOCK, SimPrimaries, SimRanks, SimRing, address_of,
    devices_of)

_SILENT = logging.getLogger('swift_dss.sim')


class _Servers(Servers):

    def __init__(self, swift_dir: str, ring: SimRing) -> None:
        super().__init__(swift_dir)
        self._of_objects = {ring_name(policy): _ObjectRing(ring, policy)
                            for policy in (OURS, STOCK, CODED)}

    def ring(self, name: str) -> Any:
        """Of a policy."""
        return self._of_objects[name]

    def head(self, path: str) -> Optional[Dict[str, str]]:
        """Every account and container is there."""
        return {}

    def put(self, path: str, headers: Mapping[str, str]) -> int:
        """All take it."""
        return 1


class _ObjectRing:

    def __init__(self, ring: SimRing, policy: int) -> None:
        self._ring = ring
        self._policy = policy

    def get_nodes(self, account: str, container: str,
                  obj: str) -> Tuple[int, List[Dict[str, Any]]]:
        partition = self._ring.partition(
            utils.hash_path(account, container, obj))
        return int(partition), devices_of(
            self._ring.primaries(partition, self._policy))


def restore(around: Surroundings) -> Tuple[Restored, List[str]]:
    """Bring back the versions that belong on a node; the results and failures.

    :raises RemoteUnavailable: S3 does not answer; run it again
    """
    conf, now = around.conf, around.clock.wall()
    client = S3Client(conf.gateway, Breaker(), 1,
                      connect=lambda *_: around.bucket.client(around.name))
    servers = _Servers(conf.swift_dir, around.ring)
    with _as_before():
        # A command has a Swift of its own: this one reads swift.conf.
        writer = Writer(conf, servers, _SILENT, (address_of(around.name),))
    ranks = SimRanks(around.ring, around.name)
    with contextlib.closing(Book(book_path(conf.state_dir))) as book:
        work = Restore(
            conf.gateway, client, writer, PlaceWriter(servers),
            Trust(conf.gateway.prefix, servers.cluster, False, now),
            Cluster(ranks.belongs_here, SimPrimaries(
                around.ring, around.ask)),
            restore_state(conf), '', Adoption(lambda device: book, now))
        work.run(Catalog(conf.gateway, client, workers.inline),
                 lambda progress: None)
    return work.found, work.problems


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """Swift's configuration is not changed."""
    names = ((utils, 'SWIFT_CONF_FILE'), (utils, 'HASH_PATH_SUFFIX'),
             (utils, 'HASH_PATH_PREFIX'), (storage_policy, '_POLICIES'))
    before = [(module, name, getattr(module, name))
              for module, name in names]
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
