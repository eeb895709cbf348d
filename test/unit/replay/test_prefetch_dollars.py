"""What prefetching costs: against no prefetching, for the same trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swift_dss.replay import classing, latency, results
from swift_dss.replay.plan import plan
from swift_dss.replay.setup import Setup
from swift_dss.replay.simulator import replay
from swift_dss.replay.traces.generators import generate

CHAINS = 'gen:chains,requests=50000,chain_count=10,think_ms=%d'


@pytest.mark.parametrize('think_ms', [20, 200, 2000])
@pytest.mark.parametrize('share', [0.017, 0.05])
def test_amp_shortens_waits_and_pays_little_for_it(think_ms, share):
    trace = generate(CHAINS % think_ms)
    ready = plan(trace)
    setup = Setup('lru', int(ready.footprint_bytes * share),
                  classing.table_for(trace, None), latency.S3_2016)
    none, amp = (results.summary(ready, replay(ready, replace(
        setup, prefetch=name))) for name in ('none', 'amp'))
    assert amp['dollars'] <= 1.25 * none['dollars']
    assert amp['p90_ms'] < none['p90_ms'] and amp['p50_ms'] <= none['p50_ms']
    assert amp['hit_ratio'] >= none['hit_ratio'] - 0.006


def test_what_readers_left_behind_takes_the_room_of_little():
    """S3 takes longer than a chain: what comes ahead comes too late."""
    trace = generate(
        'gen:chains,requests=50000,chain_count=40,think_ms=20')
    ready = plan(trace)
    setup = Setup('lru', int(ready.footprint_bytes * 0.017),
                  classing.table_for(trace, None), latency.S3_2016)
    none, combined = (results.summary(ready, replay(ready, replace(
        setup, prefetch=name))) for name in ('none', 'combined'))
    assert combined['hit_ratio'] >= none['hit_ratio'] - 0.002
    assert combined['dollars'] <= 1.5 * none['dollars']
    assert combined['p50_ms'] < none['p50_ms']
    assert combined['p90_ms'] < none['p90_ms']
