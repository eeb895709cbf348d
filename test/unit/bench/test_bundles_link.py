"""A link at a rate: never more than that, and not less on a busy machine."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from swift_dss.bench.cluster.bundles_link import Paced

RATE = 1000.0
UP, DOWN = (SimpleNamespace(direction=name) for name in ('up', 'down'))


@pytest.fixture
def link():
    made = Paced(9, 0.02, 8 * RATE)
    made._loop.close()
    made._loop = SimpleNamespace(time=lambda: made.now)
    made.now = 50.0
    return made


def test_what_has_come_goes_one_after_the_other(link):
    assert [link.leaves_at(UP, 100) for _ in range(3)] == \
        pytest.approx([50.1, 50.2, 50.3])
    # The other direction is another line.
    assert link.leaves_at(DOWN, 100) == pytest.approx(50.1)
    assert link.sent == {'up': 300, 'down': 100}


def test_a_late_look_costs_nothing_of_what_had_come(link):
    link.leaves_at(UP, 100)
    link.leaves_at(UP, 100)
    link.now = 50.15
    assert link.leaves_at(UP, 100) == pytest.approx(50.3)


def test_an_idle_link_saves_nothing_up(link):
    link.leaves_at(UP, 100)
    link.now = 60.0
    assert link.leaves_at(UP, 100) == pytest.approx(60.1)


@pytest.mark.parametrize('seed', range(5))
def test_never_more_than_the_rate_in_any_span(link, seed):
    dice = random.Random(seed)
    gone = []
    for _ in range(300):
        link.now += dice.choice((0.0, 0.0, 0.01, 0.2, 1.0))
        length = dice.randrange(1, 300)
        gone.append((link.leaves_at(UP, length), length))
    for first in range(0, 300, 7):
        carried = 0
        for at, length in gone[first + 1:]:
            carried += length
            assert carried <= RATE * (at - gone[first][0]) + 1e-6
