"""Virtual time: both ways agree, and the figures mean what they say."""

import dataclasses
import json

import pytest

from swift_dss.cli import main
from swift_dss.core.classes import ClassTable
from swift_dss.core.config import TierConf
from swift_dss.core.errors import BadConfig
from swift_dss.replay import (
    classing, latency, plan, results, simulator, timed)
from swift_dss.replay.advice import goals, recommend, telling
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators, model, native, sessions
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.prefetch import base
from swift_dss.wire.settings import classtable

STILL = latency.Cloud('still', latency.Times(100.0), latency.Times(50.0),
                      1e6, 1e-6, 2e-6, 3e-9, 4e-9)
SSD = latency.Disk('ssd', latency.Times(1.0), 1e9)


def trace_of(*lines, unit=0):
    trace = native.read([line.encode() for line in lines], 'test')
    trace.unit_bytes = 0
    return trace


def setup(strategy, cache_bytes, **changes):
    return Setup(strategy, cache_bytes, ClassTable(), STILL, SSD,
                           **changes)


ZIPF = ('gen:zipf,requests=20000,objects=2000,sigma=1.5,size=8192,'
        'writes=0.1,rate=20')


@pytest.mark.parametrize('write', ['through', 'around'])
@pytest.mark.parametrize('strategy', ['lru', 's3fifo', 'gdsf', 'class-lru'])
def test_both_ways_hit_the_same_requests(strategy, write):
    ready = plan.plan(generators.generate(ZIPF))
    chosen = setup(strategy, ready.footprint_bytes // 10, write=write)
    quick, slow = simulator.replay(ready, chosen), timed.play(ready, chosen)
    assert (quick.hits == slow.hits).all()
    assert (quick.hit_bytes == slow.hit_bytes).all()
    for name in ('gets', 'get_bytes', 'puts', 'put_bytes', 'bypasses',
                 'cached_bytes'):
        assert quick.counts[name] == slow.counts[name], name
    assert 0.1 < quick.hits.mean() < 0.9
    # Constant times: what waits for a fetch waits as long in both.
    assert quick.latency_ms == pytest.approx(slow.latency_ms)
    assert quick.counts['delayed'] == slow.counts['delayed'] > 0


def test_both_ways_agree_on_units_of_a_volume():
    trace = generators.generate('gen:chains,requests=8000,request=8192')
    ready = plan.plan(trace, 4096)
    assert ready.accesses == 2 * ready.requests
    chosen = setup('sarc', ready.footprint_bytes // 5)
    quick, slow = simulator.replay(ready, chosen), timed.play(ready, chosen)
    assert (quick.hits == slow.hits).all()
    assert quick.counts['gets'] == slow.counts['gets']
    assert quick.latency_ms == pytest.approx(slow.latency_ms)


def test_a_miss_waits_for_the_cloud_and_the_next_for_the_rest_of_it():
    ready = plan.plan(trace_of(
        '0 GET a 1000000', '600 GET a 1000000', '5000 GET a 1000000'))
    outcome = simulator.replay(ready, setup('lru', 1 << 30))
    # 100 ms and 1 MB at 1 MB/s; then 1 ms and 1 MB at 1 GB/s.
    assert outcome.latency_ms.tolist() == pytest.approx(
        [1100 + 2, 500 + 2, 2])
    assert outcome.hits.tolist() == [False, True, True]
    assert outcome.counts['delayed'] == 1
    row = results.summary(ready, outcome)
    assert row['dollars'] == pytest.approx(1e-6 + 3e-3)
    assert (row['hit_ratio'], row['p50_ms']) == (
        pytest.approx(2 / 3), pytest.approx(502))


@pytest.mark.parametrize('way', [simulator.replay, timed.play])
def test_what_is_overwritten_deleted_or_resized_is_gone(way):
    ready = plan.plan(trace_of(
        '0 GET a 10', '1 PUT a 10', '2 GET a 10', '3 DELETE a 10',
        '4 GET a 10', '5 GET a 12', '6 GET a 12'))
    outcome = way(ready, setup('lru', 100, write='through'))
    assert outcome.hits.tolist() == [
        False, False, True, False, False, False, True]
    assert outcome.counts['puts'] == 1
    assert outcome.counts['cached_bytes'] == 12


def test_around_a_write_leaves_nothing():
    ready = plan.plan(trace_of('0 PUT a 10', '1 GET a 10'))
    assert not simulator.replay(ready, setup(
        'lru', 100, write='around')).hits.any()


def test_dirty_bytes_stay_and_a_write_without_room_waits_for_the_cloud():
    lines = ['%d PUT o%d 10' % (at, at) for at in range(12)]
    lines += ['100 GET o0 10', '200 GET n 10', '90000 GET n 10',
              '90001 GET n 10']
    ready = plan.plan(trace_of(*lines))
    outcome = simulator.replay(ready, setup(
        'lru', 100, write='back', upload_seconds=60.0))
    waits = outcome.latency_ms.tolist()
    assert waits[:10] == pytest.approx([1.0] * 10, abs=0.1)
    assert waits[10:12] == pytest.approx([50.0] * 2, abs=0.1)
    assert outcome.counts['stalls'] == 2
    # o0 is still there; n finds no room until the uploads are done.
    assert outcome.hits.tolist()[12:] == [True, False, False, True]


def test_what_leaves_the_ssd_is_found_on_the_hdd():
    hdd = latency.Disk('hdd', latency.Times(12.0), 1e8)
    ready = plan.plan(trace_of(
        '0 GET a 60', '1000 GET b 60', '2000 GET a 60', '3000 GET c 60'))
    outcome = simulator.replay(ready, dataclasses.replace(
        setup('lru', 100, hdd_bytes=100), hdd=hdd))
    assert outcome.latency_ms.tolist() == pytest.approx(
        [101, 101, 13, 101], abs=0.1)
    assert (outcome.counts['gets'], outcome.counts['hdd_hits']) == (3, 1)


@pytest.mark.parametrize('unit', [0, 60])
def test_the_hdd_holds_no_more_than_its_room(unit):
    lines = ['%d GET %s 60' % (1000 * at, name)
             for at, name in enumerate('abcda')]
    ready = plan.plan(trace_of(*lines), unit)
    outcome = simulator.replay(ready, setup('lru', 60, hdd_bytes=100))
    assert (outcome.counts['gets'], outcome.counts['hdd_hits']) == (5, 0)


def test_the_last_unit_of_an_object_takes_what_it_has_on_the_hdd():
    lines = ['%d GET %s 60' % (1000 * at, name)
             for at, name in enumerate('abca')]
    ready = plan.plan(trace_of(*lines), 4096)
    outcome = simulator.replay(ready, setup('lru', 60, hdd_bytes=120))
    assert (outcome.counts['gets'], outcome.counts['hdd_hits']) == (3, 1)


def test_metadata_that_is_not_in_memory_costs_a_read():
    ready = plan.plan(trace_of(
        '0 GET a 10', '1000 GET b 10', '2000 GET a 10', '3000 GET a 10'))
    outcome = simulator.replay(ready, setup('lru', 100, metadata_entries=1))
    assert outcome.latency_ms.tolist() == pytest.approx(
        [102, 102, 2, 1], abs=0.1)
    assert outcome.counts['metadata_misses'] == 3


class Told(base.Prefetch):
    """Wants the next unit, and remembers what it was told."""

    name = 'told'

    def __init__(self, settings):
        self.unit = settings.unit_bytes
        self.said = []

    def on_request(self, access, room_bytes):
        self.said.append(('request', access.offset, access.hit, room_bytes))
        start = access.offset + access.length
        if start >= access.object_bytes:
            return []
        return base.clip([base.Want(
            access.account, access.object_id, start, self.unit,
            base.Urgency.AHEAD, 1.0, self.name)], room_bytes)

    def on_arrival(self, account, object_id, offset, length, waited, now):
        self.said.append(('arrival', offset, waited, now))

    def on_last_chance(self, account, object_id, offset, length, now):
        self.said.append(('chance', offset))
        return False

    def on_evict(self, account, object_id, offset, length, used, now):
        self.said.append(('evict', offset, used))


@pytest.fixture
def told(monkeypatch):
    made = []

    def make(settings):
        made.append(Told(settings))
        return made[0]
    monkeypatch.setitem(timed.STRATEGIES, 'told', make)
    return made


def test_a_prefetcher_is_told_what_its_contract_says(told):
    lines = ['0 GET a 40000 0 9999', '1000 GET a 40000 10000 19999',
             '1010 GET a 40000 20000 29999', '5000 GET b 10000',
             '6000 GET b 10000', '7000 GET c 10000']
    ready = plan.plan(trace_of(*lines), 10000)
    outcome = simulator.replay(ready, setup(
        'lru', 20000, prefetch='told', prefetch_bytes=30000))
    requests = [call for call in told[0].said if call[0] == 'request']
    # The second was fetched in time, the third is still on its way.
    assert [(call[1], call[2]) for call in requests] == [
        (0, False), (10000, True), (20000, False), (0, False), (0, True),
        (0, False)]
    # What a reader waits for is no prefetch any more.
    assert requests[2][3] == 30000
    arrivals = [call[1:3] for call in told[0].said if call[0] == 'arrival']
    assert arrivals == [(10000, False), (20000, True), (30000, False)]
    assert ('evict', 10000, True) in told[0].said
    assert ('chance', 30000) in told[0].said
    assert ('evict', 30000, False) in told[0].said
    assert outcome.latency_ms.tolist()[2] == pytest.approx(
        1000 + 110 - 1010 + 1, abs=0.1)
    assert {name: outcome.counts[name] for name in (
        'prefetched_bytes', 'useful_bytes', 'late_bytes',
        'wasted_bytes')} == {
            'prefetched_bytes': 30000, 'useful_bytes': 10000,
            'late_bytes': 10000, 'wasted_bytes': 10000}
    assert outcome.counts['gets'] == 6


def test_a_budget_holds_prefetches_back(told):
    ready = plan.plan(trace_of(
        *['%d GET o%d 40000 0 9999' % (at, at) for at in range(9)]), 10000)
    outcome = simulator.replay(ready, setup(
        'lru', 1 << 20, prefetch='told', prefetch_bytes=20000))
    assert outcome.counts['prefetched_bytes'] == 20000


@pytest.mark.parametrize('name', ['seq', 'amp', 'combined'])
def test_streams_that_are_fetched_ahead_wait_less(name):
    ready = plan.plan(generators.generate(
        'gen:streams,requests=4000,clients=4,think_ms=50'))
    waits = {}
    for which in ('none', name):
        outcome = simulator.replay(ready, dataclasses.replace(
            setup('lru', ready.footprint_bytes // 4, prefetch=which),
            cloud=latency.S3))
        waits[which] = outcome.latency_ms.mean()
        asked = outcome.asked_bytes.sum()
        assert outcome.counts['get_bytes'] >= asked
    assert waits[name] < waits['none'] / 3


# Classes and recommendations.


def test_rules_of_classes():
    def trace():
        return trace_of('0 GET a/x 10', '1 GET b/y 5000', '2 GET b/y 5000',
                        '3 GET b/z 100000')
    empty = ClassTable()
    sized = classing.apply('size:1k,64k', trace(), empty)
    assert sized.class_ids.tolist() == [11, 12, 12, 13]
    assert sized.ranked == [13, 12, 11]
    table = classing.table_for(sized, None)
    assert table.spec(11).rank > table.spec(12).rank > table.spec(13).rank
    owned = classing.apply('account', trace(), empty)
    assert owned.class_ids.tolist() == [11, 12, 12, 12]
    assert owned.ranked == [11, 12]
    assert set(classing.apply('none', trace(), empty).class_ids) == {0}
    for wrong, said in (('size:9,1', 'do not rise'), ('region:0', 'region'),
                        ('shape', 'is not one of trace'),
                        ('size:1q', 'not a number of bytes')):
        with pytest.raises(BadConfig, match=said):
            classing.apply(wrong, trace(), empty)


def test_regions_rank_by_heat():
    trace = generators.generate('gen:chains,requests=2000')
    classed = classing.apply('region:4', trace, ClassTable())
    heat = [int((classed.class_ids == class_id).sum())
            for class_id in classed.ranked]
    assert heat == sorted(heat) and len(heat) == 4


def test_rules_of_a_file_class_objects_by_name_and_size(tmp_path):
    rules = tmp_path / 'rules.conf'
    rules.write_text('[rule:big]\nclass = 17\nsize = > 1k\n'
                     '[rule:a]\nclass = 11\naccount = a\n')
    trace = native.read([b'0 GET a/c/o 10\n', b'1 GET b/c/o 2000\n',
                         b'2 GET b/c/p 10\n'], 't', keep_names=True)
    classed = classing.apply('rules:%s' % rules, trace, ClassTable())
    assert classed.class_ids.tolist() == [11, 17, 0]


CACS = 'gen:cacs,requests=6000,objects=600'


@pytest.fixture(scope='module')
def cacs():
    trace = generators.generate(CACS)
    return plan.plan(trace), classing.table_for(trace, None)


def ratios(ready, table, strategy, share=0.1):
    outcome = simulator.replay(ready, Setup(
        strategy, int(ready.footprint_bytes * share), table))
    return {int(class_id): row['hit_ratio'] for class_id, row in
            results.summary(ready, outcome)['classes'].items()}


def test_class_order_starves_the_low_and_a_floor_keeps_what_it_has(cacs):
    ready, table = cacs
    blind = ratios(ready, table, 'lru', 0.3)
    strict = ratios(ready, table, 'class-lru', 0.3)
    cured = ratios(ready, recommend.floored(table, 13, 0.5), 'class-lru',
                   0.3)
    assert strict[11] > blind[11] + 0.3
    assert strict[13] < 0.05 < blind[13]
    assert cured[13] > strict[13] + 0.05
    assert cured[11] > blind[11] + 0.3


def test_what_is_recommended_is_best_of_what_was_replayed(cacs):
    ready, table = cacs
    first = Setup('lru', 1, table)
    budget = ready.footprint_bytes // 10
    goal = goals.parse_goal('hits', table, ready, {})
    outcome = recommend.search(ready, first, budget, goal, 1,
                               lambda done, phase: None)
    assert outcome.best[0].strategy == 'gdsf'
    assert goal.score(outcome.best[1]) == max(
        goal.score(row) for setup, row in outcome.tried
        if setup.cache_bytes == budget)
    assert goal.score(outcome.best[1]) < goal.score(outcome.larger[-1][1])
    again = simulator.replay(ready, outcome.best[0])
    assert results.summary(ready, again)['hit_ratio'] == \
        outcome.best[1]['hit_ratio']
    told = telling.text(outcome, table, None, 'unasked')
    assert 'eviction = gdsf' in told
    room = int(told.partition('ssd_bytes = ')[2].split()[0])
    assert budget <= room * TierConf().high_watermark < budget + 1


def test_weights_change_what_is_best(cacs):
    ready, table = cacs
    first = Setup('lru', 1, table)
    goal = goals.parse_goal('hits', table, ready, {13: 1000.0})
    outcome = recommend.search(ready, first, ready.footprint_bytes // 4, goal,
                               1, lambda done, phase: None)
    told = telling.text(outcome, table, None, 'unasked')
    assert classtable.parse('[DEFAULT]\n' + ''.join(
        line + '\n' + ('name = c%d\nrank = %d\n' % (at, at)
                       if '[class' in line else '')
        for at, line in enumerate(told.partition(
            'dss-classes.conf:\n')[2].replace('  ', '').splitlines())))
    base_score = goal.score(outcome.base[1])
    assert goal.score(outcome.best[1]) > base_score + 0.1
    assert outcome.best[1]['classes']['13']['hit_ratio'] > 0.4


@pytest.mark.parametrize('text, said', [
    ('speed', 'is not one of hits'), ('hits:user1', 'is not one of hits'),
    ('p99:gold', "no request of the trace has class 'gold'")])
def test_a_goal_that_is_none_is_refused(cacs, text, said):
    with pytest.raises(BadConfig, match=said):
        goals.parse_goal(text, cacs[1], cacs[0], {})


# Clouds.


def test_a_cloud_of_a_file(tmp_path):
    path = tmp_path / 'cloud.json'
    path.write_text(json.dumps({
        'name': 'ours', 'get_ms': {'quantiles': [[0.5, 90], [0.99, 900]]},
        'bytes_per_second': 1e6, 'dollars': {'gb_out': 1}}))
    cloud = latency.cloud(str(path))
    assert cloud.out_dollars == 1e-9
    assert cloud.put == latency.S3.put
    drawn = latency.Lots(cloud.get, 1)
    values = sorted(drawn.next() for _ in range(20001))
    assert values[10000] == pytest.approx(90, rel=0.05)
    assert values[-100] < 900.1
    for text, said in (
            ('{', 'Expecting'), ('[]', 'not an object of'),
            ('{"get_ms": {"median": -1}}', 'get_ms: median: -1 is not'),
            ('{"get_ms": {"quantiles": [[1, 2]]}}', 'quantiles: not two'),
            ('{"dollars": {"x": 1}}', 'dollars: not an object')):
        path.write_text(text)
        with pytest.raises(BadConfig, match=said):
            latency.cloud(str(path))
    with pytest.raises(BadConfig, match='is none of s3, s3-2016'):
        latency.cloud(str(tmp_path / 'none'))


@pytest.mark.parametrize('cloud', list(latency.CLOUDS.values()),
                         ids=list(latency.CLOUDS))
def test_a_seed_gives_the_same_times(cloud):
    for lots, again in zip((latency.Lots(cloud.get, 5) for _ in range(1)),
                           (latency.Lots(cloud.get, 5) for _ in range(1))):
        assert [lots.next() for _ in range(9)] == [
            again.next() for _ in range(9)]


# The command.


def test_the_command_prints_tables_json_and_a_plot(tmp_path, capsys):
    plot, out = tmp_path / 'x.png', tmp_path / 'x.json'
    assert main.main([
        'replay', CACS, '--strategy', 'lru,class', '--cache', '5%,10m',
        '--json', str(out), '--plot', str(plot)]) == 0
    said = capsys.readouterr().out
    assert 'user1 (11)' in said and 'accesses/s' in said
    report = json.loads(out.read_text())
    assert [run['strategy'] for run in report['runs']] == [
        'lru', 'class'] * 2
    assert report['runs'][2]['cache_bytes'] == 10 << 20
    assert plot.read_bytes()[:4] == b'\x89PNG' and \
        plot.stat().st_size > 20000


def test_the_command_recommends(capsys):
    assert main.main(['replay', CACS, '--recommend', '--budget', '20%',
                      '--goal', 'dollars', '--strategy', 'lru']) == 0
    assert 'set-ups were replayed' in capsys.readouterr().out


def test_the_command_measures_what_strategies_cost(capsys):
    assert main.main(['replay', '--measure', '3000', '--strategy',
                      'lru,class-s3fifo', '--json', '-']) == 0
    rows = json.loads(capsys.readouterr().out)['rows']
    assert [row['tracked'] for row in rows] == [3000, 3000]


def test_each_trace_by_itself_gives_what_it_gives_alone(capsys):
    names = ['gen:zipf,requests=500,objects=50',
             'gen:zipf,requests=700,objects=90']
    alone = []
    for name in names:
        assert main.main(['replay', name, '--strategy', 'lru']) == 0
        alone.append(capsys.readouterr().out)
    assert main.main(['replay', '--each', *names, '--strategy', 'lru']) == 0

    def lines(text):
        # Speeds differ each time.
        return [line.split()[:-1] for line in text.splitlines()]
    assert lines(capsys.readouterr().out) == lines('\n'.join(alone))


def test_the_command_measures_prefetchers_against_their_bound(capsys):
    assert main.main(['replay', '--measure', '1000', '--strategy', 'lru',
                      '--prefetch', 'all', '--json', '-']) == 0
    rows = json.loads(capsys.readouterr().out)['prefetchers']
    assert [row['prefetch'] for row in rows] == [
        'seq', 'amp', 'graph', 'combined']
    for row in rows:
        assert 0.5 < row['most_bytes'] / row['bound_bytes'] <= 1
        assert row['reads'] == 2000 and row['seconds_a_million'] > 0
    assert rows[2]['nodes'] > 300


@pytest.mark.parametrize('options, said', [
    ([], 'a TRACE is missing'),
    (['gen:none'], "'none' is not one of zipf"),
    (['--each', CACS, '--json', '-'], '--each: --json and --plot'),
    (['gen:zipf,objects=x'], "objects: 'x' is not a whole number"),
    (['gen:zipf,colour=1'], "'colour=1' is not KEY=VALUE"),
    ([CACS, '--strategy', 'fifo'], '--strategy: fifo is not one of lru'),
    ([CACS, '--cache', '0%'], "--cache: '0%' is not a share"),
    ([CACS, '--cache', 'x'], "--cache: 'x' is not a number of bytes"),
    ([CACS, '--floors', 'user1=2'], "--floors: 'user1=2' is not CLASS=SHARE"),
    ([CACS, '--floors', 'user1=60%,user2=60%'], 'than the whole cache'),
    ([CACS, '--weights', 'user1'], "--weights: 'user1' is not CLASS=W"),
    ([CACS, '--prefetch', 'seq'], 'kept as whole objects; say --unit'),
    ([CACS, '--limit', '0'], '--limit: 0 is not at least 1'),
    ([CACS, '--rate', '0'], '--rate: 0 is not above 0')])
def test_a_wrong_option_is_named(options, said, capsys):
    assert main.main(['replay', *options]) in (65, 78)
    assert said in capsys.readouterr().err


# Generators.


@pytest.mark.parametrize('name', list(generators.GENERATORS))
def test_a_generator_gives_the_same_for_a_seed_and_another_for_another(
        name):
    trace, same, other = (generators.generate(
        'gen:%s,requests=3000,seed=%d' % (name, seed)) for seed in (7, 7, 8))
    assert trace.objects.tolist() == same.objects.tolist()
    assert trace.at_ms.tolist() == same.at_ms.tolist()
    assert trace.at_ms.tolist() != other.at_ms.tolist()
    assert (model.numpy().diff(trace.at_ms) >= 0).all()
    assert (trace.lengths > 0).all()
    assert (trace.starts + trace.lengths <= trace.sizes).all()


def test_chains_have_tombolos_mix():
    trace = generators.generate('gen:chains,requests=40000')
    shares = [float((trace.class_ids == 11 + kind).mean())
              for kind in range(4)]
    assert shares == pytest.approx([0.21, 0.21, 0.47, 0.10], abs=0.02)


@pytest.mark.parametrize('kind, length', [
    (sessions.SEQ_ONCE, 32), (sessions.RAND_ONCE, 1)])
def test_places_that_are_read_once_are_no_neighbours(kind, length):
    """Else a prefetcher that goes too far finds the next of them."""
    trace = generators.generate('gen:chains,requests=40000')
    seen, fresh, beside = set(), 0, 0
    for block, class_id in zip((trace.starts // trace.lengths).tolist(),
                               trace.class_ids.tolist()):
        if class_id == 11 + kind and block not in seen:
            fresh += 1
            beside += not seen.isdisjoint((block - 1, block - 2))
        seen.add(block)
    begun = fresh / length
    # A run's own requests follow one another.
    assert beside - (fresh - begun) < 0.25 * begun


def test_every_strategy_replays():
    ready = plan.plan(generators.generate(
        'gen:flood,requests=3000,objects=500,scan_objects=200'))
    for name in orders.names():
        outcome = simulator.replay(ready, setup(
            name, ready.footprint_bytes // 10))
        assert outcome.counts['gets'] > 0
