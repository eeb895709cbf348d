#!/usr/bin/env python3
"""How far samples of a trace are off, against its whole replay.

    sampled.py TRACE SHARE SEEDS

Hit ratios of LRU, SIEVE and class order at 5 % and 20 % of the footprint, of
all reads and of each class, for each seed. Prints the mean error, the one that
19 of 20 are below, how many are within the error that the sample states, and
the processor's seconds of a whole replay and of a sampled one.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.replay import classing, plan, runs
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import model, named, sampling

STRATEGIES = ('lru', 'sieve', 'class')
SHARES = (0.05, 0.2)
REQUESTS_A_SECOND = 1000.0

Row = Dict[str, Any]


def main(argv: Sequence[str]) -> int:
    """Compare, print."""
    name, share, seeds = argv
    trace = model.spread(named.read(name), REQUESTS_A_SECOND)
    table = classing.table_for(trace, None)
    whole = plan.plan(trace)
    sizes = [int(at * whole.footprint_bytes) for at in SHARES]
    exact, exact_seconds = _curve(whole, sizes, table)
    errors: List[float] = []
    within, seconds = 0, 0.0
    for seed in range(int(seeds)):
        small, sample = sampling.thinned(trace, sampling.parse(share), seed)
        rows, took = _curve(plan.plan(small, -1, sample), sizes, table)
        seconds += took
        for one, other in zip(_cells(exact), _cells(rows)):
            errors.append(abs(one['hit_ratio'] - other['hit_ratio']))
            within += errors[-1] <= other['hit_ratio_error']
    errors.sort()
    print('%s at %s: %d of %d requests, %d cells; mean error %.4f, 95 %% '
          'below %.4f, most %.4f; %.1f %% within what is stated; %.1f s of '
          'processor, whole %.1f' % (
              trace.name, share, len(small), len(trace), len(errors),
              sum(errors) / len(errors), errors[int(0.95 * len(errors))],
              errors[-1], 100.0 * within / len(errors),
              seconds / int(seeds), exact_seconds))
    return 0


def _curve(ready: plan.Plan, sizes: List[int],
           table: ClassTable) -> Tuple[List[Row], float]:
    began = time.process_time()
    rows = [row for _, row in runs.each(ready, [
        Setup(strategy, size, table)
        for size in sizes for strategy in STRATEGIES])]
    return rows, time.process_time() - began


def _cells(rows: List[Row]) -> Iterator[Row]:
    for row in rows:
        yield row
        yield from row['classes'].values()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
