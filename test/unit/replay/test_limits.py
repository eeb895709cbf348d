"""Limits of a replay hold: against exhaustive search, and against every order.
"""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift_dss.cli import main
from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadConfig
from swift_dss.replay import latency, plan, results, simulator, timed
from swift_dss.replay.bounds import limits, offline, rents, reuses
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators, native
from swift_dss.replay.traces.model import Verb
from swift_dss.strategy.eviction.objects import orders

#: A GET is dear beside a byte, so that both count.
CLOUD = replace(latency.S3, get_dollars=3.0, out_dollars=1.0,
                put_dollars=0.5, in_dollars=0.25)
NEAR = 1e-6


def setup_of(room, write='through', **changes):
    return Setup('lru', room, ClassTable(), changes.pop('cloud', CLOUD),
                 write=write, **changes)


def trace_of(lines, unit=0, parts=0):
    trace = native.read([line.encode() for line in lines], 'test')
    trace.unit_bytes, trace.part_bytes = unit, parts
    return trace


class Search:
    """All that any cache could do on a tiny trace, one state after another.

    A state is the keys that are there, and whether the last unit of the
    request was missed; it has the least dollars, or the fewest lost hits,
    that lead to it.
    """

    def __init__(self, ready, room, write):
        self.ready, self.room, self.write = ready, room, write
        self.sizes = {}

    def subsets(self, keys):
        for count in range(len(keys) + 1):
            for chosen in itertools.combinations(sorted(keys), count):
                if sum(self.sizes[key] for key in chosen) <= self.room:
                    yield frozenset(chosen)

    def least(self, step, done):
        """:param step: price of an access
        :param done: price of a request with a miss or without one"""
        ready = self.ready
        states = {frozenset(): 0.0}
        for row in range(ready.requests):
            verb = ready.trace.verbs[row]
            own = int(ready.trace.objects[row])
            if ready.renewed[row]:
                states = self.merged(
                    (frozenset(key for key in here if self.owner(key) != own),
                     spent) for here, spent in states.items())
            inner = {(here, False, False): spent
                     for here, spent in states.items()}
            for at in range(ready.first[row], ready.first[row + 1]):
                inner = self.access(inner, verb, at, step)
            states = self.merged(
                (here, spent + (done(row, missed)
                                if verb == Verb.READ else 0.0))
                for (here, _, missed), spent in inner.items())
        return min(states.values())

    def access(self, states, verb, at, step):
        key, size = int(self.ready.keys[at]), int(self.ready.sizes[at])
        self.sizes[key] = size
        found = {}
        for (here, before, missed), spent in states.items():
            is_gone = verb == Verb.DELETE or \
                verb == Verb.WRITE and self.write == 'around'
            misses = verb == Verb.READ and key not in here
            price = spent + (step(size, before) if misses else 0.0)
            keys = here - {key} if is_gone else here | {key}
            for after in self.subsets(keys):
                state = after, misses, missed or misses
                found[state] = min(price, found.get(state, price))
        return found

    def owner(self, key):
        return key >> plan.UNIT_BITS if self.ready.unit_bytes else key

    @staticmethod
    def merged(pairs):
        states = {}
        for here, spent in pairs:
            states[here] = min(spent, states.get(here, spent))
        return states


def best_dollars(ready, room, write):
    trace = ready.trace
    writes = trace.verbs == Verb.WRITE
    return Search(ready, room, write).least(
        lambda size, before: size * CLOUD.out_dollars + (
            CLOUD.get_dollars if ready.parted or not before else 0.0),
        lambda row, missed: 0.0) + writes.sum() * CLOUD.put_dollars \
        + trace.lengths[writes].sum() * CLOUD.in_dollars


def best_hits(ready, room, write, weights):
    trace = ready.trace
    reads = trace.verbs == Verb.READ
    weight = [weights.get(class_id, 1.0)
              for class_id in trace.class_ids.tolist()]
    total = sum(each for each, read in zip(weight, reads) if read)
    lost = Search(ready, room, write).least(
        lambda size, before: 0.0,
        lambda row, missed: weight[row] if missed else 0.0)
    return (total - lost) / total


@st.composite
def tiny(draw):
    """A plan with few keys: whole objects, parts, runs or blocks."""
    kind = draw(st.sampled_from(['whole', 'parts', 'runs', 'blocks']))
    lines = []
    verbs = ('GET',) * 6 + ('PUT', 'DELETE')
    names = 'abcd' if kind == 'whole' else 'ab'
    size = dict.fromkeys(names, 3)
    for at in range(draw(st.integers(1, 9))):
        name = draw(st.sampled_from(names))
        if kind != 'blocks' and draw(st.integers(0, 5)) == 0:
            size[name] = draw(st.integers(1, 4))
        first = draw(st.integers(0, size[name] - 1))
        last = draw(st.integers(first, size[name] - 1))
        verb = draw(st.sampled_from(verbs))
        if verb != 'GET' and kind != 'blocks':
            first, last = 0, size[name] - 1
        lines.append('%d %s %s %d %d %d %d' % (
            1000 * at, verb, name, size[name], first, last,
            draw(st.integers(1, 2))))
    trace = trace_of(lines, unit=kind == 'blocks',
                     parts=2 if kind == 'parts' else 0)
    return plan.plan(trace, {'whole': 0, 'runs': 1}.get(kind, -1))


@given(tiny(), st.integers(1, 6), st.sampled_from(['through', 'around']))
@settings(max_examples=300)
def test_the_least_dollars_of_all_are_between_both_figures(
        ready, room, write):
    limit = limits.Limits(ready, setup_of(room, write)).of('dollars', room)
    least = best_dollars(ready, room, write)
    assert limit.best <= least + NEAR
    assert least <= limit.reached + NEAR


@given(tiny(), st.integers(1, 6), st.sampled_from(['through', 'around']),
       st.sampled_from([{}, {1: 5.0}]))
@settings(max_examples=300)
def test_the_most_hits_of_all_are_between_both_figures(
        ready, room, write, weights):
    if not (ready.trace.verbs == Verb.READ).any():
        return
    limit = limits.Limits(ready, setup_of(room, write)).of(
        'hits', room, weights)
    most = best_hits(ready, room, write, weights)
    assert limit.reached <= most + NEAR
    assert most <= limit.best + NEAR


def test_a_bound_with_half_of_the_room_is_caught(monkeypatch):
    ready = plan.plan(trace_of(['%d GET %s 2' % (at, name) for at, name in
                                enumerate('abcabcabc')]))
    honest = rents.Market.__init__

    def halved(self, found, worth, room):
        honest(self, found, worth, room / 2)

    monkeypatch.setattr(rents.Market, '__init__', halved)
    limit = limits.Limits(ready, setup_of(4)).of('dollars', 4)
    assert limit.best > best_dollars(ready, 4, 'through') + NEAR


GENERATED = {
    'zipf': 'objects=1000,sigma=1.5', 'esi': 'share=0.01', 'streams': 'run=64',
    'chains': 'writes=0.1', 'flood': 'objects=500,scan_objects=300',
    'cacs': 'objects=300', 'bursty': 'objects=500'}


def generated(name):
    return plan.plan(generators.generate('gen:%s,requests=3000,%s' % (
        name, GENERATED[name])))


def rooms_of(ready):
    """Small ones, in which the largest unit has room."""
    return [max(int(ready.footprint_bytes * share), int(ready.sizes.max()))
            for share in (0.02, 0.2)]


def test_all_generators_are_judged():
    assert set(GENERATED) == set(generators.GENERATORS)


@pytest.mark.parametrize('write', ['back', 'around'])
@pytest.mark.parametrize('name', GENERATED)
def test_no_order_beats_the_limit_of_a_generated_trace(name, write):
    ready = generated(name)
    for room in rooms_of(ready):
        setup = setup_of(room, write, cost='dollars')
        judge = limits.Limits(ready, setup)
        spent, hit = judge.of('dollars', room), judge.of('hits', room)
        asked = judge.of('bytes', room)
        for strategy in (*orders.names(), 'tuned-lru'):
            row = results.summary(ready, simulator.replay(
                ready, replace(setup, strategy=strategy)))
            assert row['dollars'] >= spent.best, strategy
            assert row['hit_ratio'] <= hit.best, strategy
            assert row['byte_hit_ratio'] <= asked.best, strategy


@pytest.mark.parametrize('name', ['chains', 'zipf', 'esi'])
def test_an_hdd_and_a_shared_link_do_not_beat_it(name):
    ready = generated(name)
    for room in rooms_of(ready):
        setup = setup_of(room, 'back', hdd_bytes=3 * room,
                         link_bytes_per_second=1e6)
        judge = limits.Limits(ready, setup)
        row = results.summary(ready, simulator.replay(ready, setup))
        assert row['dollars'] >= judge.of('dollars', room).best
        assert row['hit_ratio'] <= judge.of('hits', room).best


@pytest.mark.parametrize('name', GENERATED)
def test_the_order_that_knows_all_has_room_for_what_it_keeps(name):
    ready = generated(name)
    for room in rooms_of(ready):
        found = reuses.find(ready, 'through')
        wanted = reuses.dollars(ready, found, CLOUD)
        market = rents.Market(*reuses.fitting(found, wanted, room), room)
        kept = offline.kept(market, rents.at_most(market)[1])
        there = np.zeros(ready.accesses, dtype='int64')
        own = market.reuses
        np.add.at(there, own.begins[kept], own.sizes[kept])
        np.subtract.at(there, own.ends[kept], own.sizes[kept])
        assert np.cumsum(there).max() <= room


def test_with_one_size_and_one_price_it_is_the_rule_of_belady():
    ready = plan.plan(generators.generate(
        'gen:zipf,requests=4000,objects=500,alpha=0.7'))
    room = 40 * 65536
    limit = limits.Limits(ready, setup_of(room)).of('hits', room)
    keys = ready.keys.tolist()
    later, after = {}, []
    for at in reversed(range(len(keys))):
        after.append(later.get(keys[at], math.inf))
        later[keys[at]] = at
    hits, there = 0, {}
    for key, again in zip(keys, reversed(after)):
        hits += key in there
        there[key] = again
        if len(there) > 40:
            del there[max(there, key=there.get)]
    assert limit.reached == pytest.approx(hits / len(keys))
    assert limit.best == pytest.approx(hits / len(keys), rel=0.02)


@pytest.mark.parametrize('name', GENERATED)
def test_limits_only_get_better_with_the_room(name):
    ready = generated(name)
    largest = int(ready.sizes.max())
    rooms = [largest * times for times in (1, 2, 3, 5, 8, 13, 21, 34)]
    runs = [{'cache_bytes': room, 'cache_share': 0.0, 'prefetch': 'none',
             'strategy': 'lru', 'dollars': 1.0, 'hit_ratio': 0.0}
            for room in rooms]
    told = limits.rows(ready, setup_of(largest), runs)
    for name, sign in (('dollars_at_least', -1), ('dollars_offline', -1),
                       ('hit_ratio_at_most', 1), ('hit_ratio_offline', 1)):
        column = [sign * row[name] for row in told]
        assert column == sorted(column), name


def test_the_constant_rent_is_never_better_than_the_fitted_ones():
    ready = generated('flood')
    for room in rooms_of(ready):
        found = reuses.find(ready, 'through')
        wanted = reuses.dollars(ready, found, CLOUD)
        market = rents.Market(*reuses.fitting(found, wanted, room), room)
        constant = market.constant()[0]
        assert rents.at_most(market)[0] <= constant * (1 + NEAR)
        assert rents.at_most(market)[0] < 0.999 * constant


def test_a_search_on_a_sample_of_the_reuses_has_a_limit_that_holds(
        monkeypatch):
    monkeypatch.setattr(rents, 'SAMPLE', 200)
    ready = generated('zipf')
    for room in rooms_of(ready):
        setup = setup_of(room, cost='dollars')
        limit = limits.Limits(ready, setup).of('dollars', room)
        assert limit.best <= limit.reached
        assert limit.best > 0.8 * limit.reached


@pytest.mark.parametrize('changes, why', [
    ({'think_seconds': 0.0}, 'closed loop'), ({'prefetch': 'seq'}, 'GET')])
def test_runs_that_have_no_limit_are_refused_with_a_reason(changes, why):
    with pytest.raises(BadConfig, match=why):
        limits.Limits(generated('esi'), setup_of(1, **changes))


def test_a_replay_says_its_limits(tmp_path, capsys):
    path = tmp_path / 'figures.json'
    assert main.main([
        'replay', 'gen:zipf,requests=3000,objects=500', '--cache', '5%,20%',
        '--strategy', 'lru,sieve', '--bound', '--json', str(path)]) == 0
    told = capsys.readouterr().out.splitlines()
    head = next(at for at, line in enumerate(told) if 'at least' in line)
    small, large = json.loads(path.read_text())['limits']
    assert told[head + 2].split()[:2] == ['5', '%']
    assert '<= %.1f %%' % (100 * small['to_save_share']) in told[head + 2]
    assert large['dollars_at_least'] <= large['dollars_offline'] \
        <= large['dollars']
    assert large['hit_ratio_at_most'] >= large['hit_ratio_offline'] \
        >= large['hit_ratio']


@pytest.mark.parametrize('options, why', [
    (['--sample', '50%'], 'sample'), (['--loop', 'closed'], 'closed loop')])
def test_what_has_no_limit_is_refused_before_it_runs(options, why, capsys):
    assert main.main(['replay', 'gen:zipf,requests=3000,objects=500',
                      '--bound', *options]) == 78
    assert why in capsys.readouterr().err


def recommended(goal, tmp_path, capsys, *options):
    path = tmp_path / 'figures.json'
    assert main.main([
        'replay', 'gen:zipf,requests=3000,objects=500,sigma=1', '--recommend',
        '--goal', goal, '--json', str(path), *options]) == 0
    return (capsys.readouterr().out,
            json.loads(path.read_text())['recommendation'])


def test_a_recommendation_says_what_any_order_could_save(tmp_path, capsys):
    told, figures = recommended('dollars', tmp_path, capsys, '--prices', 'aws')
    limit, best = figures['limit'], figures['best']['score']
    assert limit['best'] <= limit['offline'] <= best
    assert limit['to_save'] == pytest.approx(
        1 - limit['best'] / best, abs=1e-3)
    assert 'less than %.4f dollars' % limit['best'] in told
    assert 'at most %.1f %% could be saved (' % (100 * limit['to_save']) \
        in told


def test_a_recommendation_says_how_many_more_hits_there_can_be(
        tmp_path, capsys):
    told, figures = recommended(
        'hits', tmp_path, capsys, '--weights', 'gold=9')
    limit, best = figures['limit'], figures['best']['score']
    assert limit['best'] >= limit['offline'] >= best
    assert 'at most %.1f points more' % (100 * (limit['best'] - best)) in told


@pytest.mark.parametrize('goal, options, why', [
    ('p99', [], 'waits least'), ('dollars', ['--sample', '90%'], 'a sample')])
def test_a_recommendation_says_why_it_knows_no_limit(
        goal, options, why, tmp_path, capsys):
    told, figures = recommended(goal, tmp_path, capsys, *options)
    assert figures['limit'] is None
    assert why in told


@pytest.mark.parametrize('way', [simulator.replay, timed.play])
def test_a_deleted_block_is_missed_as_the_limit_says(way):
    ready = plan.plan(trace_of(
        ['%d %s v 10 0 9' % (1000 * at, verb) for at, verb in
         enumerate(('GET', 'DELETE', 'GET', 'GET'))], unit=10))
    setup = setup_of(100)
    assert way(ready, setup).hits.tolist() == [False, False, False, True]
    limit = limits.Limits(ready, setup).of('hits', 100)
    assert limit.best == pytest.approx(1 / 3)
