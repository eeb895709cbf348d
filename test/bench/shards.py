#!/usr/bin/env python
"""What several processes of the tier daemon bring, and cost.

A node with real files on several devices, and a real daemon with as many
shards as each round says, in turn: 1, 2, 1, 2, and so on. For each kind of
work the seconds it takes, and the CPU time of the daemon and its shards:

rebuild   all devices are read into an empty index
sweep     all devices are compared with it
events    new versions are told, as many as the sockets take

Printed: medians for each number of shards and their ratios. On a busy machine
only the CPU time of one run can be compared with itself.

    python test/bench/shards.py [--objects N] [--rounds N]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from typing import Callable, Dict, Iterator, List, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from daemon_node import DaemonProcess, write_node
from fault.sample_node import SampleNode

from swift_dss.core.version import VersionId
from swift_dss.io.switch import Place
from swift_dss.wire import shards
from swift_dss.wire.control import Event, EventKind, encode_event

_BODY = b'x' * 4096
_SHARDS = (1, 2)
_TICKS = os.sysconf('SC_CLK_TCK')
#: (seconds, CPU seconds)
Took = Tuple[float, float]


class Bench:
    """A node with files, and its daemon."""

    def __init__(self, root: str, args: argparse.Namespace) -> None:
        self.root = root
        self.devices = ['d%d' % one for one in range(args.devices)]
        self.objects = args.objects
        self.places: List[Place] = []
        for device in self.devices:
            node = SampleNode(root, with_hdd=False, device=device)
            for number in range(args.objects // args.devices):
                self.places.append(node.put(
                    '%s-%d' % (device, number), _BODY))
        self.daemon = DaemonProcess(root)
        self.count = 0

    def start(self, count: int) -> None:
        """A daemon with so many shards, and no index."""
        self.stop()
        self.count = count
        write_node(self.root, {
            'io': {'carrier': 'null'}, 'tier': {
                'shards': count, 'clean_after_seconds': 86400,
                'index_dir': os.path.join(self.root, 'state')}})
        shutil.rmtree(os.path.join(self.root, 'state'), ignore_errors=True)
        self.daemon.start()

    def stop(self) -> None:
        """No daemon."""
        self.daemon.stop()

    def pids(self) -> List[int]:
        """Of the daemon and its shards."""
        status = self.daemon.ask({'verb': 'status'})
        return [status['pid']] + [one['pid'] for one
                                  in status.get('shards', ())]

    @contextlib.contextmanager
    def measured(self, into: List[Took]) -> Iterator[None]:
        """Time what is done in here."""
        pids = self.pids()
        began, used = time.monotonic(), _cpu(pids)
        yield
        into.append((time.monotonic() - began, _cpu(pids) - used))

    def tell(self) -> None:
        """All versions, as object servers would; waits until all of it is
        in the index."""
        layout: Dict[str, int] = {}
        if self.count > 1:
            with open(os.path.join(self.root, 'run', shards.FILE),
                      'rb') as source:
                layout = dict(shards.decode(source.read()).devices)
        ears = {}
        for device in self.devices:
            ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            ear.connect(os.path.join(
                self.root, 'run', 'shard-%d' % layout[device]
                if layout else '.', 'events.sock'))
            ears[device] = ear
        for place in self.places:
            old = place.version
            version = VersionId(old.device, 0, old.object_hash,
                                '1800000000.00000')
            ears[old.device].send(encode_event(Event(
                EventKind.PUT, version, place.partition, len(_BODY), '0',
                at=time.time())))
        for ear in ears.values():
            ear.close()
        while not self.daemon.ask({'verb': 'settle', 'seconds': 60}
                                  )['settled']:
            pass


def _cpu(pids: List[int]) -> float:
    """User and system time of processes, seconds."""
    total = 0
    for pid in pids:
        with open('/proc/%d/stat' % pid, encoding='ascii') as source:
            fields = source.read().rsplit(')', 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def _rebuilds(bench: Bench, count: int,
              took: Dict[str, List[Took]]) -> None:
    bench.start(count)
    _await(lambda: not bench.daemon.ask({'verb': 'status'})[
        'rebuild_needed'])
    for name in ('rebuild', 'sweep'):
        with bench.measured(took[name]):
            bench.daemon.ask({'verb': name})


def _events(bench: Bench, took: Dict[str, List[Took]]) -> None:
    with bench.measured(took['events']):
        bench.tell()
    bench.stop()


def _await(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(0.2)


def _report(took: Dict[int, Dict[str, List[Took]]], objects: int) -> None:
    print('%-8s %14s %14s %8s %14s %14s %8s' % (
        '', '1 shard', '2 shards', 'times', 'CPU, 1', 'CPU, 2', 'ratio'))
    for name in took[1]:
        wall, cpu = ([statistics.median(one[at] for one in took[count][name])
                      for count in _SHARDS] for at in (0, 1))
        print('%-8s %12.0f/s %12.0f/s %8.2f %11.0f us %11.0f us %8.2f' % (
            name, objects / wall[0], objects / wall[1], wall[0] / wall[1],
            1e6 * cpu[0] / objects, 1e6 * cpu[1] / objects,
            cpu[1] / cpu[0]))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--objects', type=int, default=20000,
                        help='on all devices (20000)')
    parser.add_argument('--devices', type=int, default=4, help='(4)')
    parser.add_argument('--rounds', type=int, default=3,
                        help='of each number of shards (3)')
    parser.add_argument('--on', default='/var/tmp', metavar='DIR',
                        help='where the node lies (/var/tmp)')
    args = parser.parse_args()
    root = tempfile.mkdtemp(prefix='dss-bench-', dir=args.on)
    took: Dict[int, Dict[str, List[Took]]] = {
        count: {name: [] for name in ('rebuild', 'sweep', 'events')}
        for count in _SHARDS}
    bench = Bench(root, args)
    try:
        for _ in range(args.rounds):
            for count in _SHARDS:
                _rebuilds(bench, count, took[count])
                _events(bench, took[count])
        _report(took, len(bench.places))
    finally:
        bench.stop()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == '__main__':
    main()
