#!/usr/bin/env python
"""R01, bundles: kill -9 at every step of making, keeping and dropping them.

Each verb first runs untouched, to learn which steps it reaches and how
often. Then, for each step and for its first, second and last time, a child
is killed there; the judge, who knows nothing of ours but what the format's
documentation says, looks before and after a restart. A record that names a
bundle which does not hold the version's bytes is a loss; so is a dead
member that the bucket still calls alive at the end.

    python test/fault/bundle_kill.py [--per-verb N] [--server swift]
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from support import pattern, wait_until
from support.edges.s3_servers import S3Server, SwiftServer, VersityServer
from support.nodes.gateway_node import (
    CountingMetrics, FixedRanks, FolderVersions, OnlyHere,
    conf_for)

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle import pack
from swift_dss.gateway.restore.catalog import Catalog, Held, open_client
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.io import steps

TABLE = ClassTable.of([ClassSpec(0, 'plain', 0),
                       ClassSpec(1, 'small', 1, bundle=True)])
COUNT = 6
DELETED = (0, 2, 3, 5)
#: Lives that may end before they come to the step they are to be killed at.
_LIVES = 4
TOMBSTONE = '1800000000.00000'
_LOG = logging.getLogger('bundle-kill')
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False


class Outcome(NamedTuple):
    """What a campaign did.

    :param missed: steps that a life passes or not, as its threads meet, and
        that none of several lives came to
    """

    kills: int
    steps: Tuple[str, ...]
    lost: List[str]
    worst_recovery_seconds: float
    missed: Tuple[str, ...] = ()


class Bench:
    """One node's folder, its versions, and the bucket's part of it."""

    def __init__(self, server: S3Server, root: str, prefix: str) -> None:
        self.server = server
        self.root = root
        self.prefix = prefix
        self.conf = conf_for(
            server, root, prefix=prefix, bundle_age_seconds=0.2,
            bundle_dead_share=0.3, read_timeout_seconds=20.0)
        self.local = FolderVersions(root)
        self.bodies = {n: pattern(3000 + n, '%s%d' % (prefix, n))
                       for n in range(COUNT)}
        self.versions = {n: self.local.put(
            '%s%d' % (prefix, n), body, class_map=ClassMap.uniform(1))
            for n, body in self.bodies.items()}

    def run(self, work: Callable[[Gateway, Bench], None]) -> None:
        """What a daemon's life does, in this process."""
        gateway = Gateway(self.conf, lambda: TABLE, self.local, _LOG,
                          CountingMetrics(),
                          outside=Outside(
                              ranks=FixedRanks(),
                              primaries=OnlyHere(self.local)))
        gateway.start()
        try:
            work(gateway, self)
        finally:
            gateway.stop()

    def child(self, work: Callable[[Gateway, Bench], None],
              crash_at: str = '', log: str = '') -> int:
        """The same in a child; its wait status."""
        pid = os.fork()
        if not pid:
            code = 70
            try:
                if log:
                    steps.listen(lambda name: _append(log, name))
                steps.arm(crash_at)
                self.run(work)
                code = 0
            finally:
                os._exit(code)
        return os.waitpid(pid, 0)[1]

    def alive(self) -> Dict[int, VersionId]:
        """Versions that no tombstone replaced."""
        return {n: version for n, version in self.versions.items()
                if self.local.newest(version, '7') == version.timestamp}

    def judge(self) -> List[str]:
        """What is wrong, by raw bytes alone."""
        wrong = []
        for n, version in self.alive().items():
            residency = self.local.residency(version)
            copies = 0
            if residency.bytes_on(Tier.SSD) == len(self.bodies[n]):
                with self.local.open(version, '7') as reader:
                    copies += reader.read(0, len(
                        self.bodies[n])) == self.bodies[n]
            remote = residency.remote
            if remote is not None:
                if self._stored(remote) != self.bodies[n]:
                    wrong.append('%d: the record says remote' % n)
                else:
                    copies += 1
            if not copies:
                wrong.append('%d: no intact copy' % n)
        return wrong

    def _stored(self, remote: Any) -> bytes:
        client = self.server.client()
        try:
            answer = client.get_object(Bucket='dss-test', Key=remote.key)
        except client.exceptions.NoSuchKey:
            return b''
        raw = answer['Body'].read()
        for n, body in self.bodies.items():
            if hashlib.md5(body).hexdigest() == remote.etag:
                return bytes(raw[remote.offset:
                                 remote.offset + len(self.bodies[n])])
        return b''

    def held(self) -> List[str]:
        """Names that the bucket calls alive."""
        catalog = Catalog(self.conf.gateway, open_client(self.conf.gateway))
        return sorted(member.name for member in catalog.walk()
                      if isinstance(member, Held))


def idle(gateway: Gateway) -> bool:
    """Nothing is left to be sent, told, written anew or dropped."""
    status = gateway.status()
    return not (status['uploads'] or status['deletes']
                or status['bundles']['dead_bytes']
                or status['bundles']['leaving']
                or status['bundles']['sending'])


def make(gateway: Gateway, bench: Bench) -> None:
    """All versions go up in a bundle."""
    gateway.enqueue_uploads([Upload(version, '7', True, 1)
                             for version in bench.alive().values()])
    wait_until(lambda: idle(gateway), 60, 'bundles are made')


def lose(gateway: Gateway, bench: Bench) -> None:
    """Most are deleted: the bundle is told, written anew and dropped."""
    for n in DELETED:
        version = bench.versions[n]
        if bench.local.newest(version, '7') != TOMBSTONE:
            bench.local.tombstone(version, TOMBSTONE)
        gateway.enqueue_deletes([(version, '7')])
    make(gateway, bench)


def lose_remote(gateway: Gateway, bench: Bench) -> None:
    """The same where the others have no local bytes any more."""
    lose(gateway, bench)


VERBS = {'make': make, 'lose': lose, 'lose-remote': lose_remote}


def prepare(bench: Bench, verb: str) -> None:
    """What must have happened before ``verb``."""
    if verb == 'make':
        return
    status = bench.child(make)
    assert status == 0, 'preparing %s: %#x' % (verb, status)
    if verb == 'lose-remote':
        for version in bench.versions.values():
            bench.local.drop_local(version)


def campaign(server: S3Server, folder: str, verbs: List[str],
             per_verb: int = 0,
             say: Callable[[str], None] = lambda text: None) -> Outcome:
    """Run all kills.

    :param per_verb: at most so many kills of each verb; 0 is all
    """
    # So that a kill may fall between the records of one bundle.
    pack.RECORDED_AT_ONCE = 2
    kills, worst = 0, 0.0
    lost: List[str] = []
    named: Dict[str, bool] = {}
    missed: List[str] = []
    for verb in verbs:
        hits = _learn(server, folder, verb)
        points = ['%s:%d' % (name, nth) for name in hits
                  for nth in sorted({1, min(2, hits[name]), hits[name]})]
        if per_verb:
            stride = max(1, -(-len(points) // per_verb))
            points = points[::stride]
        for number, point in enumerate(points):
            for attempt in range(_LIVES):
                killed, failures, seconds = _kill(
                    server, folder, verb, point,
                    '%s%d-%d/' % (verb, number, attempt))
                worst = max(worst, seconds)
                lost += ['%s at %s: %s' % (verb, point, failure)
                         for failure in failures]
                if killed:
                    kills += 1
                    named[point.partition(':')[0]] = True
                    break
            else:
                missed.append('%s %s' % (verb, point))
        say('%-12s %3d kills at %2d steps' % (verb, len(points), len(hits)))
    return Outcome(kills, tuple(named), lost, worst, tuple(missed))


def _learn(server: S3Server, folder: str, verb: str) -> Dict[str, int]:
    with _Fresh(server, folder, verb, verb + '-learn/') as bench:
        log = os.path.join(bench.root, 'steps')
        status = bench.child(VERBS[verb], log=log)
        assert status == 0, '%s untouched: %#x' % (verb, status)
        assert not bench.judge() and _ended(bench) == [], bench.judge()
        with open(log) as source:
            names = source.read().split()
    assert names, '%s reaches no step' % verb
    return {name: names.count(name) for name in dict.fromkeys(names)}


def _kill(server: S3Server, folder: str, verb: str, point: str,
          prefix: str) -> Tuple[bool, List[str], float]:
    """A life that ends at ``point``, or whole if it never comes there:
    (killed, what is wrong, seconds of the next life)."""
    with _Fresh(server, folder, verb, prefix) as bench:
        status = bench.child(VERBS[verb], crash_at=point)
        killed = os.WIFSIGNALED(status) and \
            os.WTERMSIG(status) == signal.SIGKILL
        assert killed or not status, \
            '%s of %s ended with %#x' % (point, verb, status)
        failures = ['before recovery: ' + failure for failure in bench.judge()]
        began = time.monotonic()
        status = bench.child(VERBS[verb])
        seconds = time.monotonic() - began
        if status:
            failures.append('the restart ended with %#x' % status)
        failures += ['after recovery: ' + failure
                     for failure in bench.judge() + _ended(bench)]
    return killed, failures, seconds


def _ended(bench: Bench) -> List[str]:
    """Where everything must have come to in the end."""
    wrong = ['%d: not in S3' % n for n, version in bench.alive().items()
             if bench.local.residency(version).remote is None]
    wanted = sorted('/a/c/%s%d' % (bench.prefix, n) for n in bench.alive())
    if bench.held() != wanted:
        wrong.append('the bucket has %s' % bench.held())
    return wrong


class _Fresh:
    """A bench on a new node, gone at the end."""

    def __init__(self, server: S3Server, folder: str, verb: str,
                 prefix: str) -> None:
        self._root = tempfile.mkdtemp(dir=folder)
        self._bench = Bench(server, self._root, prefix)
        self._verb = verb

    def __enter__(self) -> Bench:
        prepare(self._bench, self._verb)
        return self._bench

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._root)


def _append(path: str, name: str) -> None:
    with open(path, 'a') as target:
        target.write(name + '\n')


class EagerPacker(pack.Packer):
    """The wrong twin: records name the bundle before S3 is known to have
    it."""

    def send(self, bundle_id: int, key: str, packed: Any,
             replaces: int = 0) -> None:
        raw = packed.builder.finish()
        self._book.seal(bundle_id, packed.seal, len(raw), packed.placed,
                        replaces)
        self.record(bundle_id)
        steps.reached('eager.recorded')
        self._client.put(key, raw, hashlib.md5(raw).digest())


def twin(server: S3Server, folder: str) -> Outcome:
    """The campaign on the wrong twin: it must find losses."""
    from swift_dss.gateway import parts
    right = parts.Packer
    parts.Packer = EagerPacker  # type: ignore[misc]
    try:
        killed, failures, _ = _kill(server, folder, 'make', 'eager.recorded:1',
                                    'twin/')
    finally:
        parts.Packer = right  # type: ignore[misc]
    assert killed, 'the twin did not come to its step'
    return Outcome(1, ('eager.recorded',), failures, 0.0)


def main() -> int:
    """Run everything and print the figures; 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--per-verb', type=int, default=0)
    parser.add_argument('--server', choices=('versitygw', 'swift'),
                        default='versitygw')
    args = parser.parse_args()
    server = (SwiftServer if args.server == 'swift' else VersityServer)()
    folder = tempfile.mkdtemp(prefix='bundle-kill-', dir=(
        '/dev/shm' if os.path.isdir('/dev/shm') else None))
    try:
        outcome = campaign(server, folder, list(VERBS), args.per_verb, print)
        wrong = twin(server, folder)
    finally:
        server.close()
        shutil.rmtree(folder)
    for text in outcome.lost:
        print('LOST: ' + text)
    print('R01 bundles: %d kills at %d steps, %d lost, worst recovery '
          '%.1f s' % (outcome.kills, len(outcome.steps), len(outcome.lost),
                      outcome.worst_recovery_seconds))
    for text in outcome.missed:
        print('no life came to ' + text)
    print('R01 bundles wrong twin: %d kills, %d lost (must be more than 0)'
          % (wrong.kills, len(wrong.lost)))
    return 1 if outcome.lost or not wrong.lost else 0


if __name__ == '__main__':
    sys.exit(main())
