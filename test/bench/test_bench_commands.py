"""Each benchmark from its command to its figures, as small as it can be.

What they measure here is not worth anything; that they measure what they
say is: the data lies where it has to, all bytes come back, all figures are
there. A minute each: ``pytest test/bench``.
"""

import json
import os
import tempfile

import pytest

from swift_dss.aio import storage
from swift_dss.cli import main as cli

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
needs_loops = pytest.mark.skipif(
    storage.why_no_loops() != '', reason='needs loop devices (root)')


@pytest.fixture
def run(monkeypatch, capsys):
    # Short, as Unix socket paths are.
    with tempfile.TemporaryDirectory(prefix='dssb') as folder:
        monkeypatch.setenv('SWIFT_DSS_AIO_ROOT', os.path.join(folder, 'aio'))

        def command(*arguments):
            out = os.path.join(folder, 'out.json')
            plot = os.path.join(folder, 'out.png')
            code = cli.main(['bench', *arguments, '--json', out,
                             '--plot', plot])
            assert code == 0, capsys.readouterr().err
            assert os.path.getsize(plot) > 5000
            with open(out) as source:
                return json.load(source)
        yield command


def test_overhead_compares_all_variants(run):
    report = run('overhead', '--sizes', '4096', '--clients', '2',
                 '--rounds', '1', '--seconds', '0.5')
    assert {(row['variant'], row['operation'])
            for row in report['cells']} == {
        (variant, operation) for operation in ('PUT', 'GET')
        for variant in ('vanilla', 'vanilla 2', 'unclassified',
                        'classified')}
    for row in report['cells']:
        assert row['per_second'] > 0 and row['failures'] == 0
        assert row['proxy_server_cpu_ms'] > 0
        assert row['object_server_cpu_ms'] > 0


def test_class_order_keeps_the_top_class_on_ssd_and_lru_does_not(run):
    report = run('tiers', '--objects', '120', '--seconds', '6', '--quick')
    lru, classes = report['setups']
    assert (lru['setup'], classes['setup']) == ('lru', 'classes')
    for row in report['setups']:
        assert row['failures'] == 0
        assert row['on_ssd_bytes'] <= row['budget_bytes']
    assert classes['classes']['user1']['hit_ratio'] > 0.8
    assert classes['classes']['user1']['hit_ratio'] > \
        lru['classes']['user1']['hit_ratio']


@needs_loops
def test_flood_hurts_stock_swift_more(run):
    report = run('flood', '--quick', '--seconds', '3')
    ours, stock = report['systems']
    for row in report['systems']:
        assert row['flooded']['cold_mb_per_second'] > 0
        assert row['flooded']['failures'] == row['idle']['failures'] == 0
    assert ours['p50_ratio'] < stock['p50_ratio']
    assert ours['flooded']['worker_p99_ms'] < \
        stock['flooded']['worker_p99_ms']


def test_a_prefetcher_fetches_what_is_read_next(run):
    report = run('prefetch', '--quick', '--strategies', 'none,amp',
                 '--workloads', 'segments', '--rtt-ms', '20')
    none, amp, local = report['cells']
    assert local['strategy'] == '(local)'
    assert none['reads'] == amp['reads'] > 20
    assert none['useful_pieces'] == none['dollars'] == 0
    assert amp['useful_pieces'] + amp['late_pieces'] > 5
    assert amp['dollars'] > 0
