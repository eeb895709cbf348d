#!/usr/bin/env python
"""How often an HDD's arm moves for a copy, where files begin as ours and as
Swift has them.

Makes XFS on a sparse loop device of each size. Writers, spread over processes
as object servers are, upload objects of the sizes of Client-aware Cloud
Storage into hash folders of many partitions: side ``on`` through our
diskfile, side ``off`` through Swift's. Then every object is overwritten, in
another order and with another size each time. ``swift-dss tier place`` counts
arm moves through all files, in the order of their writing, before that
(*fresh*) and after it (*aged*). Needs root, and blocks for about thrice the
bytes of the objects. Target: 0.05 moves a copy fresh, 0.2 aged; exit status 1
if side ``on`` misses it.

    python test/bench/placement.py
    python test/bench/placement.py --sizes 8 --writers 16 --seeds 1,2,3
    python test/bench/placement.py --full 0.8 --json moves.json
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from swift_dss.aio import storage
from swift_dss.bench import cacs
from swift_dss.bench.figures import size_text, table
from swift_dss.cli import main as command
from swift_dss.io.place import groups

_HERE = os.path.dirname(os.path.abspath(__file__))
_TIB = 1 << 40
#: Most arm moves a copy, of files as they came and after overwriting.
GOALS = {'fresh': 0.05, 'aged': 0.2}
SIDES = ('on', 'off')


class Cell(NamedTuple):
    """One measurement.

    :param bytes: of the disk
    :param writers: at once
    :param side: ``on`` or ``off``
    """

    bytes: int
    writers: int
    side: str
    seed: int


class Disk:
    """XFS on a sparse image, mounted while the block lasts.

    :param root: an empty folder
    :param full: the share of each allocation group that is taken before the
        first object comes
    """

    def __init__(self, root: str, size: int, full: float) -> None:
        self._image = os.path.join(root, 'image')
        self._size = size
        self._full = full
        self._loop = ''
        self.devices = os.path.join(root, 'devices')
        self.path = os.path.join(self.devices, 'd1')

    def __enter__(self) -> Disk:
        with open(self._image, 'wb') as image:
            image.truncate(self._size)
        storage.run('mkfs.xfs', '-q', '-f', self._image)
        os.makedirs(self.path)
        self._loop = storage.attach(self._image)
        try:
            storage.run('mount', '-t', 'xfs', '-o', 'noatime,discard',
                        self._loop, self.path)
            if self._full:
                self._fill()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        if os.path.ismount(self.path):
            storage.run('umount', self.path)
        storage.run('losetup', '--detach', self._loop)
        os.unlink(self._image)

    def _fill(self) -> None:
        """Take a share of every group; blocks that are never written cost
        the image nothing."""
        root = os.open(self.path, os.O_RDONLY)
        try:
            of_disk = groups.groups_of(root)
            assert of_disk is not None
            wanted = int(self._full * self._size / of_disk.number)
            left = set(range(of_disk.number))
            for number in range(4 * of_disk.number):
                folder = os.path.join(self.path, 'ballast-%d' % number)
                os.mkdir(folder)
                group = of_disk.of(os.stat(folder).st_ino)
                if group in left:
                    left.remove(group)
                    with open(os.path.join(folder, 'b'), 'wb') as ballast:
                        os.posix_fallocate(ballast.fileno(), 0, wanted)
        finally:
            os.close(root)
        assert not left


def rounds_of(args: argparse.Namespace, seed: int
              ) -> Iterator[List[Tuple[str, int]]]:
    """Names and bytes of the objects, in the order of each round."""
    for number in range(args.overwrites + 1):
        dice = random.Random('placement %d %d' % (seed, number))
        sizes = [max(1, obj.size) for obj in cacs.sample(
            args.objects, 1000 * seed + number, args.scale)]
        names = ['o%d' % at for at in range(args.objects)]
        if number:
            dice.shuffle(names)
        yield list(zip(names, sizes))


def measure(args: argparse.Namespace, cell: Cell) -> Dict[str, Any]:
    """One row: arm moves a copy, fresh and aged."""
    row = dict(cell._asdict(), objects=args.objects)
    root = tempfile.mkdtemp(prefix='dss-place-', dir=args.on)
    try:
        with Disk(root, cell.bytes, args.full) as disk:
            for number, objects in enumerate(rounds_of(args, cell.seed)):
                _write(args, disk.devices, cell, objects)
                if number in (0, args.overwrites):
                    row['aged' if number else 'fresh'] = _moves(
                        root, disk.devices, args.objects)
    finally:
        shutil.rmtree(root)
    return row


def _write(args: argparse.Namespace, devices: str, cell: Cell,
           objects: List[Tuple[str, int]]) -> None:
    """Upload the objects; each process has its part of the writers."""
    processes = min(cell.writers, args.processes)
    writers = [subprocess.Popen(
        [sys.executable, '-W', 'ignore',
         os.path.join(_HERE, 'placement_writer.py')],
        stdin=subprocess.PIPE, text=True) for _ in range(processes)]
    for number, writer in enumerate(writers):
        json.dump({'devices': devices, 'policy': SIDES.index(cell.side),
                   'writers': cell.writers // processes,
                   'partitions': args.partitions,
                   'objects': objects[number::processes]}, writer.stdin)
        writer.stdin.close()
    statuses = [writer.wait() for writer in writers]
    if any(statuses):
        raise SystemExit('a writer failed')


def _moves(root: str, devices: str, count: int) -> float:
    """Arm moves a copy, as ``swift-dss tier place`` counts them."""
    conf = os.path.join(root, 'dss.conf')
    with open(conf, 'w') as target:
        target.write('[dss]\ndevices = %s\nrun_dir = %s\n' % (devices, root))
    told = subprocess.run(
        [sys.executable, '-m', command.__name__, 'tier', 'place', 'd1',
         '--json', '--files', str(2 * count), '--config', conf],
        capture_output=True, text=True)
    if told.returncode:
        raise SystemExit(told.stderr)
    said, = json.loads(told.stdout)
    if said['files'] != count:
        raise SystemExit('%d files of %d objects' % (said['files'], count))
    return float(said['arm_moves']) / count


def report(rows: List[Dict[str, Any]]) -> Tuple[str, bool]:
    """A table of medians with the extremes of the seeds; is the goal met?"""
    cells: Dict[Tuple[int, int, str], List[Dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row['bytes'], row['writers'], row['side']),
                         []).append(row)
    lines, met = [], True
    for (size, writers, side), of_cell in cells.items():
        told = []
        for state, goal in GOALS.items():
            values = sorted(row[state] for row in of_cell if state in row)
            told.append('%.3f (%.3f-%.3f)' % (
                statistics.median(values), values[0], values[-1])
                if values else '')
            met &= side == 'off' or not values or values[-1] <= goal
        lines.append((size_text(size), str(writers), side, *told))
    return table(('disk', 'writers', 'placement', *GOALS), lines), met


def _numbers(kind: Any) -> Any:
    return lambda text: [kind(word) for word in text.split(',')]


def main() -> int:
    """See the module's text."""
    options = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('--sizes', metavar='TIB,...', type=_numbers(float),
                         default=[0.5, 2, 8], help='of disks (0.5,2,8)')
    options.add_argument('--writers', metavar='N,...', type=_numbers(int),
                         default=[1, 16], help='at once (1,16)')
    options.add_argument('--seeds', metavar='N,...', type=_numbers(int),
                         default=[1], help='of objects and orders (1)')
    options.add_argument('--sides', metavar='on,off', default=SIDES,
                         type=lambda text: text.split(','))
    options.add_argument('--objects', type=int, default=1000, metavar='N',
                         help='of a disk (1000)')
    options.add_argument('--scale', type=float, default=1.0,
                         help='of their sizes (1)')
    options.add_argument('--overwrites', type=int, default=2, metavar='N',
                         help='of every object (2)')
    options.add_argument('--partitions', type=int, default=4096, metavar='N',
                         help='that the objects are of (4096)')
    options.add_argument('--processes', type=int, default=1, metavar='N',
                         help='that the writers are in, at most (1, as with '
                         'servers_per_port = 1)')
    options.add_argument('--full', type=float, default=0.0, metavar='SHARE',
                         help='of each allocation group, before (0)')
    options.add_argument('--on', metavar='FOLDER', default='/var/tmp',
                         help='where the images lie (/var/tmp)')
    options.add_argument('--json', metavar='FILE', help='write the rows, too')
    args = options.parse_args()
    rows = []
    for cell in (Cell(int(size * _TIB), writers, side, seed)
                 for size in args.sizes for writers in args.writers
                 for side in args.sides for seed in args.seeds):
        rows.append(measure(args, cell))
        print('%s, %d writers, %s, seed %d: %s' % (
            size_text(cell.bytes), cell.writers, cell.side, cell.seed,
            ', '.join('%s %.3f' % (state, rows[-1][state])
                      for state in GOALS if state in rows[-1])),
            file=sys.stderr, flush=True)
    if args.json:
        with open(args.json, 'w') as target:
            json.dump({'goals': GOALS, 'rows': rows}, target, indent=1)
    text, met = report(rows)
    print(text)
    return 0 if met else 1


if __name__ == '__main__':
    sys.exit(main())
