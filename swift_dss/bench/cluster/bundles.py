"""Small objects over a far link, each by itself and in bundles.

Versions of an edge are sent to S3 through an emulated link, in two halves.
The first half is queued while S3 is there; it measures the rate, and the time
until each version's record names a proven copy. The second is queued while the
link is cut, so that only sending is left when the link is back; it measures
how much of the link this backlog fills. The benchmark also counts requests and
their list price, and the surplus of bytes in the bucket and in reads. Sizes
are those of the workloads of *Storage on the Edge* (Table I), counts are
scaled.
"""


from __future__ import annotations

import contextlib
import gc
import os
import random
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple
from urllib.parse import urlsplit


from swift_dss.bench import cpu, figures
from swift_dss.bench.cluster.bundles_link import Link
from swift_dss.bench.cluster.bundles_node import Counts, Node, Nowhere
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId
from swift_dss.gateway.restore.catalog import open_client
from swift_dss.tier.main import GC_THRESHOLD
from swift_dss.wire.control import FetchRequest

#: Workload to (bytes of an object, objects): Table I, counts scaled.
WORKLOADS = {'tiny': (4096, 24000), 'small': (262144, 480),
             'medium': (1000000, 60)}
#: A share of the objects is enough to see the cost of each.
SHARES = {'single': {'tiny': 0.02, 'small': 0.25, 'medium': 1.0},
          'bundled': {'tiny': 1.0, 'small': 1.0, 'medium': 1.0}}
VARIANTS = ('single', 'bundled')
#: List prices of a request, dollars.
PUT_PRICE, GET_PRICE = 0.005 / 1000, 0.0004 / 1000
_READS = 40
_MEGA = 1e6


@dataclass(frozen=True)
class Plan:
    """The options of a measurement.

    :param scale: of the counts
    :param url: of an S3 server; '' brings up a second Swift
    :param secret_file: of that server
    """

    workloads: Tuple[str, ...] = tuple(WORKLOADS)
    scale: float = 1.0
    rtt_seconds: float = 0.020
    link_bits: float = 100e6
    bundle_bytes: int = 16 << 20
    url: str = ''
    bucket: str = 'dss-bench'
    secret_file: str = ''
    seed: int = 1


#: A first look.
QUICK = Plan(workloads=('tiny',), scale=0.05)


@dataclass
class Figures:
    """One workload, one variant."""

    workload: str
    variant: str
    objects: int = 0
    data_bytes: int = 0
    #: Of the half that was queued while S3 was there, and of the other,
    #: from S3's return on; until the last record named a proven copy.
    seconds: float = 0.0
    drain_seconds: float = 0.0
    drain_sent_bytes: int = 0
    puts: int = 0
    gets: int = 0
    price: float = 0.0
    stored_bytes: int = 0
    wait_p50: float = 0.0
    wait_p99: float = 0.0
    read_bytes: int = 0
    link_read_bytes: int = 0
    link_sent_bytes: int = 0
    #: Data of a half over the time that it took, and over the link's rate.
    fresh_share: float = 0.0
    link_share: float = 0.0
    read_p50_ms: float = 0.0
    #: Seconds of processor, while the backlog went up, of the process with
    #: the daemon's part, of the link and of the server where it listens
    #: here.
    daemon_cpu: float = 0.0
    link_cpu: float = 0.0
    server_cpu: float = 0.0


def measure(plan: Plan,
            say: Callable[[str], None] = lambda line: None
            ) -> List[Figures]:
    """Every workload, by itself and in bundles."""
    runs = []
    with _server(plan, say) as conf, _garbage_as_in_the_daemon():
        for workload in plan.workloads:
            for variant in VARIANTS:
                runs.append(_measure(plan, conf, workload, variant))
                say('%s %s: %.1f s' % (workload, variant,
                                       runs[-1].seconds))
    return runs


@contextlib.contextmanager
def _garbage_as_in_the_daemon() -> Iterator[None]:
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _measure(plan: Plan, conf: GatewayConf, workload: str,
             variant: str) -> Figures:
    size, count = WORKLOADS[workload]
    count = max(10, int(
        count * SHARES[variant][workload] * plan.scale) // 2 * 2)
    figure = Figures(workload, variant, count, size * count)
    root = tempfile.mkdtemp(prefix='dss-bundles-', dir=(
        '/dev/shm' if os.path.isdir('/dev/shm') else None))
    try:
        with Link(int(urlsplit(conf.url).port or 80), plan.rtt_seconds,
                  plan.link_bits) as link:
            node = Node(root, replace(
                conf, url='http://127.0.0.1:%d' % link.port,
                prefix='%s-%s-%d/' % (workload, variant, time.time_ns())),
                variant == 'bundled')
            try:
                versions = node.make(size, count, plan.seed)
                _upload(node, link, versions[:count // 2], figure)
                _drain(node, link, versions[count // 2:], figure)
                _read(node, link, versions, size, figure, plan.seed)
            finally:
                node.close()
        figure.stored_bytes = _stored(node.conf.gateway, conf.url)
    finally:
        shutil.rmtree(root)
    half = 8 * figure.data_bytes / 2 / plan.link_bits
    figure.fresh_share = half / figure.seconds
    figure.link_share = half / figure.drain_seconds
    return figure


def _upload(node: Node, link: Link, versions: List[VersionId],
            figure: Figures) -> None:
    before, operations = link.sent['up'], node.operations
    node.queue(versions)
    node.wait_for(len(versions))
    figure.seconds = time.monotonic() - node.began
    figure.wait_p50 = figures.percentile(node.waits, 50)
    figure.wait_p99 = figures.percentile(node.waits, 99)
    figure.link_sent_bytes = link.sent['up'] - before
    _count(node, figure, operations)


def _drain(node: Node, link: Link, versions: List[VersionId],
           figure: Figures) -> None:
    """Send the versions that were queued while the link was cut."""
    link.cut()
    node.queue(versions)
    node.wait_until(lambda: not node.gateway.link().up and (
        figure.variant == 'single'
        or node.waiting() == len(versions)))
    done = len(node.waits)
    if done > figure.objects - len(versions):
        raise DssError('something went over a link that is cut')
    # S3 charges nothing for requests that a cut link stopped.
    operations = node.operations
    pids = cpu.listeners(link.to)
    worked = _worked(link, pids)
    before = link.sent['up']
    link.mend()
    # Its next question to S3 comes when the breaker's wait is over: that
    # is no matter of the link.
    node.wait_until(lambda: node.gateway.link().up)
    began = time.monotonic()
    node.wait_for(figure.objects)
    figure.drain_seconds = time.monotonic() - began
    figure.daemon_cpu, figure.link_cpu, figure.server_cpu = (
        after - then for after, then in zip(_worked(link, pids), worked))
    figure.drain_sent_bytes = link.sent['up'] - before
    figure.link_sent_bytes += figure.drain_sent_bytes
    _count(node, figure, operations)


def _worked(link: Link, pids: List[int]) -> Tuple[float, float, float]:
    """Seconds of processor so far: this process, the link, the server."""
    return time.process_time(), link.cpu_seconds, cpu.seconds(pids)


def _count(node: Node, figure: Figures,
           before: Dict[str, int]) -> None:
    """Requests since then, and their price."""
    after = node.operations
    done = Counts({name: after[name] - before.get(name, 0)
                    for name in after})
    figure.puts += done['put_object'] + done['upload_part'] + \
        2 * done['create_multipart_upload']
    figure.gets += done['head_object'] + done['get_object']
    figure.price = figure.puts * PUT_PRICE + figure.gets * GET_PRICE


def _read(node: Node, link: Link, versions: List[VersionId], size: int,
          figure: Figures, seed: int) -> None:
    """Some versions come back that have no byte here any more."""
    dice = random.Random(seed)
    before = link.sent['down']
    took = []
    for version in dice.sample(versions, min(_READS, len(versions))):
        node.local.demote(version, '7', to_hdd=False)
        sink = Nowhere()
        began = time.monotonic()
        node.gateway.fetch(FetchRequest(
            version, '7', 0, size, 0, 60.0, False), sink)
        took.append((time.monotonic() - began) * 1000)
        if sink.digest.hexdigest() != node.etags[version.key]:
            raise DssError('%s came back wrong: %d, %d bytes' % (
                version.key, sink.status, sink.length))
        figure.read_bytes += size
    figure.link_read_bytes = link.sent['down'] - before
    figure.read_p50_ms = figures.percentile(took, 50)


def _stored(conf: GatewayConf, url: str) -> int:
    """Bytes in the bucket, all keys of the run."""
    client = open_client(replace(conf, url=url))
    return sum(listed.size for listed in client.listing(conf.prefix))


class _server:
    """The S3 server of a plan, as the gateway's configuration."""

    def __init__(self, plan: Plan, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._say = say
        self._cluster: Optional[Any] = None
        self._root = ''

    def __enter__(self) -> GatewayConf:
        plan = self._plan
        url, bucket, secret = plan.url, plan.bucket, plan.secret_file
        if not url:
            url, bucket, secret = self._second_swift()
        return GatewayConf(
            enabled=True, url=url, bucket=bucket, secret_file=secret,
            remote_after_seconds=0.0, bundle_bytes=plan.bundle_bytes,
            bundle_age_seconds=2.0, read_timeout_seconds=60.0)

    def _second_swift(self) -> Tuple[str, str, str]:
        from swift_dss.aio import cloud, layout
        from swift_dss.aio.cluster import Cluster
        self._root = tempfile.mkdtemp(prefix='dss-s3-', dir=(
            '/dev/shm' if os.path.isdir('/dev/shm') else None))
        conf = cloud.prepare(self._root, 29080)
        self._cluster = Cluster(conf, self._say)
        self._cluster.start_cloud()
        self._cluster._make_bucket()
        secret = os.path.join(self._root, 'secret')
        secret_fd = os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(secret_fd, 'w') as target:
            target.write('access_key = %s:%s\nsecret_key = %s\n'
                         % layout.CLOUD_USER)
        return conf.cloud_url, layout.CLOUD_BUCKET, secret

    def __exit__(self, *_: object) -> None:
        if self._cluster is not None:
            self._cluster.stop_cloud()
            shutil.rmtree(self._root, ignore_errors=True)


def report(plan: Plan, runs: List[Figures]) -> Dict[str, Any]:
    """For ``--json``."""
    shown = asdict(plan)
    shown.pop('secret_file')
    return {'plan': shown, 'figures': [asdict(run) for run in runs]}


def text(report_: Dict[str, Any]) -> str:
    """The tables."""
    rows = report_['figures']
    return '\n\n'.join((
        figures.table(
            ('upload', 'objects', 'MB/s', 'of the link', 'until durable '
             'p50 s', 'p99 s', 'backlog MB/s', 'objects/s', 'of the link'),
            [_upload_row(row) for row in rows]),
        figures.table(
            ('requests', 'PUT', 'GET, HEAD', 'PUT per 1,000',
             '$ per million objects'), [_price_row(row) for row in rows]),
        figures.table(
            ('in the bucket, and back', 'data MB', 'stored more',
             'sent more', 'read MB', 'read more', 'p50 ms'),
            [_bytes_row(row) for row in rows]),
        figures.table(
            ('processor, ms an object of the backlog', 'daemon', 'link',
             'server'), [_cpu_row(row) for row in rows]),
        '\n'.join(_saved(rows))))


def _upload_row(row: Dict[str, Any]) -> List[str]:
    data, count = row['data_bytes'] / 2, row['objects'] / 2
    return ['%s %s' % (row['workload'], row['variant']),
            str(row['objects']),
            '%.2f' % (data / row['seconds'] / _MEGA),
            '%.0f %%' % (100 * row['fresh_share']),
            '%.2f' % row['wait_p50'], '%.2f' % row['wait_p99'],
            '%.2f' % (data / row['drain_seconds'] / _MEGA),
            '%.0f' % (count / row['drain_seconds']),
            '%.0f %%' % (100 * row['link_share'])]


def _price_row(row: Dict[str, Any]) -> List[str]:
    return ['%s %s' % (row['workload'], row['variant']),
            str(row['puts']), str(row['gets']),
            '%.2f' % (1000 * row['puts'] / row['objects']),
            '%.2f' % (row['price'] / row['objects'] * _MEGA)]


def _bytes_row(row: Dict[str, Any]) -> List[str]:
    data = row['data_bytes']
    return ['%s %s' % (row['workload'], row['variant']),
            '%.1f' % (data / _MEGA),
            '%.1f %%' % (100.0 * (row['stored_bytes'] - data) / data),
            '%.1f %%' % (100.0 * (row['link_sent_bytes'] - data) / data),
            '%.2f' % (row['read_bytes'] / _MEGA),
            '%.1f %%' % (100.0 * (row['link_read_bytes']
                                  - row['read_bytes'])
                         / row['read_bytes']),
            '%.0f' % row['read_p50_ms']]


def _cpu_row(row: Dict[str, Any]) -> List[str]:
    count = row['objects'] / 2
    return ['%s %s' % (row['workload'], row['variant'])] + [
        '%.3f' % (1000 * row[name] / count)
        for name in ('daemon_cpu', 'link_cpu', 'server_cpu')]


def _saved(rows: List[Dict[str, Any]]) -> Iterator[str]:
    by_name = {(row['workload'], row['variant']): row for row in rows}
    for workload in WORKLOADS:
        single = by_name.get((workload, 'single'))
        bundled = by_name.get((workload, 'bundled'))
        if single and bundled:
            yield ('%s: %.0f times fewer PUTs, a backlog drains %.1f times '
                   'as fast' % (workload, figures.ratio(
                       single['puts'] / single['objects'],
                       bundled['puts'] / bundled['objects']),
                       figures.ratio(bundled['link_share'],
                                     single['link_share'])))


def draw(report_: Dict[str, Any], path: str) -> None:
    """Share of the link and requests, singly and in bundles."""
    from swift_dss.bench import plots
    plt = plots.pyplot()
    rows = report_['figures']
    labels = ['%s\n%s' % (row['workload'], row['variant']) for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    left.bar(labels, [100 * row['link_share'] for row in rows])
    left.set_ylabel('% of the link')
    right.bar(labels, [row['puts'] for row in rows])
    right.set_yscale('log')
    right.set_ylabel('PUT requests')
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
