#!/usr/bin/env python3
"""Dollars of our orders beside those of others, trace by trace.

    dollars.py [--limit N] TRACE ...

LRU, SIEVE, S3-FIFO and GDSF, in class order and by weights too where a trace
has classes, and GDSF whose cost is the price of a miss: the cheapest of them
at 1 %, 5 % and 10 % of the footprint, beside 2Q, LIRS and 3L-Cache of
libcachesim (``pip install libcachesim``; without it, our own alone). Reads
only, at S3's prices, each cache empty at first. At the end: how many cells are
within 1 % of the cheapest of all, and the worst.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any, Dict, List, Sequence, Tuple

from swift_dss.bench import figures
from swift_dss.replay import classing, plan, runs
from swift_dss.replay.columns import Columns
from swift_dss.replay.results import dollars
from swift_dss.replay.setup import DOLLARS, LATENCY, Setup
from swift_dss.replay.traces import model, named
from swift_dss.strategy.eviction.objects.verbs import HIT, MISS

try:
    import libcachesim
except ImportError:
    libcachesim = None

OURS = ('lru', 'sieve', 's3fifo', 'gdsf')
OTHERS = ('TwoQ', 'LIRS', 'ThreeLCache')
SHARES = (0.01, 0.05, 0.1)
REQUESTS_A_SECOND = 1000.0
NEAR, FAR = 0.01, 0.03


def main(argv: Sequence[str]) -> int:
    """Replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('traces', nargs='+', metavar='TRACE')
    parser.add_argument('--limit', type=int, default=250000, metavar='N',
                        help='the first N requests of each (250000)')
    args = parser.parse_args(argv)
    over: List[float] = []
    by_latency: List[float] = []
    others = OTHERS if libcachesim else ()
    for name in args.traces:
        ready = plan.plan(_trace(name, args.limit))
        lines: List[List[str]] = []
        for share in SHARES:
            size = max(1, int(share * ready.footprint_bytes))
            ours = _ours(ready, size)
            theirs = [_theirs(ready, size, other) for other in others]
            best, price = min(ours.items(), key=lambda item: item[1])
            least = min([price, *theirs])
            over.append(price / least - 1)
            by_latency.append(min(
                found for label, found in ours.items()
                if not label.endswith(DOLLARS)) / least - 1)
            lines.append([
                name.rpartition('/')[2], '%g %%' % (100 * share),
                '%.5f' % ours['lru'], best, '%.5f' % price,
                *('%.5f' % other for other in theirs),
                '%+.2f %%' % (100 * over[-1]),
                '%+.2f %%' % (100 * by_latency[-1])])
        print(figures.table((
            'trace', 'cache', 'lru', 'our best', 'dollars', *others,
            'over', 'over without prices'), lines), flush=True)
    for title, cells in (('our best', over),
                         ('without a cost in dollars', by_latency)):
        print('%s: within %g %% of the cheapest in %d of %d cells, over '
              '%g %% in %d, the worst %.2f %%' % (
                  title, 100 * NEAR, sum(at <= NEAR for at in cells),
                  len(cells), 100 * FAR, sum(at > FAR for at in cells),
                  100 * max(cells)))
    return 0


def _trace(name: str, limit: int) -> model.Trace:
    """Its reads."""
    trace = model.beginning(
        model.spread(named.read(name), REQUESTS_A_SECOND), limit)
    trace.verbs[:] = int(model.Verb.READ)
    return trace


def _ours(ready: plan.Plan, size: int) -> Dict[str, float]:
    """Dollars by strategy, and by cost where there are two."""
    names = list(OURS)
    if len(ready.trace.classes()) > 1:
        names += ['%s-%s' % (kind, order) for kind in ('class', 'weighted')
                  for order in OURS]
    setups = [replace(Setup(name, size, classing.table_for(
        ready.trace, None)), cost=cost) for name in names
        for cost in (LATENCY, DOLLARS) if cost == LATENCY or 'gdsf' in name]
    return {'%s %s' % (setup.strategy, setup.cost)
            if setup.cost == DOLLARS else setup.strategy: row['dollars']
            for setup, row in runs.each(ready, setups)}


def _theirs(ready: plan.Plan, size: int, name: str) -> float:
    """Dollars of a cache of libcachesim on the same accesses."""
    np = model.numpy()
    cache = getattr(libcachesim, name)(size)
    request = libcachesim.Request()
    results = bytearray()
    for at_ms, key, length in _accesses(ready):
        request.obj_id, request.obj_size = key, length
        request.clock_time = int(at_ms / 1000)
        results.append(HIT if cache.get(request) else MISS)
    setup = Setup('lru', size, classing.table_for(ready.trace, None))
    columns = Columns(ready, setup)
    columns.take(ready.whole, np.frombuffer(results, dtype='uint8'),
                 np.arange(ready.accesses, dtype='uint32'))
    return dollars(columns.outcome(0.0, 0.0))


def _accesses(ready: plan.Plan) -> List[Tuple[float, int, int]]:
    np = model.numpy()
    at_ms: Any = np.repeat(ready.trace.at_ms, np.diff(ready.first))
    return list(zip(at_ms.tolist(), ready.keys.tolist(),
                    ready.sizes.tolist()))


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
