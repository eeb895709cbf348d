"""Write a lost book of bundles again, from what stands.

A new book beside records that name bundles is a lost one. Each record here
tells the bundle that it leans on. A bundle that its first primaries packed was
packed here if this node is the first primary of most of its members, so this
node keeps such a bundle from now on: the bundle's index has the members, and
the notes beside it those that are dead. No other bundle is read, and each at
most once: five requests a bundle that this node kept. What it packed for other
nodes that were late, or before the rings changed, is left to the search for
dead keys (``members``).

The walk begins anew with each start of the daemon: it reads local files, and
bundles that the book has again are not read again.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Set, Tuple

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteUnavailable, TierUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle import since as bundle_since
from swift_dss.gateway.bundle.read import is_bundle
from swift_dss.gateway.collect.adopter import Adopter, seal_of_held
from swift_dss.gateway.collect.members import Shelves
from swift_dss.gateway.form.encrypt import opener
from swift_dss.gateway.form.one_key import Tries
from swift_dss.gateway.link.client import S3Listed, S3Rejected
from swift_dss.gateway.peers.ranks import NoRing, Ranks
from swift_dss.gateway.ports import LocalVersions, Logger, Metrics
from swift_dss.gateway.restore.catalog import Held
from swift_dss.io import steps

#: Where a device or a ring was away, its records are looked at after this.
_AGAIN_SECONDS = 3600.0
#: Bundles of others that are remembered, 100 bytes each.
_MOST_OTHERS = 100000


class Regainer:
    """Fills a new book. Called by one thread at a time.

    :param now: seconds since the epoch
    """

    def __init__(self, conf: GatewayConf, shelves: Shelves,
                 local: LocalVersions, ranks: Ranks, metrics: Metrics,
                 logger: Logger, now: Callable[[], float]) -> None:
        self._prefix = conf.prefix
        self._book, self._catalog, self._client, self._keys = shelves
        self._local = local
        self._ranks = ranks
        self._metrics = metrics
        self._logger = logger
        self._now = now
        self._adopter = Adopter(self._book, local, ranks, now)
        #: Bundles that this node has not kept.
        self._others: Set[str] = set()
        self._tries = Tries()
        self._at = 0
        #: A device was away in this walk, or a ring.
        self._missed = False
        self._not_before = 0.0

    def look(self) -> bool:
        """Look at the next records of this walk; True if more are left.

        :raises DssError: S3 or a disk does not answer; another time
        """
        if self._book.is_regained or self._now() < self._not_before:
            return False
        if not self._local.is_indexed():
            # A new index has other rows.
            self._at = 0
            return False
        page = self._local.in_s3(self._at)
        for key, some in self._named(page).items():
            if not self._book.has_bundle(key) and key not in self._others \
                    and self._is_any_first(some):
                self._try_keep(key)
            self._book.hold_all(some, key)
        if page:
            self._at = page[-1][0]
            return True
        if self._missed:
            self._at, self._missed = 0, False
            self._not_before = self._now() + _AGAIN_SECONDS
        else:
            self._book.regained()
            self._others.clear()
        return False

    def _named(self, page: List[Tuple[int, VersionId, str]]
               ) -> Dict[str, List[Tuple[VersionId, str]]]:
        """Versions and partitions by the bundles that their records name."""
        found: Dict[str, List[Tuple[VersionId, str]]] = {}
        for _, version, partition in page:
            try:
                remote = self._local.describe(
                    version, partition).residency.remote
            except (VersionGone, DamagedRecord):
                continue
            except TierUnavailable:
                self._missed = True
                continue
            if remote is not None and is_bundle(self._prefix, remote.key):
                found.setdefault(remote.key, []).append((version, partition))
        return found

    def _is_any_first(self, some: List[Tuple[VersionId, str]]) -> bool:
        """True if a device here packs one of these."""
        try:
            return not all(self._ranks.rank(one) for one, _ in some)
        except NoRing:
            self._missed = True
            return False

    def _is_first(self, version: VersionId) -> bool:
        """True if it is this node that packs a version."""
        nodes = self._ranks.primaries(version.policy, version.object_hash)[1]
        return any(map(self._ranks.is_here,
                       nodes[version.frag_index or 0:][:1]))

    def _try_keep(self, key: str) -> None:
        try:
            kept = self._keep(key)
        except (RemoteUnavailable, S3Rejected) as err:
            if not self._tries.are_used_up(err):
                raise
            kept = self._is_left(key, err)
        except DssError as err:
            kept = self._is_left(key, err)
        self._tries = Tries()
        if kept:
            steps.reached('regain.kept')
            self._metrics.count('gateway.bundles_regained')
            self._logger.info('gateway: bundles: %s is kept here again', key)
        elif len(self._others) < _MOST_OTHERS:
            self._others.add(key)

    def _is_left(self, key: str, err: DssError) -> bool:
        self._logger.warning('gateway: bundles: %s is not kept here again, '
                             'and left to gateway gc: %s', key, err)
        return False

    def _keep(self, key: str) -> bool:
        """Keep a bundle; False if it is for another node to keep.

        :raises DssError: it cannot be read
        """
        head = self._client.head(key)
        if head is None:
            return False
        listed = S3Listed(key, head.size, head.etag)
        said = self._catalog.members(listed, set())
        members = {one.number: one for one in said if isinstance(one, Held)}
        if len(members) < len(said):
            raise DamagedRecord('%s: %d of its members are unreadable' % (
                key, len(said) - len(members)))
        dead = bundle_since.read_all(self._client, key, opener(
            self._keys, seal_of_held(members))).dead
        live = [one for number, one in members.items() if number not in dead]
        if 2 * sum(self._is_first(one.record.version)
                   for one in live) <= len(live):
            return False
        self._adopter.adopt(listed, members, dead, dead)
        return True
