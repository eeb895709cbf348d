"""Miniature simulations: against the whole, by class, with their error."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, List

import pytest

from swift_dss.cli import main
from swift_dss.core.errors import BadConfig
from swift_dss.replay import classing, plan, runs
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators, sampling
from swift_dss.replay.traces.model import (
    COLUMNS, Builder, Trace, Verb, spread)

np = pytest.importorskip('numpy')

STRATEGIES = ('lru', 'sieve', 'class')
SHARES = (0.02, 0.1)


def rows(trace: Trace, sample: Any = None,
         footprint: int = 0) -> List[Dict[str, Any]]:
    table = classing.table_for(trace, None)
    ready = plan.plan(trace, -1, sample)
    footprint = footprint or ready.footprint_bytes
    return [row for _, row in runs.each(ready, [
        Setup(strategy, int(share * footprint), table)
        for share in SHARES for strategy in STRATEGIES])]


@pytest.fixture(scope='module')
def zipf() -> Trace:
    return spread(generators.generate(
        'gen:zipf,requests=200000,objects=20000'), 1000)


@pytest.fixture(scope='module')
def volume() -> Trace:
    return spread(generators.generate('gen:cacs'), 1000)


@pytest.mark.parametrize('name', ['zipf', 'volume'])
def test_a_sample_of_all_is_the_whole(request, name):
    trace = request.getfixturevalue(name)
    small, sample = sampling.thinned(trace, 1.0)
    for whole, sampled in zip(rows(trace), rows(small, sample)):
        for key in ('reads', 'hit_ratio', 'byte_hit_ratio'):
            # A request that was cut counts its halves apart.
            assert sampled[key] == pytest.approx(
                whole[key], abs=1e-9 if name == 'zipf' else 0.02), key
        assert sampled['hit_ratio_error'] == 0.0
        assert sampled['get_bytes'] == pytest.approx(whole['get_bytes'])


def test_the_stated_error_holds_the_whole_in_each_class(zipf):
    whole = rows(zipf)
    footprint = plan.plan(zipf).footprint_bytes
    off, held = [], []
    for seed in range(6):
        small, sample = sampling.thinned(zipf, 0.2, seed)
        assert abs(len(np.unique(small.objects))
                   / len(np.unique(zipf.objects)) - 0.2) < 0.02
        for exact, sampled in zip(whole, rows(small, sample, footprint)):
            for one, other in [(exact, sampled)] + [
                    (exact['classes'][name], sampled['classes'][name])
                    for name in exact['classes']]:
                error = abs(one['hit_ratio'] - other['hit_ratio'])
                off.append(error)
                held.append(error <= other['hit_ratio_error'] + 0.002)
                assert one['reads'] == other['reads']
    print('figure: sampled at 20 %%: %d of %d cells within the stated error, '
          'mean %.4f, max %.4f' % (
              sum(held), len(held), sum(off) / len(off), max(off)))
    assert sum(held) >= 0.85 * len(held)
    assert sum(off) / len(off) < 0.015


def test_money_and_wear_are_those_of_the_whole(zipf):
    footprint = plan.plan(zipf).footprint_bytes
    small, sample = sampling.thinned(zipf, 0.3)
    for exact, sampled in zip(rows(zipf), rows(small, sample, footprint)):
        assert sampled['cache_bytes'] == exact['cache_bytes']
        for key in ('gets', 'dollars', 'ssd_written_bytes',
                    'drive_writes_a_day'):
            assert sampled[key] == pytest.approx(exact[key], rel=0.1), key


def test_requests_that_are_all_missed_are_known_from_few_of_them():
    """Half of them are for one object, the others for a new one each: with
    the one in the sample or not, the misses are known."""
    builder = Builder('half')
    for number in range(8000):
        builder.add(number, Verb.READ, 0 if number % 2 else number + 1,
                    0, 10, 10)
    trace = builder.build()
    seen = set()
    for seed in range(30):
        small, sample = sampling.thinned(trace, 0.1, seed)
        seen.add(0 in small.objects)
        row = rows(small, sample, 40000)[0]
        assert row['hit_ratio'] == pytest.approx(0.5, abs=0.1)
    assert seen == {True, False}


def test_a_request_for_several_runs_is_cut_and_counts_once():
    builder = Builder('volume', unit_bytes=4096)
    for number in range(1000):
        builder.add(number, Verb.READ, 0, 4096 * 7 * number, 4096 * 7, 0)
    small, sample = sampling.thinned(builder.build(), 1.0)
    assert len(small) > 1000
    assert sample.parts.sum() == pytest.approx(1000)
    assert small.lengths.sum() == 7000 * 4096
    run = sampling.run_length(builder.build())
    assert (small.starts // run
            == (small.starts + small.lengths - 1) // run).all()


def test_auto_takes_small_traces_whole(zipf):
    assert sampling.thinned(zipf, sampling.parse('auto'))[1].share == 1.0
    many = replace(zipf, **{
        name: np.tile(getattr(zipf, name), 10) for name in COLUMNS})
    # The objects want more than the requests do.
    assert sampling.thinned(many, 0.0)[1].share == pytest.approx(
        sampling.AUTO_OBJECTS / len(np.unique(zipf.objects)))


@pytest.mark.parametrize('text', [
    '0', '1.5', '-5%', '200%', 'some', '', 'nan', '%'])
def test_a_share_that_is_none_is_named(text):
    with pytest.raises(BadConfig, match='--sample: %r is not' % text):
        sampling.parse(text)


def test_what_a_sample_cannot_say_is_refused(zipf):
    small, sample = sampling.thinned(zipf, 0.001)
    with pytest.raises(BadConfig, match='cannot hold the largest object'):
        rows(small, sample, 10 ** 6)
    with pytest.raises(BadConfig, match='has no read'):
        sampling.thinned(replace(zipf, verbs=np.ones(
            len(zipf), dtype='uint8')), 0.5)


def test_the_command_says_what_was_sampled(capsys):
    trace = 'gen:zipf,requests=20000,objects=2000'
    assert main.main(['replay', trace, '--sample', '50%', '--cache', '20%',
                      '--json', '-']) == 0
    report = json.loads(capsys.readouterr().out)
    assert report['requests'] == 20000
    assert report['sample']['share'] == 0.5
    assert report['runs'][0]['hit_ratio_error'] > 0
    assert main.main(['replay', trace, '--sample', '50%',
                      '--cache', '20%']) == 0
    said = capsys.readouterr().out
    assert 'A sample of 50 % of the objects' in said and ' +-0.0' in said
    assert main.main(['replay', trace, '--sample', '50%',
                      '--prefetch', 'amp']) != 0
    assert 'leave out --prefetch' in capsys.readouterr().err
