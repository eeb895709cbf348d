"""What is computed from samples, and how it is shown."""

import json
import math
import os
import subprocess
import sys

import pytest

from swift_dss.bench import cpu, figures, plots
from swift_dss.bench.cluster import bed, cold, flood, overhead, tiers
from swift_dss.bench.cluster.client import Sample
from swift_dss.bench.cluster.overhead import Cell, Run
from swift_dss.cli import main as cli

CELL = Cell('GET', 4096, 8)


def run(variant, round_number, per_second, cpu_ms, cell=CELL):
    return Run(cell, variant, round_number, 100, 0, per_second, 5.0,
               {'proxy-server': cpu_ms / 2, 'object-server': cpu_ms / 2,
                'tierd': 9.0})


def test_percentile_is_nearest_rank():
    values = list(range(1, 101))
    assert figures.percentile(values, 50) == 50
    assert figures.percentile(values, 99) == 99
    assert figures.percentile([7.0], 99) == 7.0
    assert math.isnan(figures.percentile([], 50))


def test_table_aligns_columns():
    assert figures.table(['a', 'n'], [['xx', '1'], ['y', '100']]) == (
        'a     n\n--  ---\nxx    1\ny   100')


def test_json_has_null_where_there_is_no_figure(tmp_path):
    path = tmp_path / 'out.json'
    figures.write_json(str(path), {'a': math.nan, 'b': [1.5, math.nan]})
    assert json.loads(path.read_text()) == {'a': None, 'b': [1.5, None]}


def test_a_ratio_is_taken_inside_its_round():
    """A machine that doubles its speed between rounds changes nothing;
    the ratio of two medians over all rounds would."""
    runs = [run('vanilla', 0, 100, 2), run('classified', 0, 90, 2.2),
            run('vanilla', 1, 200, 1), run('classified', 1, 180, 1.1),
            run('vanilla', 2, 400, .5), run('classified', 2, 360, .55)]
    medians = overhead.compare(runs, CELL, 'classified')
    assert medians['throughput'] == pytest.approx(0.9)
    assert medians['throughput_low'] == medians['throughput_high'] == \
        pytest.approx(0.9)
    assert medians['cpu'] == pytest.approx(1.1)


def test_cpu_ratio_leaves_the_daemon_behind_out():
    runs = [run('vanilla', 0, 100, 2), run('classified', 0, 100, 2)]
    assert overhead.compare(runs, CELL, 'classified')['cpu'] == 1.0


def test_overhead_text_has_a_row_for_each_cell_and_the_median():
    other = Cell('PUT', 1 << 20, 1)
    runs = [run(variant, at, 100, 2, cell)
            for cell in (CELL, other) for at in (0, 1)
            for variant in ('vanilla', 'vanilla 2', 'classified')]
    lines = overhead.text(runs).splitlines()
    assert lines[2].split() == ['GET', '4', 'KiB', '8', '100.0', '2.00',
                                '1.00', '1.00', '1.00', '1.00']
    assert lines[3].startswith('PUT 1 MiB')
    assert lines[4].startswith('median')


def sample(length, tier, milliseconds, label='user1'):
    return Sample(label, 200, 0.0, milliseconds / 1000, length, tier)


def test_tiers_counts_hits_by_requests_and_by_bytes():
    summary = tiers.summary([
        sample(100, 'ssd', 1), sample(100, 'ssd+hdd', 1),
        sample(800, 'hdd', 9), sample(0, '', 9)], 2.0)
    assert summary['hit_ratio'] == 0.5
    assert summary['byte_hit_ratio'] == 0.2
    assert summary['mb_per_second'] == pytest.approx(0.0005)
    assert summary['p50_ms'] == 1.0
    assert summary['p99_ms'] == 9.0


def test_tiers_budget_is_the_share_of_all_replicas():
    plan = tiers.Plan(objects=100)
    total = sum(obj.size for obj in tiers.objects_of(plan))
    assert tiers.budget_bytes(plan, 'lru') * plan.devices == \
        pytest.approx(0.14 * 3 * total, rel=0.001)


def phase(system, number, flooded, values):
    return flood.Phase(system, number, flooded, values, [1.0, 4.0], 5.0, 0)


def flood_phases():
    return [phase('swift-dss', 0, False, [1.0, 2.0, 3.0]),
            phase('swift-dss', 0, True, [1.0, 2.0, 6.0]),
            phase('stock Swift', 0, False, [1.0, 2.0, 3.0]),
            phase('stock Swift', 0, True, [100.0, 200.0, 300.0])]


def test_flood_compares_flooded_with_idle():
    ours, stock = flood.report(flood_phases())['systems']
    assert (ours['p50_ratio'], ours['p99_ratio']) == (1.0, 2.0)
    assert (stock['p50_ratio'], stock['p99_ratio']) == (100.0, 100.0)
    assert ours['flooded']['worker_p99_ms'] == 4.0


def test_one_slow_idle_round_does_not_flatter_the_flood():
    rounds = [(2.0, 8.0), (2.0, 6.0), (90.0, 90.0)]
    report = flood.report([
        phase(system.name, number, flooded, [values[flooded]])
        for system in flood.SYSTEMS
        for number, values in enumerate(rounds)
        for flooded in (False, True)])
    ours = report['systems'][0]
    assert [each['p99_ratio'] for each in ours['rounds']] == [4.0, 3.0, 1.0]
    assert ours['p99_ratio'] == 3.0
    assert '2.0 -> 8.0 (x4.00)' in flood.text(report)


def test_every_plot_is_a_png(tmp_path):
    pytest.importorskip('matplotlib')
    runs = [run(variant, at, 100 + at, 2)
            for variant in ('vanilla', 'vanilla 2', 'unclassified',
                            'classified') for at in (0, 1)]
    results = [tiers.Result(
        setup, [sample(100, 'ssd', 2), sample(900, 'hdd', 20, 'user7')],
        1.0, 0, 100, 90, 30) for setup in tiers.SETUPS]
    for name, draw, report in (
            ('o', plots.overhead, overhead.report(runs)),
            ('t', plots.tiers, tiers.report(results)),
            ('f', plots.flood, flood.report(flood_phases()))):
        path = tmp_path / (name + '.png')
        draw(report, str(path))
        raw = path.read_bytes()
        assert raw.startswith(b'\x89PNG') and len(raw) > 5000


def test_cpu_seconds_are_those_that_a_process_used():
    before = cpu.seconds([os.getpid()])
    while os.times().user + os.times().system < before + 0.05:
        sum(range(1000))
    assert cpu.seconds([os.getpid()]) - before >= 0.04


def test_a_process_that_is_gone_used_nothing():
    child = subprocess.Popen([sys.executable, '-c', ''])
    child.wait()
    assert cpu.seconds([child.pid]) == 0


def test_change_keeps_what_it_does_not_name(tmp_path):
    path = tmp_path / 'dss.conf'
    path.write_text('[dss]\ndevices = /a\n[capacity]\n'
                    '* = /hdd/%(device)s\n')
    bed.change(str(path), {'tier': {'eviction': 'lru'},
                           'dss': {'run_dir': '/r'},
                           'DEFAULT': {'bind_port': '1'}})
    text = path.read_text()
    assert '[DEFAULT]\nbind_port = 1' in text
    assert 'devices = /a' in text and 'run_dir = /r' in text
    assert '* = /hdd/%(device)s' in text and 'eviction = lru' in text


def test_cold_asks_for_every_file_and_survives_one_that_left(tmp_path):
    for name in ('a', 'b/c', 'b/d'):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b'x' * 5000)
    (tmp_path / 'gone').symlink_to(tmp_path / 'nowhere')
    assert cold.forget([str(tmp_path)]) == 3


@pytest.mark.parametrize('arguments, complaint', [
    (['tiers', '--setups', 'fifo'], 'fifo is not one of'),
    (['overhead', '--plot', '/nonexistent/x.png'], 'No such file'),
    (['overhead', '--cluster', '/nonexistent'], 'no cluster runs in'),
])
def test_bad_options_are_refused_before_anything_starts(
        arguments, complaint, capsys):
    assert cli.main(['bench', *arguments]) == 78
    assert complaint in capsys.readouterr().err
