"""``swift-dss bench``: measure, with tables and plots."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any, Callable, Dict, List, Optional

from swift_dss.aio.cluster import printer
from swift_dss.bench import figures
from swift_dss.bench.choices import require_known
from swift_dss.bench.cluster import bed

HELP = 'measure, with tables and plots'

GIB = 1 << 30


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the benchmarks."""
    kinds = parser.add_subparsers(dest='kind', metavar='BENCH',
                                  required=True)
    for name, line in (
            ('overhead', 'the cost of classes against stock Swift'),
            ('tiers', 'class-ordered cache against LRU, CACS mix'),
            ('flood', 'top class on SSD while the HDDs are flooded'),
            ('block', 'dm-dss beside other caches, in virtual time'),
            ('block-chunks', 'chunk sizes of dm-dss and dm-cache'),
            ('cacs', 'CACS case 1 on Swift over dm-dss, in virtual time'),
            ('cacs-traffic', 'CACS case 2: kinds directed to the SSD'),
            ('prefetch', 'prefetchers on a cluster whose S3 is far away'),
            ('bundles', 'small objects to S3, singly and in bundles')):
        kind = kinds.add_parser(name, help=line, description=line)
        kind.add_argument('--quick', action='store_true',
                          help='a first look; the figures are noisy')
        kind.add_argument('--json', metavar='FILE',
                          help='write the figures ("-": to stdout)')
        kind.add_argument('--plot', metavar='FILE.png',
                          help='draw them')
        {'overhead': _overhead_options, 'tiers': _tiers_options,
         'flood': _flood_options, 'block': _block_options,
         'block-chunks': _chunks_options, 'cacs': _cacs_options,
         'cacs-traffic': _traffic_options,
         'prefetch': _prefetch_options,
         'bundles': _bundles_options}[name](kind)


def _overhead_options(kind: argparse.ArgumentParser) -> None:
    where = kind.add_mutually_exclusive_group()
    where.add_argument(
        '--cluster', metavar='ROOT', help='measure the all-in-one cluster '
        'that runs there (default: bring up one of its own)')
    where.add_argument('--auth', metavar='URL',
                       help='measure any cluster (v1 auth)')
    kind.add_argument('--user', default='test:tester')
    kind.add_argument('--key', default='testing')
    kind.add_argument('--sizes', metavar='BYTES,...', type=_numbers)
    kind.add_argument('--clients', metavar='N,...', type=_numbers)
    kind.add_argument('--rounds', type=int)
    kind.add_argument('--seconds', type=float,
                      help='of each run of each variant')


def _tiers_options(kind: argparse.ArgumentParser) -> None:
    kind.add_argument('--objects', type=int)
    kind.add_argument('--scale', type=float, help='of object sizes')
    kind.add_argument('--share', type=float,
                      help='of all bytes that fits the SSDs (0.14)')
    kind.add_argument('--seconds', type=float, help='of each measurement')
    kind.add_argument('--seed', type=int)
    kind.add_argument('--setups', type=lambda text: text.split(','),
                      metavar='NAME,...',
                      help='hdd, lru, classes, warm, ssd (lru,classes,warm)')


def _flood_options(kind: argparse.ArgumentParser) -> None:
    kind.add_argument('--rounds', type=int)
    kind.add_argument('--seconds', type=float, help='of each phase')
    kind.add_argument('--cold-clients', type=int)
    kind.add_argument('--hdd-iops', type=int)
    kind.add_argument('--shared-proxy', action='store_true', default=None,
                      help='hot and cold reads through one proxy, not two')


def _block_options(kind: argparse.ArgumentParser) -> None:
    kind.add_argument('--setups', type=_names, metavar='NAME,...')
    kind.add_argument('--workloads', type=_names, metavar='NAME,...')
    kind.add_argument('--requests', type=int,
                      help='of each workload, about (60000)')
    kind.add_argument('--seed', type=int)
    kind.add_argument('--chunk', metavar='KIB', type=int,
                      help='of dm-dss, and of dm-cache if it can (64)')
    kind.add_argument('--stage', metavar='PERCENT', type=int,
                      help='of the SSD of dm-dss, that writes of any class '
                      'may use (0)')
    kind.add_argument('--mode', choices=('back', 'through'),
                      help='of the caches (back)')
    kind.add_argument('--hdd', metavar='PRESET[,KEY=VALUE...]',
                      help='of the laboratory (hdd)')
    kind.add_argument('--ssd', metavar='PRESET[,KEY=VALUE...]',
                      help='of the laboratory (sata-ssd)')
    kind.add_argument('--traces', metavar='FOLDER',
                      help='where published traces are')


def _chunks_options(kind: argparse.ArgumentParser) -> None:
    kind.add_argument('--setups', type=_names, metavar='NAME,...')
    kind.add_argument('--chunks', metavar='KIB,...', type=_numbers)
    kind.add_argument('--modes', type=_names, metavar='NAME,...',
                      help='through, back (both)')
    kind.add_argument('--origin', choices=('array', 'hdd'),
                      help='the origin that is cached (array)')
    kind.add_argument('--no-fetch', dest='fetch', action='store_false',
                      default=None, help='dm-dss brings only what is asked '
                      'for, not the rest of a chunk')
    kind.add_argument('--ssd', metavar='PRESET[,KEY=VALUE...]',
                      help='of the laboratory (array: nvme, hdd: sata-ssd)')
    kind.add_argument('--scale', type=int,
                      help='divisor of range and time (32)')
    kind.add_argument('--threads', type=int)
    kind.add_argument('--seed', type=int)


def _cacs_options(kind: argparse.ArgumentParser) -> None:
    kind.add_argument('--row', choices=('A', 'B', 'C'), help='of evidence: A '
                      'as published, B without links, C beside other caches')
    kind.add_argument('--seeds', metavar='N,...', type=_numbers,
                      help='of objects and reads; prints medians')
    kind.add_argument('--objects', type=int, help='to upload (200)')
    kind.add_argument('--reads', type=int, help='downloads (400)')
    kind.add_argument('--scale', type=float, help='of object sizes (0.25)')
    kind.add_argument('--share', type=float, help='of the data, as SSD (0.14)')
    kind.add_argument('--clients', type=int, help='at once (16)')
    kind.add_argument('--crowds', action='store_true', default=None,
                      help='each kind of object has clients of its own')
    kind.add_argument('--chunk', metavar='KIB', type=int,
                      help='of dm-dss (16)')
    kind.add_argument('--watermarks', metavar='HIGH,LOW', type=_numbers,
                      help='percent dirty where its cleaning begins and ends '
                      '(50,25)')
    kind.add_argument('--stage', metavar='PERCENT', type=int,
                      help='of the SSD, that writes of any class may use (0)')
    kind.add_argument('--link', metavar='MBIT', type=int,
                      help='of each device, each way (1000); 0: none')
    kind.add_argument('--cached', action='store_true', default=None,
                      help='the proxy remembers accounts and containers, as '
                      'with memcached')
    kind.add_argument('--workers', type=int, metavar='N',
                      help='of the proxy and the object server (0: one '
                      'process each)')
    kind.add_argument('--seed', type=int)
    kind.add_argument('--setups', type=_names, metavar='NAME,...',
                      help='as in the manual (hdd, lru, classes, ssd)')
    _guest_options(kind, jobs=2)


def _traffic_options(kind: argparse.ArgumentParser) -> None:
    kind.add_argument('--counts', metavar='N,...', type=_numbers,
                      help='files, pictures, music and videos to upload '
                      '(400,200,100,50)')
    kind.add_argument('--scale', type=float, help='of object sizes (0.1)')
    kind.add_argument('--clients', type=int, help='of each kind (25)')
    kind.add_argument('--seed', type=int)
    kind.add_argument('--setups', type=_names, metavar='NAME,...',
                      help='hdd, none, +files, +pictures, +music, +video '
                      '(all)')
    _guest_options(kind, jobs=1)


def _prefetch_options(kind: argparse.ArgumentParser) -> None:
    kind.add_argument('--strategies', type=_names, metavar='NAME,...',
                      help='none, seq, amp, graph, combined (all)')
    kind.add_argument('--workloads', type=_names, metavar='NAME,...',
                      help='parts, segments, chains (all)')
    kind.add_argument('--rtt-ms', type=float,
                      help='between the daemon and S3 (60)')
    kind.add_argument('--think-ms', type=float,
                      help='between two reads (50)')


def _bundles_options(kind: argparse.ArgumentParser) -> None:
    kind.add_argument('--workloads', type=_names, metavar='NAME,...',
                      help='tiny, small, medium (all)')
    kind.add_argument('--scale', type=float, help='of the counts (1)')
    kind.add_argument('--rtt-ms', type=float, help='of the link (20)')
    kind.add_argument('--link-mbit', type=float, help='of the link (100)')
    kind.add_argument('--bundle-bytes', type=int, help='(16 MiB)')
    kind.add_argument('--url', help='an S3 server (default: a second Swift)')
    kind.add_argument('--bucket', help='of that server')
    kind.add_argument('--secret-file', help='of that server')


def _guest_options(kind: argparse.ArgumentParser, jobs: int) -> None:
    kind.add_argument('--hdd', metavar='PRESET[,KEY=VALUE...]',
                      help='of the laboratory (hdd)')
    kind.add_argument('--ssd', metavar='PRESET[,KEY=VALUE...]',
                      help='of the laboratory (sata-ssd)')
    kind.add_argument('--jobs', type=int, help='guests at once (%d)' % jobs)
    kind.add_argument('--timeout', type=float, metavar='SECONDS',
                      help='of each guest, real time (3600)')


def _names(text: str) -> List[str]:
    return [name.strip() for name in text.split(',')]


def _numbers(text: str) -> List[int]:
    try:
        numbers = [int(part) for part in text.split(',')]
    except ValueError:
        raise argparse.ArgumentTypeError(
            '%r: whole numbers with "," between' % text) from None
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError('%r: at least 1' % text)
    return numbers


def run(args: argparse.Namespace) -> int:
    """Measure what was asked for; 1 if requests failed."""
    if args.plot:
        # Said now, not after minutes of measuring.
        from swift_dss.bench import plots
        plots.pyplot()
        figures.refuse_unwritable(args.plot)
    if args.json and args.json != '-':
        figures.refuse_unwritable(args.json)
    kinds: Dict[str, Callable[[argparse.Namespace], int]] = {
        'overhead': _overhead, 'tiers': _tiers, 'flood': _flood,
        'block': _block, 'block-chunks': _chunks, 'cacs': _cacs,
        'cacs-traffic': _traffic, 'prefetch': _prefetch,
        'bundles': _bundles}
    return kinds[args.kind](args)


def _tell(args: argparse.Namespace, report: Dict[str, Any],
          text: str, draw: Callable[[Dict[str, Any], str], None]) -> None:
    if args.json != '-':
        print(text)
    if args.json:
        figures.write_json(args.json, report)
    if args.plot:
        draw(report, args.plot)
        print('plot: %s' % args.plot, file=sys.stderr)


def _plan(module: Any, args: argparse.Namespace, **changes: Any) -> Any:
    plan = module.QUICK if args.quick else module.Plan()
    return dataclasses.replace(plan, **{
        name: value for name, value in changes.items()
        if value is not None})


def _overhead(args: argparse.Namespace) -> int:
    from swift_dss.bench import plots
    from swift_dss.bench.cluster import beside, overhead
    say = printer(sys.stderr)
    plan = _plan(overhead, args, sizes=args.sizes, rounds=args.rounds,
                 concurrencies=args.clients, seconds=args.seconds)
    if args.cluster:
        runs = overhead.measure(bed.running(args.cluster), plan, say)
    elif args.auth:
        runs = overhead.measure(
            bed.by_url(args.auth, args.user, args.key), plan, say)
    else:
        with bed.own(say, bed.STILL, beside.BesideCluster, hdd_iops=0,
                     ssd_bytes=3 * GIB, ssd_budget_bytes=3 * GIB) as own:
            runs = overhead.measure(own, plan, say)
    _tell(args, overhead.report(runs), overhead.text(runs), plots.overhead)
    return 1 if any(run.failures for run in runs) else 0


def _tiers(args: argparse.Namespace) -> int:
    from swift_dss.bench import plots
    from swift_dss.bench.cluster import tiers
    say = printer(sys.stderr)
    plan = _plan(tiers, args, objects=args.objects, scale=args.scale,
                 share=args.share, seconds=args.seconds, seed=args.seed,
                 setups=args.setups)
    require_known('--setups', plan.setups, tiers.SETUPS)
    results = []
    for setup in plan.setups:
        with bed.own(
                say, tiers.options(setup), tiers.cluster_of(setup),
                devices=plan.devices, hdd_iops=plan.hdd_iops,
                ssd_budget_bytes=tiers.budget_bytes(plan, setup)) as own:
            results.append(tiers.measure(own, plan, setup, say))
    report = tiers.report(results, plan.share)
    _tell(args, report, tiers.text(report), plots.tiers)
    return 1 if any(result.failures for result in results) else 0


def _flood(args: argparse.Namespace) -> int:
    from swift_dss.bench import plots
    from swift_dss.bench.cluster import flood
    say = printer(sys.stderr)
    plan = _plan(flood, args, rounds=args.rounds, seconds=args.seconds,
                 cold_clients=args.cold_clients, hdd_iops=args.hdd_iops,
                 shared_proxy=args.shared_proxy)
    with bed.own(say, bed.STILL, flood.FloodCluster,
                 hdd_iops=plan.hdd_iops, ssd_budget_bytes=0) as own:
        phases = flood.measure(own, plan, say)
    report = flood.report(phases)
    _tell(args, report, flood.text(report), plots.flood)
    return 1 if any(phase.failures for phase in phases) else 0


def _block(args: argparse.Namespace) -> int:
    from swift_dss.bench.block import compare, plots as block_plots
    plan = _plan(compare, args, setups=args.setups, workloads=args.workloads,
                 requests=args.requests, seed=args.seed, mode=args.mode,
                 stage=args.stage,
                 chunk_bytes=args.chunk and 1024 * args.chunk,
                 hdd=args.hdd, ssd=args.ssd, traces=args.traces)
    report = compare.compare(plan, printer(sys.stderr))
    _tell(args, report, compare.text(report), block_plots.compare)
    return 0


def _chunks(args: argparse.Namespace) -> int:
    from swift_dss.bench.block import chunks, plots as block_plots
    plan = _plan(chunks, args, setups=args.setups, chunks=args.chunks,
                 modes=args.modes, origin=args.origin, scale=args.scale,
                 threads=args.threads, seed=args.seed, fetch=args.fetch,
                 ssd=args.ssd)
    require_known('--setups', plan.setups, chunks.names())
    require_known('--modes', plan.modes, ('through', 'back'))
    report = chunks.measure(plan, printer(sys.stderr))
    _tell(args, report, chunks.text(report), block_plots.chunks)
    return 0


def _cacs(args: argparse.Namespace) -> int:
    from swift_dss.bench.lab import (
        cacs_lab, cacs_lab_plot, cacs_lab_text, cacs_rows)
    plan = _plan(cacs_lab, args, **cacs_rows.changes(args.row, args))
    reports = cacs_lab.measure_seeds(
        plan, args.seeds or [plan.seed], printer(sys.stderr))
    if args.seeds is None:
        _tell(args, reports[0], cacs_lab_text.text(reports[0]),
              cacs_lab_plot.draw)
    else:
        _tell(args, {'seeds': reports, 'spread': cacs_rows.spread(reports)},
              cacs_rows.text(reports), cacs_lab_plot.draw_first)
    return 1 if any(map(cacs_lab.failures, reports)) else 0


def _traffic(args: argparse.Namespace) -> int:
    from swift_dss.bench.lab import cacs_lab_plot, cacs_traffic
    plan = _plan(cacs_traffic, args, counts=args.counts, scale=args.scale,
                 clients=args.clients, seed=args.seed, setups=args.setups,
                 hdd=args.hdd, ssd=args.ssd, jobs=args.jobs,
                 timeout=args.timeout)
    report = cacs_traffic.measure(plan, printer(sys.stderr))
    _tell(args, report, cacs_traffic.text(report), cacs_lab_plot.traffic)
    return 1 if cacs_traffic.failures(report) else 0


def _prefetch(args: argparse.Namespace) -> int:
    from swift_dss.bench.cluster import prefetch, prefetch_plot
    from swift_dss.strategy.prefetch import STRATEGIES
    plan = _plan(
        prefetch, args, strategies=args.strategies, workloads=args.workloads,
        rtt_seconds=_seconds(args.rtt_ms),
        think_seconds=_seconds(args.think_ms))
    require_known('--strategies', plan.strategies,
                  tuple(STRATEGIES))
    require_known('--workloads', plan.workloads, prefetch.WORKLOADS)
    report = prefetch.report(plan, prefetch.measure(
        plan, printer(sys.stderr)))
    _tell(args, report, prefetch.text(report), prefetch_plot.draw)
    return 0


def _bundles(args: argparse.Namespace) -> int:
    from swift_dss.bench.cluster import bundles
    plan = _plan(
        bundles, args, workloads=args.workloads and tuple(args.workloads),
        scale=args.scale, rtt_seconds=_seconds(args.rtt_ms),
        link_bits=args.link_mbit and args.link_mbit * 1e6,
        bundle_bytes=args.bundle_bytes, url=args.url, bucket=args.bucket,
        secret_file=args.secret_file)
    require_known('--workloads', plan.workloads, tuple(bundles.WORKLOADS))
    report = bundles.report(plan, bundles.measure(
        plan, printer(sys.stderr)))
    _tell(args, report, bundles.text(report), bundles.draw)
    return 0


def _seconds(ms: Optional[float]) -> Optional[float]:
    return None if ms is None else ms / 1000.0
