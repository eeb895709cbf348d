#!/usr/bin/env python3
"""What keeping objects out at their first miss saves the SSD, and costs.

    wear.py [--limit N] [--admit NAME,...] [--weights C=W,...] TRACE ...

Each trace at 1 %, 5 % and 10 % of its footprint, in LRU, S3-FIFO and GDSF, and
in class order where it has classes. Prints hits and bytes written when all
missed objects come in; then, for each ``--admit``, the points of hits and the
bytes more or less. ``--weights`` weighs hits by class, 1 each by default. At
the end: in how many cells, and traces by the mean of their cells, at least
30 % fewer bytes cost at most 0.5 points.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from swift_dss.bench import figures
from swift_dss.core.classes import ClassTable
from swift_dss.core.config import Admit
from swift_dss.replay import classing, plan, runs
from swift_dss.replay.advice import goals
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import model, named
from swift_dss.wire.settings import admits

ORDERS = ('lru', 's3fifo', 'gdsf', 'class')
SHARES = (0.01, 0.05, 0.1)
ADMITS = 'second:1,second:4,learned'
REQUESTS_A_SECOND = 1000.0
MOST_POINTS, LEAST_SAVED = 0.5, 0.3

#: Points of hits and share of bytes, more than with all let in.
Change = Tuple[float, float]


def main(argv: Sequence[str]) -> int:
    """Replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('traces', nargs='+', metavar='TRACE')
    parser.add_argument('--limit', type=int, default=250000, metavar='N',
                        help='the first N requests of each (250000)')
    parser.add_argument('--admit', default=ADMITS, metavar='NAME,...',
                        help='see swift-dss replay (%(default)s)')
    parser.add_argument('--weights', metavar='C=W,...',
                        help='of classes; 1 each')
    parser.add_argument('--jobs', type=int, default=1)
    args = parser.parse_args(argv)
    let_in = [admits.parse('--admit', name)
              for name in args.admit.split(',')]
    changes: Dict[Tuple[str, str], Dict[str, List[Change]]] = {}
    for name in args.traces:
        lines: List[List[str]] = []
        for share, order, base, after in _cells(
                plan.plan(_trace(name, args.limit)), let_in, args.weights,
                args.jobs):
            short = name.rpartition('/')[2]
            lines.append([
                short, '%g %%' % (100 * share), order, '%.4f' % base[0],
                figures.size_text(int(base[1]))] + [
                    '%+.2f %+.0f %%' % (points, 100 * more)
                    for points, more in after])
            for admit, change in zip(let_in, after):
                changes.setdefault((order, str(admit)), {}).setdefault(
                    short, []).append(change)
        print(figures.table(('trace', 'cache', 'order', 'hits', 'written')
                            + tuple(map(str, let_in)), lines), flush=True)
    print(figures.table(('order', 'admit', 'cells', 'of', 'traces', 'of'), [
        [order, admit, *_passed(by_trace)]
        for (order, admit), by_trace in changes.items()]))
    return 0


def _trace(name: str, limit: int) -> model.Trace:
    return model.beginning(
        model.spread(named.read(name), REQUESTS_A_SECOND), limit)


def _cells(ready: plan.Plan, let_in: Sequence[Admit],
           weight_text: Optional[str], jobs: int) -> Iterator[
        Tuple[float, str, Tuple[float, float], List[Change]]]:
    """(share, order, hits and bytes of all let in, change of each admit)."""
    table: ClassTable = classing.table_for(ready.trace, None)
    weights = classing.weights_of(weight_text, table) if weight_text else {}
    goal = goals.Goal('hits', weights=weights)
    names = [order for order in ORDERS
             if order != 'class' or len(ready.trace.classes()) > 1]
    asked = [(share, order) for share in SHARES for order in names]
    setups = [replace(Setup(order, max(1, int(
        share * ready.footprint_bytes)), table, weights=weights),
        admit=admit) for share, order in asked for admit in (Admit(), *let_in)]
    rows = [(goal.score(row), row['ssd_written_bytes'])
            for _, row in runs.each(ready, setups, jobs)]
    many = 1 + len(let_in)
    for at, (share, order) in enumerate(asked):
        base, *others = rows[at * many:(at + 1) * many]
        yield share, order, base, [
            (100 * (hits - base[0]), written / max(1.0, base[1]) - 1)
            for hits, written in others]


def _passed(by_trace: Dict[str, List[Change]]) -> List[str]:
    cells = [change for of_one in by_trace.values() for change in of_one]
    means = [(sum(points for points, _ in of_one) / len(of_one),
              sum(more for _, more in of_one) / len(of_one))
             for of_one in by_trace.values()]
    return ['%d' % figure for figure in (
        sum(map(_pays, cells)), len(cells), sum(map(_pays, means)),
        len(means))]


def _pays(change: Change) -> bool:
    points, more = change
    return points >= -MOST_POINTS and more <= -LEAST_SAVED


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
