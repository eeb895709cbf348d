"""Find members that nothing needs, in own bundles and in abandoned ones.

A book knows the members that its node packed, and their deaths on that node.
It does not know when a replica moves away: this pass asks the primaries about
such members. A bundle without a book (its packer or the book is gone) is
examined by the node whose part of the bucket has it. That node notes dead
members beside the bundle, so that a restore does not bring them back. If all
are dead, the bundle goes; if most are dead, this node keeps it from now on,
and rewrites it. Members without a trace on any primary count as dead only with
``absent``, as keys do.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import (
    Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple)

from swift_dss.core.errors import (
    DamagedRecord, RemoteUnavailable, TierUnavailable)
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle import since as bundle_since
from swift_dss.gateway.bundle.book import Member
from swift_dss.gateway.bundle.lean import Leaning
from swift_dss.gateway.bundle.read import FOLDER
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.collect.adopter import Adopter, seal_of_held
from swift_dss.gateway.collect.keys import (
    Absent, Collected, Deletions, Extra, Wish)
from swift_dss.gateway.form import encrypt
from swift_dss.gateway.form.one_key import KeyFailures
from swift_dss.gateway.link.client import S3Listed
from swift_dss.gateway.peers.primaries import Peers, Wanted
from swift_dss.gateway.ports import LocalVersions
from swift_dss.gateway.restore.catalog import Catalog, Held
from swift_dss.io import steps
from swift_dss.strategy.agreement import (
    Verdict, is_absent, is_quarantined, of_key, of_member, seconds_of)
from swift_dss.wire import bundle

#: Members of one's own that are looked at in one go.
_AT_ONCE = 1000
#: An abandoned bundle is not taken over before this age: its packer may still
#: be writing the records that name it.
_YOUNG_SECONDS = 86400.0
_PACE = 2000.0


class _Lot(NamedTuple):
    """The verdicts on members of a bundle.

    :param dead: number of each member that is not needed, and when it was
        replaced or deleted: 0 if it only moved to another key
    :param absent: those without a trace on any primary
    :param quarantined: those that lie in a quarantine alone
    :param live: so many are needed
    """

    dead: Dict[int, float]
    absent: List[Held]
    quarantined: List[Held]
    live: int


class BundleCollector(Extra):
    """The part of a pass that looks at bundles."""

    folder = FOLDER

    def __init__(self, around: Around, shelves: Shelves,
                 local: LocalVersions, peers: Peers, leaning: Leaning,
                 deletions: Deletions) -> None:
        self._conf = around.conf
        self._book = shelves.book
        self._client = shelves.client
        self._keys = shelves.keys
        self._catalog = Catalog(around.conf, shelves.client)
        self._local = local
        self._adopter = Adopter(shelves.book, local, peers.ranks,
                                around.trusted)
        self._primaries = peers.primaries
        self._leaning = leaning
        self._deletions = deletions
        self._stopping = around.stopping
        self._clock = around.trusted
        self._failures = KeyFailures()

    # -- bundles of this node --------------------------------------------

    def own(self, wish: Wish, counts: Collected) -> Iterator[Absent]:
        """Examine members of this node's bundles whose replica has moved away,
        was replaced unnoticed, or is named by its record in another bundle;
        returns absent ones.
        """
        after = ''
        while True:
            page = self._book.walk(after, _AT_ONCE)
            if not page:
                return
            after = page[-1][0].version.key
            yield from self._own_page(page, wish, counts)
            if wish.paced:
                self._stopping.wait(len(page) / _PACE)
            if self._stopping.is_set():
                raise RemoteUnavailable('stopping', 1)

    def _own_page(self, page: Sequence[Tuple[Member, str]], wish: Wish,
                  counts: Collected) -> Iterator[Absent]:
        holders = self._book.holders(member for member, _ in page)
        away: Dict[str, List[Member]] = {}
        obsolete: List[Tuple[VersionId, str]] = []
        for member, key in page:
            newest = [(self._record(*holder), holder)
                      for holder in holders[member.version.key]]
            timestamp = member.version.timestamp
            # A record without a key may be about to name this one.
            if any(at == timestamp and named in ('', key)
                   for (at, named), _ in newest):
                counts.members_live += 1
                continue
            obsolete += [
                holder for (at, _), holder in newest if at > timestamp][:1]
            if all(at in ('', timestamp) for (at, _), _ in newest):
                away.setdefault(key, []).append(member)
        if obsolete and not wish.dry_run:
            self._deletions.delete(obsolete)
            counts.requeued += len(obsolete)
        for key, members in away.items():
            said = self._leaning.verdicts(key, members)
            dead = [dead_key for dead_key, verdict in said.items()
                    if verdict is Verdict.DEAD]
            self._bury(dead, wish, counts)
            counts.members_live += sum(
                verdict is Verdict.NEEDED for verdict in said.values())
            yield from self._own_absent(key, [
                holder for holder in members
                if said[holder.version.key] is Verdict.OPEN], wish, counts)

    def _bury(self, dead: List[str], wish: Wish, counts: Collected) -> None:
        counts.members += len(dead)
        if dead and not wish.dry_run:
            self._book.bury(dead)
            steps.reached('collect.buried')

    def _own_absent(self, key: str, members: Sequence[Member], wish: Wish,
                    counts: Collected) -> Iterator[Absent]:
        """Of members that no device of this node has."""
        for member, said in zip(members, self._primaries.ask(
                [Wanted(member.version) for member in members])):
            version = member.version
            if is_quarantined(version.timestamp, said):
                counts.members_quarantined += 1
                counts.quarantined_bytes += member.stored
            elif is_absent(version.timestamp, said):
                counts.members_absent += 1
                counts.absent_bytes += member.stored
                yield Absent(key, version.timestamp, partial(
                    self._bury, [version.key], wish, counts))

    def _record(self, version: VersionId, partition: str) -> Tuple[str, str]:
        """As :meth:`_newest`, and the key that the device's record names."""
        try:
            return self._local.newest_record(version, partition)[:2]
        except (TierUnavailable, DamagedRecord):
            return version.timestamp, ''

    # -- abandoned bundles -----------------------------------------------

    def part(self, keys: Iterator[S3Listed], wish: Wish,
             counts: Collected) -> Iterator[Absent]:
        """Examine the bundles of these that are not in the book, or that it
        holds for others alone; returns absent members.
        """
        beside: Dict[str, List[str]] = {}
        whole: Set[str] = set()
        bundles: List[S3Listed] = []
        for listed in keys:
            of = bundle_since.bundle_of(listed.key)
            if of:
                beside.setdefault(of, []).append(listed.key)
            else:
                whole.add(listed.key)
                if not self._book.has_bundle(listed.key) or \
                        self._book.leaves(listed.key):
                    bundles.append(listed)
        for listed in bundles:
            lot = _Lot({}, [], [], 0)
            counts.bundles += 1
            with self._failures.of(listed.key, counts.skip):
                lot = self._unknown(
                    listed, beside.get(listed.key, []), wish, counts)
            counts.members += len(lot.dead)
            counts.members_live += lot.live
            counts.members_quarantined += len(lot.quarantined)
            counts.quarantined_bytes += sum(
                held.stored_bytes for held in lot.quarantined)
            if lot.absent:
                counts.members_absent += len(lot.absent)
                counts.absent_bytes += sum(
                    held.stored_bytes for held in lot.absent)
                yield Absent(listed.key, max(
                    held.record.version.timestamp for held in lot.absent),
                    partial(self._unknown, listed,
                            beside.get(listed.key, []), wish, counts, True))
            if self._stopping.is_set():
                raise RemoteUnavailable('stopping', 1)
        if not wish.dry_run:
            self._tell_again(whole, beside)
        for key in sorted(set(beside) - whole):
            with self._failures.of(key, counts.skip):
                self._without_bundle(key, beside[key], wish, counts)

    def _tell_again(self, bundles: Set[str],
                    beside: Dict[str, List[str]]) -> None:
        """Have this node, as their keeper, write the notes again that S3 has
        not got any more: a restore would bring dead members back.

        :param beside: notes that S3 has, by bundle
        """
        for key in sorted(bundles):
            if bundle_since.path_of(key) not in beside.get(key, []):
                self._book.tell_again(key)

    def _without_bundle(self, key: str, beside: Sequence[str], wish: Wish,
                        counts: Collected) -> None:
        """Remove notes without their bundle. A delete removes the notes first,
        so only a late PUT can leave one.
        """
        if not self._book.has_bundle(key) and \
                self._client.head(key) is None and not wish.dry_run:
            for beside_key in beside:
                self._client.delete(beside_key)
                counts.removed += 1

    def _unknown(self, listed: S3Listed, beside: Sequence[str], wish: Wish,
                 counts: Collected, absent_too: bool = False) -> _Lot:
        """:param beside: keys of the notes beside it
        :param absent_too: absent members count as dead
        """
        # Its keeper is this node, and says which members are dead.
        leaves = self._book.leaves(listed.key)
        # All of them: the notes beside the bundle are read apart.
        said = self._catalog.members(listed, set())
        members = {held.number: held for held in said
                   if isinstance(held, Held)}
        mine = bundle_since.path_of(listed.key, self._book.writer())
        since = bundle_since.read_all(
            self._client, listed.key, self._opener(members), beside, mine)
        lot = self._lot([held for number, held in members.items()
                         if number not in since.dead], listed.key,
                        not leaves
                        and self._age(listed.key) > _YOUNG_SECONDS)
        dead = since.dead | set(lot.dead)
        if absent_too:
            # Not told: their keeper may live, and know nothing of it.
            dead |= {held.number for held in lot.absent}
            counts.members += len(lot.absent)
        if dead >= set(members) and len(members) == len(said):
            counts.bundles_dead += 1
            counts.dead_bytes += listed.size
            if wish.dry_run:
                counts.say(listed.key)
            else:
                self._remove(listed.key, counts)
        elif not wish.dry_run and members and not leaves:
            # A keeper that lives says so itself, a little later.
            told = {number for number, at in lot.dead.items()
                    if at + 2 * self._conf.delete_delay_seconds
                    < self._clock.wall()}
            if told or mine in beside:
                self._tell(listed, members, told)
            self._adopt(listed, members, dead, since.dead | told, counts)
        return lot

    def _opener(self, members: Dict[int, Held]) -> bundle.Wrap:
        return encrypt.opener(self._keys, seal_of_held(members))

    def _lot(self, members: Sequence[Held], key: str, is_told: bool) -> _Lot:
        """:param key: of the bundle
        :param is_told: the records name what they are going to name
        """
        wanted = [Wanted(held.record.version, held.name) for held in members]
        answers = self._primaries.ask(wanted, True)
        # Stock servers cannot name the keys of records.
        unsaid = [at for at, said in enumerate(answers) if None in said]
        plain = dict(zip(unsaid, self._primaries.ask(
            [wanted[at] for at in unsaid]))) if unsaid else {}
        dead: Dict[int, float] = {}
        absent: List[Held] = []
        quarantined: List[Held] = []
        live = 0
        for at, (held, records) in enumerate(zip(members, answers)):
            version, said = held.record.version, plain.get(at, records)
            verdict = of_key(version.timestamp, said, self._clock.wall(),
                             self._conf.reclaim_age_seconds)
            if is_told and verdict is not Verdict.DEAD:
                verdict = of_member(
                    version.timestamp, key, records, self._clock.wall(),
                    self._conf.reclaim_age_seconds,
                    version.frag_index is not None)
            if verdict is Verdict.DEAD:
                dead[held.number] = max((
                    seconds_of(answer.timestamp) for answer in said
                    if answer is not None
                    and answer.timestamp > version.timestamp), default=0.0)
            elif verdict is Verdict.NEEDED:
                live += 1
            elif is_quarantined(version.timestamp, said):
                quarantined.append(held)
            elif is_told and is_absent(version.timestamp, said):
                absent.append(held)
        return _Lot(dead, absent, quarantined, live)

    def _age(self, key: str) -> float:
        """Seconds since a bundle was packed, by its name."""
        try:
            return self._clock.wall() - float(
                key.rpartition('/')[2].partition('-')[0])
        except ValueError:
            return 0.0

    def _remove(self, key: str, counts: Collected) -> None:
        for name in (key, *bundle_since.listed(self._client, key)):
            self._client.delete(name)
        if self._client.head(key) is not None:
            raise RemoteUnavailable('%s is still there' % key,
                                    self._conf.retry_after_seconds)
        steps.reached('collect.bundle_removed')
        counts.removed += 1

    def _tell(self, listed: S3Listed, members: Dict[int, Held],
              dead: Set[int]) -> None:
        """Have the bucket know which members are dead."""
        seal = seal_of_held(members)
        path = bundle_since.path_of(listed.key, self._book.writer())
        before = bundle_since.read_mine(
            self._client, path, self._opener(members))
        since = before or bundle_since.Since()
        if dead <= since.dead and before is not None:
            return
        bundle_since.write(
            self._client, path, replace(since, dead=since.dead | dead), since,
            self._keys.open(seal).wrap if seal else bundle.plain)
        steps.reached('collect.told')

    def _adopt(self, listed: S3Listed, members: Dict[int, Held],
               dead: Set[int], told: Set[int], counts: Collected) -> None:
        """Keep a bundle that is mostly dead. It has no keeper, because a
        living one would have rewritten it.
        """
        gone = sum(held.stored_bytes for number, held in members.items()
                   if number in dead)
        if gone < self._conf.bundle_dead_share * listed.size or \
                self._age(listed.key) < _YOUNG_SECONDS:
            return
        self._adopter.adopt(listed, members, dead, told)
        counts.adopted += 1
