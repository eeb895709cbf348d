"""What a replay writes to the SSD, and how often that is the whole of it."""

import json
import math

import pytest

from swift_dss.cli import main
from swift_dss.core.classes import ClassTable
from swift_dss.core.config import Admit
from swift_dss.replay import latency, plan, results, simulator, timed
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators, native

BOTH = pytest.mark.parametrize('way', [simulator.replay, timed.play])
HALF_A_DAY_MS = 43200000


def trace_of(*lines, unit=0):
    trace = native.read([line.encode() for line in lines], 'test')
    trace.unit_bytes = unit
    return trace


def written(way, trace, cache_bytes=100, unit=-1, **changes):
    ready = plan.plan(trace, unit)
    return way(ready, Setup('lru', cache_bytes, ClassTable(), latency.S3,
                            **changes)).counts['ssd_written_bytes']


@BOTH
def test_what_comes_in_is_written_and_what_hits_is_not(way):
    assert written(way, trace_of(
        '0 GET a 10', '90000 GET a 10', '190000 GET b 7')) == 17


@BOTH
def test_what_stays_out_is_not_written(way):
    assert written(way, trace_of('0 GET a 101', '9 GET b 7')) == 7


@BOTH
def test_what_left_and_comes_again_is_written_again(way):
    assert written(way, trace_of(
        '0 GET a 60', '9000 GET b 60', '19000 GET a 60')) == 180


@BOTH
@pytest.mark.parametrize('mode, wanted', [
    ('through', 40), ('around', 10)])
def test_writes_of_clients_count(way, mode, wanted):
    assert written(way, trace_of(
        '0 PUT a 10', '1000 PUT a 10', '2000 PUT b 10', '3000 DELETE b 10',
        '4000 GET b 10'), write=mode) == wanted


@BOTH
def test_a_block_that_is_written_in_place_is_written(way):
    lines = ['%d PUT v 1000 0 9' % at for at in (0, 1000, 2000)]
    assert written(way, trace_of(*lines, unit=10), write='through') == 30


def test_back_or_through_a_write_is_written_once():
    lines = ['0 PUT a 10', '9 PUT b 101']
    assert written(simulator.replay, trace_of(*lines), write='back') == 10


@pytest.mark.parametrize('name', [
    'gen:zipf,requests=5000,objects=500,sigma=1.5,size=8192,writes=0.2',
    'gen:chains,requests=4000,writes=0.2'])
@pytest.mark.parametrize('mode', ['through', 'around'])
def test_both_ways_write_the_same(name, mode):
    trace = generators.generate(name)
    room = plan.plan(trace).footprint_bytes // 10
    quick, slow = (written(way, trace, room, write=mode)
                   for way in (simulator.replay, timed.play))
    assert quick == slow > 0


def test_what_is_fetched_ahead_is_written_read_or_not():
    trace = generators.generate('gen:streams,requests=2000,think_ms=400')
    ready = plan.plan(trace)
    outcome = simulator.replay(ready, Setup(
        'lru', ready.footprint_bytes, ClassTable(), latency.S3,
        prefetch='seq'))
    counts = outcome.counts
    assert counts['useful_bytes'] > 0
    # The whole fits: what came once, came once.
    on_its_way = counts['get_bytes'] - counts['ssd_written_bytes']
    assert 0 <= on_its_way <= 8 * 16 * 65536


def test_a_day_writes_the_drive_so_often():
    ready = plan.plan(trace_of('0 GET a 100', '1000 GET b 100',
                               '%d GET c 100' % HALF_A_DAY_MS))
    row = results.summary(ready, simulator.replay(ready, Setup(
        'lru', 200, ClassTable(), latency.S3)))
    assert row['ssd_written_bytes'] == 300
    assert row['drive_writes_a_day'] == pytest.approx(3.0)


@pytest.mark.parametrize('lines', [
    ['0 GET a 1'], ['# swift-dss trace 2', '# untimed', '0 GET a 1',
                    '50000 GET b 1']])
def test_without_times_there_is_no_day(lines):
    ready = plan.plan(trace_of(*lines))
    row = results.summary(ready, simulator.replay(ready, Setup(
        'lru', 200, ClassTable(), latency.S3)))
    assert math.isnan(row['drive_writes_a_day'])


def test_every_row_says_it_and_prefetchers_stand_beside_none(capsys):
    arguments = ['replay', 'gen:streams,requests=2000,think_ms=400',
                 '--strategy', 'lru', '--cache', '50%', '--prefetch', 'amp']
    assert main.main(arguments) == 0
    shown = capsys.readouterr().out
    head = next(line for line in shown.splitlines() if 'dollars' in line)
    assert 'SSD written' in head and 'writes/day' in head
    ahead = shown[shown.index('Prefetched:'):]
    assert 'dollars' in ahead and 'to none' in ahead
    assert main.main([*arguments, '--json', '-']) == 0
    runs = json.loads(capsys.readouterr().out)['runs']
    assert [run['prefetch'] for run in runs] == ['none', 'amp']
    for run in runs:
        assert run['ssd_written_bytes'] > 0
        assert run['drive_writes_a_day'] > 0
    ratio = runs[1]['dollars'] / runs[0]['dollars']
    assert '%.2f' % ratio == ahead.splitlines()[-1].split()[-1]


def test_a_recommendation_says_what_each_size_costs_and_writes(capsys):
    arguments = ['replay', 'gen:zipf,requests=2000,objects=200,size=8192',
                 '--recommend', '--budget', '20%']
    assert main.main(arguments) == 0
    shown = capsys.readouterr().out
    assert shown.count(' written to the SSD (') == 8
    assert shown.count(' drive writes a day)') == 8
    assert main.main([*arguments, '--json', '-']) == 0
    made = json.loads(capsys.readouterr().out)['recommendation']
    for told in (made['best'], made['lru'], *made['smaller'], *made['larger']):
        assert told['ssd_written_bytes'] > 0
        assert told['drive_writes_a_day'] > 0 and told['dollars'] > 0
    assert made['admitted']['admit'] == 'second:4'
    assert 0 < made['admitted']['ssd_written_bytes'] < \
        made['best']['ssd_written_bytes']
    assert '  With admit = second:4: 0.' in shown
    sizes = [told['cache_bytes'] for told in (
        *made['smaller'][::-1], made['best'], *made['larger'])]
    assert sizes == sorted(set(sizes)) and len(sizes) == 7


@BOTH
def test_second_misses_come_in_and_first_ones_are_not_written(way):
    lines = ['%d GET %s 60' % (9000 * at, name)
             for at, name in enumerate('abcbb')]
    assert written(way, trace_of(*lines)) == 240
    assert written(way, trace_of(*lines), admit=Admit(4)) == 120


@BOTH
@pytest.mark.parametrize('unit', [0, 10])
def test_what_clients_write_comes_in_at_once(way, unit):
    lines = ['0 GET a 100 0 99', '9000 PUT b 100 0 99',
             '19000 GET b 100 0 99']
    assert written(way, trace_of(*lines, unit=unit),
                   admit=Admit(1)) == 200


@pytest.mark.parametrize('admit', [Admit(2), Admit(learns=True)], ids=str)
@pytest.mark.parametrize('mode', ['through', 'around'])
def test_both_ways_write_the_same_second_misses(mode, admit):
    trace = generators.generate('gen:chains,requests=4000,writes=0.2')
    room = plan.plan(trace).footprint_bytes // 10
    all_in = written(simulator.replay, trace, room, write=mode)
    quick, slow = (written(way, trace, room, write=mode, admit=admit)
                   for way in (simulator.replay, timed.play))
    assert 0 < quick == slow < all_in


def test_admissions_stand_beside_each_other(capsys):
    arguments = ['replay', 'gen:zipf,requests=5000,objects=500', '--cache',
                 '5%', '--strategy', 'lru,class', '--admit']
    assert main.main([*arguments, 'all,second', '--json', '-']) == 0
    runs = json.loads(capsys.readouterr().out)['runs']
    assert [run['strategy'] for run in runs] == [
        'lru', 'lru+second:4', 'class', 'class+second:4']
    for all_in, second in (runs[:2], runs[2:]):
        assert second['ssd_written_bytes'] < all_in['ssd_written_bytes']
        assert second['bypasses'] > all_in['bypasses']
    assert main.main([*arguments, 'second', '--recommend']) != 0
    assert '--admit: --recommend' in capsys.readouterr().err
