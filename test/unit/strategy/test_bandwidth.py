"""Predictions of the link, and the error that is told of them."""

from __future__ import annotations

import pickle
import random

import pytest

from swift_dss.strategy.bandwidth import (
    HISTORY, Forecast, HoltWinters, MovingAverage, Outlook, shift_at,
    without_outliers)


def naive_error(samples):
    """The wrong twin: a mean of the last ten, shifts and outliers and
    all."""
    errors = [abs(MovingAverage().predict(samples[:at]) - samples[at])
              / samples[at] for at in range(len(samples) - 50,
                                            len(samples))]
    return sum(errors) / len(errors)


def run(samples, *predictors):
    forecast = Forecast(predictors)
    for sample in samples:
        forecast.observe(sample)
    return forecast


def noisy(level, count, seed, share=0.1):
    dice = random.Random(seed)
    return [level * dice.uniform(1 - share, 1 + share)
            for _ in range(count)]


def test_nothing_is_said_before_the_first_sample():
    assert Forecast().outlook() == Outlook(
        None, 'moving_average', None, 0, 0)


@pytest.mark.parametrize('bad', [0, -1, float('nan')])
def test_what_is_no_throughput_is_refused(bad):
    with pytest.raises(ValueError):
        Forecast().observe(bad)


def test_a_steady_link_is_predicted_within_its_noise():
    forecast = run(noisy(12.5e6, 60, 1))
    outlook = forecast.outlook()
    assert outlook.shifts == 0
    assert outlook.mape < 0.1
    assert outlook.value == pytest.approx(12.5e6, rel=0.1)


def test_the_error_is_the_mean_of_what_was_said_and_what_came():
    forecast = run([100.0, 110.0, 100.0], MovingAverage())
    # Said 100 of 110, then 105 of 100.
    assert forecast.errors()['moving_average'] == pytest.approx(
        (10 / 110 + 5 / 100) / 2)


def test_a_shift_is_followed_after_three_samples_and_not_before():
    steady = noisy(10e6, 30, 2)
    fallen = noisy(1e6, 3, 3)
    early = run(steady + fallen[:2]).outlook()
    assert early.shifts == 0
    assert early.value == pytest.approx(10e6, rel=0.2)
    late = run(steady + fallen).outlook()
    assert late.shifts == 1
    assert late.value == pytest.approx(1e6, rel=0.3)


def test_without_the_reset_the_old_level_would_stay():
    samples = noisy(10e6, 30, 2) + noisy(1e6, 3, 3)
    assert MovingAverage().predict(samples) > 5e6


def test_an_outlier_moves_nothing():
    samples = [*noisy(10e6, 30, 4), 200e6]
    assert run(samples).outlook().value == pytest.approx(10e6, rel=0.2)
    assert MovingAverage().predict(samples) > 20e6


def test_a_trend_is_the_holt_winters_filters():
    samples = [10e6 * 1.02 ** step for step in range(40)]
    forecast = run(samples)
    errors = forecast.errors()
    assert errors['holt_winters'] < errors['moving_average']
    assert forecast.outlook().method == 'holt_winters'


def test_a_falling_trend_never_promises_nothing():
    assert HoltWinters().predict([100.0, 50.0, 10.0, 1.0]) > 0


def test_over_many_paths_the_error_stays_small():
    """Paths with shifts, outliers and noise; the twin errs more."""
    dice = random.Random(20050822)
    ours, twin = [], []
    for path in range(40):
        samples = []
        for _ in range(4):
            level = dice.uniform(1e6, 100e6)
            samples += [level * dice.uniform(0.85, 1.15) * (
                dice.choice((0.3, 3.0)) if dice.random() < 0.05 else 1)
                for _ in range(25)]
        ours.append(run(samples).outlook().mape)
        twin.append(naive_error(samples))
        assert ours[-1] is not None, path
    mean, wrong = sum(ours) / len(ours), sum(twin) / len(twin)
    print('bandwidth: MAPE %.3f over %d paths of 100 samples, %.3f '
          'without the resets' % (mean, len(ours), wrong))
    assert mean < wrong * 0.85


def test_memory_does_not_grow():
    forecast, sizes = Forecast(), []
    for number, sample in enumerate(noisy(10e6, 20 * HISTORY, 5)):
        forecast.observe(sample)
        if number % HISTORY == 0:
            sizes.append(len(pickle.dumps(forecast)))
    # From the first full history on.
    assert max(sizes) < sizes[1] + 100


def test_shifts_need_a_change_of_level_and_not_only_of_order():
    assert shift_at([10, 10, 10, 11, 11, 11]) == 0
    assert shift_at([10, 10, 10, 20, 20, 20]) == 3
    assert shift_at([10, 10, 10, 20, 20]) == 0


def test_outliers_of_few_samples_are_not_judged():
    assert without_outliers([1.0, 100.0]) == [1.0, 100.0]
