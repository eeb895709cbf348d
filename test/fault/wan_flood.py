"""The lowest class floods the link; the top class reads.

    python test/fault/wan_flood.py [--rate 12500000] [--delay 0.02]
        [--reads 200] [--size 262144] [--rounds 1] [--plain]

A gateway behind a link of 100 Mbit/s and 20 ms reads objects of the top
class one after another: first alone, then while readers of the lowest
class keep every worker and the whole link busy. Prints p50, p99 and worst
of both and the ratio of p99; with ``--rounds`` idle and flooded take turns,
and the percentiles are of all rounds. ``--plain`` is the wrong twin: one
class table with one class, which has neither reserve nor shares.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import sys
import tempfile
import threading
import time
from typing import Any, Dict, List, Optional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from support import pattern, wait_until
from support.edges.s3_servers import VersityServer
from support.edges.wan_link import WanLink
from support.nodes.gateway_node import (
    Collector, CountingMetrics, FixedRanks, FolderVersions, conf_for)

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.wire.control import FetchRequest

LOW, TOP = 0, 9
TABLE = ClassTable.of([ClassSpec(LOW, 'bulk', 0),
                       ClassSpec(TOP, 'alarm', 90)])
PLAIN = ClassTable.of([ClassSpec(0, 'all', 0)])
FLOODERS = 12
FLOOD_BYTES = 4 * 1024 * 1024


class Flood:
    """A gateway, a link, and what goes over it."""

    def __init__(self, rate: float, delay: float, size: int,
                 table: ClassTable) -> None:
        self._root = tempfile.mkdtemp(prefix='dss-flood-')
        self._server = VersityServer()
        self.link = WanLink(self._server)
        self.size = size
        self.local = FolderVersions(self._root)
        # What is read is not kept: every read goes over the link.
        self.local.room = False
        self.gateway = Gateway(
            conf_for(self._server, self._root, self.link.url,
                     part_bytes=8 * 1024 * 1024, read_timeout_seconds=20.0),
            lambda: table, self.local, logging.getLogger('flood'),
            CountingMetrics(),
            outside=Outside(ranks=FixedRanks()))
        self.gateway.start()
        self._top = [self._make('top%d' % number, size)
                     for number in range(8)]
        self._low = [self._make('low%d' % number, FLOOD_BYTES)
                     for number in range(FLOODERS)]
        wait_until(lambda: not self.gateway.status()['uploads'], 120)
        for version in self._top + self._low:
            self.local.drop_local(version)
        self.link.set_rate(rate)
        self.link.delay_seconds = delay
        self._over = threading.Event()
        self._flooders: List[threading.Thread] = []
        self.flooded = 0

    def close(self) -> None:
        """Leave nothing."""
        self.link.set_rate(0)
        self.end()
        self.gateway.stop()
        self.link.stop()
        self._server.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def begin(self) -> None:
        """Flood: readers of the lowest class, one after another each."""
        self._over.clear()
        self.flooded = 0
        for version in self._low:
            thread = threading.Thread(target=self._flood, args=(version,))
            thread.start()
            self._flooders.append(thread)
        wait_until(lambda: self.flooded > 2 * FLOOD_BYTES, 120,
                   'the flood has begun')

    def end(self) -> None:
        """No flood, and nothing of it on its way."""
        self._over.set()
        for thread in self._flooders:
            thread.join(60)
        self._flooders = []

    def reads(self, count: int, class_id: int) -> List[float]:
        """Seconds of each of so many reads of the top class."""
        seconds = []
        for number in range(count):
            version = self._top[number % len(self._top)]
            began = time.monotonic()
            sink = Collector()
            whole = self.gateway.fetch(FetchRequest(
                version, '7', 0, self.size, class_id, 60.0, False), sink)
            seconds.append(time.monotonic() - began)
            assert whole and len(sink.data) == self.size, sink.reply
        return sorted(seconds)

    def _make(self, name: str, size: int) -> Any:
        version = self.local.put(name, pattern(size, name))
        self.gateway.enqueue_upload(version, '7', True)
        return version

    def _flood(self, version: Any) -> None:
        while not self._over.is_set():
            sink = Collector()
            self.gateway.fetch(FetchRequest(
                version, '7', 0, FLOOD_BYTES, LOW, 60.0, False), sink)
            self.flooded += len(sink.data)


def percentile(ordered: List[float], share: float) -> float:
    """Of values in order."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(rate: float, delay: float, reads: int, size: int,
            plain: bool = False, rounds: int = 1) -> Dict[str, Any]:
    """Idle and flooded, one after the other, so many times."""
    flood = Flood(rate, delay, size, PLAIN if plain else TABLE)
    idle: List[float] = []
    busy: List[float] = []
    by_round = []
    flooded, seconds = 0, 0.0
    try:
        class_id = LOW if plain else TOP
        flood.reads(3, class_id)
        for _ in range(rounds):
            alone = flood.reads(reads, class_id)
            flood.begin()
            before, began = flood.flooded, time.monotonic()
            beside = flood.reads(reads, class_id)
            seconds += time.monotonic() - began
            flooded += flood.flooded - before
            flood.end()
            by_round.append(percentile(beside, 0.99)
                            / percentile(alone, 0.99))
            idle += alone
            busy += beside
        idle.sort()
        busy.sort()
        return {
            'idle_p50': percentile(idle, 0.5),
            'idle_p99': percentile(idle, 0.99),
            'flood_p50': percentile(busy, 0.5),
            'flood_p99': percentile(busy, 0.99),
            'ratio_p99': percentile(busy, 0.99) / percentile(idle, 0.99),
            'ratios_p99': by_round,
            'idle_worst': idle[-1], 'flood_worst': busy[-1],
            'flood_bytes_per_second': flooded / seconds,
            'reads': len(busy), 'size': size, 'plain': plain}
    finally:
        flood.close()


def main(argv: Optional[List[str]] = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--rate', type=float, default=12.5e6)
    parser.add_argument('--delay', type=float, default=0.02)
    parser.add_argument('--reads', type=int, default=200)
    parser.add_argument('--size', type=int, default=262144)
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--plain', action='store_true')
    args = parser.parse_args(argv)
    print(json.dumps(measure(args.rate, args.delay, args.reads, args.size,
                             args.plain, args.rounds), sort_keys=True))
    return 0


if __name__ == '__main__':
    sys.exit(main())
