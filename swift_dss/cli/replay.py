"""``swift-dss replay``: compare strategies on a trace, in virtual time."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
import sys
from typing import Any, Dict, List, Optional, Tuple

from swift_dss.bench import figures
from swift_dss.bench.choices import require_known
from swift_dss.cli.table import Progress
from swift_dss.core.classes import ClassTable
from swift_dss.core.config import Admit
from swift_dss.core.errors import BadConfig
from swift_dss.replay import classing, latency, plan, prices, results, runs
from swift_dss.replay.advice import confidence, goals, recommend, telling
from swift_dss.replay.bounds import limits
from swift_dss.replay.setup import Progress as Heard
from swift_dss.replay.setup import COSTS, TUNED, Setup
from swift_dss.replay.traces import (
    generators, model, named, readers, sampling, streaming)
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.prefetch import STRATEGIES as PREFETCHERS
from swift_dss.wire.settings import admits

HELP = 'compare strategies on a trace, in virtual time'


# long: one option after the other.
def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        'traces', nargs='*', metavar='TRACE',
        help='a file (.gz, .xz, .zst; "-": standard input), or '
        'gen:NAME,KEY=VALUE,... with a NAME of %s'
        % ', '.join(generators.GENERATORS))
    parser.add_argument('--each', action='store_true', help='several traces '
                        'one after the other, not at the same time')
    parser.add_argument('--format', default='auto', metavar='NAME',
                        help='auto, %s (auto)' % ', '.join(readers.FORMATS))
    parser.add_argument('--strategy', default='lru,class', metavar='NAME,..',
                        help='%s; tuned-NAME learns; or all (lru,class)'
                        % ', '.join(orders.names()))
    parser.add_argument('--prefetch', default='none', metavar='NAME,...',
                        help='%s; or all (none)' % ', '.join(PREFETCHERS))
    parser.add_argument('--admit', default='all', metavar='NAME,...',
                        help='which missed objects come in: all; second:N: '
                        'at their second miss, remembered for misses of N '
                        'caches; learned: what writes least at no loss (all)')
    parser.add_argument('--cache', default='1%,5%,10%', metavar='SIZE,...',
                        help='bytes with k, m, g, t, or a share of all '
                        'different bytes of the trace (1%%,5%%,10%%)')
    parser.add_argument('--classes', default='trace', metavar='RULE',
                        help='trace, none, size:A,B,..., region:N, account '
                        'or rules:FILE (trace)')
    parser.add_argument('--table', metavar='FILE',
                        help='class table: ranks, floors, caps')
    parser.add_argument('--floors', default='', metavar='CLASS=SHARE,...',
                        help='of classes, by name or id: user2=20%%,9=0.05')
    parser.add_argument('--weights', default='', metavar='CLASS=W,...',
                        help='of classes, by name or id (1 each)')
    parser.add_argument('--cost', default=COSTS[0], choices=COSTS,
                        help='of a miss, which GDSF weighs (latency)')
    parser.add_argument('--unit', metavar='BYTES',
                        help='units of a cache; 0: whole objects '
                        '(blocks of a volume, parts of objects that are '
                        'read by ranges, whole objects else)')
    parser.add_argument('--cloud', default='s3', metavar='NAME|FILE',
                        help='%s, or a file of your own (s3)'
                        % ', '.join(latency.CLOUDS))
    parser.add_argument('--prices', metavar='NAME|FILE',
                        help='what requests, bytes and room cost, and a month '
                        'of it: %s, or a file of your own (those of --cloud)'
                        % ', '.join(prices.PRESETS))
    parser.add_argument('--hdd', metavar='SIZE', help='room of an HDD below '
                        'the SSD (none)')
    parser.add_argument('--write', default='back',
                        choices=('back', 'through', 'around'),
                        help='when a write is acknowledged (back)')
    parser.add_argument('--upload-seconds', type=float, default=60.0,
                        help='from a write to its copy in the cloud (60)')
    parser.add_argument('--metadata', type=int, default=0, metavar='N',
                        help='objects whose metadata is in memory (all)')
    parser.add_argument('--prefetch-bytes', default='64m', metavar='BYTES',
                        help='on their way ahead of demand, at most (64m)')
    parser.add_argument('--rate', type=float, default=1000.0,
                        help='requests a second of traces without times '
                        '(1000)')
    parser.add_argument('--loop', default='open', choices=('open', 'closed'),
                        help='requests come when the trace says, or after '
                        "their client's last answer (open)")
    parser.add_argument('--think', type=float, metavar='SECONDS',
                        help='with --loop closed, from an answer to the '
                        "client's next request (0)")
    parser.add_argument('--link', metavar='BYTES', help='a second, of all '
                        'that comes from the cloud (a rate a request)')
    parser.add_argument('--limit', type=int, metavar='N', help='the first N '
                        'requests only')
    parser.add_argument('--sample', metavar='SHARE|auto',
                        help='replay this share of the objects on caches '
                        'as much smaller, and say how far the figures may '
                        'be off; auto: of a million requests (all)')
    parser.add_argument('--bound', action='store_true',
                        help='say the limits of dollars and hits that no '
                        'order can beat at each size')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--jobs', type=int, default=1, help='replays at once')
    parser.add_argument('--json', metavar='FILE',
                        help='write the figures ("-": to stdout)')
    parser.add_argument('--plot', metavar='FILE.png', help='draw them')
    parser.add_argument('--measure', metavar='N', type=int, help='no trace: '
                        'what each of --strategy and --prefetch costs while '
                        'it tracks N objects')
    parser.add_argument('--recommend', action='store_true',
                        help='say what serves --goal best within --budget')
    parser.add_argument('--goal', default='hits', metavar='GOAL',
                        help='hits (weighted), bytes, p99:CLASS, dollars '
                        '(hits)')
    parser.add_argument('--budget', metavar='SIZE',
                        help='room on the SSD for --recommend (10%%)')


# long: what is asked for, from the first option to the last.
def run(args: argparse.Namespace) -> int:
    """Replay, and tell."""
    cloud, pricelist = _cloud(args)
    strategies = _chosen('--strategy', args.strategy, orders.names(),
                         TUNED if args.measure is None else '')
    prefetchers = _chosen('--prefetch', args.prefetch, list(PREFETCHERS))
    _check_numbers(args)
    if args.json and args.json != '-':
        figures.refuse_unwritable(args.json)
    if args.measure is not None:
        return _measure(args, strategies, prefetchers)
    if not args.traces:
        raise BadConfig('a TRACE is missing')
    if args.each:
        return _each(args)
    if args.plot:
        from swift_dss.bench import plots
        plots.pyplot()
        figures.refuse_unwritable(args.plot)
    trace, sample, table = _classed(args, prefetchers)
    unit = -1 if args.unit is None else 0 if args.unit == '0' else \
        classing.size_of('--unit', args.unit)
    ready = _ready(args, trace, unit, sample)
    first = _first(args, ready, table, cloud, pricelist)
    let_in = _admits(args)
    if args.recommend:
        return _recommend(args, ready, first, table, prefetchers)
    setups = [dataclasses.replace(first, strategy=strategy, prefetch=prefetch,
                                  cache_bytes=size, admit=admit)
        for size, strategy, admit, prefetch in itertools.product(
            runs.cache_sizes(args.cache, ready.footprint_bytes),
            strategies, let_in, _beside_none(prefetchers))]
    report = results.head(ready, first)
    with Progress('replay') as progress:
        report['runs'] = [row for _, row in runs.each(
            ready, setups, args.jobs, _shown(progress, len(setups)))]
    if args.bound:
        report['limits'] = limits.rows(ready, first, report['runs'])
    if args.json != '-':
        print(results.text(report, table))
    _keep(args, report, table)
    return 0


def _first(args: argparse.Namespace, ready: plan.Plan, table: ClassTable,
           cloud: latency.Cloud, pricelist: Optional[prices.Prices]
           ) -> Setup:
    """The common part of all set-ups of a replay; it has no strategy yet.

    :raises BadConfig: an option is wrong, or has no limit
    """
    first = Setup(
        '', 1, table, cloud, prices=pricelist, write=args.write,
        hdd_bytes=_single_size('--hdd', args.hdd, ready)
        if args.hdd else 0,
        upload_seconds=args.upload_seconds,
        metadata_entries=args.metadata,
        weights=classing.weights_of(args.weights, table), seed=args.seed,
        cost=args.cost,
        think_seconds=None if args.loop == 'open' else args.think or 0.0,
        link_bytes_per_second=classing.size_of(
            '--link', args.link) if args.link else 0,
        prefetch_bytes=classing.size_of('--prefetch-bytes',
                                        args.prefetch_bytes))
    if args.bound:
        limits.require(ready, first)
    return first


def _classed(args: argparse.Namespace, prefetchers: List[str]) -> Tuple[
        model.Trace, Optional[sampling.Sample], ClassTable]:
    """The trace with its classes, and their table."""
    trace, sample = _trace(args, prefetchers)
    table = classing.table_for(trace, args.table)
    if sample is None:
        trace = classing.apply(args.classes, trace, table)
    if args.classes != 'trace' and not args.table:
        table = classing.table_for(trace, None)
    for class_id, share in classing.floors_of(args.floors, table).items():
        table = recommend.floored(table, class_id, share)
    return trace, sample, table


def _ready(args: argparse.Namespace, trace: model.Trace, unit: int,
           sample: Optional[sampling.Sample]) -> plan.Plan:
    """The trace, or the sample of it that was asked for."""
    if args.sample is not None and sample is None:
        trace, sample = sampling.thinned(
            trace, sampling.parse(args.sample), args.seed)
    return plan.plan(trace, unit, sample)


def _cloud(args: argparse.Namespace
           ) -> Tuple[latency.Cloud, Optional[prices.Prices]]:
    """The cloud at the prices that were asked for."""
    cloud = latency.cloud(args.cloud)
    if not args.prices:
        return cloud, None
    pricelist = prices.prices(args.prices)
    return pricelist.of(cloud), pricelist


def _each(args: argparse.Namespace) -> int:
    """One replay a trace."""
    if args.json or args.plot:
        raise BadConfig('--each: --json and --plot are for one replay')
    for number, name in enumerate(args.traces):
        if number:
            print()
        run(argparse.Namespace(**{**vars(args), 'traces': [name],
                                  'each': False}))
    return 0


def _keep(args: argparse.Namespace, report: Dict[str, Any],
          table: ClassTable) -> None:
    if args.json:
        figures.write_json(args.json, report)
    if args.plot:
        from swift_dss.replay import drawing
        if args.recommend:
            drawing.draw_front(report, args.plot)
        else:
            drawing.draw(report, args.plot, table)
        print('plot: %s' % args.plot, file=sys.stderr)


def _recommend(args: argparse.Namespace, ready: plan.Plan, first: Setup,
               table: ClassTable, prefetchers: List[str]) -> int:
    budget = _single_size('--budget', args.budget or '10%', ready)
    goal = goals.parse_goal(args.goal, table, ready, first.weights)
    with Progress('recommend') as progress:
        outcome = recommend.search(
            ready, first, budget, goal, args.jobs,
            lambda done, phase: progress.show(done, None, phase),
            prefetchers)
    report = results.head(ready, first)
    sure = confidence.certainty(outcome, args.seed)
    limit = limits.beside(ready, outcome.best[0], goal.kind, goal.weights)
    report['recommendation'] = telling.report(outcome, sure, limit)
    report['runs'] = telling.rows(outcome, table)
    if args.json != '-':
        print(telling.text(outcome, table, sure, limit))
    _keep(args, report, table)
    return 0


def _measure(args: argparse.Namespace, strategies: List[str],
             prefetchers: List[str]) -> int:
    from swift_dss.replay import speed
    if args.measure < 1:
        raise BadConfig('--measure: %d is not at least 1' % args.measure)
    report = speed.measure(strategies, args.measure, args.seed, prefetchers)
    if args.json != '-':
        print(speed.text(report))
    if args.json:
        figures.write_json(args.json, report)
    return 0


def _shown(progress: Progress, total: int) -> Any:
    def show(done: int, setup: Setup) -> Heard:
        title = 'accesses; replay %d of %d: %s %s' % (
            done + 1, total, setup.strategy, setup.prefetch)
        return lambda at, of: progress.show(at, of, title)
    return show


def _trace(args: argparse.Namespace, prefetchers: List[str]
           ) -> Tuple[model.Trace, Optional[sampling.Sample]]:
    """The whole trace; or its sample with classes, where it can be had
    without the rest."""
    if args.sample is not None:
        share = sampling.parse(args.sample)
        if prefetchers != ['none']:
            raise BadConfig('--sample: a prefetcher needs the requests that '
                            'a sample leaves out: leave out --prefetch')
        streamed = _streamed(args, share)
        if streamed is not None:
            return streamed
    keep_names = args.classes.startswith('rules:')
    whole = model.joined([model.spread(named.read(
        name, args.format, keep_names), args.rate) for name in args.traces])
    return whole if args.limit is None else model.beginning(
        whole, args.limit), None


def _streamed(args: argparse.Namespace, share: float
              ) -> Optional[Tuple[model.Trace, sampling.Sample]]:
    """A sample of the one trace, if classes are those of its rows."""
    rule = args.classes.partition(':')[0]
    if len(args.traces) != 1 or rule not in ('trace', 'none', 'size') or \
            args.format not in ('auto', 'native') or \
            args.traces[0].startswith(generators.PREFIX) or \
            args.limit is not None and args.limit < 1:
        return None
    return streaming.sampled(
        args.traces[0], share, args.seed, args.rate,
        lambda rows: classing.apply(args.classes, rows, ClassTable()),
        args.limit)


def _chosen(option: str, text: str, known: List[str], prefix: str = ''
            ) -> List[str]:
    if text == 'all':
        return known
    names = [name.strip() for name in text.split(',')]
    require_known(option, [
        name[len(prefix):] if name[len(prefix):] in known
        and name.startswith(prefix) else name for name in names], known)
    return names


def _admits(args: argparse.Namespace) -> List[Admit]:
    """Of ``--admit``."""
    parsed = [admits.parse('--admit', name.strip())
              for name in args.admit.split(',')]
    if args.recommend and parsed != [Admit()]:
        raise BadConfig('--admit: --recommend tries second:4 by itself: '
                        'leave out one of the two')
    if TUNED in args.strategy and parsed != [Admit()]:
        raise BadConfig('--admit: a tuned strategy lets all objects in: '
                        'leave out one of the two')
    return parsed


def _beside_none(prefetchers: List[str]) -> List[str]:
    """Prefetchers, and none: their cost shows only beside it."""
    return prefetchers if 'none' in prefetchers else ['none', *prefetchers]


def _check_numbers(args: argparse.Namespace) -> None:
    """:raises BadConfig: names the option that cannot be meant"""
    for option, value, least in (
            ('--jobs', args.jobs, 1), ('--metadata', args.metadata, 0),
            ('--seed', args.seed, 0)):
        if value < least:
            raise BadConfig('%s: %d is not at least %d'
                            % (option, value, least))
    if args.think is not None and args.loop == 'open':
        raise BadConfig('--think: only clients of --loop closed think')
    if args.sample and (args.link or args.loop == 'closed'):
        raise BadConfig('--sample: what a sample leaves out is waited for, '
                        'too: leave out --loop and --link')
    if args.recommend and args.cost != COSTS[0]:
        raise BadConfig('--cost: no daemon weighs prices, so --recommend '
                        'cannot advise it: leave out one of the two')
    for option, seconds in (('--upload-seconds', args.upload_seconds),
                            ('--think', args.think or 0.0)):
        if not 0 <= seconds < math.inf:
            raise BadConfig('%s: %g is not a number of at least 0'
                            % (option, seconds))
    if not 0 < args.rate < math.inf:
        raise BadConfig('--rate: %g is not above 0' % args.rate)


def _single_size(option: str, text: str, ready: plan.Plan) -> int:
    sizes = runs.cache_sizes(text, ready.footprint_bytes, option)
    if len(sizes) > 1:
        raise BadConfig('%s: %s: takes one size, not %d'
                        % (option, text, len(sizes)))
    return sizes[0]
