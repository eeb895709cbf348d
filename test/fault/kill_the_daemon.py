#!/usr/bin/env python
"""R01 with the real daemon: killed at every step it reaches, restarted.

A real ``swift-dss-tierd`` gets real events and works under pressure: it
cleans, demotes, promotes, drops. Armed through its environment it dies at
the first, second or last hit of one step. Every acknowledged version is
read at once, then a fresh daemon starts (that is the recovery), and all is
read again.

    python test/fault/kill_the_daemon.py [--every N] [--on DIR]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from typing import Dict, List, NamedTuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(sys.path[0], os.pardir))

from support.nodes.daemon_node import SECONDS, DaemonProcess, Died, write_node
from support.nodes.sample_node import SampleNode, sample_bytes

from swift_dss.core.spans import ClassMap
from swift_dss.io import steps
from swift_dss.wire import classmap
from swift_dss.wire.control import Event, EventKind, encode_event

OBJECT_BYTES = 60000
OBJECTS = 12
_OPTIONS = {
    'tier': {'ssd_bytes': 400000, 'clean_after_seconds': 0,
             'interval_seconds': 0.2}}


class Outcome(NamedTuple):
    """What a campaign did."""

    kills: int
    step_count: int
    lost: List[str]
    worst_recovery_seconds: float


class Run(DaemonProcess):
    """A fresh node, and one life of a daemon on it."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.node = SampleNode(root)
        write_node(root, dict(_OPTIONS, capacity={
            'sda': self.node.capacity_path}))
        self.placed = []
        for number in range(OBJECTS):
            data = sample_bytes(OBJECT_BYTES, number)
            mapped = ClassMap.uniform((0, 9)[number % 2])
            self.placed.append((self.node.put(
                'o%d' % number, data, class_map=mapped), data, mapped))
        self.node.acknowledge([(place, data)
                               for place, data, _ in self.placed])

    def begin(self, point: str = '', log: str = '') -> float:
        """Start a daemon, armed; the seconds until it answers.

        :raises Died: it was killed, as it was armed to be
        """
        return self.start({steps.CRASH_AT: point, steps.STEP_LOG: log})

    def work(self) -> None:
        """Say what would be said on a busy node, and wait for its end."""
        try:
            for kind, bits in ((EventKind.PUT, 0), (EventKind.READ, 2)):
                for place, _, mapped in self.placed:
                    self.say(Event(
                        kind, place.version, place.partition, OBJECT_BYTES,
                        classmap.encode(mapped), 0, OBJECT_BYTES, bits,
                        time.time()))
                self.settle()
            for verb in ('demote', 'promote', 'demote'):
                self.ask({'verb': verb, 'device': 'sda'})
        except OSError:
            self.process.wait(SECONDS)
            raise Died from None

    def say(self, event: Event) -> None:
        """One event."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(os.path.join(self.root, 'run', 'events.sock'))
            sender.send(encode_event(event))


def points_of(folder: str) -> Dict[str, int]:
    """The steps an untouched daemon reaches, and how often."""
    hits: Dict[str, int] = {}
    log = os.path.join(folder, 'steps')
    with _fresh(folder) as run:
        run.begin(log=log)
        run.work()
        run.stop()
    with open(log, encoding='ascii') as source:
        for name in source.read().split():
            hits[name] = hits.get(name, 0) + 1
    return hits


def campaign(folder: str, every: int = 1) -> Outcome:
    """Kill at each point (or each ``every``-th of them)."""
    hits = points_of(folder)
    # How the threads interleave decides how often a step comes: of the
    # last hits, one that comes in every run.
    points = ['%s:%d' % (name, nth) for name in hits for nth in sorted(
        {1, min(2, hits[name]), max(1, hits[name] // 2)})][::every]
    lost: List[str] = []
    worst = 0.0
    for point in points:
        with _fresh(folder) as run:
            try:
                run.begin(point)
                run.work()
            except Died:
                pass
            code = run.process.poll()
            run.stop()
            assert code == -signal.SIGKILL, '%s did not fire: %r' % (
                point, code)
            lost += ['%s at once: %s' % (point, name)
                     for name in run.node.lost()]
            worst = max(worst, run.begin())
            run.settle()
            lost += ['%s after recovery: %s' % (point, name)
                     for name in run.node.lost()]
            run.stop()
    return Outcome(len(points), len(hits), lost, worst)


@contextlib.contextmanager
def _fresh(folder: str):
    root = tempfile.mkdtemp(prefix='n', dir=folder)
    run = Run(root)
    try:
        yield run
    finally:
        run.stop()
        shutil.rmtree(root)


def main() -> int:
    """Run everything and print the figures; 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--every', type=int, default=1)
    parser.add_argument('--on')
    args = parser.parse_args()
    shm = '/dev/shm' if os.path.isdir('/dev/shm') else None
    folder = tempfile.mkdtemp(prefix='r01d-', dir=args.on or shm)
    try:
        outcome = campaign(folder, args.every)
    finally:
        shutil.rmtree(folder)
    for text in outcome.lost:
        print('LOST: ' + text)
    print('R01 (daemon): %d kills at %d steps, %d lost, worst recovery '
          '%.2f s' % outcome._replace(lost=len(outcome.lost)))
    return 1 if outcome.lost else 0


if __name__ == '__main__':
    sys.exit(main())
