"""What each strategy hits on each trace, written down.

A line changes only when a decision is meant to change: then run this file
as a program, with ``--traces FOLDER`` where the published traces are (what
is written of them stays as it is without). In CI generated traces are
replayed; the published ones where ``SWIFT_DSS_TRACES`` names their folder.
"""

import argparse
import json
import os
import pathlib

import pytest
from support.rigs.simple_caches import SimpleGdsf

from swift_dss.replay import classing, plan, simulator
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators, named
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.verbs import HIT

GOLDEN = pathlib.Path(__file__).parent / 'objects.json'
GENERATED = (
    'gen:zipf,requests=30000,objects=4000,sigma=1',
    'gen:cacs,requests=20000,objects=2000',
    'gen:flood,requests=30000,objects=2000,scan_objects=2000',
    'gen:chains,requests=20000,chain_count=40')
PUBLISHED = ('adaptsize.trace.xz', 'cloudphysics.csv.gz', 'oltp.lis.zst',
             'p6.lis.zst')
SHARE = 0.1
STRATEGIES = list(orders.ORDERS) + ['class-lru', 'weighted-lru',
                                     'class-s3fifo']


def outcomes(ready, setup):
    return b''.join(outcome.tobytes() for _, outcome, _ in simulator.decided(
        ready, setup, setup.make_cache(), 1000))


def counts(trace):
    """Strategy to (accesses that hit, that came in, that stayed out)."""
    table = classing.table_for(trace, None)
    ready = plan.plan(trace)
    golden = {'accesses': ready.accesses}
    for name in STRATEGIES:
        setup = Setup(
            name, int(ready.footprint_bytes * SHARE), table)
        outcome = outcomes(ready, setup)
        golden[name] = [outcome.count(code) for code in (1, 0, 2)]
    return golden


def read(name, folder=None):
    return named.read(name if name.startswith(generators.PREFIX)
                      else os.path.join(folder, name))


def of(name, folder=None):
    trace = read(name, folder)
    if name in PUBLISHED and trace.unit_bytes:
        trace = classing.apply('region:4', trace, None)
    return counts(trace)


@pytest.mark.parametrize('name', GENERATED)
def test_counts_are_those_written_down(name):
    assert of(name) == json.loads(GOLDEN.read_text())[name]


@pytest.mark.parametrize('name', PUBLISHED)
def test_published_traces_are_written_down(name):
    written = json.loads(GOLDEN.read_text())[name]
    assert set(written) == {'accesses', *STRATEGIES}
    for row in STRATEGIES:
        assert sum(written[row]) == written['accesses']
    folder = os.environ.get('SWIFT_DSS_TRACES')
    if folder:
        assert of(name, folder) == written


@pytest.mark.parametrize('share', [0.01, SHARE])
@pytest.mark.parametrize('name', GENERATED[:2] + (
    PUBLISHED if os.environ.get('SWIFT_DSS_TRACES') else ()))
def test_gdsf_hits_where_a_sorted_list_hits(name, share):
    """To the last request; LRU, SIEVE and S3-FIFO do as libCacheSim does
    on the published traces, which breaks GDSF's ties otherwise."""
    trace = read(name, os.environ.get('SWIFT_DSS_TRACES'))
    ready = plan.plan(trace)
    assert not ready.renewed.any()
    setup = Setup('gdsf', int(ready.footprint_bytes * share),
                            classing.table_for(trace, None))
    other = SimpleGdsf(setup.cache_bytes,
                       lambda size: setup.penalty(size, 0))
    wanted = bytes(map(other.access, ready.keys.tolist(),
                       ready.sizes.tolist()))
    outcome = outcomes(ready, setup)
    hits = bytes(code == HIT for code in outcome)
    assert 0 < sum(hits) < len(hits)
    assert hits == wanted
    print('%s, %d %%: %d of %d accesses hit'
          % (name, 100 * share, sum(hits), len(hits)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--traces')
    options = parser.parse_args()
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    for name in GENERATED + (PUBLISHED if options.traces else ()):
        golden[name] = of(name, options.traces)
        print(name, golden[name], flush=True)
        GOLDEN.write_text(json.dumps(golden, indent=1, sort_keys=True) + '\n')


if __name__ == '__main__':
    main()
