#!/usr/bin/env python
"""A daemon whose index has millions of versions: its start, its answers, its
memory.

Fills the index of a node with N versions on many devices, in any order of
their hashes: 1,000 containers and one small one that came last, nine in ten
versions of class ``plain``, the others ``gold``, and 20 at the end of
``scarce``. A real tier daemon then starts on it, and on an empty index.
Printed: seconds from the start until it answers a status request with the
right number of objects; milliseconds of a status, and of the first page of
listings (median and longest of some, and the daemon's CPU time for 500 rows,
which counts on a busy machine); resident memory at the start and after all
that. Targets: start 2 s, status 50 ms, a first page 100 ms, 20 bytes of
memory a version.

    python test/bench/index_at_scale.py [--objects N] [--devices N]
        [--shards N] [--on DIR]
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from typing import Callable, Dict, List, NamedTuple, Set, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support.nodes.daemon_node import CLASSES, DaemonProcess, write_node

from swift_dss.core.version import VersionId
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.rows import SpanRow, VersionRow
from swift_dss.tier.inforce import Source
from swift_dss.tier.shards import files
from swift_dss.tier.space import index_path
from swift_dss.wire.control import encode_line

_BATCH = 10000
_SIZE = 4096
_CONTAINERS = 1000
#: Versions at the end that are the only ones of their class and container.
_SCARCE = 20
_PLAIN, _SCARCE_CLASS, _GOLD = 0, 5, 9
_TABLE = CLASSES + '[class:5]\nname = scarce\nrank = 50\n'
_PARTITION = '1'
_ROUNDS = 20
_LISTINGS: Dict[str, Dict[str, object]] = {
    'ls': {},
    'ls --class gold': {'class': 'gold'},
    'ls --class scarce': {'class': 'scarce'},
    'ls --container of many': {'container': 'AUTH_test/c7'},
    'ls --container of the last': {'container': 'AUTH_test/last'},
    'ls --device': {'device': 'd1'},
    'ls --on hdd': {'tier': 'hdd'},
}
_START_SECONDS, _STATUS_SECONDS, _PAGE_SECONDS = 2.0, 0.05, 0.1
_BYTES_EACH = 20


class Measured(NamedTuple):
    """Of one daemon.

    :param start: seconds until it answers
    :param cpu: seconds of CPU time of them, of all its processes
    :param asked: by request, the seconds of each answer, and of CPU time of
        one
    :param resident: bytes of all its processes at the start, and at the end
    """

    start: float
    cpu: float
    asked: Dict[str, Tuple[List[float], float]]
    resident: List[int]


class Bench:
    """A node with an index of so many versions."""

    def __init__(self, root: str, objects: int,
                 args: argparse.Namespace) -> None:
        self.root = root
        self.objects = objects
        self.devices = ['d%d' % number for number in range(args.devices)]
        for device in self.devices:
            # The partition of all rows, or the daemon would forget them.
            os.makedirs(os.path.join(
                root, 'devices', device, 'objects', _PARTITION))
        self.conf_path = write_node(root, {'tier': {
            'shards': args.shards}}, _TABLE)
        self.daemon = DaemonProcess(root)

    def fill(self) -> None:
        """Make the index of each shard."""
        conf = Source(self.conf_path).conf()
        self.daemon.start()  # deals the devices to shards
        self.daemon.stop()
        layout = files.read(conf).devices
        indexes = {number: _opened(index_path(
            conf.of_shard(number) if layout else conf))
            for number in set(layout.values()) or {0}}
        of_device = [indexes[layout.get(device, 0)]
                     for device in self.devices]
        for first in range(0, self.objects, _BATCH):
            rows: Dict[Index, List[VersionRow]] = {}
            for number in range(first, min(self.objects, first + _BATCH)):
                at = number % len(self.devices)
                rows.setdefault(of_device[at], []).append(
                    self._row(self.devices[at], number))
            for index, batch in rows.items():
                index.add(batch)
            _show('index %d of %d' % (first, self.objects))
        for index in indexes.values():
            while index.pages.note_names():
                pass  # as a daemon does in the background
            index.file.close()

    def measure(self) -> Measured:
        """Start a daemon, and ask it."""
        try:
            start = self.daemon.start()
            status = self.daemon.ask({'verb': 'status'})
            cpu = self._cpu()
            counted = sum(sums['objects']
                          for sums in status['classes'].values())
            assert counted == self.objects, (counted, self.objects)
            resident = [self._resident()]
            asked = {'status': self._asked(self._status)}
            for name, wanted in _LISTINGS.items():
                asked[name] = self._asked(functools.partial(
                    self._page, wanted))
            return Measured(start, cpu, asked, resident + [self._resident()])
        finally:
            self.daemon.stop()

    def _row(self, device: str, number: int) -> VersionRow:
        is_last = number >= self.objects - _SCARCE
        class_id = _SCARCE_CLASS if is_last \
            else _GOLD if number % 10 == 3 else _PLAIN
        on_hdd = _SIZE if number % 3 else 0
        container = 'last' if is_last else 'c%d' % (number % _CONTAINERS)
        return VersionRow(
            VersionId(device, 0, hashlib.md5(b'%d' % number).hexdigest(),
                      '1700000000.00000'), _PARTITION, _SIZE,
            '/AUTH_test/%s/object-%d' % (container, number), float(number),
            spans=[SpanRow(class_id, _SIZE, _SIZE, on_hdd, 0,
                           _SIZE - on_hdd)])

    def _status(self) -> float:
        began = time.perf_counter()
        self.daemon.ask({'verb': 'status'})
        return time.perf_counter() - began

    def _page(self, wanted: Dict[str, object]) -> float:
        """Ask for a listing; the seconds until something comes."""
        began = time.perf_counter()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.path.join(self.root, 'run', 'admin.sock'))
            connection.sendall(encode_line(
                dict(wanted, verb='ls', limit=500)))
            with connection.makefile('rb') as lines:
                said = lines.readline()
                took = time.perf_counter() - began
                # The rest, so that the next one does not wait behind it.
                for _ in lines:
                    pass
        assert not self.objects or b'"rows"' in said, said[:200]
        return took

    def _asked(self, work: Callable[[], float]) -> Tuple[List[float], float]:
        cpu = self._cpu()
        took = [work() for _ in range(_ROUNDS)]
        return took, (self._cpu() - cpu) / _ROUNDS

    def _resident(self) -> int:
        return sum(map(_resident_bytes, self._pids()))

    def _cpu(self) -> float:
        # As in DaemonProcess.cpu_seconds.
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in self._pids())

    def _pids(self) -> Set[int]:
        status = self.daemon.ask({'verb': 'status'})
        return {status['pid'], *(shard['pid'] for shard
                                 in status.get('shards', ()))}


def _opened(path: str) -> Index:
    """A new index that is quick to fill."""
    index = Index(path)
    for pragma in ('synchronous = OFF', 'cache_size = -400000'):
        index.file.db.execute('PRAGMA ' + pragma)
    index.file.set_state('rebuild_needed', '0')
    index.file.set_state('swept_at', str(time.time()))
    index.file.set_state('clean_stop', '1')
    return index


def _resident_bytes(pid: int) -> int:
    with open('/proc/%d/status' % pid, encoding='ascii') as source:
        return 1024 * next(int(line.split()[1]) for line in source
                           if line.startswith('VmRSS'))


def _show(text: str) -> None:
    """Progress, on a terminal."""
    if sys.stderr.isatty():
        print('\r' + text, end='\x1b[K', file=sys.stderr, flush=True)


def _node(objects: int, args: argparse.Namespace) -> Measured:
    root = tempfile.mkdtemp(prefix='index-', dir=args.on)
    try:
        bench = Bench(root, objects, args)
        bench.fill()
        return bench.measure()
    finally:
        shutil.rmtree(root)


def _report(objects: int, empty: Measured, full: Measured) -> List[str]:
    """Print the figures; what missed its target."""
    missed = []
    for count, measured in ((0, empty), (objects, full)):
        print('start with %d objects: %.2f s (%.2f s of CPU), resident '
              '%.1f MiB, %.1f after all questions' % (
                  count, measured.start, measured.cpu,
                  *(held / 2 ** 20 for held in measured.resident)))
    if full.start > _START_SECONDS:
        missed.append('start')
    for name, (took, cpu) in full.asked.items():
        print('%-28s %8.1f ms, %8.1f at most, %8.1f of CPU' % (
            name, 1e3 * statistics.median(took), 1e3 * max(took), 1e3 * cpu))
        if statistics.median(took) > (
                _STATUS_SECONDS if name == 'status' else _PAGE_SECONDS):
            missed.append(name)
    each = (full.resident[1] - empty.resident[1]) / objects
    print('memory per tracked object: %.1f bytes' % each)
    if each > _BYTES_EACH:
        missed.append('memory')
    return missed


def main() -> int:
    """Print the figures; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--objects', type=int, default=5000000)
    parser.add_argument('--devices', type=int, default=36)
    parser.add_argument('--shards', default='1', help='as in [tier] (1)')
    parser.add_argument('--on', help='folder for the index')
    args = parser.parse_args()
    missed = _report(args.objects, _node(0, args), _node(args.objects, args))
    if missed:
        print('missed: %s' % ', '.join(missed))
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main())
