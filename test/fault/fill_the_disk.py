#!/usr/bin/env python
"""R14: the disk is full, at every byte of the way; nothing is lost.

Three real ext4 file systems of 64 MiB on loop devices are a node's SSD, its
HDD and the disk of its index. Each operation runs with one of them full
but for 0, 4, 8, ... KiB, and with no inodes but 0, 1, 2, ..., until there is
enough. Whenever it ends, every acknowledged version is readable, by a reader
of the campaign's own and by the daemon's; with room again it ends where an
untouched one ends. Needs root.

    python test/fault/fill_the_disk.py [--only NAME] [--step-kib 4]

The wrong twin is the one of R12: it looks at nothing that a call says.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Callable, Iterator, List, NamedTuple, Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fail_each_system_call import WRONG_TWIN
from kill_at_each_step import fresh, judge, where
from scenarios import SCENARIOS, Bench, Scenario

from swift_dss.core.errors import DssError
from swift_dss.core.residency import Tier

#: Folder of a node to what is on it.
DISKS = {'devices': 'SSD', 'hdd': 'HDD', 'run': 'index'}
DISK_MIB = 64
INODES = 512
_FILLER = 'filler'


class Outcome(NamedTuple):
    """What a campaign did.

    :param fired: passes that found no room
    """

    passes: int
    fired: int
    refused_reads: int
    wrong: List[str]


@contextlib.contextmanager
def small_disks(folder: str) -> Iterator[None]:
    """File systems on all folders of ``folder/node``."""
    mounts: List[str] = []
    try:
        for name in DISKS:
            image = os.path.join(folder, name + '.img')
            with open(image, 'wb') as target:
                target.truncate(DISK_MIB << 20)
            subprocess.run(['mkfs.ext4', '-q', '-m', '0', '-N', str(INODES),
                            image], check=True)
            mount = os.path.join(folder, 'node', name)
            os.makedirs(mount, exist_ok=True)
            subprocess.run(['mount', '-o', 'loop', image, mount], check=True)
            mounts.append(mount)
        yield
    finally:
        for mount in reversed(mounts):
            subprocess.run(['umount', mount], check=True)


def fill_bytes(disk: str, left: int) -> None:
    """Leave so many bytes of a file system."""
    path = os.path.join(disk, _FILLER)
    filler_fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        stat = os.statvfs(disk)
        size, piece = 0, stat.f_bavail * stat.f_frsize
        while piece >= 4096:
            try:
                os.posix_fallocate(filler_fd, size, piece)
                size += piece
            except OSError as err:
                if err.errno != errno.ENOSPC:
                    raise
                piece //= 2
        os.ftruncate(filler_fd, max(0, size - left))
        os.fsync(filler_fd)
    finally:
        os.close(filler_fd)


def fill_inodes(disk: str, left: int) -> None:
    """Leave so many inodes of a file system."""
    folder = os.path.join(disk, _FILLER)
    os.makedirs(folder)
    made = 0
    with contextlib.suppress(OSError):
        while True:
            os.close(os.open(os.path.join(folder, str(made)),
                             os.O_WRONLY | os.O_CREAT, 0o600))
            made += 1
    for number in range(min(left, made)):
        os.unlink(os.path.join(folder, str(number)))


def empty(disk: str) -> None:
    """Room again."""
    path = os.path.join(disk, _FILLER)
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.unlink(path)


def refused(bench: Bench) -> List[str]:
    """Versions with local bytes that the daemon's reader does not give."""
    refusals = []
    for place in bench.node.places():
        try:
            local = bench.local.describe(place.version, place.partition)
            with bench.local.open(place.version, place.partition) as reader:
                for extent in local.residency.extents:
                    if extent.tiers & (Tier.SSD | Tier.HDD):
                        reader.read(extent.offset, extent.length)
        except (DssError, OSError) as err:
            refusals.append('%s: %r' % (place.version.key, err))
    return refusals


class _Pass(NamedTuple):
    found_no_room: bool
    refused: List[str]
    wrong: List[str]


def _pass(folder: str, scenario: Scenario, disk: str,
          fill: Callable[[str], None], goal: object) -> _Pass:
    path = os.path.join(folder, 'node', disk)
    with fresh(folder, scenario) as root:
        bench = Bench(root, scenario.with_hdd)
        try:
            fill(path)
            no_room: Optional[BaseException] = None
            try:
                scenario.run(bench)
            except (DssError, OSError) as err:
                no_room = err
            no_reads = refused(bench)
            wrong = ['full: ' + failure for failure in judge(root, scenario)]
            ended = no_room is None and where(bench) == goal
            empty(path)
            scenario.run(bench)
            wrong += ['repeated: ' + failure
                      for failure in judge(root, scenario)]
            if where(bench) != goal:
                wrong.append('ends elsewhere than the untouched run')
        except Exception as err:  # a campaign reports whatever went wrong
            return _Pass(True, [], ['ends with %r' % err])
        finally:
            empty(path)
            bench.close()
    return _Pass(not ended, no_reads, wrong)


def campaign(folder: str, scenarios: List[Scenario], step_bytes: int,
             say: Callable[[str], None] = lambda text: None) -> Outcome:
    """Every operation on every disk, in :func:`small_disks`."""
    passes = fired = no_reads = 0
    wrong: List[str] = []
    for scenario in scenarios:
        before = fired
        with fresh(folder, scenario) as root:
            bench = Bench(root, scenario.with_hdd)
            scenario.run(bench)
            goal = where(bench)
            bench.close()
        for disk in DISKS:
            for unit, fill, step in (('bytes', fill_bytes, step_bytes),
                                     ('inodes', fill_inodes, 1)):
                left = 0
                while True:
                    done = _pass(folder, scenario, disk,
                                 functools.partial(fill, left=left), goal)
                    passes += 1
                    fired += done.found_no_room
                    no_reads += len(done.refused)
                    wrong += ['%s, %d %s on the %s: %s' % (
                        scenario.name, left, unit, DISKS[disk], failure)
                        for failure in done.wrong + done.refused]
                    if not done.found_no_room or len(wrong) > 100:
                        break
                    # An HDD is full long before its last block.
                    left += step if left < 64 * step else left // 4
        say('%-16s %4d times no room' % (scenario.name, fired - before))
    return Outcome(passes, fired, no_reads, wrong)


def main() -> int:
    """Run everything and print the figures; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--only', help='one scenario')
    parser.add_argument('--step-kib', type=int, default=4)
    args = parser.parse_args()
    # A time limit from outside must not leave mounts behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix='r14-', dir='/dev/shm' if os.path.isdir(
        '/dev/shm') else None)
    try:
        with small_disks(folder):
            outcome = campaign(folder, [
                scenario for scenario in SCENARIOS
                if args.only in (None, scenario.name)],
                args.step_kib << 10, print)
            twin = campaign(folder, [WRONG_TWIN], 64 << 10)
    finally:
        shutil.rmtree(folder)
    for text in outcome.wrong[:50]:
        print('WRONG: ' + text)
    print('R14: %d passes, %d without room, %d reads refused, %d wrong' % (
        outcome.passes, outcome.fired, outcome.refused_reads,
        len(outcome.wrong)))
    print('R14 wrong twin: %d passes, %d wrong (must be more than 0)' % (
        twin.passes, len(twin.wrong)))
    return 1 if outcome.wrong or not outcome.fired or not twin.wrong else 0


if __name__ == '__main__':
    sys.exit(main())
