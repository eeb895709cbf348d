"""``swift-dss gateway advise``: how large data, metadata and log should be.

By rule from what the tier daemon has measured, or from figures given on the
command line. ``--learn TABLE`` asks a table of measurements instead
(:mod:`~swift_dss.cli.gateway.advise_learn`).
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from typing import Any, Dict, List, Optional

from swift_dss.cli.ask import ask, json_text, result
from swift_dss.cli.gateway import advise_learn
from swift_dss.cli.table import seconds, size, table
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.replay import prices as pricelist
from swift_dss.replay.advice import sizing
from swift_dss.strategy import advise
from swift_dss.wire.settings.nodeconf import parse_bytes

#: Outage to plan for where none was measured: a night.
_DEFAULT_OUTAGE_SECONDS = 8 * 3600.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    for name, line in (
            ('ingest', 'bytes a second that come in at the busiest'),
            ('largest', 'bytes of the largest object'),
            ('link', 'bytes a second that the link takes to S3'),
            ('working-set', 'bytes that readers come back to, or that never '
             'go to S3')):
        parser.add_argument('--' + name, metavar='BYTES', help=line)
    for name, line in (
            ('objects', 'objects a second at the busiest'),
            ('outage', 'seconds without S3 to plan for')):
        parser.add_argument('--' + name, type=float, help=line)
    parser.add_argument('--population', type=int,
                        help='versions on this node')
    parser.add_argument('--writers', type=int, default=1,
                        help='large objects that come in at a time '
                        '(%(default)s)')
    parser.add_argument('--prices', metavar='NAME|FILE',
                        help='what the room costs: %s, or a file of your own'
                        % ', '.join(pricelist.PRESETS))
    parser.add_argument(
        '--trace', metavar='TRACE', help='say the least dollars that any '
        'order can have on --working-set, for the requests of this trace')
    advise_learn.configure(parser)


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Print the advice; 1 if something is too small."""
    if args.learn:
        _refuse_figures(args)
        return advise_learn.run(args)
    advise_learn.refuse_without_table(args)
    _check_numbers(args)
    status = _status(conf)
    load = _load(args, status)
    advices = advise.advise(load, conf.gateway.headroom, _has(status))
    rate = _bytes('--link', args.link, _measured_link(status))
    link = advise.drain(load, rate) if rate else None
    warnings = list((status or {}).get('space', {}).get('warnings', ()))
    warnings += _unknown(args, status, load, link)
    prices = pricelist.prices(args.prices) if args.prices else None
    bound = None if args.trace is None else sizing.bound(
        args.trace, conf.tier, load.local_bytes, prices)
    if args.json:
        print(json_text({
            'workload': dataclasses.asdict(load), 'warnings': warnings,
            'link': None if link is None else dict(
                dataclasses.asdict(link), keeps_up=link.keeps_up),
            'prices': None if prices is None else
            dataclasses.asdict(prices),
            'bound': bound,
            'advice': [dict(dataclasses.asdict(advice),
                            verdict=advice.verdict,
                            dollars_a_month=_dollars(prices, advice))
                       for advice in advices]}))
    else:
        _show(load, advices, link, prices,
              [sizing.text(bound)] if bound else [], warnings)
    return int(any(advice.verdict == 'too small' for advice in advices))


def _show(load: advise.Workload, advices: List[advise.Advice],
          link: Optional[advise.Drain],
          prices: Optional[pricelist.Prices], bounds: List[str],
          warnings: List[str]) -> None:
    """For people."""
    print('ingest %s/s, %.1f objects/s, outage %s, largest %s, '
          '%d versions\n' % (
              size(load.ingest_rate), load.objects_rate,
              seconds(load.outage_seconds), size(load.largest_bytes),
              load.population))
    print(table(('AREA', 'SHOULD>', '$/MONTH>', 'HAS>', '', 'WHY'), [
        (advice.area, size(advice.wants_bytes),
         '-' if prices is None else '%.2f' % prices.room(
             'ssd', advice.wants_bytes),
         size(advice.has_bytes), advice.verdict, advice.why)
        for advice in advices]))
    if prices is not None:
        print('\nroom on SSDs at $%g a GB and month (%s, %s)' % (
            prices.ssd_gb_month, prices.source, prices.date))
    if link is not None and link.keeps_up:
        print('\nlink %s/s: what waited is in S3 %s after the longest '
              'outage' % (size(link.bytes_per_second),
                          seconds(link.drain_seconds)))
    for text in bounds:
        print('\n' + text)
    for text in warnings:
        print('warning: ' + text)


def _dollars(prices: Optional[pricelist.Prices],
             advice: advise.Advice) -> Optional[float]:
    """A month of the advised room, on SSDs."""
    return None if prices is None else prices.room('ssd', advice.wants_bytes)


def _unknown(args: argparse.Namespace, status: Optional[Dict[str, Any]],
             load: advise.Workload,
             link: Optional[advise.Drain]) -> List[str]:
    """Warn of figures that are not known, and of a link that is too slow."""
    warnings = []
    if not load.largest_bytes:
        warnings.append('no size of objects is known, so data is advised for '
                        'none that is coming in: say --largest')
    if not load.objects_rate and args.objects is None:
        warnings.append('no rate of objects is known, so log is advised for '
                        'none that waits: say --objects')
    if status is None and args.population is None:
        warnings.append('no population is known, so metadata is advised for '
                        'no versions at all: say --population')
    if args.working_set is None:
        warnings.append('no working set is known, so data is advised for what '
                        'waits for S3 alone, and older bytes are read from '
                        'S3: say --working-set')
    if link is None:
        warnings.append('the rate of the link to S3 is not known, so nobody '
                        'can say if uploads keep up: say --link')
    elif not link.keeps_up:
        warnings.append('the link to S3 takes %s/s, and more comes in at the '
                        'busiest: what waits grows as long as that lasts, '
                        'and no size of data is enough' % size(
                            link.bytes_per_second))
    return warnings


def _measured_link(status: Optional[Dict[str, Any]]) -> float:
    """Bytes a second towards S3, as the daemon measured them; 0: not yet.
    """
    link = (status or {}).get('link') or {}
    return float(link.get('up', {}).get('measured') or 0.0)


def _bytes(option: str, text: Optional[str], known: float) -> float:
    """The figure of the command line, else the known one.

    :raises BadConfig: it is no number above 0
    """
    if text is None:
        return known
    try:
        said = parse_bytes(text)
    except BadConfig as err:
        raise BadConfig('%s: %s' % (option, err)) from None
    if said < (0 if option == '--working-set' else 1):
        raise BadConfig('%s: must be above 0, not %s' % (option, text))
    return said


def _refuse_figures(args: argparse.Namespace) -> None:
    """:raises BadConfig: names a figure that a table does not ask for"""
    for name in ('ingest', 'largest', 'link', 'working_set', 'objects',
                 'outage', 'population', 'prices', 'trace'):
        if getattr(args, name) is not None:
            raise BadConfig('--%s: is not for --learn: say it with --given'
                            % name.replace('_', '-'))


def _check_numbers(args: argparse.Namespace) -> None:
    """:raises BadConfig: names the figure that cannot be meant"""
    for option, value, least in (
            ('--objects', args.objects, 0), ('--outage', args.outage, 0),
            ('--population', args.population, 0),
            ('--writers', args.writers, 1)):
        if value is not None and not least <= value < math.inf:
            raise BadConfig('%s: %g is not a number of at least %d'
                            % (option, value, least))


def _status(conf: NodeConf) -> Optional[Dict[str, Any]]:
    try:
        status: Dict[str, Any] = result(ask(conf, {'verb': 'status'}))
        return status
    except TierUnavailable:
        return None  # all figures may come from the command line


def _load(args: argparse.Namespace,
          status: Optional[Dict[str, Any]]) -> advise.Workload:
    seen = (status or {}).get('workload', {})
    devices = (status or {}).get('devices', [])
    ingest = _bytes('--ingest', args.ingest, seen.get('ingest_rate', 0))
    if not ingest:
        raise BadConfig('nothing was measured yet%s: say --ingest and '
                        '--largest' % ('' if status else
                                       ', and no tier daemon answers'))
    largest = _bytes('--largest', args.largest,
                     seen.get('largest_bytes', 0))
    return advise.Workload(
        float(ingest), args.objects if args.objects is not None
        else seen.get('objects_rate', 0.0),
        args.outage if args.outage is not None else
        seen.get('outage_seconds') or _DEFAULT_OUTAGE_SECONDS,
        int(largest), args.writers,
        args.population if args.population is not None else
        sum(device['totals']['objects'] for device in devices),
        int(_bytes('--working-set', args.working_set, 0.0)))


def _has(status: Optional[Dict[str, Any]]) -> Dict[str, int]:
    if status is None:
        return {}
    has: Dict[str, int] = {}
    budgets = [device['pressure']['backlog'] for device in status['devices']
               if device['pressure'] and device['pressure'].get('backlog')]
    if budgets:
        has['data'] = sum(budget['budget_bytes'] + budget['reserve_bytes']
                          for budget in budgets)
    for area in status.get('space', {}).get('areas', ()):
        if area['kind'] in ('metadata', 'log'):
            has[area['kind']] = area['budget_bytes'] or (
                area['free_bytes'] + area['used_bytes'])
    return has
