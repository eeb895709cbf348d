"""How far streams go on: what is learnt, how soon, and from whom."""

from __future__ import annotations

import pytest

from swift_dss.strategy.prefetch.lengths import (
    ENDLESS, REMEMBERED, STEPS, TELLING, Lengths)

KIND = ('a', 0)


def told(streams, lengths=None, kind=KIND):
    """After streams that went on for so many units."""
    lengths = lengths or Lengths(5, 4)
    for units in streams:
        lengths.began(kind)
        for at in range(units):
            lengths.went_on(kind, at, at + 1)
    return lengths


def ahead(lengths, gone_on=0):
    """What a new stream is told there."""
    lengths.began(KIND)
    lengths.went_on(KIND, 0, gone_on)
    return lengths.ahead(KIND, gone_on)


def test_nothing_is_known_of_the_first_streams():
    for streams in range(int(TELLING)):
        assert ahead(told([2] * streams)) == 5
    assert ahead(told([2] * int(TELLING))) == 2


@pytest.mark.parametrize('units', range(32))
def test_streams_of_one_length_are_known_exactly(units):
    assert ahead(told([units] * 8)) == units


def test_long_ones_are_known_within_an_eighth():
    for units in range(32, STEPS[-1]):
        known = ahead(told([units] * 8))
        assert units <= known <= units * 1.125


def test_half_of_the_streams_decide():
    assert ahead(told([2] * 4 + [6] * 4)) == 6
    assert ahead(told([2] * 5 + [6] * 4)) == 2


def test_one_that_has_come_further_is_measured_by_those_that_have():
    lengths = told([2] * 20 + [7] * 6)
    assert ahead(lengths) == 2
    assert ahead(lengths, gone_on=3) == 4


def test_one_that_has_come_further_than_others_is_not_stopped():
    assert ahead(told([2] * 20), gone_on=3) == ENDLESS
    assert ahead(told([2] * 20), gone_on=10000) == ENDLESS


def test_streams_without_an_end_have_none():
    assert ahead(told([1000] * 8)) == ENDLESS


def test_a_kind_that_changes_is_believed_soon():
    lengths = told([2] * 1000)
    assert ahead(told([7] * int(REMEMBERED * 2), lengths)) == 7


def test_the_least_recently_used_kind_is_forgotten():
    lengths = told([2] * 8)
    for account in 'bcd':
        told([1], lengths, (account, 0))
    assert lengths.ahead(KIND, 0) == 2
    for account in 'efgh':
        told([1], lengths, (account, 0))
    assert lengths.ahead(KIND, 0) == 5
