"""Lean on bundles that another node packed and keeps.

One replica of a version packs it. The others ask for the places in the
primaries' records, prove them by the bundle's own index (``proof``), and make
their records name the same place: bytes go up once.

The keeper rewrites a bundle that loses members, under another key. A leaning
node follows: now and then it asks about one version of each bundle, and about
all of them if the primaries name a later bundle. A node that comes too late
finds the version under its own key (``lean``), and follows from there: when
all primaries name the later bundle, that key goes (``collect``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

from swift_dss.core.errors import DamagedRecord, DssError, VersionGone
from swift_dss.core.residency import RemoteCopy
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.proof import BundleProofs
from swift_dss.gateway.bundle.read import is_bundle
from swift_dss.gateway.form import metadata
from swift_dss.gateway.peers.primaries import Peers, Wanted
from swift_dss.gateway.peers.ranks import NoRing
from swift_dss.gateway.ports import Arrival, LocalVersion, LocalVersions
from swift_dss.io import steps
from swift_dss.strategy.agreement import leans_on

#: Versions of one question.
_AT_ONCE = 1000
#: Bundles that are counted at most.
_SOME = 100
#: Devices that left are passed over so often before a bundle is asked about
#: another time.
_TRIES = 20


@dataclass(frozen=True)
class Place:
    """The place of a version in S3, from other nodes' records.

    :param remote: proven; None if it has a key of its own, or if its presence
        is unknown now
    :param alone: it has a key of its own
    """

    remote: Optional[RemoteCopy] = None
    alone: bool = False


class Follower:
    """Finds, proves and records places in bundles of others."""

    def __init__(self, around: Around, peers: Peers, proofs: BundleProofs,
                 local: LocalVersions, book: Book) -> None:
        self._conf = around.conf
        self._ranks, self._primaries = peers
        self._proofs = proofs
        self._local = local
        self._book = book
        self._metrics = around.metrics
        self._clock = around.clock
        #: The version of each bundle that was asked about last.
        self._asked: Dict[str, Tuple[str, str]] = {}
        #: The bundle that was looked at last in this round.
        self._at = ''

    def lean(self, versions: Sequence[LocalVersion]) -> Dict[VersionId, Place]:
        """Make records name the places in the primaries' records; the answer
        leaves out versions without a place. Blocks, a few seconds a server.
        """
        places: Dict[VersionId, Place] = {}
        new: List[Tuple[LocalVersion, RemoteCopy]] = []
        for local, keys in self._named(
                [(version, _key(version)) for version in versions]):
            place = self._proven(local, keys)
            if place is None:
                continue
            if place.remote is None:
                places[local.version] = place
            else:
                new.append((local, place.remote))
        for local in self._record(new):
            places[local.version] = Place(local.residency.remote)
        return places

    def find(self, local: LocalVersion) -> Optional[RemoteCopy]:
        """A version's place in a later bundle than its record names, proven by
        the bundle's index; None if the primaries name none.

        Blocks, a few seconds a server.
        """
        (_, keys), = self._named([(local, _key(local))])
        place = self._proven(local, keys)
        return place.remote if place is not None else None

    def take(self, new: Sequence[Tuple[LocalVersion, RemoteCopy]]) -> int:
        """Have records name these places; returns how many do. Idempotent.

        :raises TierUnavailable: the book's disk is full
        """
        done = self._record(new)
        # The node that wrote the new bundle may not have heard of all
        # records beside the old one.
        self._book.add_renewals([
            (local.version, local.partition, self._clock.wall())
            for local in done if metadata.changed_at(
                local.metadata) > local.version.timestamp])
        return len(done)

    def keep_up(self) -> bool:
        """Follow rewritten bundles, the next ones of this round; True if more
        are left.

        :raises DssError: S3 does not answer; the rest another time
        """
        bundles: List[str] = []
        asked: List[LocalVersion] = []
        for bundle in self._book.leaned_on(self._at):
            self._at = bundle
            local = self._next_of(bundle)
            if local is not None:
                bundles.append(bundle)
                asked.append(local)
            if len(asked) >= _AT_ONCE:
                break
        else:
            self._at = ''
        for bundle, (_, keys) in zip(bundles, self._named(
                list(zip(asked, bundles)))):
            if any(is_bundle(self._conf.prefix, key) for key in keys):
                self._follow(bundle)
        return bool(self._at)

    def sealed_otherwise(self, prefix: str) -> int:
        """Bundles of others under a seal that does not begin so, as one
        record each says: some, if many."""
        unlike = 0
        for bundle in self._book.leaned_on():
            local = self._next_of(bundle)
            remote = local and local.residency.remote
            unlike += bool(remote and remote.seal and remote.in_bundle
                           and not remote.seal.startswith(prefix))
            if unlike >= _SOME:
                break
        return unlike

    # -- inside ----------------------------------------------------------

    def _named(self, versions: Sequence[Tuple[LocalVersion, str]]
               ) -> Iterable[Tuple[LocalVersion, List[str]]]:
        """The places in other records of each version, best first.

        :param versions: each version, and the key that the places come after
        """
        for at in range(0, len(versions), _AT_ONCE):
            page = versions[at:at + _AT_ONCE]
            answers = self._primaries.ask(
                [Wanted(local.version) for local, _ in page], True)
            for (local, key), said in zip(page, answers):
                yield local, leans_on(local.version.timestamp, key, said)

    def _proven(self, local: LocalVersion,
                keys: Sequence[str]) -> Optional[Place]:
        alone = False
        for key in keys:
            if not key.startswith(self._conf.prefix):
                continue  # under another prefix, which has no keeper
            if not is_bundle(self._conf.prefix, key):
                alone = True
                continue
            try:
                place = self._proofs.find(
                    local.version, local.content_length, local.etag, key)
            except DamagedRecord:
                continue
            except DssError:
                # It may be there: a second copy of it would be for ever.
                return Place()
            if place is not None:
                return Place(RemoteCopy(
                    self._conf.endpoint, key, local.etag, self._clock.wall(),
                    *place))
        return Place(alone=True) if alone else None

    def _record(self, new: Sequence[Tuple[LocalVersion, RemoteCopy]]
                ) -> List[LocalVersion]:
        by_bundle: Dict[str, List[Tuple[VersionId, str]]] = {}
        for local, remote in new:
            by_bundle.setdefault(remote.key, []).append(
                (local.version, local.partition))
        for bundle, versions in by_bundle.items():
            # Before records name it: a rewrite of the bundle must know this
            # device.
            self._book.hold_all(versions, bundle)
        steps.reached('follow.held')
        said = self._local.record_remotes([Arrival(
            local.version, local.partition, remote, local.content_length)
            for local, remote in new])
        steps.reached('follow.recorded')
        done = [replace(local, residency=local.residency.with_remote(remote))
                for (local, remote), err in zip(new, said) if err is None]
        if done:
            self._metrics.count('gateway.leaned', len(done))
        return done

    def _next_of(self, bundle: str) -> Optional[LocalVersion]:
        """A version that leans on a bundle, another one each time; records
        that do not any more are forgotten.
        """
        for _ in range(_TRIES):
            after = self._asked.get(bundle, ('', ''))
            rows = self._book.leaners(bundle, after, 1)
            if not rows:
                self._asked.pop(bundle, None)
                if after == ('', ''):
                    return None
                continue
            self._asked[bundle] = rows[0][:2]
            local = self._leaning(bundle, *rows[0])
            if local is not None:
                return local
        return None

    def _leaning(self, bundle: str, key: str, device: str,
                 partition: str) -> Optional[LocalVersion]:
        version = VersionId.of_key(key, device)
        try:
            local = self._local.describe(version, partition)
        except VersionGone:
            if not self._is_lost(version, partition):
                self._book.let_go(version)
            return None
        except DssError:
            return None
        remote = local.residency.remote
        if remote is None or remote.in_bundle and remote.key != bundle:
            self._book.let_go(version)
            return None
        # A version under its own key was late: it goes where the others are,
        # but not back to this bundle, of which S3 may have it wrong.
        return local

    def _is_lost(self, version: VersionId, partition: str) -> bool:
        """True of a fragment that belongs here, if nothing of its object is
        here: a drive was lost, and the book alone knows where the fragment is.
        """
        if version.frag_index is None or \
                self._local.newest(version, partition) is not None:
            return False
        try:
            nodes = self._ranks.primaries(
                version.policy, version.object_hash)[1]
        except NoRing:
            return True
        return any(map(self._ranks.is_here, nodes[version.frag_index:][:1]))

    def _follow(self, bundle: str) -> None:
        after = ('', '')
        while True:
            rows = self._book.leaners(bundle, after, _AT_ONCE)
            if not rows:
                return
            after = rows[-1][:2]
            matching = [local for row in rows
                        for local in [self._leaning(bundle, *row)]
                        if local is not None]
            new: List[Tuple[LocalVersion, RemoteCopy]] = []
            for local, keys in self._named(
                    [(version, bundle) for version in matching]):
                place = self._proven(local, keys)
                if place is not None and place.remote is not None:
                    new.append((local, place.remote))
            self.take(new)
            self._metrics.count('gateway.followed', len(new))


def _key(local: LocalVersion) -> str:
    """That the record names, or ''."""
    remote = local.residency.remote
    return remote.key if remote else ''
