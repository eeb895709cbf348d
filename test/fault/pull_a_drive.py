#!/usr/bin/env python
"""R17: a drive is pulled, the node goes on, the drive returns as it was.

Seeded life of a node: objects are written, overwritten, deleted, cleaned,
demoted, promoted and sent away; at random the HDD is pulled (its folder has
no marker any more) or is another, empty one, the life goes on, and the drive
returns with what it had. Then every object must be read as its newest
version, by the daemon's reader and by one of the campaign's own: never as an
older one, and never short. What went to another drive meanwhile went with
it: the daemon may say so, and nothing else.

    python test/fault/pull_a_drive.py [--lives 300] [--seed 1]

The wrong twin knows a file of the drive by its object's name alone.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import sys
import tempfile
from typing import Callable, Dict, List, NamedTuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(sys.path[0], os.pardir))

from scenarios import Bench
from support.nodes.sample_node import read_version, sample_bytes

from swift_dss.core.errors import DssError
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.io.capacity import Capacity
from swift_dss.io.switch import LiveVersion, Place

SIZE = 30000
NAMES = ('one', 'two', 'three', 'four')
STEPS = 14


class Outcome(NamedTuple):
    """What a campaign did.

    :param stale_files: of older versions, that a returned drive held
    """

    lives: int
    pulls: int
    stale_files: int
    wrong: List[str]


class Life:
    """One node, from the beginning."""

    def __init__(self, root: str, seed: int) -> None:
        self._dice = random.Random(seed)
        self._seed = seed
        self._number = 0
        self.bench = Bench(root, True)
        self._hdd = self.bench.node.capacity_path
        self.places: Dict[str, Place] = {}
        self._bodies: Dict[str, bytes] = {}
        self._remote: Dict[str, bytes] = {}
        self.old: List[Place] = []
        self._was_other = False
        for name in NAMES:
            self.write(name)

    def write(self, name: str) -> None:
        """A new version; the one before it goes, as Swift does it."""
        self._number += 1
        body = sample_bytes(SIZE, self._seed * 1000 + self._number)
        third = SIZE // 3
        made = self.bench.node.put(
            name, body, '17000%05d.00000' % self._number,
            class_map=self._dice.choice((
                ClassMap.uniform(5), ClassMap.from_spans(
                    [Span(0, third, 9), Span(third, third, 5)], 0))))
        self._gone(name)
        self.places[name] = made
        self._bodies[made.version.key] = body

    def delete(self, name: str) -> None:
        """It is no more."""
        self._gone(name)

    def _gone(self, name: str) -> None:
        place = self.places.pop(name, None)
        if place is not None:
            os.unlink(place.data_file())
            self.old.append(place)

    def step(self) -> None:
        """Something happens to some object, as far as it can."""
        name = self._dice.choice(NAMES)
        verb = self._dice.choice((
            'write', 'write', 'clean', 'clean 9', 'demote', 'demote 5',
            'promote', 'send', 'evict', 'drop', 'delete'))
        if verb == 'write' or name not in self.places:
            self.write(name)
            return
        if verb == 'delete':
            self.delete(name)
            return
        try:
            self._move(verb, self.places[name])
        except (DssError, OSError):
            pass  # without its drive much cannot be done

    def _move(self, verb: str, place: Place) -> None:
        local, version = self.bench.local, place.version
        partition = place.partition
        if verb.startswith('clean'):
            local.clean(version, partition, [9] if '9' in verb else ())
        elif verb.startswith('demote'):
            local.demote(version, partition, [5] if '5' in verb else ())
        elif verb == 'promote':
            local.promote(version, partition)
        elif verb == 'send':
            self._remote[version.key] = self._bodies[version.key]
            local.record_remote(version, partition, RemoteCopy(
                's3', version.key, 'e', 1.0))
        elif verb == 'evict':
            local.demote(version, partition, to_hdd=False)
        else:
            local.drop_capacity(version, partition)

    def pull(self) -> None:
        """The drive goes; sometimes another one comes in its place."""
        os.rename(self._hdd, self._hdd + '.away')
        os.makedirs(self._hdd)
        if self._dice.random() < 0.3:
            Capacity(self._hdd, 'sda').initialise()
            self._was_other = True

    def back(self) -> int:
        """It returns as it was; files of it that are of no version any
        more."""
        shutil.rmtree(self._hdd)
        os.rename(self._hdd + '.away', self._hdd)
        return sum(os.path.exists(place.capacity.file_path(place.version))
                   for place in self.old)

    def judge(self) -> List[str]:
        """What is not read as its newest version."""
        wrong = []
        for name, place in self.places.items():
            body = self._bodies[place.version.key]
            # That reader knows no drive from another.
            if not self._was_other:
                wrong += self._by_format(name, place, body)
            wrong += self._by_daemon(name, place, body)
        return wrong

    def _by_format(self, name: str, place: Place, body: bytes) -> List[str]:
        try:
            read_back = read_version(place, self._remote)
        except (OSError, ValueError, KeyError) as err:
            return ['%s cannot be read: %r' % (name, err)]
        return [] if read_back == body else [
            '%s is read as %s' % (name, self._whose(read_back))]

    def _by_daemon(self, name: str, place: Place, body: bytes) -> List[str]:
        local = self.bench.local
        try:
            told = local.describe(place.version, place.partition)
            with local.open(place.version, place.partition) as reader:
                for extent in told.residency.extents:
                    if extent.tiers & (Tier.SSD | Tier.HDD) and reader.read(
                            extent.offset, extent.length) != body[
                                extent.offset:extent.end]:
                        return ['%s: the daemon reads other bytes' % name]
        except DssError as err:
            return [] if self._was_other else ['%s: %r' % (name, err)]
        return []

    def _whose(self, content: bytes) -> str:
        digest = hashlib.md5(content).hexdigest()
        return next(('version ' + key for key, body in self._bodies.items()
                     if hashlib.md5(body).hexdigest() == digest),
                    'bytes of no version')


def by_name_alone(life: Life) -> None:
    """The wrong twin: what the drive has of an object's older version is
    taken for its newest."""
    for old in life.old:
        for place in life.places.values():
            path = old.capacity.file_path(old.version)
            if place.version.object_hash != old.version.object_hash or \
                    not os.path.exists(path):
                continue
            new = old.capacity.file_path(place.version)
            os.makedirs(os.path.dirname(new), exist_ok=True)
            os.replace(path, new)
            with contextlib.suppress(DssError), LiveVersion(place) as live:
                if live.residency.is_stub:
                    continue
                live.mark(Residency.whole(SIZE, Tier.HDD))
                with open(live.path, 'r+b') as target:
                    target.truncate(0)
                    target.truncate(SIZE + 1)


def campaign(folder: str, lives: int, seed: int,
             spoil: Callable[[Life], None] = lambda life: None) -> Outcome:
    """So many lives under ``folder``."""
    pulls = stale = 0
    wrong: List[str] = []
    for number in range(seed, seed + lives):
        root = os.path.join(folder, 'node')
        os.makedirs(root)
        dice = random.Random(number)
        life = Life(root, number)
        try:
            for _ in range(2):
                for _ in range(dice.randrange(STEPS)):
                    life.step()
                life.pull()
                pulls += 1
                for _ in range(dice.randrange(1, STEPS)):
                    life.step()
                stale += life.back()
                spoil(life)
                wrong += ['seed %d: %s' % (number, failure)
                          for failure in life.judge()]
                if spoil is by_name_alone:
                    break
        finally:
            life.bench.close()
            shutil.rmtree(root)
    return Outcome(lives, pulls, stale, wrong)


def main() -> int:
    """Run everything and print the figures; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--lives', type=int, default=300)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix='r17-', dir='/dev/shm' if os.path.isdir(
        '/dev/shm') else None)
    try:
        outcome = campaign(folder, args.lives, args.seed)
        twin = campaign(folder, 20, args.seed, by_name_alone)
    finally:
        shutil.rmtree(folder)
    for text in outcome.wrong[:50]:
        print('WRONG: ' + text)
    print('R17: %d lives, %d drives pulled and returned, %d stale files on '
          'them, %d wrong' % (outcome.lives, outcome.pulls,
                              outcome.stale_files,
                              len(outcome.wrong)))
    print('R17 wrong twin: %d drives, %d wrong (must be more than 0)' % (
        twin.pulls, len(twin.wrong)))
    is_right = outcome.stale_files and twin.wrong and not outcome.wrong
    return 0 if is_right else 1


if __name__ == '__main__':
    sys.exit(main())
