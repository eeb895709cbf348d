#!/usr/bin/env python
"""How soon the index knows what a rebalance took away, and what leaves.

Writes N objects as Swift lays them out, with the rows that they have in the
index, into an SSD budget that they fill to just below its high watermark.
Then, with a real tier daemon on it, half of the partitions go as Swift's
replicator removes them (``shutil.rmtree`` in a process that is not ours).
At once a tenth of new objects comes, which would pass the watermark if
nothing had left. Printed: seconds from the last removal until the index is
within 1 % of the disk, and how much was demoted meanwhile (nothing may be,
as the disk is half empty). Target: 60 s with a million objects.

    python test/bench/rebalance_index.py [--objects N] [--on DIR]
        [--against TREE]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, Iterator, List, NamedTuple, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support.nodes.daemon_node import DaemonProcess, write_node
from swift.obj.diskfile import write_metadata

from swift_dss.core.version import VersionId
from swift_dss.io.capacity import Capacity
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.rows import SpanRow, VersionRow
from swift_dss.wire import layout
from swift_dss.wire.control import Event, EventKind, encode_event

SIZE = 1000
#: Bits of the hash that make the partition.
_POWER = 9
#: Share of the room that is used before anything moves; nothing leaves up
#: to 0.9.
_FILLED = 0.88
_LIMIT_SECONDS = 60.0
#: Given up after this long.
_PATIENCE_SECONDS = 120.0
_REMOVE = 'import shutil, sys\nfor path in sys.argv[1:]:\n' \
    '    shutil.rmtree(path)\n'


class Stored(NamedTuple):
    """One object on the device."""

    version: VersionId
    partition: str
    name: str


def objects(first: int, count: int) -> Iterator[Stored]:
    """Names, hashes and partitions of ``count`` objects."""
    for number in range(first, first + count):
        name = '/AUTH_test/c/object-%d' % number
        digest = hashlib.md5(name.encode('ascii')).hexdigest()
        yield Stored(VersionId('sda', 0, digest, '1700000000.00000'), str(
            int(digest[:8], 16) >> (32 - _POWER)), name)


def write(device: str, stored: Stored) -> None:
    """The object's data file, as Swift names and marks it."""
    folder = layout.hash_dir(device, 0, stored.partition,
                             stored.version.object_hash)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, stored.version.timestamp + '.data'),
              'wb') as target:
        target.write(b'x' * SIZE)
        write_metadata(target.fileno(), {
            'name': stored.name, 'ETag': 'e', 'Content-Type': 'a/b',
            'X-Timestamp': stored.version.timestamp,
            'Content-Length': str(SIZE)})


def fill(root: str, count: int) -> None:
    """The objects and their rows."""
    device = os.path.join(root, 'devices', 'sda')
    index = Index(os.path.join(root, 'run', 'index.db'))
    index.file.set_state('rebuild_needed', '0')
    index.file.set_state('swept_at', str(time.time()))
    index.file.set_state('clean_stop', '1')
    rows: List[VersionRow] = []
    for number, stored in enumerate(objects(0, count)):
        write(device, stored)
        rows.append(VersionRow(
            stored.version, stored.partition, SIZE, stored.name, time.time(),
            spans=[SpanRow(0, SIZE, SIZE, 0, 0, SIZE)]))
        if len(rows) == 5000 or number == count - 1:
            index.add(rows)
            del rows[:]
            show('object %d of %d' % (number + 1, count))
    index.file.close()


class Bench:
    """A node with a daemon, before, while and after much of it leaves."""

    def __init__(self, root: str, args: argparse.Namespace) -> None:
        self._root = root
        self._args = args
        self._device = os.path.join(root, 'devices', 'sda')
        self._daemon = DaemonProcess(root)
        Capacity(os.path.join(root, 'hdd', 'sda'), 'sda').initialise()
        os.makedirs(self._device)
        write_node(root, {
            'capacity': {'sda': os.path.join(root, 'hdd', 'sda')},
            'tier': {'ssd_bytes': int(args.objects * SIZE / _FILLED),
                     'min_demote_bytes': 0, 'high_watermark': 0.9,
                     'low_watermark': 0.8,
                     'clean_after_seconds': 100000,
                     'dirty_watermark': 1.0}})

    def run(self) -> bool:
        """Print what happened; True if the target was met."""
        fill(self._root, self._args.objects)
        self._daemon.start(tree=self._args.against)
        try:
            return self._watch(*self._remove_and_grow())
        finally:
            self._daemon.stop()

    def _remove_and_grow(self) -> Tuple[float, int]:
        """When the last partition had gone; bytes on the disk after all.
        """
        folder = os.path.join(self._device, 'objects')
        gone = set(sorted(os.listdir(folder))[::2])
        remover = subprocess.Popen([sys.executable, '-c', _REMOVE] + [
            os.path.join(folder, name) for name in sorted(gone)])
        fresh = [stored for stored in objects(
            self._args.objects, self._args.objects // 5)
            if stored.partition not in gone]
        remover.wait()
        removed_at = time.monotonic()
        self._grow(fresh)
        return removed_at, SIZE * (len(fresh) + sum(
            stored.partition not in gone
            for stored in objects(0, self._args.objects)))

    def _grow(self, fresh: List[Stored]) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(os.path.join(self._root, 'run', 'events.sock'))
            for stored in fresh:
                write(self._device, stored)
                sender.send(encode_event(Event(
                    EventKind.PUT, stored.version, stored.partition, SIZE, '0',
                    at=time.time(), name=stored.name)))

    def _watch(self, since: float, left: int) -> bool:
        settled = worst = 0.0
        while time.monotonic() - since < _PATIENCE_SECONDS:
            known, said = self._known()
            off = abs(known + said.get('tier.demoted_bytes', 0)
                      - left) / left
            worst = max(worst, off)
            show('%d s: index %+.1f %% off' % (
                time.monotonic() - since, 100 * off))
            if off <= 0.01:
                settled = time.monotonic() - since
                break
            time.sleep(1)
        # Rounds that would act on what is wrong have had their time.
        self._daemon.settle()
        _, said = self._known()
        moved = {name: int(said.get('tier.' + name, 0)) for name in (
            'demoted', 'cleaned', 'departed')}
        print('%d objects, %d MB stay; index at worst %.0f %% off after the '
              'last removal, within 1 %% %s; %d demoted, %d copied to the '
              'HDD, %d forgotten; CPU of the daemon %.1f s' % (
                  self._args.objects, left // 10 ** 6, 100 * worst,
                  'after %.0f s' % settled if settled else 'never',
                  moved['demoted'], moved['cleaned'], moved['departed'],
                  self._daemon.cpu_seconds()))
        return 0 < settled <= _LIMIT_SECONDS and not moved['demoted'] \
            and not moved['cleaned']

    def _known(self) -> Tuple[int, Any]:
        """SSD bytes by the index, and the counters."""
        status = self._daemon.ask({'verb': 'status'})
        metrics = status['metrics']
        return (status['classes'].get('0', {}).get('ssd', 0),
                metrics.get('counters', metrics))


def show(text: str) -> None:
    """Progress, on a terminal."""
    if sys.stderr.isatty():
        print('\r' + text, end='\x1b[K', file=sys.stderr, flush=True)


def main() -> int:
    """Print the figures; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--objects', type=int, default=1000000)
    parser.add_argument('--on', help='folder for the node')
    parser.add_argument('--against', help='run the daemon of this checkout')
    args = parser.parse_args()
    root = tempfile.mkdtemp(prefix='rb-', dir=args.on)
    try:
        return 0 if Bench(root, args).run() else 1
    finally:
        shutil.rmtree(root)


if __name__ == '__main__':
    sys.exit(main())
