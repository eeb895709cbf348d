"""Intervals hold, ties are called ties, and halves are told apart."""

from __future__ import annotations

import json

import pytest

from swift_dss.cli import main
from swift_dss.core.classes import ClassTable
from swift_dss.replay import drawing, plan, results, simulator, stretches
from swift_dss.replay.advice import confidence, goals, recommend
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators

np = pytest.importorskip('numpy')

HITS, BYTES, DOLLARS = (
    goals.Goal(kind) for kind in ('hits', 'bytes', 'dollars'))
ALL = np.ones((1, stretches.COUNT))


def ready(options='', requests=4000):
    return plan.plan(generators.generate(
        'gen:zipf,requests=%d,objects=400%s' % (requests, options)))


def row_of(trace, strategy='lru', share=0.1, **options):
    return results.summary(trace, simulator.replay(trace, Setup(
        strategy, int(trace.footprint_bytes * share), ClassTable(), cut=True,
        **options)))


@pytest.mark.parametrize('source', [
    'gen:zipf,requests=4000,objects=400',
    'gen:cacs,requests=3000,objects=300', 'gen:esi,requests=3000',
    'gen:chains,requests=3000'])
def test_the_stretches_together_are_the_run(source):
    trace = plan.plan(generators.generate(source))
    row = row_of(trace)
    for goal in (HITS, BYTES, DOLLARS):
        assert confidence.scores(goal, row['stretches'], ALL)[0] == \
            pytest.approx(goal.score(row))


def test_a_percentile_is_known_to_the_width_of_a_bin():
    """Of all classes together, and of each."""
    trace = plan.plan(generators.generate(
        'gen:cacs,requests=60000,objects=6000'))
    row = row_of(trace)
    for class_id in (-1, 11, 12):
        goal = goals.Goal('p99', class_id)
        assert confidence.scores(goal, row['stretches'], ALL)[0] == \
            pytest.approx(goal.score(row), rel=0.025)


def test_halves_are_of_the_first_and_of_the_last_requests():
    row = row_of(ready(requests=2 * stretches.LEAST_REQUESTS))
    first, second = (confidence.half(HITS, row['stretches'], is_second)
                     for is_second in (False, True))
    assert first < second  # It begins with nothing in the cache.
    assert (first + second) / 2 == pytest.approx(HITS.score(row))


def test_a_run_that_is_too_short_has_no_stretches():
    short = stretches.LEAST_REQUESTS - 1
    assert row_of(ready(requests=short))['stretches'] is None
    assert row_of(ready(requests=short + 1))['stretches'] is not None


@pytest.mark.parametrize('goal', [HITS, DOLLARS], ids=['hits', 'dollars'])
def test_intervals_hold_in_nine_of_ten_of_fifty_cases(goal):
    """Of a score, and of what one order is better than another: the mean of
    all cases is the truth."""
    runs = []
    for seed in range(50):
        trace = ready(',seed=%d' % seed)
        runs.append([row_of(trace, strategy, seed=seed)
                     for strategy in ('sieve', 'lru')])
    draws = confidence.Draws()
    score = np.mean([goal.score(sieve) for sieve, _ in runs])
    gain = np.mean([goal.score(sieve) - goal.score(lru)
                    for sieve, lru in runs])
    held = [low <= score <= high for low, high in (
        draws.interval(goal, sieve['stretches']) for sieve, _ in runs)]
    gains = [low <= gain <= high for low, high in (
        draws.difference(goal, sieve['stretches'], lru['stretches'])
        for sieve, lru in runs)]
    print(sum(held), sum(gains))
    assert sum(held) >= 45 and sum(gains) >= 45


def advised(goal, **options):
    trace = ready(requests=8000, **options)
    found = recommend.search(trace, Setup('lru', 1, ClassTable()),
                             trace.footprint_bytes // 10, goal, 1,
                             lambda done, phase: None)
    return found, confidence.certainty(found)


def test_a_sure_gain_is_no_tie():
    found, sure = advised(HITS)
    kinds = {setup.strategy for setup, _ in sure.ties}
    assert found.best[0].strategy not in kinds and 'lru' not in kinds
    assert sure.gain[0] > 0
    assert sure.score[0] < HITS.score(found.best[1]) < sure.score[1]
    assert sure.early_score <= sure.late_score


def test_runs_are_compared_on_the_same_draws():
    row = row_of(ready())
    draws = confidence.Draws(7)
    assert draws.difference(HITS, row['stretches'], row['stretches']) == (0, 0)
    assert draws.interval(HITS, row['stretches']) != \
        confidence.Draws(8).interval(HITS, row['stretches'])


def test_the_command_says_how_sure_it_is(capsys):
    arguments = ['replay', 'gen:cacs,requests=3000,objects=300',
                 '--recommend', '--goal', 'dollars']
    assert main.main(arguments) == 0
    shown = capsys.readouterr().out
    assert '95 % of draws: ' in shown and ' more\n' in shown
    assert 'Ties with it, for all that these requests tell: lru; ' in shown
    assert 'By the first half of the requests alone: ' in shown
    assert 'Best that keeps the order of classes: class-' in shown
    assert main.main([*arguments, '--json', '-']) == 0
    sure = json.loads(capsys.readouterr().out)['recommendation']['certainty']
    assert sure['score'][0] < sure['score'][1] and sure['ties']
    assert sure['second_half']['second_half_score'] <= \
        sure['first_half']['second_half_score']


@pytest.mark.parametrize('options', [
    ['--limit', '1000'], ['--sample', '50%']])
def test_the_command_says_where_it_cannot_say_so(options, capsys):
    assert main.main(['replay', 'gen:zipf,requests=3000,objects=300',
                      '--recommend', *options]) == 0
    shown = capsys.readouterr().out
    assert 'How sure that is cannot be said' in shown
    assert '95 %' not in shown


def test_no_set_up_of_the_front_is_beaten(tmp_path, monkeypatch):
    pytest.importorskip('matplotlib')
    from swift_dss.bench import plots
    kept = []
    monkeypatch.setattr(plots, 'save', lambda figure, path: kept.append(
        figure))
    points = [(3.0, 10.0), (1.0, 30.0), (2.0, 20.0), (2.0, 25.0),
              (4.0, 10.0), (1.5, 40.0)]
    drawing.draw_front({'trace': 't', 'requests': 1, 'runs': [
        {'set_up': 's%d' % at, 'strategy': 'lru', 'cache_share': 0.1,
         'dollars': dollars, 'p99_ms': p99}
        for at, (dollars, p99) in enumerate(points)]}, 'x.png')
    axis, = kept[0].axes
    assert [tuple(point) for point in axis.lines[1].get_xydata()] == [
        (1.0, 30.0), (2.0, 20.0), (3.0, 10.0)]
    assert [text.get_text() for text in axis.texts] == [
        's1; room 10 %', 's2; room 10 %', 's0; room 10 %']
