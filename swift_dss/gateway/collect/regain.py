"""Write a lost book of bundles again, from what stands.

A new book beside records that name bundles is a lost one, or that of a node
which has just joined. Each record here tells the bundle that it leans on, and
the bundle tells who has packed it: one HEAD, if this node is the first primary
of a member. A bundle that its first primaries packed was packed here if this
node is the first primary of most of its members, so this node keeps such a
bundle from now on: the bundle's index has the members, and the notes beside it
those that are dead. No other bundle is read, and each at most once: five
requests a bundle that this node kept. What it packed for other nodes that were
late, before the rings changed or under another address, is left to the search
for dead keys (``members``).

The walk begins again with each start of the daemon: it reads local files, and
bundles that the book has again are not read again.
"""

from __future__ import annotations

from typing import Dict, List, Set, Tuple

from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteUnavailable, TierUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle import since as bundle_since
from swift_dss.gateway.bundle.pack import PACKER_META
from swift_dss.gateway.bundle.read import is_bundle
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.collect.adopter import Adopter, seal_of_held
from swift_dss.gateway.form.encrypt import opener
from swift_dss.gateway.form.one_key import Tries
from swift_dss.gateway.link.client import S3Listed, S3Rejected
from swift_dss.gateway.peers.ranks import NoRing, Ranks, mark_of
from swift_dss.gateway.ports import LocalVersions
from swift_dss.gateway.restore.catalog import Catalog, Held
from swift_dss.io import steps

#: Records of a device or ring that was away are looked at after this.
_AGAIN_SECONDS = 3600.0
#: Bundles of others that are remembered, 100 bytes each.
_MOST_OTHERS = 100000


class Regainer:
    """Fills a new book. Called by one thread at a time."""

    def __init__(self, around: Around, shelves: Shelves,
                 local: LocalVersions, ranks: Ranks) -> None:
        self._prefix = around.conf.prefix
        self._book = shelves.book
        self._client = shelves.client
        self._keys = shelves.keys
        self._catalog = Catalog(around.conf, shelves.client)
        self._local = local
        self._ranks = ranks
        self._metrics = around.metrics
        self._logger = around.logger
        self._clock = around.clock
        self._adopter = Adopter(shelves.book, local, ranks, around.clock)
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
        if self._book.is_regained or self._clock.wall() < self._not_before:
            return False
        if not self._local.is_indexed():
            # A new index has other rows.
            self._at = 0
            return False
        page = self._local.in_s3(self._at)
        for key, holders in self._named(page).items():
            if not self._book.has_bundle(key) and key not in self._others \
                    and self._is_any_first(holders):
                self._try_keep(key, holders)
            self._book.hold_all(holders, key)
        if page:
            self._at = page[-1][0]
            return True
        if self._missed:
            self._at, self._missed = 0, False
            self._not_before = self._clock.wall() + _AGAIN_SECONDS
        else:
            self._book.regained()
            self._others.clear()
        return False

    def _named(self, page: List[Tuple[int, VersionId, str]]
               ) -> Dict[str, List[Tuple[VersionId, str]]]:
        """Versions and partitions by the bundles that their records name."""
        named: Dict[str, List[Tuple[VersionId, str]]] = {}
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
                named.setdefault(remote.key, []).append((version, partition))
        return named

    def _is_any_first(self, holders: List[Tuple[VersionId, str]]) -> bool:
        """True if a device here packs one of these."""
        try:
            return not all(self._ranks.rank(holder) for holder, _ in holders)
        except NoRing:
            self._missed = True
            return False

    def _is_first(self, version: VersionId) -> bool:
        """True if it is this node that packs a version."""
        nodes = self._ranks.primaries(version.policy, version.object_hash)[1]
        return any(map(self._ranks.is_here,
                       nodes[version.frag_index or 0:][:1]))

    def _try_keep(self, key: str,
                  holders: List[Tuple[VersionId, str]]) -> None:
        try:
            kept = self._keep(key, {
                mark_of(self._ranks, version) for version, _ in holders})
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

    def _keep(self, key: str, marks: Set[str]) -> bool:
        """Keep a bundle; False if it is for another node to keep.

        :param marks: of this node
        :raises DssError: it cannot be read
        """
        head = self._client.head(key)
        # Those of earlier releases do not say who has packed them.
        if head is None or head.metadata.get(
                PACKER_META) not in marks | {None}:
            return False
        listed = S3Listed(key, head.size, head.etag)
        said = self._catalog.members(listed, set())
        members = {held.number: held for held in said
                   if isinstance(held, Held)}
        if len(members) < len(said):
            raise DamagedRecord('%s: %d of its members are unreadable' % (
                key, len(said) - len(members)))
        dead = bundle_since.read_all(self._client, key, opener(
            self._keys, seal_of_held(members))).dead
        live = [held for number, held in members.items() if number not in dead]
        if 2 * sum(self._is_first(held.record.version)
                   for held in live) <= len(live):
            return False
        self._adopter.adopt(listed, members, dead, dead)
        return True
