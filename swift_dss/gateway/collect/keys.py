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

import os
import threading
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Sequence,
    Tuple)

from swift_dss.core.config import GatewayConf, NodeConf
from swift_dss.core.errors import (
    BadConfig, DssError, RemoteUnavailable, TierUnavailable)
from swift_dss.core.version import VersionId
from swift_dss.gateway.collect.doubles import Doubles, Item
from swift_dss.gateway.collect.parts import PARTS, Parts
from swift_dss.gateway.form.one_key import KeyFailures
from swift_dss.gateway.link.client import S3Client, S3Listed
from swift_dss.gateway.peers.primaries import Primaries, Wanted
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.gateway.ports import LocalVersions, Metrics
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


def plain(found: Collected) -> Dict[str, Any]:
    """For ``--json`` and status."""
    return asdict(found)


def restore_state(conf: NodeConf) -> str:
    """Where a restore notes how far it has come; gone at its end."""
    return os.path.join(conf.index_dir, 'restore.json')


class Absent(NamedTuple):
    """A key or member without a trace on any primary, and its remover.

    :param key: that it lies under
    :param timestamp: of the version
    """

    key: str
    timestamp: str
    remove: Callable[[], object]


class Hands(NamedTuple):
    """The gateway's functions for a pass.

    :param remove: takes a version's key and its side cars out of S3
    :param requeue: notes versions that are obsolete here, durably
    :param is_doubled: see :meth:`Arrivals.is_doubled`
    """

    remove: Callable[[str], None]
    requeue: Callable[[List[Tuple[VersionId, str]]], None]
    is_doubled: Callable[[VersionId, str], bool]


class Extra(NamedTuple):
    """A further part of a pass.

    :param own: examines bundles that this node keeps; called once; returns
        absent members
    :param folder: where its keys are, behind the prefix
    :param part: gets the keys of one part of the folder; returns absent
        members
    """

    own: Callable[[Wish, Collected], Iterator[Absent]]
    folder: str
    part: Callable[[Iterator[S3Listed], Wish, Collected], Iterator[Absent]]


class Collector:
    """Makes passes, one at a time.

    :param bundles: looks after bundles in the same pass
    :param busy: a restore has begun here and has not brought back all
    """

    def __init__(self, conf: GatewayConf, client: S3Client,
                 local: LocalVersions, ranks: Ranks, primaries: Primaries,
                 hands: Hands, bundles: Extra, metrics: Metrics,
                 stopping: threading.Event, now: Callable[[], float],
                 busy: Callable[[], bool] = lambda: False) -> None:
        self._conf = conf
        self._client = client
        self._local = local
        self._ranks = ranks
        self._primaries = primaries
        self._hands = hands
        self._bundles = bundles
        self._metrics = metrics
        self._stopping = stopping
        self._now = now
        self._busy = busy
        self._failures = KeyFailures()
        self._doubles = Doubles(conf, primaries, hands.is_doubled,
                                self._failures)
        self._running = threading.Lock()
        #: Of the pass under way, or of the last one.
        self.found = Collected()

    def run(self, wish: Wish, progress: Callable[[Collected], None]
            = lambda found: None) -> Collected:
        """One pass. May be broken off, and done twice.

        :raises RemoteUnavailable, S3Rejected: S3 does not answer, or refuses
        :raises TierUnavailable: another pass is under way
        :raises BadConfig: absent keys may not be removed now
        """
        if wish.absent and self._busy():
            raise BadConfig('a restore has begun here and has not brought '
                            'back all: run it again, to its end')
        if not self._running.acquire(blocking=False):
            raise TierUnavailable('another pass is under way')
        try:
            found = self.found = Collected()
            absent: List[Absent] = []
            self._note(self._bundles.own(wish, found), absent)
            progress(found)
            prefix = self._conf.prefix
            versions = Parts(self._client, prefix)
            bundles = Parts(self._client, prefix + self._bundles.folder)
            for part in PARTS if wish.everything \
                    else self._ranks.shares(PARTS):
                self._part(versions.listing(part), wish, found, absent)
                self._note(self._bundles.part(
                    bundles.listing(part), wish, found), absent)
                progress(found)
                if self._stopping.is_set():
                    raise RemoteUnavailable('stopping', 1)
            self._absent(absent, wish, found)
            progress(found)
            return found
        finally:
            self._running.release()

    # -- inside ----------------------------------------------------------

    def _note(self, more: Iterable[Absent], absent: List[Absent]) -> None:
        """Keep those that are old enough to go."""
        until = self._now() - self._conf.reclaim_age_seconds
        for one in more:
            if seconds_of(one.timestamp) < until and \
                    len(absent) < _MAX_ABSENT:
                absent.append(one)

    def _part(self, keys: Iterator[S3Listed], wish: Wish, found: Collected,
              absent: List[Absent]) -> None:
        some: Dict[str, Item] = {}
        for item in self._items(keys, found):
            if wish.mine and not self._is_mine(item, found):
                continue
            before = some.get(item.key)
            some[item.key] = item if before is None else item._replace(
                length=before.length + item.length)
            if len(some) >= _AT_ONCE:
                self._judge(list(some.values()), wish, found, absent)
                some.clear()
        if some:
            self._judge(list(some.values()), wish, found, absent)

    def _is_mine(self, item: Item, found: Collected) -> bool:
        is_mine = False
        with self._failures.of(item.key, found.skip):
            is_mine = self._ranks.is_primary(item.version)
        return is_mine

    def _items(self, keys: Iterator[S3Listed],
               found: Collected) -> Iterator[Item]:
        prefix = self._conf.prefix
        for listed in keys:
            parsed = parse_remote_key(prefix, listed.key)
            if parsed is not None:
                version, suffix = parsed
                yield Item(version, listed.key[
                    :len(listed.key) - len(suffix)], listed.size)
            elif not listed.key[len(prefix):].startswith(FOLDERS):
                found.foreign += 1

    def _judge(self, items: Sequence[Item], wish: Wish, found: Collected,
               absent: List[Absent]) -> None:
        answers = self._primaries.ask(
            [Wanted(item.version) for item in items])
        again: List[Tuple[VersionId, str]] = []
        live: List[Item] = []
        for item, said in zip(items, answers):
            found.versions += 1
            verdict = of_key(item.version.timestamp, said, self._now(),
                             self._conf.reclaim_age_seconds)
            if verdict is Verdict.DEAD:
                found.dead += 1
                found.dead_bytes += item.length
                with self._failures.of(item.key, found.skip):
                    self._remove(item, wish, found)
                continue
            if any(answer is not None and answer.timestamp
                   > item.version.timestamp for answer in said):
                found.held += 1
                again += self._newer_here(item.version)
            elif verdict is Verdict.NEEDED:
                found.live += 1
                live.append(item)
            elif is_quarantined(item.version.timestamp, said):
                found.quarantined += 1
                found.quarantined_bytes += item.length
            elif is_absent(item.version.timestamp, said):
                found.absent += 1
                found.absent_bytes += item.length
                self._note([Absent(item.key, item.version.timestamp, partial(
                    self._remove, item, wish, found))], absent)
            else:
                found.silent += 1
        if again and not wish.dry_run:
            self._hands.requeue(again)
            found.requeued += len(again)
        self._remove_doubles(live, wish, found)
        if wish.paced:
            self._stopping.wait(len(items) / _PACE)

    def _remove_doubles(self, live: Sequence[Item], wish: Wish,
                        found: Collected) -> None:
        for item in self._doubles.among(live, found.skip):
            found.doubled += 1
            with self._failures.of(item.key, found.skip):
                self._remove(item, wish, found)

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
                found: Collected) -> None:
        """Versions without a trace on any primary, all of them at the end."""
        if not wish.absent or not absent:
            return
        unknown = found.absent + found.members_absent
        known = found.live + found.members_live
        if unknown > known:
            found.problem(
                '%d versions that no node knows of, and only %d that one '
                'has: this looks as if objects were lost. Nothing of it was '
                'removed; run: swift-dss gateway restore. If nothing was '
                'lost: --all looks at the whole bucket' % (unknown, known))
            return
        for one in absent:
            with self._failures.of(one.key, found.skip):
                one.remove()

    def _remove(self, item: Item, wish: Wish, found: Collected) -> None:
        if wish.dry_run:
            found.say(item.key)
            return
        self._hands.remove(item.key)
        steps.reached('collect.removed')
        found.removed += 1
        self._metrics.count('gateway.collected')
