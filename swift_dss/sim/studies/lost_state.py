"""Index, queue and bundle book that are lost at any point.

One point is one history of PUTs, overwrites and DELETEs on a cluster of its
own. At a random step, also in the midst of a daemon's work, one node or all of
them lose the state of their daemons. All comes to rest; then a node is wiped
and restored from the bucket, an operator runs ``gateway gc`` to remove keys
that nothing needs, and in the end every node is wiped and restored from the
bucket alone. Deleted objects MUST NOT come back in either.
"""

from __future__ import annotations

import multiprocessing
import random
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence

from swift_dss.sim.cluster import Cluster
from swift_dss.sim.model import Violation
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.node import Node, Unreadable
from swift_dss.sim.studies.stage import (
    ROUND_SECONDS, collect, lose, settle, stage)
from swift_dss.sim.world.ring import STOCK

NODES = 5
#: The parts of a daemon's state, and the prefixes of their files' names.
STATE = {'index': 'index', 'queue': 'gateway', 'book': 'bundles'}
#: The steps of a history, and the objects in it.
_STEPS, _OBJECTS = 24, 8
#: Alone in S3, in bundles, in both.
_CLASSES = (3, 1, 2, 1)
_CLIENTS = ('put', 'put', 'put', 'delete', 'delete')
_VERBS = _CLIENTS + ('work', 'work', 'work', 'pass', 'replicate')
_LENGTHS = (700, 1400, 3000, 9000)
_PAUSES = (1.0, 3.0, 15.0, 40.0)
#: Named steps of daemons, after which one may be killed.
_MOST_STEPS = 40
#: A write reaches these many of three primaries: it is acknowledged.
_REACHED = (2, 3, 3)


@dataclass
class Found:
    """The results of all points.

    :param lost: how often each part of the state was lost
    :param at_work: points at which a daemon was in the midst of its work
    :param everywhere: points at which all nodes lost it
    :param deleted: objects whose DELETE was acknowledged last
    :param kept: objects whose PUT was acknowledged last
    :param restored: deleted objects that a node showed again
    :param unreadable: kept objects that differ from the acknowledged ones
    :param orphans: keys that nothing needs, after ``gc``
    """

    points: int = 0
    lost: Dict[str, int] = field(default_factory=lambda: dict.fromkeys(
        STATE, 0))
    at_work: int = 0
    everywhere: int = 0
    deleted: int = 0
    kept: int = 0
    restored: int = 0
    unreadable: int = 0
    orphans: int = 0
    said: List[str] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add the results of another point."""
        self.points += other.points
        for part, number in other.lost.items():
            self.lost[part] += number
        self.at_work += other.at_work
        self.everywhere += other.everywhere
        self.deleted += other.deleted
        self.kept += other.kept
        self.restored += other.restored
        self.unreadable += other.unreadable
        self.orphans += other.orphans
        self.said += other.said

    @property
    def is_broken(self) -> bool:
        """True if a promise was broken."""
        return bool(self.restored or self.unreadable or self.orphans
                    or self.said)


def run(seed: int) -> Found:
    """One point; blocks until it is judged."""
    dice = random.Random(seed)
    with stage(dice, NODES) as cluster:
        return _Point(cluster, seed).run()


def run_all(first: int, points: int, jobs: int,
            progress: Callable[[Found], None]) -> Found:
    """Points from ``first`` on, in so many processes.

    :param progress: told after each
    """
    total = Found()
    with multiprocessing.Pool(jobs) as pool:
        for outcome in pool.imap(run, range(first, first + points)):
            total.add(outcome)
            progress(total)
    return total


class _Point:

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._dice = cluster.dice
        self._seed = seed
        self._found = Found(1)
        numbers = range(1000)
        self._names = [name for name in map('/a/c0/{}'.format, numbers)
                       if policy_of(hash_of(name)) != STOCK][:_OBJECTS]

    def run(self) -> Found:
        lost_at = self._dice.randrange(1, _STEPS)
        for number in range(_STEPS):
            if number == lost_at:
                self._lose()
            self._step()
        try:
            self._judge_all()
        except Violation as err:
            self._found.unreadable += 1
            self._say(str(err))
        return self._found

    # -- what happens ----------------------------------------------------

    def _step(self) -> None:
        cluster, dice = self._cluster, self._dice
        verb = dice.choice(_VERBS)
        if verb in _CLIENTS:
            at = dice.randrange(_OBJECTS)
            body = None if verb == 'delete' else dice.randbytes(
                dice.choice(_LENGTHS))
            cluster.write(self._names[at], body,
                          _CLASSES[at % len(_CLASSES)], self._misses(at))
        elif verb == 'work':
            for node in cluster.nodes.values():
                node.work()
        elif verb == 'pass':
            cluster.clock.pass_(dice.choice(_PAUSES))
        else:
            cluster.replicate(dice.choice(list(cluster.nodes)))

    def _misses(self, at: int) -> Sequence[str]:
        """Nodes that a write does not reach; none stands in for them."""
        cluster = self._cluster
        primaries = cluster.ring.primaries(cluster.ring.partition(
            hash_of(self._names[at])))
        reached = self._dice.sample(primaries, self._dice.choice(_REACHED))
        return [name for name in cluster.nodes if name not in reached]

    def _lose(self) -> None:
        dice, counts = self._dice, self._found
        parts = dice.sample(list(STATE), dice.randint(1, len(STATE)))
        nodes = list(self._cluster.nodes.values())
        if dice.randrange(2):
            nodes = [dice.choice(nodes)]
        else:
            counts.everywhere += 1
        in_work = dice.randrange(2)
        for node in nodes:
            if in_work:
                node.work(crash_after=dice.randint(1, _MOST_STEPS))
                counts.at_work += node is nodes[-1]
            node.lose(lambda name: '.db' in name and any(
                name.startswith(STATE[part]) for part in parts))
        for part in parts:
            counts.lost[part] += 1

    # -- the judge -------------------------------------------------------

    def _judge_all(self) -> None:
        cluster, dice = self._cluster, self._dice
        if dice.randrange(2):
            # Else a node is restored while deletes are under way.
            self._rest()
        for name in self._names:
            promised = cluster.model.name(name).promised()
            self._found.deleted += promised is not None \
                and promised.body is None
            self._found.kept += promised is not None \
                and promised.body is not None
        wiped = dice.choice(list(cluster.nodes.values()))
        self._restore([wiped])
        self._rest()
        self._judge('after the restore of ' + wiped.name)
        collect(cluster)
        self._judge_keys()
        self._judge('after gc')
        self._restore(list(cluster.nodes.values()))
        self._judge('after the restore of all nodes')
        for name in self._names:
            cluster.write(name, None, 0, ())
        self._rest()
        collect(cluster)
        self._judge_keys()

    def _rest(self) -> None:
        """Also for each node's own look through its part of the bucket."""
        settle(self._cluster)
        self._cluster.clock.pass_(ROUND_SECONDS)
        settle(self._cluster)
        self._cluster.check()

    def _restore(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            lose(node)
        for node in nodes:
            said = node.restore()
            if ';' in said or ':' in said:
                self._found.unreadable += 1
                self._say('restore of %s: %s' % (node.name, said))
        for node in nodes:
            # Now its daemon reads the devices.
            node.work(sweep=True)

    def _judge_keys(self) -> None:
        orphans = sorted(self._cluster.orphans())
        self._found.orphans += len(orphans)
        if orphans:
            self._say('gc leaves %s' % orphans[0])

    def _judge(self, when: str) -> None:
        for name in self._names:
            wrong = self._wrong(name)
            if wrong is not None:
                self._say('%s: %s %s (%s)' % (when, name, wrong, '; '.join(
                    self._cluster.traces(name))))

    def _wrong(self, name: str) -> Optional[str]:
        cluster = self._cluster
        history = cluster.model.name(name)
        promised = history.promised()
        if promised is None:
            return None
        for asked in cluster.ring.primaries(
                cluster.ring.partition(hash_of(name))):
            try:
                stamp, body = cluster.nodes[asked].read(name)
            except Unreadable as err:
                self._found.unreadable += 1
                return 'cannot be read: %s' % err
            if promised.body is None and body is not None:
                self._found.restored += 1
                return 'was deleted, and %s shows %s' % (asked, stamp)
            if body != promised.body:
                self._found.unreadable += 1
                return 'is not the acknowledged version on %s' % asked
        return None

    def _say(self, text: str) -> None:
        self._found.said.append('point %d: %s' % (self._seed, text))
