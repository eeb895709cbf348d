"""Settle versions that two nodes packed, because neither had a record yet when
the other one looked.

A node that packs a late version asks first (``sending``), so twins need two
nodes that send at the same time. As when bundles are followed, the bundle that
was begun later is kept. Its packer does nothing. The other packer's records
then name the kept bundle, and its own members are dead once no primary's
record names them.
"""

from __future__ import annotations

from typing import List, Sequence, Tuple

from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Book, Bundle, Member
from swift_dss.gateway.bundle.follow import Follower
from swift_dss.gateway.bundle.lean import Leaning
from swift_dss.gateway.bundle.pack import Claim
from swift_dss.gateway.ports import LocalVersion, LocalVersions
from swift_dss.io import steps
from swift_dss.strategy.agreement import Verdict, seconds_of

#: Members of one question.
_AT_ONCE = 1000
#: A bundle is looked at again after this, and then after twice that.
_AGAIN_SECONDS = 600.0


class Twins:
    """Looks for them. One thread at a time calls :meth:`look`, any the rest.
    """

    def __init__(self, around: Around, book: Book, follower: Follower,
                 leaning: Leaning, local: LocalVersions) -> None:
        self._conf = around.conf
        self._book = book
        self._follower = follower
        self._leaning = leaning
        self._local = local
        self._metrics = around.metrics
        self._clock = around.clock

    def is_late(self, timestamp: str) -> bool:
        """True if another primary may have begun to pack a version."""
        return seconds_of(timestamp) + self._conf.remote_after_seconds \
            + self._conf.take_over_seconds <= self._clock.wall()

    def recorded(self, bundle_id: int) -> None:
        """Records here name a bundle: if it was on its way for long, another
        primary may have begun to pack its members meanwhile."""
        if self.is_late(self._book.oldest_of(bundle_id)):
            self._book.contest(bundle_id, self._clock.wall())

    def settled_first(self, claim: Claim) -> Tuple[Claim, List[VersionId]]:
        """A claim without the members that others have packed since, and
        those of them that have keys of their own. Blocks, a few seconds a
        server, where a member is late.
        """
        late = self._late(claim.members)
        if not late:
            return claim, []
        # Before S3 has it: a node that records later finds it.
        self._book.contest(claim.bundle_id, self._clock.wall())
        places = self._follower.lean(late)
        there = [version for version, place in places.items()
                 if place.remote is not None]
        alone = [version for version, place in places.items() if place.alone]
        gone = {version.key for version in there + alone}
        self._book.settled(version.key for version in there + alone)
        return claim._replace(members=[
            member for member in claim.members
            if member.version.key not in gone]), alone

    def _late(self, members: Sequence[Member]) -> List[LocalVersion]:
        """Those of the members of a planned bundle that another primary may
        have packed."""
        return [local for member in members
                if self.is_late(member.version.timestamp)
                for local in self._described(
                    [(member.version, member.partition)])]

    def look(self) -> None:
        """At bundles with members that were late when they went up.

        :raises DssError: the rest another time
        """
        for contested, since in self._book.contested(self._clock.wall()):
            age = self._clock.wall() - since
            is_open = self._look(contested)
            # A node that packed before these records existed has written its
            # own by then.
            self._book.contest(contested.id, self._clock.wall() + max(
                _AGAIN_SECONDS, age) if is_open
                or age < _AGAIN_SECONDS else 0.0)

    def _look(self, contested: Bundle) -> bool:
        """True if members of this bundle are in another one as well."""
        is_open = False
        members = self._book.members(contested.id, ('there', 'live'))
        for at in range(0, len(members), _AT_ONCE):
            page = members[at:at + _AT_ONCE]
            is_open = self._write_off(
                contested, self._moved(contested, page)) or is_open
        return is_open

    def _moved(self, contested: Bundle, page: List[Member]) -> List[Member]:
        """Members that records here name in another bundle by now."""
        holders = self._book.holders(page)
        here = {member.version.key: self._described(
            holders[member.version.key]) for member in page
            if member.state == 'live'}
        mine = [local for copies in here.values() for local in copies
                if _key(local) == contested.key]
        places = self._follower.lean(mine)
        went = {version for version, place in places.items()
                if place.remote is not None}
        moved = {local.version.key for local in mine
                 if local.version in went} - {
                     local.version.key for local in mine
                     if local.version not in went}
        if moved:
            steps.reached('twins.moved')
            self._metrics.count('gateway.bundle_twins', len(moved))
        return [member for member in page if member.version.key in moved
                or _are_elsewhere(contested.key,
                                  here.get(member.version.key, []))]

    def _described(self, holders: Sequence[Tuple[VersionId, str]]
                   ) -> List[LocalVersion]:
        copies: List[LocalVersion] = []
        for version, partition in holders:
            try:
                copies.append(self._local.describe(version, partition))
            except DssError:
                continue  # other parts handle the cause
        return copies

    def _write_off(self, contested: Bundle, moved: List[Member]) -> bool:
        """True if some of these are needed yet."""
        said = self._leaning.verdicts(contested.key, moved)
        dead = [key for key, verdict in said.items()
                if verdict is Verdict.DEAD]
        if dead:
            self._book.bury(dead)
            steps.reached('twins.written_off')
            self._metrics.count('gateway.bundle_written_off', len(dead))
        return len(dead) < len(said)


def _are_elsewhere(key: str, copies: Sequence[LocalVersion]) -> bool:
    """A record without a key may be about to name this one."""
    return bool(copies) and all(
        _key(local) not in ('', key) for local in copies)


def _key(local: LocalVersion) -> str:
    remote = local.residency.remote
    return remote.key if remote else ''
