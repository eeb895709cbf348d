"""Seconds that one POST of a class to a manifest of many segments takes.

An all-in-one cluster of this script's own, three replicas. Each round gives
the manifest another class, and says what every process of the cluster worked
meanwhile: until the answer, and in the two seconds after it.

    python test/bench/large_posts.py --segments 1000 --rounds 3
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import statistics
import sys
import time
from typing import Dict, List

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support.nodes import bench_cluster

from swift_dss.aio import processes
from swift_dss.aio.cluster import Cluster

CLASSES = ('gold', 'silver')
#: Seconds after a POST whose work is told apart.
_AFTER_SECONDS = 2.0
#: The cluster is quiet once it works less than this in so many seconds.
_QUIET = (0.3, 3.0)
#: Uploads to S3 begin when versions are some seconds old.
_SETTLE_SECONDS = 8.0
_PATIENCE_SECONDS = 240.0
_TICKS = os.sysconf('SC_CLK_TCK')


def put(cluster: Cluster, container: str, segments: int) -> None:
    """A manifest ``slo`` of so many segments."""
    names = ['seg/%05d' % number for number in range(segments)]

    def put_some(some: List[str]) -> None:
        swift = cluster.connection()
        for name in some:
            swift.put_object(container, name, b'segment')
        swift.close()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(put_some, [names[start::8] for start in range(8)]))
    cluster.connection().put_object(container, 'slo', json.dumps([
        {'path': '/%s/%s' % (container, name)} for name in names]),
        query_string='multipart-manifest=put')


def worked(root: str) -> Dict[str, float]:
    """CPU seconds of each kind of process, its workers together."""
    seconds: Dict[str, float] = {}
    for name, pids in processes.find(root).items():
        for pid in pids:
            with open('/proc/%d/stat' % pid) as source:
                fields = source.read().rpartition(')')[2].split()
            seconds[name] = seconds.get(name, 0.0) + (
                int(fields[11]) + int(fields[12])) / _TICKS
    return seconds


def settle(root: str) -> None:
    """Wait until uploads to S3 and the like are done."""
    time.sleep(_SETTLE_SECONDS)
    patience = time.monotonic() + _PATIENCE_SECONDS
    most, seconds = _QUIET
    while time.monotonic() < patience:
        before = sum(worked(root).values())
        time.sleep(seconds)
        if sum(worked(root).values()) - before < most:
            return
    raise SystemExit('the cluster does not come to rest')


def _since(before: Dict[str, float], now: Dict[str, float]) -> str:
    spent = {name: now[name] - before.get(name, 0.0) for name in now}
    return ', '.join('%s %.1f' % (name, spent[name]) for name in sorted(
        spent, key=lambda name: -spent[name]) if spent[name] >= 0.05)


def measure(cluster: Cluster, segments: int, rounds: int) -> None:
    """Print a line a round, and the median."""
    swift = cluster.connection()
    swift.put_container('large')
    put(cluster, 'large', segments)
    took: List[float] = []
    for number in range(rounds):
        root = cluster.conf.root
        settle(root)
        before, start = worked(root), time.perf_counter()
        swift.post_object('large', 'slo', {
            'X-DSS-Object-Class': CLASSES[number % 2]})
        took.append(time.perf_counter() - start)
        after = worked(root)
        time.sleep(_AFTER_SECONDS)
        print('round %d: %.2f s; CPU seconds: %s; after: %s' % (
            number, took[-1], _since(before, after),
            _since(after, worked(root))))
        check(cluster, segments, CLASSES[number % 2])
    print('%d segments: median %.2f s, load %.1f' % (
        segments, statistics.median(took), os.getloadavg()[0]))


def check(cluster: Cluster, segments: int, class_name: str) -> None:
    """Every segment has the class, and so says its container."""
    swift = cluster.connection()
    assert 'x-dss-class-state' not in swift.head_object('large', 'slo')
    rows = swift.get_container('large', prefix='seg/', limit=10000,
                               query_string='dss=true')[1]
    wrong = [row for row in rows if row['dss_class'] != class_name]
    assert len(rows) == segments and not wrong, (len(rows), wrong[:3])
    for row in rows[::max(1, segments // 20)]:
        assert swift.head_object('large', row['name'])[
            'x-dss-object-class'] == {'gold': '25', 'silver': '26'}[
                class_name]


def main() -> int:
    """Run it on a cluster that is made, and removed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--segments', type=int, default=1000)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--workers', type=int, default=0,
                        help='of the proxy and the object server')
    parser.add_argument('--background', action='store_true',
                        help="with replicators, auditors and updaters")
    options = parser.parse_args()
    with bench_cluster.started(background=options.background,
                               workers=options.workers) as cluster:
        measure(cluster, options.segments, options.rounds)
    return 0


if __name__ == '__main__':
    sys.exit(main())
