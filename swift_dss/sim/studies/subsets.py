"""Every subset of primaries that a PUT, an overwrite and a DELETE reach.

Each of the three writes of an object reaches one of the eight subsets of its
three primaries, without a handoff for those that it misses: 512 histories.
They are enumerated side by side on one cluster, once for each way in which a
node may be lost, each delay between the writes and each change of the ring.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import random
from dataclasses import dataclass, field
from typing import Callable, Iterator, List, NamedTuple, Sequence, Tuple

from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle import since
from swift_dss.sim import offers
from swift_dss.sim.cluster import Cluster
from swift_dss.sim.model import Violation
from swift_dss.sim.conf import PREFIX
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.node import Unreadable
from swift_dss.sim.studies.stage import (
    ROUND_SECONDS, collect, lose, settle, stage)
from swift_dss.sim.world.ring import REPLICAS, STOCK
from swift_dss.wire.layout import parse_remote_key

NODES = 6
#: In no ring until a rebalance takes it in; the one that leaves then.
_SPARE, _LEAVES = 'n6', 'n2'
#: Seconds between writes: with none, nothing is in S3 before the next one;
#: with some, daemons work; without an HDD, local bytes are gone then.
_DELAYS = (0.0, 40.0)
#: A node loses its disks and all state: before the DELETE, or after it.
_LOSSES = [('', '')] + [
    ('n%d' % number, when) for number in range(1, NODES)
    for when in ('before', 'after')]
_SUBSETS: List[Tuple[int, ...]] = [
    ranks for count in range(REPLICAS + 1)
    for ranks in itertools.combinations(range(REPLICAS), count)]
_CLASSES = (3, 1, 2)
#: Until uploads and deletes are done, and so many rounds at most.
_WAIT_ROUNDS = 12


class Group(NamedTuple):
    """The settings that the histories of one cluster share.

    :param lost: a node that loses everything; '' none
    :param when: ``before`` or ``after`` the DELETE
    :param delay: seconds between the writes
    :param moves: the ring changes at the end
    """

    lost: str
    when: str
    delay: float
    moves: bool

    def __str__(self) -> str:
        return '%s, %.0f s between writes%s' % (
            '%s is lost %s the DELETE' % (self.lost, self.when)
            if self.lost else 'no node is lost', self.delay,
            ', the ring changes' if self.moves else '')


class History(NamedTuple):
    """One object, and the primaries (0, 1, 2) that each write reaches."""

    name: str
    class_id: int
    reached: Sequence[Tuple[int, ...]]

    def __str__(self) -> str:
        return '%s: PUT reaches %s, overwrite %s, DELETE %s' % (
            (self.name,) + tuple(str(list(nodes)) for nodes in self.reached))


@dataclass
class Found:
    """The results of all histories.

    :param unreadable: a primary shows another version than the acknowledged
        one
    :param restored: deleted objects that a primary or the bucket shows
    :param put_bytes: of all versions that were written
    :param leaked_bytes: in S3 that nothing needs, after the nodes' own work
    :param refused_bytes: of writes that were refused and that a lost node
        had alone, in S3
    :param orphans: keys that nothing needs, after ``gc`` of the operator
    """

    histories: int = 0
    unreadable: int = 0
    restored: int = 0
    put_bytes: int = 0
    leaked_bytes: int = 0
    refused_bytes: int = 0
    orphans: int = 0
    said: List[str] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add the results of another group."""
        self.histories += other.histories
        self.unreadable += other.unreadable
        self.restored += other.restored
        self.put_bytes += other.put_bytes
        self.leaked_bytes += other.leaked_bytes
        self.refused_bytes += other.refused_bytes
        self.orphans += other.orphans
        self.said += other.said

    @property
    def leak(self) -> float:
        """Share of the bytes written."""
        return self.leaked_bytes / max(1, self.put_bytes)

    @property
    def is_broken(self) -> bool:
        """True if a promise was broken."""
        return bool(self.unreadable or self.restored or self.orphans
                    or self.leak > 0.01 or self.said)


def groups() -> List[Group]:
    """All there are."""
    return [Group(lost, when, delay, moves)
            for lost, when in _LOSSES for delay in _DELAYS
            for moves in (False, True)]


def histories(every: int = 1) -> Iterator[History]:
    """Each combination of three subsets.

    :param every: only each so-manieth
    """
    numbers = itertools.count()
    for number, reached in enumerate(
            itertools.product(_SUBSETS, repeat=3)):
        name = next(name for name in map('/a/c0/{}'.format, numbers)
                    if policy_of(hash_of(name)) != STOCK)
        if number % every == 0:
            yield History(name, _CLASSES[number % len(_CLASSES)], reached)


def run(group: Group, every: int = 1) -> Found:
    """All histories on one new cluster; blocks until they are judged."""
    with stage(random.Random(1), NODES, hdds=not group.delay) as cluster:
        return _Run(cluster, group, list(histories(every))).run()


def run_all(jobs: int, every: int,
            progress: Callable[[Found], None]) -> Found:
    """All groups, in so many processes; blocks until they are judged.

    :param every: of each group, only each so-manieth history
    :param progress: told after each group
    """
    total = Found()
    with multiprocessing.Pool(jobs) as pool:
        for outcome in pool.imap(functools.partial(run, every=every),
                                 groups()):
            total.add(outcome)
            progress(total)
    return total


class _Run:

    def __init__(self, cluster: Cluster, group: Group,
                 made: Sequence[History]) -> None:
        self._cluster = cluster
        self._group = group
        self._made = made
        self._found = Found(len(made))
        cluster.ring.names.remove(_SPARE)

    def run(self) -> Found:
        for number in range(3):
            if number == 2:
                self._lose('before')
            for history in self._made:
                self._write(history, number)
            self._wait()
        self._lose('after')
        if self._group.moves:
            self._cluster.ring.names.remove(_LEAVES)
            self._cluster.ring.names.append(_SPARE)
        settle(self._cluster)
        # Each node looks through its part of the bucket now and then.
        self._cluster.clock.pass_(ROUND_SECONDS)
        settle(self._cluster)
        for key in self._cluster.orphans():
            size = len(self._cluster.bucket.keys[key].data)
            refused = self._refused_bytes(key, size)
            self._found.refused_bytes += refused
            self._found.leaked_bytes += size - refused
        for history in self._made:
            self._judge(history)
        self._judge_bucket()
        self._collect()
        return self._found

    def _collect(self) -> None:
        collect(self._cluster)
        orphans = sorted(self._cluster.orphans())
        self._found.orphans = len(orphans)
        if orphans:
            self._found.said.append('%s: gc leaves %s' % (
                self._group, orphans[0]))

    def _refused_bytes(self, key: str, size: int) -> int:
        """Of a key, those of writes that were refused."""
        parsed = parse_remote_key(PREFIX, key)
        if parsed is not None:
            return size * self._was_refused(parsed[0])
        whole = since.bundle_of(key) or key
        if whole not in self._cluster.bucket.keys:
            return 0
        members = offers.members_of(self._cluster, whole)
        refused = [member for member in members
                   if self._was_refused(member.record.version)]
        if not refused:
            return 0
        # They keep its head and index, and what lies beside it.
        return size if whole != key else size - sum(
            member.stored_bytes for member in members if member not in refused)

    def _was_refused(self, version: VersionId) -> bool:
        """True for a write later than the acknowledged ones of its name."""
        return version.timestamp > self._cluster.model.name(
            self._cluster.name_of(version.object_hash)).acknowledged

    def _write(self, history: History, number: int) -> None:
        cluster = self._cluster
        primaries = cluster.ring.primaries(
            cluster.ring.partition(hash_of(history.name)))
        reached = {primaries[rank] for rank in history.reached[number]}
        body = None if number == 2 else cluster.dice.randbytes(
            cluster.dice.choice((700, 1400, 3000)))
        self._found.put_bytes += len(body or b'')
        cluster.write(history.name, body, history.class_id,
                      set(cluster.nodes) - reached)

    def _wait(self) -> None:
        if not self._group.delay:
            return
        nodes = self._cluster.nodes.values()
        for _ in range(_WAIT_ROUNDS):
            self._cluster.clock.pass_(self._group.delay)
            for node in nodes:
                node.work()
            if not any(node.backlog() for node in nodes):
                break

    def _lose(self, when: str) -> None:
        if when == self._group.when:
            lose(self._cluster.nodes[self._group.lost])

    # -- the judge -------------------------------------------------------

    def _judge(self, history: History) -> None:
        cluster = self._cluster
        register = cluster.model.name(history.name)
        promised = register.promised()
        allowed = {attempt.timestamp: attempt.body
                   for attempt in register.allowed()}
        for asked in cluster.ring.primaries(
                cluster.ring.partition(hash_of(history.name))):
            try:
                stamp, body = cluster.nodes[asked].read(history.name)
            except Unreadable as err:
                self._broken(history, 'unreadable', str(err))
                return
            if not stamp and promised is None or \
                    stamp in allowed and allowed[stamp] == body:
                continue
            self._broken(
                history, 'restored' if promised is not None
                and promised.body is None and body is not None
                else 'unreadable', '%s shows %s (%s)' % (
                    asked, stamp or 'nothing',
                    '; '.join(cluster.traces(history.name))))
            return

    def _judge_bucket(self) -> None:
        try:
            self._cluster.check_bucket()
        except Violation as err:
            self._found.restored += 1
            self._found.said.append('%s: %s' % (self._group, err))

    def _broken(self, history: History, counter: str, why: str) -> None:
        setattr(self._found, counter, getattr(self._found, counter) + 1)
        self._found.said.append('%s: %s: %s' % (self._group, history, why))
