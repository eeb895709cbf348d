"""``swift-dss gateway advise --learn TABLE``: from measurements.

Predicts from a table of measurements, and with ``--at-least`` chooses from it
(see the manual for what patents may say). A choice says what a prediction
says: the lines that it speaks from, its error, and what was never measured.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import math
from typing import Dict, List, Mapping, Sequence, Tuple

from swift_dss.core.errors import BadConfig
from swift_dss.strategy import advise_learn


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--learn', metavar='TABLE',
                        help='CSV of measurements, one run a line')
    parser.add_argument('--target', help='with --learn: column to be '
                        'predicted')
    parser.add_argument('--given', action='append', default=[],
                        metavar='COLUMN=NUMBER', help='with --learn: what is '
                        'known')
    parser.add_argument('--free', action='append', default=[],
                        metavar='COLUMN[=PRICE]',
                        help='with --at-least: columns to choose')
    parser.add_argument('--at-least', type=float, metavar='NUMBER',
                        help='with --free: how much of the target has to '
                        'come out')


def refuse_without_table(args: argparse.Namespace) -> None:
    """:raises BadConfig: an argument asks what only a table answers"""
    for name in ('target', 'given', 'free', 'at_least'):
        if getattr(args, name) not in (None, []):
            raise BadConfig('--%s: is for --learn TABLE'
                            % name.replace('_', '-'))


def run(args: argparse.Namespace) -> int:
    """Print the prediction, or the choice.

    :raises BadConfig: the table or the question cannot be meant
    """
    rows = _read(args.learn)
    if not args.target:
        raise BadConfig('--learn: say which column with --target')
    given = dict(_pair(text) for text in args.given)
    costs = dict(_pair(text if '=' in text else text + '=1')
                 for text in args.free)
    _check(args, given, costs)
    model = advise_learn.Table(rows, [*given, *costs], args.target)
    if args.at_least is None:
        said = model.predict(given)
        answer = dataclasses.asdict(said)
        value, lines, known = said.value, said.rows, given
        text = ''
    else:
        choice = model.choose(given, list(costs), args.at_least, costs)
        if choice is None:
            raise BadConfig('no row of the table promises %s of %g'
                            % (args.target, args.at_least))
        answer = dataclasses.asdict(choice)
        value, lines = choice.predicted, choice.rows
        known = {**given, **choice.allocation}
        text = ', '.join('%s = %g' % pair
                         for pair in choice.allocation.items()) + '; '
    beyond, error = model.beyond(known), model.error()
    if args.json:
        print(json.dumps(dict(answer, error=error, beyond=beyond),
                         sort_keys=True))
        return 0
    print('%s%s: %g (error of leaving one out: %.0f %%; from lines %s)' % (
        text, args.target, value, 100 * error, _lines(lines)))
    for name, reach in beyond.items():
        print('warning: %s = %g is outside of what was measured, %g to %g'
              % (name, known[name], *reach))
    if args.at_least is not None and value * (1 - error) < args.at_least:
        print('warning: less its error it is %g, and that is not %g'
              % (value * (1 - error), args.at_least))
    return 0


def _check(args: argparse.Namespace, given: Mapping[str, float],
           costs: Mapping[str, float]) -> None:
    """:raises BadConfig: the question cannot be meant"""
    if args.at_least is not None and not costs:
        raise BadConfig('--at-least: say which columns are to be chosen '
                        'with --free')
    if costs and args.at_least is None:
        raise BadConfig('--free: say with --at-least how much has to come '
                        'out')
    if args.at_least is not None and not math.isfinite(args.at_least):
        raise BadConfig('--at-least: %g is not a number' % args.at_least)
    for name, price in costs.items():
        if price < 0:
            raise BadConfig('--free: %s: a price of %g is less than 0'
                            % (name, price))
        if name in given:
            raise BadConfig('--free: %s is given, too' % name)


def _lines(rows: Sequence[int]) -> str:
    """As an editor counts them, below the head."""
    return ', '.join(str(number + 2) for number in rows)


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


def _pair(text: str) -> Tuple[str, float]:
    name, sign, value = text.partition('=')
    try:
        if sign and math.isfinite(float(value)):
            return name, float(value)
    except ValueError:
        pass  # said below
    raise BadConfig('%r is not COLUMN=NUMBER' % text)
