"""Each scenario of a folder, as it is, by ``swift-dss load``.

Meant for the public ones of ssbench, which are in its checkout's folder
``scenarios``. A cluster of this script's own, one replica on disk, with its
gateway off, and nothing leaves its SSDs: the load is what is tried, not the
tiers. Files stay as they are; the options bound users, operations, seconds or
containers as ssbench's own do. A line a scenario: objects and bytes before the
measurement, operations, failed and wrong ones, verdict. A scenario whose first
objects may be more than ``--gib`` is not begun, and the line says how many
bytes.

    python test/bench/all_scenarios.py --scenarios FOLDER -o 20
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, List, NamedTuple

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support.nodes import bench_cluster
from support.nodes.tuned_cluster import TunedCluster

from swift_dss.aio.cluster import Cluster
from swift_dss.bench.load.scenario import Scenario, parse

_HEAD = '%-42s %9s %9s %10s %6s %5s %7s  %s'
_ROW = '%-42s %9d %9.1f %10s %6s %5s %7s  %s'


class Still(TunedCluster):
    """Nothing moves by itself while a scenario runs."""

    options = {'gateway': {'enabled': 'false'},
               'tier': {'clean_after_seconds': '86400'}}


class First(NamedTuple):
    """The objects before the measurement; sizes are drawn evenly."""

    count: int
    likely_bytes: int
    most_bytes: int


def first_of(scenario: Scenario) -> First:
    """How many they are."""
    return First(
        sum(size.initial for size in scenario.sizes),
        sum(size.initial * (size.size_min + size.size_max) // 2
            for size in scenario.sizes),
        sum(size.initial * size.size_max for size in scenario.sizes))


def bounds(options: Any) -> List[str]:
    """Words of the command line that bound a scenario."""
    words: List[str] = []
    for flag, value in (('-u', options.users), ('-o', options.operations),
                        ('-r', options.seconds), ('-c', options.containers)):
        if value is not None:
            words += [flag, str(value)]
    return words


def load(cluster: Cluster, path: pathlib.Path, words: List[str]) -> Any:
    """The report of a run; a sentence if there is none."""
    with tempfile.NamedTemporaryFile(suffix='.json') as out:
        done = subprocess.run(
            [os.path.join(os.path.dirname(sys.executable), 'swift-dss'),
             'load', str(path), '--auth', cluster.conf.auth_url, '--user',
             'test:tester', '--key', 'testing', '--json', out.name, *words],
            capture_output=True, text=True)
        try:
            return json.loads(pathlib.Path(out.name).read_text())
        except ValueError:
            return (done.stderr.strip().split('\n') or [''])[-1]


def verdict(report: Any) -> str:
    """``ok``, or the reason why not."""
    reasons = ['%d %s' % (report[name], name)
               for name in ('failures', 'wrong', 'stale', 'left')
               if report[name]]
    return ', '.join(reasons) or 'ok'


def row(cluster: Cluster, path: pathlib.Path, name: str, options: Any
        ) -> bool:
    """Run one, and print its line; is it well?"""
    scenario = parse(path.read_text(encoding='utf-8'), str(path))
    first = first_of(scenario)
    head = (name, first.count, first.likely_bytes / 1e6)
    limit = int(options.gib * 2 ** 30)
    if first.most_bytes > limit:
        print(_ROW % (*head, '-', '-', '-', '-', 'not begun: its '
                      'objects may be %.1f GiB' % (
                          first.most_bytes / 2 ** 30)),
              flush=True)
        return False
    began = time.perf_counter()
    report = load(cluster, path, bounds(options))
    seconds = '%.0f s' % (time.perf_counter() - began)
    if isinstance(report, str):
        print(_ROW % (*head, '-', '-', '-', seconds, report), flush=True)
        return False
    said = verdict(report)
    print(_ROW % (*head, report['operations'], report['failures'],
                  report['wrong'], seconds, said), flush=True)
    return said == 'ok'


def main() -> int:
    """Run all of a folder on a cluster that is made, and removed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--scenarios', type=pathlib.Path, required=True,
                        metavar='FOLDER', help='*.scenario, in folders too')
    parser.add_argument('-u', '--users', type=int)
    parser.add_argument('-o', '--operations', type=int)
    parser.add_argument('-r', '--seconds', type=int)
    parser.add_argument('-c', '--containers', type=int)
    parser.add_argument('--only', metavar='REGEX', default='',
                        help='of the names of files')
    parser.add_argument('--gib', type=float, default=24.0, help='of the '
                        'first objects of a scenario (default: %(default)g)')
    parser.add_argument('--on', metavar='FOLDER', default='/var/tmp',
                        help='of the disks (default: %(default)s)')
    options: Any = parser.parse_args()
    paths = sorted(
        path for path in options.scenarios.glob('**/*.scenario')
        if re.search(options.only, path.name))
    if not paths:
        parser.error('argument --scenarios: %s has no such file *.scenario'
                     % options.scenarios)
    print(_HEAD % ('scenario', 'objects', 'MB', 'operations', 'failed',
                   'wrong', 'took', 'verdict'), flush=True)
    with bench_cluster.started(
            kind=Still, on=options.on, replicas=1, devices=3,
            background=False,
            ssd_budget_bytes=shutil.disk_usage(options.on).total) as cluster:
        well = [row(cluster, path, str(path.relative_to(options.scenarios)),
                    options) for path in paths]
    print('%d of %d scenarios ran without a failure' % (
        sum(well), len(well)))
    return 0 if all(well) else 1


if __name__ == '__main__':
    sys.exit(main())
