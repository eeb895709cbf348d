"""Rates and latencies by ``swift-dss load``, beside warp's, over s3api.

One cluster, and one YAML file for both: objects of one size by so many users
in a closed loop, not signed in their bodies. Both run each benchmark in turn,
and begin a round in turn. The link to the cluster has a round trip
(``--rtt-ms``), as both drivers take the processors that the cluster has:
without one, the figures would be of the drivers' own CPU, too. Each writes a
line a request, in the same columns; rates and latencies are taken from these
in the same way, as is what ``warp analyze`` says of our lines. Printed are
the middle of the rounds' ratios, ours by warp's, and the quarters below and
above. A wrong answer or a failure ends it.

``--rate`` limits warp to so many requests a second (``rps-limit``), and has
ours send as many in an open loop.

warp is a program of Go that you build or download yourself::

    python test/bench/beside_warp.py --warp PROGRAM --rounds 6
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support.nodes import bench_cluster

from swift_dss.aio.cluster import Cluster
from swift_dss.bench.cluster.bed import remember
from swift_dss.bench.cluster.delay import DelayedLink

_KEYS = {'AWS_ACCESS_KEY_ID': 'test:tester',
         'AWS_SECRET_ACCESS_KEY': 'testing'}
_YAML = '''warp:
  api: v1
  benchmark: {benchmark}
  bench-data: {lines}
  remote:
    region: us-east-1
    access-key: test:tester
    secret-key: testing
    host: ['{host}']
    bucket: warped
    lookup: path
  params:
    duration: {seconds}s
    concurrent: {users}
{objects}    obj:
      size: {size}
  io:
    disable-sha256-payload: true
  advanced:
    full: true
{limit}'''
BENCHMARKS = ('get', 'put', 'stat', 'mixed')


class Still(Cluster):
    """Without daemons behind the requests, and with a cache of containers:
    the server is to take as long for the one as for the other."""

    def _configure(self) -> None:
        super()._configure()
        remember(self.conf.path('etc', 'proxy-server.conf'))


class Figures(NamedTuple):
    """Of one run of one operation.

    :param rate: requests a second, from the first start to the last end
    """

    rate: float
    p50_ms: float
    p90_ms: float
    p99_ms: float


FIELDS = 'rate', 'p50_ms', 'p90_ms', 'p99_ms'


class Options(NamedTuple):
    """Of all runs."""

    warp: str
    users: int
    size: str
    objects: int
    seconds: int
    rate: Optional[float]


def figures(lines: pathlib.Path, wanted: List[str]) -> Dict[str, Figures]:
    """By operation.

    :param lines: a file of warp's columns
    :param wanted: operations; others prepared the run
    """
    rows: Dict[str, List[Tuple[float, float, float]]] = {}
    with lines.open(newline='') as source:
        for row in csv.DictReader((line for line in source
                                   if not line.startswith('#')),
                                  delimiter='\t'):
            if row['op'] in wanted:
                if row['error']:
                    sys.exit('%s: %s: %s' % (lines, row['op'], row['error']))
                rows.setdefault(row['op'], []).append((
                    _seconds(row['start']), _seconds(row['end']),
                    int(row['duration_ns']) / 1e6))
    return {name: _figures(of) for name, of in rows.items()}


def _figures(rows: List[Tuple[float, float, float]]) -> Figures:
    cuts = statistics.quantiles([row[2] for row in rows], n=100,
                                method='inclusive')
    span = max(row[1] for row in rows) - min(row[0] for row in rows)
    return Figures(len(rows) / span, cuts[49], cuts[89], cuts[98])


def _seconds(text: str) -> float:
    """Of a time in RFC 3339 with up to nine digits of a second."""
    whole, _, rest = text.rstrip('Z').partition('.')
    at = datetime.datetime.fromisoformat(whole + '+00:00').timestamp()
    return at + float('0.' + (rest or '0'))


def operations(benchmark: str) -> List[str]:
    """The operations that it measures, in warp's names."""
    return ['GET', 'STAT', 'PUT', 'DELETE'] if benchmark == 'mixed' \
        else [benchmark.upper()]


class Runs:
    """Runs either on one cluster."""

    def __init__(self, url: str, folder: pathlib.Path,
                 options: Options) -> None:
        self._url, self._folder, self._options = url, folder, options
        self._seed = 0

    def warp(self, benchmark: str) -> Dict[str, Figures]:
        """By warp."""
        lines = self._folder / 'theirs.csv'
        self._run([self._options.warp, 'run',
                   str(self._file(benchmark, lines.with_suffix('')))])
        self._run(['zstd', '-dqf', str(lines) + '.zst', '-o', str(lines)])
        return figures(lines, operations(benchmark))

    def ours(self, benchmark: str) -> Dict[str, Figures]:
        """By ``swift-dss load``, whose lines warp reads, too."""
        lines = self._folder / 'ours.csv'
        self._seed += 1  # or each round had the same mix of operations
        self._run([os.path.join(os.path.dirname(sys.executable),
                                'swift-dss'), 'load',
                   str(self._file(benchmark, lines)), '--s3', self._url,
                   '--csv', str(lines), '--seed', str(self._seed)] + (
                       [] if self._options.rate is None else
                       ['--rate', '%g' % self._options.rate]))
        seen = figures(lines, operations(benchmark))
        self._run(['zstd', '-qf', str(lines)])
        told = json.loads(self._run([
            self._options.warp, 'analyze', '--json', str(lines) + '.zst']))
        for name, of in told['by_op_type'].items():
            took = (_seconds(of['end_time']) - _seconds(of['start_time']))
            rate = of['total_requests'] / took
            assert abs(rate / seen[name].rate - 1) < 0.001, (rate, seen[name])
            assert not of['total_errors']
        assert set(told['by_op_type']) == set(seen)
        return seen

    def _file(self, benchmark: str, lines: pathlib.Path) -> pathlib.Path:
        options = self._options
        path = self._folder / 'both.yml'
        path.write_text(_YAML.format(
            benchmark=benchmark, lines=lines, users=options.users,
            host=self._url.partition('//')[2], seconds=options.seconds,
            size=options.size, objects='' if benchmark == 'put' else
            '    objects: %d\n' % options.objects,
            limit='' if options.rate is None else
            '    rps-limit: %g\n' % options.rate))
        return path

    @staticmethod
    def _run(command: List[str]) -> str:
        done = subprocess.run(command, env=dict(os.environ, **_KEYS),
                              capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit('%s\n%s%s' % (' '.join(command), done.stdout[-2000:],
                                   done.stderr[-2000:]))
        return done.stdout


def spread(values: List[float]) -> List[float]:
    """Lower quarter, middle, upper quarter."""
    return statistics.quantiles(values, n=4, method='inclusive') \
        if len(values) > 1 else values * 3


def measure(runs: Runs, benchmark: str, rounds: int) -> List[Dict[str, Any]]:
    """In turn; a row for each operation."""
    seen: List[Dict[str, Dict[str, Figures]]] = []
    for number in range(rounds):
        turn = {}
        for name in ('ours', 'warp')[::-1 if number % 2 else 1]:
            turn[name] = getattr(runs, name)(benchmark)
        seen.append(turn)
        print('round %d, %s: %s' % (number, benchmark, '; '.join(
            '%s %s' % (name, ', '.join('%s %.1f/s %.2f ms' % (
                operation, of.rate, of.p50_ms)
                for operation, of in sorted(turn[name].items())))
            for name in sorted(turn))), file=sys.stderr, flush=True)
    rows = []
    for operation in sorted(seen[0]['warp']):
        row: Dict[str, Any] = {'benchmark': benchmark,
                               'operation': operation}
        for field in FIELDS:
            pairs = [[getattr(turn[name][operation], field)
                      for name in ('ours', 'warp')] for turn in seen]
            row[field] = {
                'ours': statistics.median(pair[0] for pair in pairs),
                'warp': statistics.median(pair[1] for pair in pairs),
                'ratio': spread([ours / warp for ours, warp in pairs])}
        rows.append(row)
    return rows


def text(rows: List[Dict[str, Any]]) -> str:
    """A line for each operation and figure."""
    lines = []
    for row in rows:
        for field in FIELDS:
            lines.append('%-6s %-7s %-7s ours %8.2f, warp %8.2f: %.3f '
                         '(%.3f to %.3f)' % (
                             row['benchmark'], row['operation'], field,
                             row[field]['ours'], row[field]['warp'],
                             *(row[field]['ratio'][place]
                               for place in (1, 0, 2))))
    return '\n'.join(lines)


def main() -> int:
    """Run it on a cluster that is made, and removed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--warp', required=True, metavar='PROGRAM')
    parser.add_argument('--rounds', type=int, default=6)
    parser.add_argument('--users', type=int, default=4)
    parser.add_argument('--rtt-ms', type=float, default=40.0)
    parser.add_argument('--size', default='64KiB')
    parser.add_argument('--objects', type=int, default=100)
    parser.add_argument('--seconds', type=int, default=15)
    parser.add_argument('--rate', type=float, metavar='N')
    parser.add_argument('--benchmarks', nargs='+', default=BENCHMARKS,
                        choices=BENCHMARKS)
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    for program in args.warp, 'zstd':
        if shutil.which(program) is None:
            parser.error('%s cannot be run' % program)
    rows: List[Dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, \
            bench_cluster.started(Still, background=False) as cluster, \
            DelayedLink(cluster.conf.proxy_port,
                        args.rtt_ms / 1000) as link:
        runs = Runs(
            'http://127.0.0.1:%d' % link.port, pathlib.Path(name),
            Options(args.warp, args.users, args.size, args.objects,
                    args.seconds, args.rate))
        for benchmark in args.benchmarks:
            rows += measure(runs, benchmark, args.rounds)
    print(json.dumps({'bench': 'beside_warp', 'rows': rows})
          if args.json else text(rows))
    return 0


if __name__ == '__main__':
    sys.exit(main())
