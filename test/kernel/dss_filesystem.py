"""In a guest: a file system on dm-dss through power cuts.

What a program fsynced is there, byte for byte, and the checker of the file
system finds nothing to repair once the journal was replayed.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import threading
from typing import Dict

from dss_guest import Dss, Machine, seed_from, set_class

MOUNT = '/run/dss'
MAKE = {'xfs': ['mkfs.xfs', '-q', '-f'], 'ext4': ['mkfs.ext4', '-q', '-F']}
CHECK = {'xfs': ['xfs_repair', '-n'], 'ext4': ['e2fsck', '-f', '-n']}


class Writers:
    """Threads that write files of all classes and fsync them."""

    def __init__(self, seed: int, kept: Dict[str, str]) -> None:
        self.kept = kept
        self.stop = False
        self.cut_off = 0
        self.threads = [threading.Thread(target=self._work, args=(
            random.Random(seed * 10 + number), number))
            for number in range(4)]

    def _work(self, chance: random.Random, number: int) -> None:
        try:
            while not self.stop:
                self._one(chance, '%d-%d' % (number, chance.randrange(60)))
        except OSError:
            self.cut_off += 1

    def _one(self, chance: random.Random, name: str) -> None:
        set_class(chance.choice((0, 11, 12, 25)))
        path = os.path.join(MOUNT, name)
        old = self.kept.pop(name, None)
        if old is not None and chance.random() < 0.3:
            with open(path, 'rb') as file:
                assert hashlib.md5(file.read()).hexdigest() == old, path
            self.kept[name] = old
            return
        data = chance.randbytes(chance.choice((100, 5000, 70000, 300000)))
        with open(path + '.tmp', 'wb') as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.rename(path + '.tmp', path)
            folder = os.open(MOUNT, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
            # XFS makes nothing durable once its log has failed, says so of
            # files, and does not say so of folders.
            os.fsync(file.fileno())
        self.kept[name] = hashlib.md5(data).hexdigest()


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError('%s: %d %s %s' % (
            words, done.returncode, done.stdout[-800:], done.stderr[-800:]))


def verify(kept: Dict[str, str]) -> None:
    for name, digest in sorted(kept.items()):
        with open(os.path.join(MOUNT, name), 'rb') as file:
            assert hashlib.md5(file.read()).hexdigest() == digest, name


def check(dss: Dss, kind: str, kept: Dict[str, str]) -> None:
    """Mount, which replays the journal; compare; look for damage."""
    run('mount', dss.path, MOUNT)
    verify(kept)
    run('umount', MOUNT)
    run(*CHECK[kind], dss.path)


def main() -> None:
    seed = seed_from(sys.argv[1:])
    kind, cuts = sys.argv[2], int(sys.argv[3])
    machine = Machine(int(sys.argv[4]), 8, 40, 400)
    os.makedirs(MOUNT, exist_ok=True)
    dss = machine.start('writeback')
    run(*MAKE[kind], dss.path)
    kept: Dict[str, str] = {}
    cut_off = 0
    classes = set()
    for number in range(cuts):
        run('mount', dss.path, MOUNT)
        writers = Writers(seed + number, kept)
        for thread in writers.threads:
            thread.start()
        until = random.Random(seed + number).uniform(0.1, 3.0)
        writers.threads[0].join(until)
        classes |= set(dss.status()['classes'])
        machine.cut()
        writers.stop = True
        for thread in writers.threads:
            thread.join()
        cut_off += writers.cut_off
        run('umount', MOUNT)
        machine.lose_power(dss)
        dss = machine.start('writeback')
        check(dss, kind, kept)
        dss.message('drain')
        dss.message('demote', '0', str(dss.sectors))
        check(dss, kind, kept)
    print(json.dumps({'cut_off': cut_off, 'files': len(kept),
                      'classes': sorted(classes)}))


main()
