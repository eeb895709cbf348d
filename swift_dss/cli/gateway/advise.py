"""``swift-dss gateway advise``: how large data, metadata and log should be.

By rule from what the tier daemon has measured, or from figures given on the
command line. ``--learn TABLE`` predicts from a table of measurements, and
with ``--at-least`` chooses from it (see the manual for what patents may
say).
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import math
from typing import Any, Dict, List, Optional

from swift_dss.cli.ask import ask, json_text, result
from swift_dss.cli.table import seconds, size, table
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.strategy import advise, advise_learn
from swift_dss.wire.settings.nodeconf import parse_bytes

#: Outage to plan for where none was measured: a night.
_DEFAULT_OUTAGE_SECONDS = 8 * 3600.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    for name, line in (
            ('ingest', 'bytes a second that come in at the busiest'),
            ('largest', 'bytes of the largest object')):
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
    parser.add_argument('--learn', metavar='TABLE',
                        help='CSV of measurements, one run a line')
    parser.add_argument('--target', help='column to be predicted')
    parser.add_argument('--given', action='append', default=[],
                        metavar='COLUMN=NUMBER')
    parser.add_argument('--free', action='append', default=[],
                        metavar='COLUMN[=PRICE]',
                        help='with --at-least: columns to choose')
    parser.add_argument('--at-least', type=float,
                        help='share of the target that has to come out')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Print the advice; 1 if something is too small."""
    _check_numbers(args)
    if args.learn:
        return _learn(args)
    status = _status(conf)
    load = _load(args, status)
    advices = advise.advise(load, conf.gateway.headroom, _has(status))
    warnings = list((status or {}).get('space', {}).get('warnings', ()))
    if status is None and args.population is None:
        warnings.append('no population is known, so metadata is advised for '
                        'no versions at all: say --population')
    if args.json:
        print(json_text({
            'workload': dataclasses.asdict(load), 'warnings': warnings,
            'advice': [dict(dataclasses.asdict(advice), verdict=advice.verdict)
                       for advice in advices]}))
    else:
        print('ingest %s/s, %.1f objects/s, outage %s, largest %s, '
              '%d versions\n' % (
                  size(load.ingest_rate), load.objects_rate,
                  seconds(load.outage_seconds), size(load.largest_bytes),
                  load.population))
        print(table(('AREA', 'SHOULD>', 'HAS>', '', 'WHY'), [
            (advice.area, size(advice.wants_bytes), size(advice.has_bytes),
             advice.verdict, advice.why) for advice in advices]))
        for text in warnings:
            print('warning: ' + text)
    return int(any(advice.verdict == 'too small' for advice in advices))


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
    ingest = parse_bytes(args.ingest) if args.ingest else seen.get(
        'ingest_rate', 0)
    if not ingest:
        raise BadConfig('nothing was measured yet%s: say --ingest and '
                        '--largest' % ('' if status else
                                       ', and no tier daemon answers'))
    largest = parse_bytes(args.largest) if args.largest else seen.get(
        'largest_bytes', 0)
    return advise.Workload(
        float(ingest), args.objects if args.objects is not None
        else seen.get('objects_rate', 0.0),
        args.outage if args.outage is not None else
        seen.get('outage_seconds') or _DEFAULT_OUTAGE_SECONDS,
        int(largest), args.writers,
        args.population if args.population is not None else
        sum(device['totals']['objects'] for device in devices))


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


def _learn(args: argparse.Namespace) -> int:
    rows = _read(args.learn)
    if not args.target:
        raise BadConfig('--learn: say which column with --target')
    given = dict(_pair(text) for text in args.given)
    costs = dict(_pair(text if '=' in text else text + '=1')
                 for text in args.free)
    model = advise_learn.Table(rows, [*given, *costs], args.target)
    if args.at_least is None:
        said = model.predict(given)
        beyond = model.beyond(given)
        answer: Dict[str, Any] = dict(
            dataclasses.asdict(said), error=model.error(), beyond=beyond)
        text = '%s: %g (error of leaving one out: %.0f %%; from lines %s)' \
            % (args.target, said.value, 100 * model.error(), ', '.join(
                str(number + 2) for number in said.rows))
        text += ''.join(
            '\nwarning: %s = %g is outside of what was measured, %g to %g'
            % (name, given[name], *reach) for name, reach in beyond.items())
    else:
        choice = model.choose(given, list(costs), args.at_least, costs)
        if choice is None:
            raise BadConfig('no row of the table promises %s of %g'
                            % (args.target, args.at_least))
        answer = dataclasses.asdict(choice)
        text = '%s; %s: %g' % (', '.join(
            '%s = %g' % pair for pair in choice.allocation.items()),
            args.target, choice.predicted)
    print(json.dumps(answer, sort_keys=True) if args.json else text)
    return 0


def _read(path: str) -> List[Dict[str, float]]:
    rows: List[Dict[str, float]] = []
    try:
        with open(path, encoding='utf-8', newline='') as source:
            for line in csv.DictReader(source):
                rows.append({name: float(text)
                             for name, text in line.items() if name})
    except OSError as err:
        raise BadConfig('%s: %s' % (path, err.strerror)) from err
    except (ValueError, TypeError) as err:
        raise BadConfig('%s, line %d: %s' % (path, len(rows) + 2, err)
                        ) from err
    return rows


def _pair(text: str) -> Any:
    name, sign, value = text.partition('=')
    try:
        if sign:
            return name, float(value)
    except ValueError:
        pass  # said below
    raise BadConfig('%r is not COLUMN=NUMBER' % text)
