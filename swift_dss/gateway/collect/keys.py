"""Find keys that nothing needs any more, by the files of the cluster.

Deletes wait in a queue, and a queue can be lost with its disk. Swift's own
files imply the same deletes: data files and tombstones that are newer than a
key. So a collector lists the bucket, asks the primaries for their newest
versions (``strategy.agreement``), and removes keys of which all primaries have
a newer version. A missing file never removes a key: a wiped cluster that is to
be restored has no files, gives no answer, and keeps every key. The pass only
counts keys, and members of bundles, of which no primary has that version or a
newer one. With ``absent`` it removes them once they are older than
``reclaim_age``, unless most of the examined keys are absent. A version in a
primary's quarantine is not absent, and stays until the operator brings it back
or removes it.

The bucket is divided among the nodes by the beginning of its keys, so that a
pass lists and asks once, whatever the number of nodes. A node whose queue is
new looks at all keys of objects that it is a primary of: by itself, after
its start.
"""

from __future__ import annotations

import abc
import os
import threading
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Sequence,
    Tuple)

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import (
    DssError, RemoteUnavailable, TierUnavailable)
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.collect.doubles import Doubles, Item
from swift_dss.gateway.collect.parts import PARTS, Parts
from swift_dss.gateway.form.one_key import KeyFailures
from swift_dss.gateway.form.remove import Remover
from swift_dss.gateway.link.client import S3Client, S3Listed
from swift_dss.gateway.peers.primaries import Peers, Wanted
from swift_dss.gateway.ports import LocalVersions
from swift_dss.gateway.restore.arrivals import Arrivals
from swift_dss.gateway.restore.places import FOLDERS
from swift_dss.io import steps
from swift_dss.strategy.agreement import (
    Verdict, is_absent, is_quarantined, of_key, seconds_of)
from swift_dss.wire.layout import parse_remote_key

#: Versions of one question.
_AT_ONCE = 500
#: A pass in the background looks at so many versions a second.
_PACE = 2000.0
#: Absent versions that one pass may remove.
_MAX_ABSENT = 100000
_SHOWN = 100


class Wish(NamedTuple):
    """The options of a pass.

    :param dry_run: look, and change nothing
    :param everything: all of the bucket, not this node's share
    :param mine: only objects that this node is a primary of
    :param absent: remove also keys without a trace on any primary
    :param paced: slowly, beside other work
    """

    dry_run: bool = False
    everything: bool = False
    mine: bool = False
    absent: bool = False
    paced: bool = False


@dataclass
class Collected:
    """The findings and work of a pass, also while it is under way.

    :param versions: with keys of their own
    :param live: of them, those that a primary has
    :param dead: those of which all primaries have a newer version
    :param doubled: of those that are alive, those that all primaries name in
        a bundle
    :param held: a newer version is there, but not on all primaries yet
    :param silent: no primary that answered has it, and one is silent
    :param absent: all answered, and none has it or a newer version
    :param quarantined: no primary has it or a newer version in its place, and
        one has such a version in quarantine
    :param quarantined_bytes: of these, and of such members of bundles
    :param absent_bytes: of these, and of such members of bundles
    :param removed: keys, of versions and of bundles, that are gone now
    :param foreign: keys under the prefix that are none of ours
    :param bundles: of other nodes that were looked at
    :param members: of bundles that were found dead
    :param members_live: those that a primary has
    :param members_absent: all answered, and none has it or a newer version
    :param members_quarantined: as ``quarantined``
    :param adopted: bundles without a keeper that this node keeps now
    :param requeued: deletes that the queue had forgotten
    """

    versions: int = 0
    live: int = 0
    dead: int = 0
    dead_bytes: int = 0
    doubled: int = 0
    held: int = 0
    silent: int = 0
    absent: int = 0
    absent_bytes: int = 0
    quarantined: int = 0
    quarantined_bytes: int = 0
    removed: int = 0
    foreign: int = 0
    bundles: int = 0
    bundles_dead: int = 0
    members: int = 0
    members_live: int = 0
    members_absent: int = 0
    members_quarantined: int = 0
    adopted: int = 0
    requeued: int = 0
    failed: int = 0
    said: List[str] = field(default_factory=list)

    def problem(self, text: str) -> None:
        """Something could not be looked at, or not be removed."""
        self.failed += 1
        self.say(text)

    def skip(self, key: str, why: str) -> None:
        """The pass went on without this key."""
        self.problem('%s: %s' % (key, why))

    def say(self, text: str) -> None:
        """For the caller."""
        if len(self.said) < _SHOWN:
            self.said.append(text)


def plain(counts: Collected) -> Dict[str, Any]:
    """For ``--json`` and status."""
    return asdict(counts)


def restore_state(conf: NodeConf) -> str:
    """The file of a restore's progress; gone at its end."""
    return os.path.join(conf.index_dir, 'restore.json')


class Absent(NamedTuple):
    """A key or member without a trace on any primary, and its remover.

    :param key: that it lies under
    :param timestamp: of the version
    """

    key: str
    timestamp: str
    remove: Callable[[], object]


class Deletions(abc.ABC):
    """Takes orders to delete versions."""

    @abc.abstractmethod
    def delete(self, obsolete: Iterable[Tuple[VersionId, str]]) -> None:
        """Note, durably, that these versions (and their partitions) are
        obsolete here. Idempotent.
        """


class Means(NamedTuple):
    """The parts of the gateway that a pass works with.

    :param remover: takes a version's key and its side cars out of S3
    :param arrivals: say if S3 has a version in a bundle as well
    """

    remover: Remover
    deletions: Deletions
    arrivals: Arrivals


class Extra(abc.ABC):
    """A further part of a pass.

    :cvar folder: where its keys are, behind the prefix
    """

    folder: str

    @abc.abstractmethod
    def own(self, wish: Wish, counts: Collected) -> Iterator[Absent]:
        """Examine bundles that this node keeps; called once. Returns absent
        members.
        """

    @abc.abstractmethod
    def part(self, keys: Iterator[S3Listed], wish: Wish,
             counts: Collected) -> Iterator[Absent]:
        """Examine the keys of one part of the folder; returns absent members.
        """


class Collector:
    """Makes passes, one at a time.

    :param bundles: looks after bundles in the same pass
    """

    def __init__(self, around: Around, client: S3Client,
                 local: LocalVersions, peers: Peers, means: Means,
                 bundles: Extra) -> None:
        self._conf = around.conf
        self._client = client
        self._local = local
        self._ranks, self._primaries = peers
        self._means = means
        self._bundles = bundles
        self._metrics = around.metrics
        self._stopping = around.stopping
        self._clock = around.trusted
        self._failures = KeyFailures()
        self._doubles = Doubles(around.conf, peers.primaries, means.arrivals,
                                self._failures)
        self._running = threading.Lock()
        #: Of the pass under way, or of the last one.
        self.found = Collected()

    def run(self, wish: Wish, progress: Callable[[Collected], None]
            = lambda counts: None) -> Collected:
        """One pass. May be broken off, and done twice.

        :raises RemoteUnavailable, S3Rejected: S3 does not answer, or refuses
        :raises TierUnavailable: another pass is under way
        """
        if not self._running.acquire(blocking=False):
            raise TierUnavailable('another pass is under way')
        try:
            counts = self.found = Collected()
            absent: List[Absent] = []
            self._note(self._bundles.own(wish, counts), absent)
            progress(counts)
            prefix = self._conf.prefix
            versions = Parts(self._client, prefix)
            bundles = Parts(self._client, prefix + self._bundles.folder)
            for part in PARTS if wish.everything \
                    else self._ranks.shares(PARTS):
                # Few keys leave most parts empty, of 256.
                if not versions.is_empty(part):
                    self._part(versions.listing(part), wish, counts, absent)
                if not bundles.is_empty(part):
                    self._note(self._bundles.part(
                        bundles.listing(part), wish, counts), absent)
                progress(counts)
                if self._stopping.is_set():
                    raise RemoteUnavailable('stopping', 1)
            self._absent(absent, wish, counts)
            progress(counts)
            return counts
        finally:
            self._running.release()

    # -- inside ----------------------------------------------------------

    def _note(self, more: Iterable[Absent], absent: List[Absent]) -> None:
        """Keep those that are old enough to go."""
        until = self._clock.wall() - self._conf.reclaim_age_seconds
        for key in more:
            if seconds_of(key.timestamp) < until and \
                    len(absent) < _MAX_ABSENT:
                absent.append(key)

    def _part(self, keys: Iterator[S3Listed], wish: Wish, counts: Collected,
              absent: List[Absent]) -> None:
        batch: Dict[str, Item] = {}
        for item in self._items(keys, counts):
            if wish.mine and not self._is_mine(item, counts):
                continue
            before = batch.get(item.key)
            batch[item.key] = item if before is None else item._replace(
                length=before.length + item.length)
            if len(batch) >= _AT_ONCE:
                self._judge(list(batch.values()), wish, counts, absent)
                batch.clear()
        if batch:
            self._judge(list(batch.values()), wish, counts, absent)

    def _is_mine(self, item: Item, counts: Collected) -> bool:
        is_mine = False
        with self._failures.of(item.key, counts.skip):
            is_mine = self._ranks.is_primary(item.version)
        return is_mine

    def _items(self, keys: Iterator[S3Listed],
               counts: Collected) -> Iterator[Item]:
        prefix = self._conf.prefix
        for listed in keys:
            parsed = parse_remote_key(prefix, listed.key)
            if parsed is not None:
                version, suffix = parsed
                yield Item(version, listed.key[
                    :len(listed.key) - len(suffix)], listed.size)
            elif not listed.key[len(prefix):].startswith(FOLDERS):
                counts.foreign += 1

    def _judge(self, items: Sequence[Item], wish: Wish, counts: Collected,
               absent: List[Absent]) -> None:
        answers = self._primaries.ask(
            [Wanted(item.version) for item in items])
        again: List[Tuple[VersionId, str]] = []
        live: List[Item] = []
        for item, said in zip(items, answers):
            counts.versions += 1
            verdict = of_key(item.version.timestamp, said, self._clock.wall(),
                             self._conf.reclaim_age_seconds)
            if verdict is Verdict.DEAD:
                counts.dead += 1
                counts.dead_bytes += item.length
                with self._failures.of(item.key, counts.skip):
                    self._remove(item, wish, counts)
                continue
            if any(answer is not None and answer.timestamp
                   > item.version.timestamp for answer in said):
                counts.held += 1
                again += self._newer_here(item.version)
            elif verdict is Verdict.NEEDED:
                counts.live += 1
                live.append(item)
            elif is_quarantined(item.version.timestamp, said):
                counts.quarantined += 1
                counts.quarantined_bytes += item.length
            elif is_absent(item.version.timestamp, said):
                counts.absent += 1
                counts.absent_bytes += item.length
                self._note([Absent(item.key, item.version.timestamp, partial(
                    self._remove, item, wish, counts))], absent)
            else:
                counts.silent += 1
        if again and not wish.dry_run:
            self._means.deletions.delete(again)
            counts.requeued += len(again)
        self._remove_doubles(live, wish, counts)
        if wish.paced:
            self._stopping.wait(len(items) / _PACE)

    def _remove_doubles(self, live: Sequence[Item], wish: Wish,
                        counts: Collected) -> None:
        for item in self._doubles.among(live, counts.skip):
            counts.doubled += 1
            with self._failures.of(item.key, counts.skip):
                self._remove(item, wish, counts)

    def _newer_here(self, version: VersionId
                    ) -> List[Tuple[VersionId, str]]:
        """The version as a device of this node would have had it, and its
        partition, if one has something newer."""
        partition, nodes = self._ranks.primaries(
            version.policy, version.object_hash)
        for node in nodes:
            if not self._ranks.is_here(node):
                continue
            here = replace(version, device=node['device'])
            try:
                newest = self._local.newest(here, partition)
            except DssError:
                continue
            if newest is not None and newest > version.timestamp:
                return [(here, partition)]
        return []

    def _absent(self, absent: List[Absent], wish: Wish,
                counts: Collected) -> None:
        """Versions without a trace on any primary, all of them at the end."""
        if not wish.absent or not absent:
            return
        unknown = counts.absent + counts.members_absent
        known = counts.live + counts.members_live
        if unknown > known:
            counts.problem(
                '%d versions that no node knows of, and only %d that one '
                'has: this looks as if objects were lost. Nothing of it was '
                'removed; run: swift-dss gateway restore. If nothing was '
                'lost: --all looks at the whole bucket' % (unknown, known))
            return
        for missing in absent:
            with self._failures.of(missing.key, counts.skip):
                missing.remove()

    def _remove(self, item: Item, wish: Wish, counts: Collected) -> None:
        if wish.dry_run:
            counts.say(item.key)
            return
        self._means.remover.remove(item.key)
        steps.reached('collect.removed')
        counts.removed += 1
        self._metrics.count('gateway.collected')
