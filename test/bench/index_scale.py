#!/usr/bin/env python
"""How the daemon's start and memory grow with the objects it tracks.

Fills an index with N versions (two classes each), then starts a real tier
daemon on it, measures the seconds until its admin socket answers a status
request with the right number of objects, and its resident memory against a
daemon on an empty index. Targets: under 5 s and under 200 bytes an object
with a million objects.

    python test/bench/index_scale.py [--objects N] [--on DIR]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from typing import Tuple

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from daemon_node import DaemonProcess, write_node

from swift_dss.core.version import VersionId
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.rows import SpanRow, VersionRow

_BATCH = 10000


def fill(path: str, objects: int) -> float:
    """Make an index of ``objects`` versions; rows a second."""
    index = Index(path)
    index.set_state('rebuild_needed', '0')
    index.set_state('swept_at', str(time.time()))
    index.set_state('clean_stop', '1')
    started = time.monotonic()
    for start in range(0, objects, _BATCH):
        with index.batch():
            for number in range(start, min(objects, start + _BATCH)):
                spans = [SpanRow(class_id, 400, 400, 400, 0,
                                 400 * (number % 10 == 0))
                         for class_id in (0, 9)]
                index.put(VersionRow(
                    VersionId('sda', 0, '%032x' % (number * 7919),
                              '1700000000.00000'), '1', 800,
                    '/AUTH_test/container/object-%d' % number,
                    float(number), spans=spans))
        show('index %d of %d' % (start, objects))
    index.close()
    return objects / (time.monotonic() - started)


def measure(root: str, objects: int) -> Tuple[float, float, int]:
    """(seconds until it answers, CPU seconds of them, resident bytes)."""
    daemon = DaemonProcess(root)
    try:
        seconds = daemon.start()
        cpu_seconds = daemon.cpu_seconds()
        found = daemon.ask({'verb': 'status'})
        counted = found['classes'].get('0', {}).get('objects', 0)
        assert counted == objects, '%d of %d' % (counted, objects)
        for _ in range(20):
            daemon.ask({'verb': 'status'})
        return seconds, cpu_seconds, daemon.resident_bytes()
    finally:
        daemon.stop()


def node(objects: int, folder: str) -> Tuple[float, float, float, int]:
    """(rows a second, start seconds, CPU seconds, resident bytes)."""
    root = tempfile.mkdtemp(prefix='index-', dir=folder)
    try:
        # The partition of all rows, or the daemon would forget them.
        os.makedirs(os.path.join(root, 'devices', 'sda', 'objects', '1'))
        write_node(root)
        rate = fill(os.path.join(root, 'run', 'index.db'), objects)
        return (rate,) + measure(root, objects)
    finally:
        shutil.rmtree(root)


def show(text: str) -> None:
    """Progress, on a terminal."""
    if sys.stderr.isatty():
        print('\r' + text, end='\x1b[K', file=sys.stderr, flush=True)


def main() -> int:
    """Print the figures; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--objects', type=int, default=1000000)
    parser.add_argument('--on', help='folder for the index')
    args = parser.parse_args()
    _, empty_seconds, empty_cpu, empty_bytes = node(0, args.on)
    rate, seconds, cpu_seconds, resident = node(args.objects, args.on)
    each = max(0, resident - empty_bytes) / args.objects
    for count, wall, cpu, held in (
            (0, empty_seconds, empty_cpu, empty_bytes),
            (args.objects, seconds, cpu_seconds, resident)):
        print('start with %d objects: %.2f s (%.2f s of CPU), %.1f MiB '
              'resident' % (count, wall, cpu, held / 2 ** 20))
    print('memory per tracked object: %.1f bytes; indexed %.0f/s' % (
        each, rate))
    return 0 if seconds < 5 and each < 200 else 1


if __name__ == '__main__':
    sys.exit(main())
