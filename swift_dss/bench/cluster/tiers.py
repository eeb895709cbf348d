"""The CACS mix over a small cache: LRU against class order.

Case 1 of Client-aware Cloud Storage: objects by its distribution, an SSD
that holds 14 % of their bytes, HDDs behind it. Every object is stored with
its class; then clients read objects drawn at random, each as likely as any
other, so that the kinds have the shares of the slide among the requests
too. The same requests go to each *set-up*:

``lru``
    the cache evicts the least recently used bytes, whatever their class
``classes``
    lowest rank first, LRU inside a class; every copy has a share
``warm``
    the same with one warm copy of each object
``hdd``, ``ssd``
    the two ends: nothing on SSD, and everything

A *hit* is a read that the node which answered served from SSD alone.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence

from swift_dss.aio import processes
from swift_dss.bench import cacs, figures
from swift_dss.bench.cacs import CacsObject
from swift_dss.bench.cluster import load
from swift_dss.bench.cluster.bed import Bed, BenchCluster, Options, change
from swift_dss.bench.cluster.client import BenchFailed, Client, Request, Sample
from swift_dss.bench.cluster.cold import Cold
from swift_dss.tier.space import INDEX_FILE
from swift_dss.wire import names
from swift_dss.wire.node import pressure

Say = Callable[[str], None]

CONTAINER = 'tiers'
REPLICAS = 3
SETTLE_SECONDS = 60.0


@dataclass(frozen=True)
class Plan:
    """How much to measure.

    :param share: of all bytes that the SSD may hold
    :param scale: of object sizes, see :func:`cacs.sample`
    """

    objects: int = 500
    seed: int = 1
    scale: float = 0.25
    share: float = 0.14
    clients: int = 8
    warm_seconds: float = 20.0
    seconds: float = 30.0
    devices: int = 4
    hdd_iops: int = 60
    setups: Sequence[str] = ('lru', 'classes', 'warm')


QUICK = Plan(objects=200, warm_seconds=8.0, seconds=10.0)
SETUPS = ('hdd', 'lru', 'classes', 'warm', 'ssd')


@dataclass(frozen=True)
class Result:
    """The result of one set-up.

    :param on_ssd_bytes: of the objects' bytes at the end, by the devices
    :param distinct_bytes: of them, each object once
    """

    setup: str
    samples: List[Sample]
    seconds: float
    failures: int
    budget_bytes: int
    on_ssd_bytes: int
    distinct_bytes: int


def objects_of(plan: Plan) -> List[CacsObject]:
    """The objects to store and read."""
    return cacs.sample(plan.objects, plan.seed, plan.scale)


def budget_bytes(plan: Plan, setup: str) -> int:
    """Room on each device's SSD.

    Every object has three copies; a device's part of them is
    ``3 / devices`` of all bytes.
    """
    total = sum(obj.size for obj in objects_of(plan))
    share = 4.0 if setup == 'ssd' else plan.share
    return int(total * share * REPLICAS / plan.devices)


def options(setup: str) -> Options:
    """``dss.conf`` of a set-up: a daemon that keeps up, no S3."""
    return {
        'tier': {
            'eviction': 'lru' if setup == 'lru' else 'class_ordered',
            'high_watermark': '0.98', 'low_watermark': '0.93',
            'clean_after_seconds': '0.1', 'interval_seconds': '0.2',
            'dirty_watermark': '0.05', 'min_demote_bytes': '0'},
        'gateway': {'enabled': 'false'}}


class TiersCluster(BenchCluster):
    """A cluster with the classes of the set-up."""

    setup = ''

    def _configure(self) -> None:
        super()._configure()
        allocate = 'never' if self.setup == 'hdd' else 'always'
        path = self.conf.path('etc', 'dss-classes.conf')
        change(path, {'class:%d' % class_id: {
            'allocate': allocate, 'floor': '0', 'remote': 'never'}
            for class_id in cacs.CLASS_IDS.values()})
        change(path, {'DEFAULT': {
            'warm_copies': '1' if self.setup == 'warm' else '3'}})


def cluster_of(setup: str) -> Any:
    """The cluster class of a set-up."""
    return type('TiersCluster_%s' % setup, (TiersCluster,),
                {'setup': setup})


def measure(bed: Bed, plan: Plan, setup: str, say: Say) -> Result:
    """Store, settle, warm up, read, compare.

    :raises BenchFailed: an object cannot be stored, or comes back with
        other bytes
    """
    assert bed.cluster is not None
    objects = objects_of(plan)
    total = sum(obj.size for obj in objects)
    say('%s: storing %d objects, %.1f MB; SSD for %.1f MB of them' % (
        setup, len(objects), total / 1e6,
        min(1.0, budget_bytes(plan, setup) * plan.devices
            / REPLICAS / total) * total / 1e6))
    client = Client(bed.target)
    client.make_container(CONTAINER, 'dss')
    client.close()
    stored = load.run(bed.target, plan.clients,
                      lambda number: _puts(objects[number::plan.clients]))
    if stored.failures:
        raise BenchFailed('%d of %d uploads failed' % (
            stored.failures, len(stored.samples)))
    conf = bed.cluster.conf
    _settle(conf.run, conf.device_names, budget_bytes(plan, setup), say)
    with Cold([conf.path('hdd')], 1.0):
        say('%s: warming up for %.0f s' % (setup, plan.warm_seconds))
        load.run(bed.target, plan.clients,
                 lambda number: _gets(objects, plan.seed, number),
                 plan.warm_seconds)
        say('%s: measuring for %.0f s' % (setup, plan.seconds))
        outcome = load.run(
            bed.target, plan.clients,
            lambda number: _gets(objects, plan.seed + 1, number),
            plan.seconds)
    used = [_pressure(conf.run, device).ssd_used_bytes
            for device in conf.device_names]
    distinct = _distinct_bytes(conf.path('state', INDEX_FILE))
    say('%s: %d reads, %d failed; comparing every object' % (
        setup, len(outcome.samples), outcome.failures))
    _compare(bed, objects)
    return Result(setup, outcome.good, outcome.seconds, outcome.failures,
                  budget_bytes(plan, setup) * plan.devices, sum(used),
                  distinct)


def _puts(objects: Sequence[CacsObject]) -> Iterator[Request]:
    for obj in objects:
        yield Request(
            'PUT', '%s/%s' % (CONTAINER, obj.name), obj.class_name,
            obj.size, cacs.body(obj),
            {names.OBJECT_CLASS: obj.class_name,
             'Content-Type': obj.content_type})


def _gets(objects: Sequence[CacsObject], seed: int,
          number: int) -> Iterator[Request]:
    dice = random.Random('tiers %d %d' % (seed, number))
    while True:
        obj = dice.choice(objects)
        yield Request('GET', '%s/%s' % (CONTAINER, obj.name),
                      obj.class_name)


def _pressure(run_dir: str, device: str) -> pressure.Pressure:
    path = os.path.join(run_dir, 'state', device + '.json')
    with open(path, 'rb') as source:
        return pressure.decode(source.read())


def _distinct_bytes(index: str) -> int:
    """Bytes of objects that are on some SSD, by the daemon's index."""
    with contextlib.closing(sqlite3.connect(
            'file:%s?mode=ro' % index, uri=True)) as db:
        total, = db.execute(
            'SELECT total(ssd) FROM (SELECT max(s.ssd) AS ssd FROM span s '
            'JOIN version v ON v.id = s.version_id GROUP BY v.hash, '
            's.class_id)').fetchone()
    return int(total)


def _settle(run_dir: str, devices: Sequence[str], room_bytes: int,
            say: Say) -> None:
    """Wait until the daemon has brought every device into its room."""
    begin = time.monotonic()

    def settled() -> bool:
        try:
            pressures = [_pressure(run_dir, device) for device in devices]
        except FileNotFoundError:
            return False  # The daemon has not looked yet.
        return all(each.ssd_used_bytes <= room_bytes for each in pressures)

    if processes.wait(settled, SETTLE_SECONDS):
        say('the SSDs are in their room after %.1f s' % (
            time.monotonic() - begin))
    else:
        say('the SSDs are still over their room after %.0f s'
            % SETTLE_SECONDS)


def _compare(bed: Bed, objects: Sequence[CacsObject]) -> None:
    client = Client(bed.target)
    for obj in objects:
        body = client.get_bytes('%s/%s' % (CONTAINER, obj.name))
        if body != b''.join(cacs.body(obj)):
            raise BenchFailed('%s: other bytes than were stored' % obj.name)
    client.close()


def is_hit(sample: Sample) -> bool:
    """Was this read served from SSD alone?"""
    return sample.tier.split('+')[0] == 'ssd' if sample.tier else False


def summary(samples: Sequence[Sample], seconds: float) -> Dict[str, float]:
    """Of one class, or of all."""
    latencies = [1000 * sample.seconds for sample in samples]
    length = sum(sample.length for sample in samples)
    hits = [sample for sample in samples if is_hit(sample)]
    return {
        'reads': len(samples),
        'hit_ratio': figures.ratio(len(hits), len(samples)),
        'byte_hit_ratio': figures.ratio(
            sum(sample.length for sample in hits), length),
        'mb_per_second': length / seconds / 1e6,
        'reads_per_second': len(samples) / seconds,
        'p50_ms': figures.percentile(latencies, 50),
        'p95_ms': figures.percentile(latencies, 95),
        'p99_ms': figures.percentile(latencies, 99)}


def report(results: Sequence[Result],
           share: float = Plan.share) -> Dict[str, Any]:
    """All set-ups, for JSON and the plot."""
    rows = []
    for result in results:
        by_class: Dict[str, List[Sample]] = {}
        for sample in result.samples:
            by_class.setdefault(sample.label, []).append(sample)
        rows.append({
            'setup': result.setup, 'failures': result.failures,
            'budget_bytes': result.budget_bytes,
            'on_ssd_bytes': result.on_ssd_bytes,
            'distinct_bytes': result.distinct_bytes,
            'all': summary(result.samples, result.seconds),
            'classes': {name: summary(by_class[name], result.seconds)
                        for name in sorted(by_class)}})
    return {'bench': 'tiers', 'share': share, 'setups': rows}


def text(outcome: Mapping[str, Any]) -> str:
    """The table: a line for each class of each set-up."""
    rows = []
    for setup in outcome['setups']:
        for name, row in [*setup['classes'].items(), ('all', setup['all'])]:
            rows.append(['%s %s' % (setup['setup'], name)] + [
                '%d' % row['reads'],
                figures.number(100 * row['hit_ratio'], 1),
                figures.number(100 * row['byte_hit_ratio'], 1),
                figures.number(row['mb_per_second'], 2),
                figures.number(row['p50_ms'], 1),
                figures.number(row['p95_ms'], 1),
                figures.number(row['p99_ms'], 1)])
    lines = [figures.table(
        ['set-up, class', 'reads', 'hit %', 'bytes hit %', 'MB/s',
         'p50 ms', 'p95 ms', 'p99 ms'], rows)]
    for setup in outcome['setups']:
        lines.append('%s: %.1f MB of %.1f MB on SSD, %.1f MB of objects; %d '
                     'reads failed' % (
                         setup['setup'], setup['on_ssd_bytes'] / 1e6,
                         setup['budget_bytes'] / 1e6,
                         setup['distinct_bytes'] / 1e6, setup['failures']))
    return '\n'.join(lines)
