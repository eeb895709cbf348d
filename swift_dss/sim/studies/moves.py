"""Objects that only S3 has move among nodes, and no byte of them moves.

Objects of several kinds go up to S3 and lose their local bytes. Then a node
joins the ring, one leaves it, each fragment gets another node, and an SSD is
replaced by an empty one. Replicators, reconstructors and daemons work after
each until nothing moves. All that S3 is asked for meanwhile is counted: also
what daemons ask of themselves. After each the judge follows every record to
its bytes and compares them with those that a client wrote; after the last one
clients and object servers read them all, too.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import random
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, NamedTuple, Set, Tuple

from swift_dss.gateway.bundle import since
from swift_dss.gateway.bundle.read import is_bundle
from swift_dss.sim import offers, pieces, rest
from swift_dss.sim.cluster import Cluster
from swift_dss.sim.conf import PREFIX, SCHEMES, schemes
from swift_dss.sim.disks import hash_of, policy_of
from swift_dss.sim.judge import Replica
from swift_dss.sim.model import Violation
from swift_dss.sim.studies.stage import settle, stage
from swift_dss.sim.world.ring import CODED, OURS, REPLICAS
from swift_dss.sim.world.s3 import Request
from swift_dss.wire.layout import parse_remote_key

#: One of them is in no ring until it joins.
NODES = 6
#: Of one cluster, 60 of a kind; more objects take more clusters. No more
#: than 100 of a kind are coded (``MANY_CODED``).
MOST = 240
EXPERIMENTS = ('join', 'leave', 'EC move', 'lost SSD')
_UPLOAD_SECONDS, _UPLOAD_ROUNDS = 40.0, 150


class Kind(NamedTuple):
    """Objects that are kept alike.

    :param classes: that they have in turn
    :param lengths: that are drawn
    """

    policy: int
    container: str
    classes: Tuple[int, ...]
    lengths: Tuple[int, ...]


KINDS = {
    'replicas': Kind(OURS, '/a/c5', (0, 2, 3), (700, 3000, 9000)),
    'replicas, bundled': Kind(OURS, '/a/c6', (1,), (1, 700, 1400)),
    'fragments': Kind(CODED, '/a/e2', (0, 2, 3), (700, 3000, 9000)),
    'fragments, bundled': Kind(CODED, '/a/e3', (1,), (1, 700, 1400))}
#: Of no object: marks of the prefix and the bucket's state, which daemons look
#: at from time to time; and anything else.
MARKS, OTHER = 'marks', 'others'
_MARK = PREFIX + '.dss-'
#: A file on a node: the node, and the hash, timestamp and fragment.
_Place = Tuple[str, str, str, int]


@dataclass
class Row:
    """Counts of the objects of one kind in one experiment.

    :param stubs: that came to a node
    :param asked: verb to requests
    :param proofs: GETs of the list of a bundle's members, without a member
    :param data_bytes: of objects that S3 was asked for
    """

    stubs: int = 0
    asked: Dict[str, int] = field(default_factory=dict)
    proofs: int = 0
    data_bytes: int = 0

    def add(self, other: Row) -> None:
        """Add those of another cluster."""
        self.stubs += other.stubs
        for verb, number in other.asked.items():
            self.asked[verb] = self.asked.get(verb, 0) + number
        self.proofs += other.proofs
        self.data_bytes += other.data_bytes

    @property
    def is_dear(self) -> bool:
        """True if S3 was asked for more than was promised for stubs."""
        return bool(self.data_bytes or self.asked.get('GET')
                    or self.asked.get('PUT')
                    or self.asked.get('HEAD', 0) > self.stubs)


def _rows() -> Dict[str, Dict[str, Row]]:
    return {experiment: {kind: Row() for kind in (*KINDS, MARKS, OTHER)}
            for experiment in EXPERIMENTS}


@dataclass
class Found:
    """The results of all clusters.

    :param stubs: before anything moves, on all nodes
    :param read: objects of which each replica was read, by the judge after
        each experiment, and by object servers in the end
    :param readable: of those, the ones with the bytes that a client wrote
    :param rows: by experiment, then by kind
    """

    objects: int = 0
    stubs: int = 0
    read: int = 0
    readable: int = 0
    rows: Dict[str, Dict[str, Row]] = field(default_factory=_rows)
    said: List[str] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add the results of another cluster."""
        self.objects += other.objects
        self.stubs += other.stubs
        self.read += other.read
        self.readable += other.readable
        for experiment, kind, row in other.each():
            self.rows[experiment][kind].add(row)
        self.said += other.said

    def each(self) -> Iterator[Tuple[str, str, Row]]:
        """Every row, with its experiment and kind."""
        for experiment, rows in self.rows.items():
            for kind, row in rows.items():
                yield experiment, kind, row

    def total(self) -> Row:
        """All rows together, without the marks."""
        total = Row()
        for _experiment, kind, row in self.each():
            if kind != MARKS:
                total.add(row)
        return total

    @property
    def is_broken(self) -> bool:
        """True if a promise was broken."""
        return bool(self.said or self.readable < self.read or any(
            row.is_dear for _experiment, kind, row in self.each()
            if kind != MARKS))


def run(seed: int, objects: int) -> Found:
    """One cluster with so many objects; blocks until it is judged."""
    dice = random.Random(seed)
    with stage(dice, NODES, hdds=False, scheme=dice.choice(
            [scheme for scheme in schemes(NODES - 1)
             if scheme in SCHEMES])) as cluster:
        return _Run(cluster, seed, objects).run()


def run_all(first: int, objects: int, jobs: int,
            progress: Callable[[Found], None]) -> Found:
    """Clusters from ``first`` on, in so many processes.

    :param progress: told after each
    """
    total = Found()
    parts = [min(MOST, objects - at) for at in range(0, objects, MOST)]
    with multiprocessing.Pool(jobs) as pool:
        for outcome in pool.imap(_run, enumerate(parts, first)):
            total.add(outcome)
            progress(total)
    return total


def _run(part: Tuple[int, int]) -> Found:
    return run(*part)


class _Run:

    def __init__(self, cluster: Cluster, seed: int, objects: int) -> None:
        self._cluster = cluster
        self._dice = cluster.dice
        self._seed = seed
        self._found = Found(objects)
        #: Name to kind; and by hash, and by key.
        self._kinds = dict(_named(objects))
        self._by_hash = {hash_of(name): kind
                         for name, kind in self._kinds.items()}
        self._by_key: Dict[str, str] = {}
        #: Where members of bundles begin.
        self._members: Set[Tuple[str, int]] = set()

    def run(self) -> Found:
        cluster, dice = self._cluster, self._dice
        joins = dice.choice(self._primaries())
        cluster.ring.names.remove(joins)
        leaves = dice.choice(self._primaries())
        self._upload()
        self._found.stubs = len(self._stubs())
        for experiment, change in (
                ('join', lambda: cluster.ring.names.append(joins)),
                ('leave', lambda: cluster.ring.names.remove(leaves)),
                ('EC move', self._turn),
                ('lost SSD', lambda: cluster.nodes[dice.choice(
                    self._primaries())].new_ssd())):
            self._move(experiment, change)
            self._check(experiment, self._follow)
        self._check('in the end', self._read)
        return self._found

    def _primaries(self) -> List[str]:
        """Nodes that are to have some of each policy."""
        ring = self._cluster.ring
        return sorted(set.intersection(*(
            {node for name, kind in self._kinds.items()
             if KINDS[kind].policy == policy
             for node in ring.of(hash_of(name), policy)}
            for policy in {KINDS[kind].policy
                           for kind in self._kinds.values()})))

    def _turn(self) -> None:
        self._cluster.ring.turned += 1

    # -- before anything moves -------------------------------------------

    def _upload(self) -> None:
        for number, (name, kind) in enumerate(self._kinds.items()):
            classes = KINDS[kind].classes
            said = self._cluster.write(
                name, self._dice.randbytes(self._dice.choice(
                    KINDS[kind].lengths)),
                classes[number // len(KINDS) % len(classes)], ())
            if 'refused' in said:
                self._say('PUT of %s: %s' % (name, said))
        self._empty()

    def _empty(self) -> None:
        """All goes to S3, and no byte of it stays here."""
        nodes = self._cluster.nodes.values()
        for _ in range(_UPLOAD_ROUNDS):
            self._cluster.clock.pass_(_UPLOAD_SECONDS)
            for node in nodes:
                node.work()
                node.demote()
            if not any(node.backlog() for node in nodes) \
                    and not self._local():
                break
        for at, replica in self._local():
            self._say('%s still has bytes of %s' % (at, replica.file_name))

    def _files(self) -> Iterator[Tuple[str, str, Replica]]:
        for name, node in self._cluster.nodes.items():
            for object_hash in node.hashes():
                for replica in node.all_of(object_hash):
                    yield name, object_hash, replica

    def _local(self) -> List[Tuple[str, Replica]]:
        return [(node, replica) for node, _hash, replica in self._files()
                if replica.local]

    def _stubs(self) -> Dict[_Place, str]:
        """Each, and the key that it reads."""
        return {(node, object_hash, replica.timestamp,
                 -1 if replica.frag_index is None
                 else replica.frag_index): replica.key
                for node, object_hash, replica in self._files()
                if not replica.local}

    # -- an experiment ---------------------------------------------------

    def _move(self, experiment: str, change: Callable[[], None]) -> None:
        rows = self._found.rows[experiment]
        self._look_at_keys()
        change()
        before = self._stubs()
        self._cluster.bucket.hear = functools.partial(self._heard, rows)
        try:
            settle(self._cluster)
        except Violation as err:
            self._say('%s: %s' % (experiment, err))
        self._cluster.bucket.hear = lambda request: None
        for place in set(self._stubs()) - set(before):
            rows[self._by_hash[place[1]]].stubs += 1
        for node, replica in self._local():
            self._say('%s: %s has bytes of %s' % (
                experiment, node, replica.file_name))

    def _look_at_keys(self) -> None:
        for (_node, object_hash, _stamp, _index), key in \
                self._stubs().items():
            if key not in self._by_key and is_bundle(PREFIX, key):
                self._members.update(
                    (key, member.remote.offset)
                    for member in offers.members_of(self._cluster, key))
            self._by_key[key] = self._by_hash[object_hash]

    def _heard(self, rows: Dict[str, Row], request: Request) -> None:
        row = rows[self._kind_of(request.key)]
        if request.verb == 'GET' and is_bundle(PREFIX, request.key) and \
                (request.key, request.first) not in self._members:
            row.proofs += 1
            return
        row.asked[request.verb] = row.asked.get(request.verb, 0) + 1
        row.data_bytes += request.end - request.first

    def _kind_of(self, key: str) -> str:
        if key.startswith(_MARK):
            return MARKS
        parsed = parse_remote_key(PREFIX, key)
        return self._by_key.get(
            since.bundle_of(key) or key, OTHER) if parsed is None else \
            self._by_hash.get(parsed[0].object_hash, OTHER)

    def _check(self, when: str, check: Callable[[str], None]) -> None:
        for name in self._kinds:
            self._found.read += 1
            try:
                check(name)
            except Violation as err:
                self._say('%s: %s' % (when, err))
            else:
                self._found.readable += 1

    def _follow(self, name: str) -> None:
        """Each node that is to have an object has the way to its bytes."""
        cluster, object_hash = self._cluster, hash_of(name)
        wrote = cluster.model.name(name).promised()
        assert wrote is not None and wrote.body is not None
        policy = policy_of(object_hash)
        right = pieces.archives(wrote.body) if policy == CODED \
            else [wrote.body] * REPLICAS
        for index, node in enumerate(cluster.ring.of(object_hash, policy)):
            seen = cluster.nodes[node].look(object_hash)
            if seen is None or seen.frag_index not in (None, index) or (
                    seen.timestamp, seen.body) != (
                        wrote.timestamp, right[index]):
                raise Violation('%s: %s lacks it (%s)' % (
                    name, node, '; '.join(cluster.traces(name))))

    def _read(self, name: str) -> None:
        rest.check_name(self._cluster, name)
        said = self._cluster.read(name)
        if not said.startswith('200'):
            raise Violation('%s: %s' % (name, said))

    def _say(self, text: str) -> None:
        self._found.said.append('cluster %d: %s' % (self._seed, text))


def _named(objects: int) -> Iterator[Tuple[str, str]]:
    """So many names, in turn of each kind."""
    names = {kind: _names_of(of) for kind, of in KINDS.items()}
    for _, kind in zip(range(objects), itertools.cycle(KINDS)):
        yield next(names[kind]), kind


def _names_of(kind: Kind) -> Iterator[str]:
    for number in itertools.count():
        name = '%s/%d' % (kind.container, number)
        if policy_of(hash_of(name)) == kind.policy:
            yield name
