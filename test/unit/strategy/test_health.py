"""A disk that fails as a whole is told from one with a few bad places."""

from __future__ import annotations

import random

import pytest

from swift_dss.strategy.health import (
    FAILURES, READS, WINDOW_SECONDS, Health)


def read(health, failed, now=0.0, first=0):
    """So many distinct versions, one after the other."""
    for number, has_failed in enumerate(failed, first):
        health.read(number, has_failed, now)
    return health.judge(now)


def share_called_failing(bad, disks=4000):
    """Of disks with a share of bad versions: called so after one window."""
    dice = random.Random(7)
    return sum(read(Health(), [dice.random() < bad for _ in range(READS)])
               for _ in range(disks)) / disks


@pytest.mark.parametrize('bad, least, most', [
    (0.0, 0.0, 0.0), (0.01, 0.0, 0.001), (0.02, 0.0, 0.002),
    (0.5, 0.97, 1.0), (0.9, 1.0, 1.0), (1.0, 1.0, 1.0)])
def test_a_few_bad_places_are_no_failing_disk(bad, least, most):
    assert least <= share_called_failing(bad) <= most


def test_the_first_reads_are_enough_where_all_fail():
    health = Health()
    assert not read(health, [True] * (FAILURES - 1))
    assert read(health, [True], first=FAILURES)


def test_one_version_that_is_read_again_and_again_counts_once():
    health = Health()
    for now in range(100):
        assert not read(health, [False, True, False], float(now))
    assert (health.reads, health.failures) == (3, 1)


def test_it_fails_until_hardly_any_read_does():
    health = Health()
    assert read(health, [True] * 4)
    assert read(health, [False] * (READS - 2), 1.0, 10), 'two still count'
    assert not read(health, [False], 2.0, 40)
    # And begins only where it began before.
    assert not read(health, [True] * 2, 3.0, 50)


def test_who_reads_well_again_is_not_failing():
    health = Health()
    assert read(health, [True] * 8)
    assert not read(health, [False] * 8)


def test_a_disk_with_few_versions_does_not_fail_for_two_bad_ones_for_ever():
    health = Health()
    assert read(health, [True] * 4)
    minutes = [60.0 * minute for minute in range(1, 30)]
    said = [read(health, [True, True, False], now) for now in minutes]
    assert said == [True] * 10 + [False] * 19


def test_a_disk_of_which_a_quarter_is_bad_fails_for_as_long():
    health = Health()
    assert all(read(health, [True] * 4 + [False] * 12, 60.0 * minute)
               for minute in range(100))


def test_what_was_read_long_ago_does_not_count():
    health = Health()
    assert read(health, [True] * 8)
    assert health.judge(WINDOW_SECONDS)
    assert not health.judge(WINDOW_SECONDS + 0.1)


def test_another_disk_begins_anew():
    health = Health()
    assert read(health, [True] * 8)
    health.forget()
    assert not health.judge(1.0)
    assert (health.reads, health.failures) == (0, 0)
