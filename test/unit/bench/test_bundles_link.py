"""A link at a rate: never more than that, and not less on a busy machine."""

from __future__ import annotations

import random

import pytest

from swift_dss.bench.cluster.bundles_link import Pace

RATE = 1000.0


@pytest.fixture
def pace():
    return Pace(RATE)


def test_what_has_come_goes_one_after_the_other(pace):
    assert [pace.leaves_at('up', 100, 50.0) for _ in range(3)] == \
        pytest.approx([50.1, 50.2, 50.3])
    # The other direction is another line.
    assert pace.leaves_at('down', 100, 50.0) == pytest.approx(50.1)
    assert pace.sent == {'up': 300, 'down': 100}


def test_a_late_look_costs_nothing_of_what_had_come(pace):
    pace.leaves_at('up', 100, 50.0)
    pace.leaves_at('up', 100, 50.0)
    assert pace.leaves_at('up', 100, 50.15) == pytest.approx(50.3)


def test_an_idle_link_saves_nothing_up(pace):
    pace.leaves_at('up', 100, 50.0)
    assert pace.leaves_at('up', 100, 60.0) == pytest.approx(60.1)


@pytest.mark.parametrize('seed', range(5))
def test_never_more_than_the_rate_in_any_span(pace, seed):
    dice = random.Random(seed)
    now, gone = 50.0, []
    for _ in range(300):
        now += dice.choice((0.0, 0.0, 0.01, 0.2, 1.0))
        length = dice.randrange(1, 300)
        gone.append((pace.leaves_at('up', length, now), length))
    for first in range(0, 300, 7):
        carried = 0
        for at, length in gone[first + 1:]:
            carried += length
            assert carried <= RATE * (at - gone[first][0]) + 1e-6
