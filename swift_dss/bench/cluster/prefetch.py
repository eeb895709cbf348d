"""Prefetching in the tier daemon, on a cluster whose S3 is far away.

An all-in-one cluster with one replica of each object; between its tier
daemon and its cloud is a link with a round trip of 60 ms. Everything that
is read lies in S3 alone at first. One client reads, and thinks a little
between two reads:

``parts``
    a large object from end to end, by ranges
``segments``
    a static large object from end to end: its manifest, and then one
    segment after the other, as clients do that download large objects
``chains``
    small objects in a random order that is always the same; all objects are
    sent back to S3 after each turn, and the turns after the first count

At the end each is read once more with all bytes on this cluster: the
difference of the two times is the wait for S3.

This is repeated with each prefetcher; the daemon restarts for each, with empty
memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import socket
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

from swift_dss.aio import processes, rings
from swift_dss.bench import figures
from swift_dss.bench.cluster import bed
from swift_dss.bench.cluster.client import (
    BenchFailed, Client, Request, Sample, Target)
from swift_dss.bench.cluster.delay import DelayedLink
from swift_dss.core.limits import S3_MIN_PART_BYTES
from swift_dss.strategy.prefetch import STRATEGIES
from swift_dss.wire.control import decode_line, encode_line

Say = Callable[[str], None]

CONTAINER = 'prefetch'
SECONDS = 120.0
WORKLOADS = ('parts', 'segments', 'chains')
#: Reads of local bytes, which no prefetcher can speed up.
LOCAL = '(local)'


@dataclass(frozen=True)
class Plan:
    """How much to measure.

    :param rtt_seconds: between the daemon and S3
    :param think_seconds: between two reads
    :param parts: of the large object, 5 MiB each
    :param reads_per_part: ranges that each is read in
    :param segments: of the static large object
    :param chain: small objects
    :param turns: of the chain; the first is not counted
    """

    strategies: Sequence[str] = tuple(STRATEGIES)
    workloads: Sequence[str] = WORKLOADS
    rtt_seconds: float = 0.06
    think_seconds: float = 0.05
    parts: int = 24
    reads_per_part: int = 5
    segments: int = 96
    segment_bytes: int = 256 * 1024
    chain: int = 40
    chain_bytes: int = 64 * 1024
    turns: int = 4
    seed: int = 1


QUICK = Plan(parts=6, segments=24, chain=12, turns=3)


@dataclass(frozen=True)
class Cell:
    """One workload with one prefetcher.

    :param spent: the change of the daemon's counts
    """

    strategy: str
    workload: str
    samples: List[Sample]
    spent: Dict[str, float]


class PrefetchCluster(bed.BenchCluster):
    """One replica, so that a reader meets the copy that was fetched for it;
    and a proxy that caches.
    """

    def _configure(self) -> None:
        super()._configure()
        bed.remember(self.conf.path('etc', 'proxy-server.conf'))
        rings.write(self.conf.etc, 'object', 1, self.conf.object_port,
                    self.conf.device_names)


def options(link_port: int, strategy: str) -> bed.Options:
    """``dss.conf``: S3 at once, over the link."""
    return {
        'tier': {'clean_after_seconds': '86400', 'interval_seconds': '0.5',
                 'ssd_bytes': '0'},
        'gateway': {
            'url': 'http://127.0.0.1:%d' % link_port,
            'remote_after_seconds': '0', 'part_bytes':
                str(S3_MIN_PART_BYTES)},
        'prefetch': {'strategy': strategy}}


def measure(plan: Plan, say: Say) -> List[Cell]:
    """Store, send to S3, and read with each prefetcher.

    :raises BenchFailed: a read fails or gives wrong bytes, or S3 does not get
        the objects
    """
    cells: List[Cell] = []
    port = processes.free_base_port(64, 18280)
    with bed.own(say, options(port, 'none'), PrefetchCluster,
                 hdd_iops=0, storage='folders') as where:
        cluster = where.cluster
        assert cluster is not None
        with DelayedLink(cluster.conf.cloud_port, plan.rtt_seconds) as link:
            _use(cluster, link, 'none')
            store(where.target, plan)
            _send(cluster.conf, say)
            for strategy in plan.strategies:
                for workload in plan.workloads:
                    _use(cluster, link, strategy)
                    cells.append(_cell(where.target, cluster.conf, plan,
                                       strategy, workload, say))
                    if strategy == plan.strategies[-1]:
                        # Once more, with all of it where it should be.
                        cells.append(Cell(LOCAL, workload, _read(
                            where.target, plan, workload), {}))
            if not link.connections:
                raise BenchFailed('nothing went over the delayed link')
    return cells


def _use(cluster: Any, link: DelayedLink, strategy: str) -> None:
    bed.change(cluster.conf.path('etc', 'dss.conf'),
               options(link.port, strategy))
    known = cluster.conf.path('run', 'prefetch.json')
    processes.end(cluster.conf.root, ['tierd'])
    if os.path.exists(known):
        os.unlink(known)
    cluster.restart('tierd')


def store(target: Target, plan: Plan) -> None:
    """Everything that is read."""
    client = Client(target)
    client.make_container(CONTAINER, 'dss')

    def put(name: str, size: int) -> str:
        body = body_of('%s %d' % (name, plan.seed), size)
        client.must(Request('PUT', '%s/%s' % (CONTAINER, name), size=size,
                            body=_blocks(body)))
        return hashlib.md5(body).hexdigest()

    if 'parts' in plan.workloads:
        put('film', plan.parts * S3_MIN_PART_BYTES)
    if 'chains' in plan.workloads:
        for number in range(plan.chain):
            put('chain-%d' % number, plan.chain_bytes)
    if 'segments' in plan.workloads:
        _put_large(client, plan, put)
    client.close()


def _put_large(client: Client, plan: Plan,
               put: Callable[[str, int], str]) -> None:
    rows = [{'path': '/%s/seg-%04d' % (CONTAINER, number),
             'etag': put('seg-%04d' % number, plan.segment_bytes),
             'size_bytes': plan.segment_bytes}
            for number in range(plan.segments)]
    raw = json.dumps(rows).encode()
    client.must(Request('PUT', '%s/whole' % CONTAINER, size=len(raw),
                        body=[raw], query='multipart-manifest=put'))


def body_of(seed: str, size: int) -> bytes:
    dice = random.Random(seed)
    return dice.getrandbits(size * 8).to_bytes(size, 'big')


def _blocks(body: bytes) -> Iterator[memoryview]:
    view = memoryview(body)
    for at in range(0, len(view), 1 << 20):
        yield view[at:at + (1 << 20)]


def _cell(target: Target, conf: Any, plan: Plan, strategy: str,
          workload: str, say: Say) -> Cell:
    turns = plan.turns if workload == 'chains' else 1
    samples: List[Sample] = []
    before: Dict[str, float] = {}
    for turn in range(turns):
        _empty(conf)
        if turn == min(1, turns - 1):
            before = _counts(conf)
        reads = _read(target, plan, workload)
        if turn or turns == 1:
            samples += reads
    after = _counts(conf)
    spent = {name: after[name] - before[name] for name in after}
    say('%s, %s: %d reads, median %.1f ms' % (
        strategy, workload, len(samples),
        figures.median([read.seconds for read in samples]) * 1000))
    return Cell(strategy, workload, samples, spent)


def _read(target: Target, plan: Plan, workload: str) -> List[Sample]:
    client = Client(target)
    client.connect()
    samples = []
    if workload == 'segments':
        client.must(Request('GET', '%s/whole' % CONTAINER,
                            query='multipart-manifest=get'))
    for request, length in requests_of(plan, workload):
        sample = client.do(request)
        if sample.status not in (200, 206) or sample.length != length:
            raise BenchFailed('%s: status %d, %d bytes of %d' % (
                request.path, sample.status, sample.length, length))
        samples.append(sample)
        time.sleep(plan.think_seconds)
    client.close()
    return samples


def requests_of(plan: Plan, workload: str) -> Iterator[Tuple[Request, int]]:
    """The objects to read, and their bytes."""
    if workload == 'chains':
        names = ['chain-%d' % number for number in range(plan.chain)]
        random.Random('chains %d' % plan.seed).shuffle(names)
        for name in names:
            yield Request('GET', '%s/%s' % (CONTAINER, name), workload), \
                plan.chain_bytes
    elif workload == 'segments':
        for number in range(plan.segments):
            yield Request('GET', '%s/seg-%04d' % (CONTAINER, number),
                          workload), plan.segment_bytes
    else:
        length = S3_MIN_PART_BYTES // plan.reads_per_part
        for number in range(plan.parts * plan.reads_per_part):
            yield Request(
                'GET', '%s/film' % CONTAINER, workload, headers={
                    'Range': 'bytes=%d-%d' % (
                        number * length, (number + 1) * length - 1)}), length


# -- the daemon ----------------------------------------------------------


def _ask(conf: Any, request: Dict[str, Any]) -> Any:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS)
        connection.connect(os.path.join(conf.run, 'admin.sock'))
        connection.sendall(encode_line(request))
        with connection.makefile('rb') as lines:
            for line in lines:
                said = decode_line(line)
                if 'error' in said:
                    raise BenchFailed('the tier daemon: %s' % said['error'])
                if 'result' in said:
                    return said['result']
    raise BenchFailed('the tier daemon gave no answer')


def _counts(conf: Any) -> Dict[str, float]:
    """Figures of prefetching, once nothing is on its way."""
    def quiet() -> bool:
        prefetch = _ask(conf, {'verb': 'status'})['prefetch']
        return not prefetch['waiting'] and not prefetch['coming']

    if not processes.wait(quiet, SECONDS):
        raise BenchFailed('prefetching does not come to rest')
    prefetch = _ask(conf, {'verb': 'status'})['prefetch']
    return {name: float(value) for name, value in prefetch.items()
            if isinstance(value, (int, float))}


def _send(conf: Any, say: Say) -> None:
    """Wait until S3 has everything."""
    begin = time.monotonic()

    def sent() -> bool:
        _ask(conf, {'verb': 'settle', 'seconds': 10.0})
        status = _ask(conf, {'verb': 'status'})
        return not status['gateway']['uploads'] and not any(
            counts['total'] - counts['remote'] for counts
            in status['classes'].values())

    if not processes.wait(sent, SECONDS * 2):
        raise BenchFailed('S3 did not get everything')
    say('S3 has everything after %.0f s' % (time.monotonic() - begin))


def _empty(conf: Any) -> None:
    """Take every byte but the manifest's off this cluster."""
    _counts(conf)
    _ask(conf, {'verb': 'settle', 'seconds': 10.0})
    failed = _ask(conf, {
        'verb': 'demote', 'to': 'remote',
        'container': 'AUTH_test/' + CONTAINER})['failed']
    if failed:
        raise BenchFailed('not taken off this cluster: %s' % failed[0])


# -- telling -------------------------------------------------------------


def report(plan: Plan, cells: Sequence[Cell]) -> Dict[str, Any]:
    """All figures, as plain values."""
    rows = []
    for cell in cells:
        ms = [read.seconds * 1000 for read in cell.samples]
        base = [read.seconds * 1000 for other in cells
                if (other.strategy, other.workload) == (
                    'none', cell.workload) for read in other.samples]
        local = [read.seconds * 1000 for other in cells
                 if (other.strategy, other.workload) == (
                     LOCAL, cell.workload) for read in other.samples]
        row: Dict[str, Any] = {
            'waited_ms': max(0.0, figures.median(ms) - figures.median(
                local)) if local else math.nan,
            'strategy': cell.strategy, 'workload': cell.workload,
            'reads': len(ms), 'ms': ms, 'mean_ms': sum(ms) / len(ms)}
        for percent in (50, 90, 99):
            row['p%d_ms' % percent] = figures.percentile(ms, percent)
            row['p%d_gain' % percent] = figures.ratio(
                figures.percentile(base, percent),
                figures.percentile(ms, percent))
        for name in ('useful', 'late', 'wasted', 'dropped', 'cancelled'):
            for unit in ('pieces', 'bytes', 'dollars'):
                key = '%s_%s' % (name, unit)
                row[key] = cell.spent.get(key, 0.0)
        row['unread_pieces'] = cell.spent.get('here', 0.0)
        row['dollars'] = cell.spent.get('dollars', 0.0)
        rows.append(row)
    return {'bench': 'prefetch', 'rtt_ms': plan.rtt_seconds * 1000,
            'think_ms': plan.think_seconds * 1000, 'cells': rows}


def text(outcome: Dict[str, Any]) -> str:
    """The report as a table."""
    return 'S3 behind %.0f ms, %.0f ms between reads\n%s' % (
        outcome['rtt_ms'], outcome['think_ms'], figures.table(
            ('reads', 'prefetch', 'p50 ms', 'p90 ms', 'p99 ms',
             'above local', 'gain p50',
             'p90', 'useful', 'late', 'wasted', 'unread', '$ 1e-6'),
            [(row['workload'], row['strategy'],
              figures.number(row['p50_ms'], 1),
              figures.number(row['p90_ms'], 1),
              figures.number(row['p99_ms'], 1),
              figures.number(row['waited_ms'], 1),
              figures.number(row['p50_gain'], 1),
              figures.number(row['p90_gain'], 1),
              '%d' % row['useful_pieces'], '%d' % row['late_pieces'],
              '%d' % row['wasted_pieces'], '%d' % row['unread_pieces'],
              '%.1f' % (row['dollars'] * 1e6)) for row in outcome['cells']]))
