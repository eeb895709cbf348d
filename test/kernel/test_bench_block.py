"""The block benchmarks, small: every set-up starts, serves and counts."""

from __future__ import annotations

import os

import pytest

from swift_dss.bench.block import compare, chunks, load
from swift_dss.bench.block.driver import DriverFailed

MIB = 1 << 20


@pytest.fixture(scope='module')
def work():
    """A range that fits the SSD, read twice over."""
    return load.plain(count=600, range_bytes=128 * MIB)


@pytest.mark.parametrize('setup', compare.SETUPS)
def test_every_set_up_serves_right_bytes_and_counts(work, setup):
    run = compare.measure(work, setup, compare.Plan(), print)
    told = run.phases['run']
    assert told['all']['requests'] == len(work.phases[1].requests)
    assert told['all']['mean_us'] > 10
    disk = told['disks']['ssd' if setup == 'ssd' else 'hdd']
    assert disk['reads'] + disk['writes'] > 0
    if setup in ('hdd', 'ssd'):
        assert told['hits'] == {}
    else:
        assert 0.0 < told['hits']['all'] < 1.0


def test_two_runs_are_one_run(work):
    first, second = (compare.measure(work, 'dm-dss', compare.Plan(), print)
                     for _ in range(2))
    assert first.phases == second.phases


def test_a_disk_that_loses_writes_is_seen(work, monkeypatch):
    """The wrong twin: it says that it wrote, and did not."""
    monkeypatch.setattr(compare.guest, '__file__', os.path.join(
        os.path.dirname(os.path.abspath(__file__)), 'bench_lossy.py'))
    with pytest.raises(DriverFailed, match='blocks with wrong bytes.*'
                                           'stale version'):
        compare.measure(work, 'ssd', compare.Plan(), print)


def test_chunks_are_compared_with_no_cache():
    plan = chunks.Plan(chunks=(32,), modes=('through',), scale=1024)
    report = chunks.measure(plan, print)
    names = [row['setup'] for row in report['rows']]
    assert names == ['no cache', 'dm-dss', 'dm-cache']
    none, ours = report['rows'][:2]
    # What the first run brought, the second one finds.
    assert chunks.saved(ours, none, 'second') > \
        chunks.saved(ours, none, 'first') > 0
    assert 'no cache' in chunks.text(report)
