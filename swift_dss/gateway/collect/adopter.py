"""Have this node keep a bundle of the bucket that nobody keeps.

Every keeper asks before it removes anything, so a second one does no harm: it
only works twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Container, Dict, List, Tuple

from swift_dss.core.errors import DamagedRecord, TierUnavailable
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book, Member
from swift_dss.gateway.link.client import S3Listed
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.gateway.ports import LocalVersions
from swift_dss.gateway.restore.adopt import group_of_held, member_of
from swift_dss.gateway.restore.catalog import Held
from swift_dss.io.workers import Clock


class Adopter:
    """Writes bundles of the bucket into the book.

    """

    def __init__(self, book: Book, local: LocalVersions, ranks: Ranks,
                 clock: Clock) -> None:
        self._book = book
        self._local = local
        self._ranks = ranks
        self._clock = clock

    def adopt(self, listed: S3Listed, members: Dict[int, Held],
              dead: Container[int], told: Container[int]) -> None:
        """Keep a bundle. Durable, idempotent.

        :param members: all that it has, by number; one at least
        :param dead: of these, those that nothing needs
        :param told: of these, those of which the bucket says so
        """
        group = group_of_held(next(iter(members.values())))
        rows: List[Member] = []
        here: List[Tuple[VersionId, str]] = []
        for number, held in members.items():
            if number in dead:
                rows.append(member_of(held, group)._replace(
                    state='told' if number in told else 'dead'))
                continue
            mine = self._places(held.record.version)
            here += mine
            rows.append(member_of(held, group, *(
                (mine[0][0].device, mine[0][1]) if mine else ())))
        self._book.adopt(listed.key, group, seal_of_held(members),
                         listed.size, rows, self._clock.wall())
        self._book.hold_all(here, '')

    def _places(self, version: VersionId) -> List[Tuple[VersionId, str]]:
        """Devices of this node that have the version."""
        partition, nodes = self._ranks.primaries(
            version.policy, version.object_hash)
        places = []
        for node in nodes:
            here = replace(version, device=node['device'])
            if self._ranks.is_here(node) and \
                    self._newest(here, partition) == version.timestamp:
                places.append((here, partition))
        return places

    def _newest(self, version: VersionId, partition: str) -> str:
        """As the port's; the version's own timestamp if unknown, which leaves
        it alone.
        """
        try:
            return self._local.newest(version, partition) or ''
        except (TierUnavailable, DamagedRecord):
            return version.timestamp


def seal_of_held(members: Dict[int, Held]) -> str:
    """Of the bundle that these lie in."""
    for held in members.values():
        if held.bundle is not None:
            return str(held.bundle[0].get('seal', ''))
    return ''
