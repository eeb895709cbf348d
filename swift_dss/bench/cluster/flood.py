"""Top-class reads from SSD while the HDDs are flooded with reads.

Hot objects lie on SSD, cold ones on HDD, and one object-server worker
serves both. The latency of hot reads is taken with the HDDs idle, and
again while many clients read cold objects, for two systems in turn:

``swift-dss``
    the ``dss`` storage policy; hot is class user1, cold a class with
    ``allocate = never``
``stock Swift``
    stock DiskFile; hot in the ``vanilla`` policy on the same SSDs, cold in
    a policy whose devices are file systems of the same HDDs

The flood comes through a proxy of its own, because proxies can be added and
are not measured; both cache accounts and containers, as with memcached. Hot
clients pause between requests, so that the disks are flooded and not the CPU
of a small machine. To tell the CPU's part from the disks', a client also asks
the object server for ``/healthcheck``, which touches no disk: its latency is
the delay of the worker itself.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import (
    Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence)

from swift_dss.aio import layout, rings, storage
from swift_dss.bench import figures
from swift_dss.bench.cluster import load
from swift_dss.bench.cluster.bed import (
    Bed, BenchCluster, change, remember)
from swift_dss.bench.cluster.beside import add_server
from swift_dss.bench.cluster.client import BenchFailed, Client, Request, Target
from swift_dss.bench.cluster.cold import Cold
from swift_dss.wire import names

Say = Callable[[str], None]

STOCK_HDD = 'stock-hdd'
STOCK_HDD_INDEX = 3
FLOOD_PROXY = 'flood-proxy'
_UPLOADERS = 8
#: The clients of the flood would be other machines: on this one they give
#: way to the servers.
_FLOOD_NICE = 19
COLD_CLASS = 'bench-cold'
#: No class of the sample table has this id or rank.
COLD_CLASS_OPTIONS = {'class:30': {
    'name': COLD_CLASS, 'rank': '7', 'allocate': 'never',
    'remote': 'never'}}


@dataclass(frozen=True)
class System:
    """One of the two that are compared."""

    name: str
    hot_storage_policy: str
    cold_storage_policy: str
    hot_class: str = ''
    cold_class: str = ''

    def container(self, heat: str) -> str:
        """Of its hot or cold objects."""
        return 'flood-%s-%s' % (self.name.split()[0], heat)


SYSTEMS = (System('swift-dss', 'dss', 'dss', 'user1', COLD_CLASS),
           System('stock Swift', 'vanilla', STOCK_HDD))


@dataclass(frozen=True)
class Plan:
    """How much to measure.

    :param pause_seconds: of a hot client between two requests
    :param shared_proxy: hot and cold reads come through one proxy
    """

    rounds: int = 5
    seconds: float = 8.0
    hot_clients: int = 2
    hot_objects: int = 64
    hot_bytes: int = 64 << 10
    cold_clients: int = 24
    cold_objects: int = 160
    cold_bytes: int = 1 << 20
    pause_seconds: float = 0.02
    hdd_iops: int = 20
    shared_proxy: bool = False


QUICK = Plan(rounds=1, seconds=5.0, cold_objects=80)


@dataclass(frozen=True)
class Phase:
    """Hot reads of one system in one round.

    :param flooded: whether cold reads ran beside them
    :param hot_ms: latency of each hot read
    :param worker_ms: latency of each request that needs no disk
    :param cold_mb_per_second: rate of the flood
    """

    system: str
    round_number: int
    flooded: bool
    hot_ms: List[float]
    worker_ms: List[float]
    cold_mb_per_second: float
    failures: int


class FloodCluster(BenchCluster):
    """One worker, a class that never gets SSD, a stock policy on HDD, and
    a second proxy."""

    @property
    def flood_port(self) -> int:
        """The second proxy's: the last port of the cluster's."""
        return self.conf.base_port + layout.PORTS - 1

    def start(self, keep: bool = False) -> None:
        """See :meth:`Cluster.start`."""
        super().start(keep)
        add_server(self, 'proxy-server', FLOOD_PROXY, self.flood_port, {})

    def _configure(self) -> None:
        super()._configure()
        conf = self.conf
        remember(conf.path('etc', 'proxy-server.conf'))
        change(conf.path('etc', 'dss-classes.conf'), COLD_CLASS_OPTIONS)
        change(conf.path('etc', 'swift.conf'), {
            'storage-policy:%d' % STOCK_HDD_INDEX: {
                'name': STOCK_HDD,
                'diskfile_module': 'egg:swift#replication.fs'}})
        devices = []
        for device in conf.device_names[:3]:
            name = 'h' + device
            folder = conf.path('hdd', device, 'stock')
            mount = conf.path('devices', name)
            os.makedirs(folder, exist_ok=True)
            os.makedirs(mount, exist_ok=True)
            if conf.storage == 'loops':
                # Swift asks for a mount point, which a bind mount is.
                storage.run('mount', '--bind', folder, mount)
            devices.append(name)
        rings.write(conf.etc, 'object-%d' % STOCK_HDD_INDEX, 3,
                    conf.object_port, devices)


def measure(bed: Bed, plan: Plan, say: Say) -> List[Phase]:
    """Idle and flooded, both systems, in every round.

    :raises BenchFailed: data is not on the tier that is to be measured
    """
    assert bed.cluster is not None
    _prepare(bed, plan, say)
    phases: List[Phase] = []
    with Cold([bed.cluster.conf.path('hdd')]):
        for round_number in range(plan.rounds):
            for flooded in (False, True):
                for system in SYSTEMS:
                    phase = _phase(bed, plan, system, round_number,
                                   flooded)
                    phases.append(phase)
                    say('round %d/%d  %-11s  %-7s  p50 %6.1f ms  '
                        'p99 %7.1f ms  (%d reads)' % (
                            round_number + 1, plan.rounds, system.name,
                            'flooded' if flooded else 'idle',
                            figures.percentile(phase.hot_ms, 50),
                            figures.percentile(phase.hot_ms, 99),
                            len(phase.hot_ms)))
    return phases


def _prepare(bed: Bed, plan: Plan, say: Say) -> None:
    client = Client(bed.target)
    pool = os.urandom(max(plan.hot_bytes, plan.cold_bytes))
    for system in SYSTEMS:
        say('storing %d hot and %d cold objects in %s' % (
            plan.hot_objects, plan.cold_objects, system.name))
        for heat, storage_policy, class_name, count, size in (
                ('hot', system.hot_storage_policy, system.hot_class,
                 plan.hot_objects, plan.hot_bytes),
                ('cold', system.cold_storage_policy, system.cold_class,
                 plan.cold_objects, plan.cold_bytes)):
            container = system.container(heat)
            client.make_container(container, storage_policy)
            outcome = load.run(bed.target, _UPLOADERS, partial(
                _puts, container, count, memoryview(pool)[:size],
                {names.OBJECT_CLASS: class_name} if class_name else None))
            if outcome.failures:
                raise BenchFailed('%s: %d of %d uploads failed' % (
                    container, outcome.failures, len(outcome.samples)))
    _check_tiers(client)
    client.close()


def _puts(container: str, count: int, body: memoryview,
          headers: Optional[Mapping[str, str]],
          uploader: int) -> Iterator[Request]:
    for number in range(uploader, count, _UPLOADERS):
        yield Request('PUT', '%s/%d' % (container, number), '', len(body),
                      [body], headers)


def _check_tiers(client: Client) -> None:
    ours = SYSTEMS[0]
    for heat, wanted in (('hot', 'ssd'), ('cold', 'hdd')):
        path = '%s/0' % ours.container(heat)
        tiers = client.head(path).get(names.TIER.lower(), '')
        # A hot object may have its HDD copy already; that is no matter.
        if tiers.split('+')[0] != wanted:
            raise BenchFailed('%s lies on %r instead of %s' % (
                path, tiers, wanted))


def _reads(container: str, number: int, clients: int, count: int,
           pause_seconds: float) -> Iterator[Request]:
    at = number
    while True:
        yield Request('GET', '%s/%d' % (container, at % count))
        at += clients
        if pause_seconds:
            time.sleep(pause_seconds)


def _pings(pause_seconds: float) -> Iterator[Request]:
    while True:
        yield Request('GET', 'healthcheck')
        time.sleep(pause_seconds)


def _phase(bed: Bed, plan: Plan, system: System, round_number: int,
           flooded: bool) -> Phase:
    cluster = bed.cluster
    assert isinstance(cluster, FloodCluster)
    cold = None
    if flooded:
        # One second before and after, so that no hot read is without it.
        cold = load.Crowd(
            bed.target if plan.shared_proxy else replace(
                bed.target, port=cluster.flood_port), plan.cold_clients,
            lambda number: _reads(
                system.container('cold'), number, plan.cold_clients,
                plan.cold_objects, 0.0), plan.seconds + 2.0, _FLOOD_NICE)
    hot = load.Crowd(
        bed.target, plan.hot_clients,
        lambda number: _reads(
            system.container('hot'), number, plan.hot_clients,
            plan.hot_objects, plan.pause_seconds), plan.seconds)
    worker = load.Crowd(
        Target('127.0.0.1', cluster.conf.object_port, '', ''), 1,
        lambda number: _pings(plan.pause_seconds), plan.seconds)
    if cold is not None:
        cold.begin()
        time.sleep(1.0)
    hot.begin()
    worker.begin()
    outcome = hot.result()
    pings = worker.result()
    flood = cold.result() if cold is not None else None
    return Phase(
        system.name, round_number, flooded,
        [1000 * sample.seconds for sample in outcome.good],
        [1000 * sample.seconds for sample in pings.good],
        sum(sample.length for sample in flood.good) / flood.seconds / 1e6
        if flood else 0.0,
        outcome.failures + (flood.failures if flood else 0))


def report(phases: Sequence[Phase]) -> Dict[str, Any]:
    """For JSON and the plot.

    Percentiles and ratios are taken inside a round, and the figure is the
    median over the rounds: pooled, one slow round would decide a p99.
    """
    systems = []
    for system in SYSTEMS:
        row: Dict[str, Any] = {'system': system.name}
        for flooded, key in ((False, 'idle'), (True, 'flooded')):
            mine = [phase for phase in phases
                    if phase.system == system.name
                    and phase.flooded == flooded]
            latencies = [value for phase in mine for value in phase.hot_ms]
            row[key] = {
                'worker_p50_ms': _median_of(
                    50, [phase.worker_ms for phase in mine]),
                'worker_p99_ms': _median_of(
                    99, [phase.worker_ms for phase in mine]),
                'reads': len(latencies),
                'p50_ms': _median_of(50, [phase.hot_ms for phase in mine]),
                'p99_ms': _median_of(99, [phase.hot_ms for phase in mine]),
                'max_ms': max(latencies, default=float('nan')),
                'failures': sum(phase.failures for phase in mine),
                'cold_mb_per_second': figures.median(
                    [phase.cold_mb_per_second for phase in mine]),
                'latencies_ms': sorted(latencies)}
        row['rounds'] = _rounds(phases, system)
        for name in ('p50_ratio', 'p99_ratio'):
            row[name] = figures.median(
                [each[name] for each in row['rounds']])
        systems.append(row)
    return {'bench': 'flood', 'systems': systems}


def _median_of(percent: float, rounds: Sequence[List[float]]) -> float:
    return figures.median(
        [figures.percentile(values, percent) for values in rounds])


def _rounds(phases: Sequence[Phase],
            system: System) -> List[Dict[str, float]]:
    """Of each round: p50 and p99, idle and flooded, and their ratios."""
    rows = []
    mine = {(phase.round_number, phase.flooded): phase.hot_ms
            for phase in phases if phase.system == system.name}
    for number in sorted({number for number, _flooded in mine}):
        row: Dict[str, float] = {'round': number + 1}
        for percent in (50, 99):
            idle, flooded = (
                figures.percentile(mine[number, heat], percent)
                for heat in (False, True))
            row.update({
                'p%d_idle_ms' % percent: idle,
                'p%d_flooded_ms' % percent: flooded,
                'p%d_ratio' % percent: figures.ratio(flooded, idle)})
        rows.append(row)
    return rows


def text(outcome: Dict[str, Any]) -> str:
    """The table."""
    rows = []
    for row in outcome['systems']:
        idle, flooded = row['idle'], row['flooded']
        rows.append([row['system']] + [figures.number(value, digits)
                    for value, digits in (
                        (idle['p50_ms'], 1), (flooded['p50_ms'], 1),
                        (row['p50_ratio'], 2), (idle['p99_ms'], 1),
                        (flooded['p99_ms'], 1), (row['p99_ratio'], 2),
                        (idle['worker_p99_ms'], 1),
                        (flooded['worker_p99_ms'], 1),
                        (flooded['cold_mb_per_second'], 1))]
                    + ['%d' % (idle['failures'] + flooded['failures'])])
    rounds = '\n'.join('%-11s  p99 by round: %s' % (
        row['system'], ', '.join('%.1f -> %.1f (x%.2f)' % (
            each['p99_idle_ms'], each['p99_flooded_ms'], each['p99_ratio'])
            for each in row['rounds'])) for row in outcome['systems'])
    return '%s\n%s\n%s' % (figures.table(
        ['hot reads', 'p50 idle', 'flooded', 'ratio', 'p99 idle',
         'flooded', 'ratio', 'worker p99 idle', 'flooded', 'flood MB/s',
         'failed'], rows),
        'Milliseconds of reads of the top class from SSD, medians over '
        'the rounds; worker: of a\nrequest to the same object server that '
        'touches no disk.', rounds)
