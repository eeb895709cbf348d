"""Traces end to end, under every order and under a tuner that begins with one.

    python test/bench/tuning.py [--cache 5%] [--configured lru] TRACE...

A phase is one TRACE (a file, or gen:...). Prints the share of reads that hit
after the first 5 % of each phase; what the tuner asks of a processor and of
memory; and every change. Exits with 1 where the tuner is more than one point
below the configured order in a phase.
"""

import argparse
import dataclasses
import resource
import sys
import time

import numpy as np

from swift_dss.replay import (
    classing, latency, plan, runs, setup, simulator)
from swift_dss.replay.traces import model, named
from swift_dss.strategy.tuning.choices import TUNED, configured
from swift_dss.strategy.tuning.shadows import Penalty
from swift_dss.strategy.tuning.tuner import Tuner

LEARNS = 0.05


def end_to_end(names):
    """(trace, requests of each phase); objects of two phases differ."""
    traces = [named.read(name) for name in names]
    columns = {name: [] for name in model.COLUMNS}
    objects, at_ms = 0, 0.0
    for trace in (model.spread(trace, 1000.0) for trace in traces):
        for name, rows in columns.items():
            shift = {'objects': objects, 'at_ms': at_ms}.get(name, 0)
            rows.append(getattr(trace, name) + shift)
        objects += int(trace.objects.max()) + 1
        at_ms = float(columns['at_ms'][-1][-1])
    return dataclasses.replace(traces[0], **{
        name: np.concatenate(rows) for name, rows in columns.items()
    }), [len(trace) for trace in traces]


def by_phase(hits, lengths):
    """Points, of each phase without its beginning."""
    points, begin = [], 0
    for length in lengths:
        points.append(100 * float(
            hits[begin + int(LEARNS * length):begin + length].mean()))
        begin += length
    return points


def cost_of_tuner(ready, room, own, table):
    """(microseconds an access, MiB, share of the objects) of a tuner alone.

    The MiB are those that the process grew by: memory that the trace took
    before and gave back does not count.
    """
    penalty = Penalty({}, 30000.0, 1e8)
    rows = list(zip(ready.keys.tolist(), ready.sizes.tolist(),
                    ready.class_ids.tolist()))
    before = resident()
    tuner = Tuner(configured(own), room, table, penalty)
    began = time.process_time()
    for row in rows:
        tuner.hear(*row, 0.0)
    seconds = time.process_time() - began
    return 1e6 * seconds / len(rows), resident() - before, \
        tuner.shadows.share


def resident():
    """MiB."""
    with open('/proc/self/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2 ** 20


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cache', default='5%')
    parser.add_argument('--configured', default='lru')
    parser.add_argument('traces', nargs='+')
    args = parser.parse_args()
    trace, lengths = end_to_end(args.traces)
    ready = plan.plan(trace)
    table = classing.table_for(trace, None)
    room, = runs.cache_sizes(args.cache, ready.footprint_bytes)
    cost = cost_of_tuner(ready, room, args.configured, table)
    kind = configured(args.configured).kind
    static = list(dict.fromkeys([args.configured] + [
        '-'.join(filter(None, (kind, order))) for order in TUNED]))
    points, tuned = {}, []
    make = setup.TunedCache

    def kept(*arguments):
        tuned.append(make(*arguments))
        return tuned[-1]
    setup.TunedCache = kept
    for name in static + [setup.TUNED + args.configured]:
        outcome = simulator.replay(ready, setup.Setup(
            name, room, table, latency.S3))
        points[name] = by_phase(outcome.hits, lengths)
        print('%-16s %s' % (name, ' '.join(
            '%7.2f' % point for point in points[name])), flush=True)
    ours = points[setup.TUNED + args.configured]
    best = [max(points[name][at] for name in static)
            for at in range(len(lengths))]
    for name, others in (('- best', best),
                         ('- configured', points[args.configured])):
        print('%-16s %s' % (name, ' '.join(
            '%+7.2f' % (one - other) for one, other in zip(ours, others))))
    print('tuner: %.2f us an access, %.1f MiB, %.3g of the objects' % cost)
    for at, change in tuned[0].changes:
        print('%9d: %s to %s, %+.2f (+- %.2f) points over %d batches' % (
            at, tuned[0].tuner.candidates[change.old].strategy,
            tuned[0].tuner.candidates[change.new].strategy,
            100 * change.gain, 100 * change.error, change.batches))
    return int(min(one - other for one, other in zip(
        ours, points[args.configured])) < -1.0)


if __name__ == '__main__':
    sys.exit(main())
