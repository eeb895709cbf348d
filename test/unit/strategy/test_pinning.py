"""The cut-off of the pin rule, and what it fits."""

from __future__ import annotations

import random
from bisect import bisect_left

import pytest

from swift_dss.core.globs import Glob
from swift_dss.strategy.pinning import (
    BUCKETS, PinRule, cut_off, depth_of)


def test_the_cut_off_is_the_largest_that_stays_under_the_cap():
    sizes = [(0, 100), (1, 200), (2, 400)]
    assert cut_off(sizes, 99, 1 << 20) == 0
    assert cut_off(sizes, 100, 1 << 20) == 4096
    assert cut_off(sizes, 299, 1 << 20) == 4096
    assert cut_off(sizes, 300, 1 << 20) == 8192
    assert cut_off(sizes, 700, 1 << 20) == 1 << 20
    assert cut_off(sizes, 700, 5000) == 5000
    assert cut_off([], 1, 1 << 20) == 1 << 20


def test_pinned_bytes_never_pass_the_cap():
    seed = 20261121
    dice = random.Random(seed)
    for _ in range(300):
        versions = [dice.choice((1, 4096, 4097, 65536, 1 << 20, 5 << 20))
                    * dice.randrange(1, 4) for _ in range(50)]
        largest = dice.choice((4096, 10000, 1 << 20, 1 << 23))
        fits = [size for size in versions if size <= largest]
        cap = dice.randrange(1 << 24)
        cut = cut_off([(bisect_left(BUCKETS, size), size)
                       for size in fits], cap, largest)
        pinned = sum(size for size in fits if size <= cut)
        assert pinned <= cap, (seed, versions, cap)
        above = [upper for upper in BUCKETS if upper > cut]
        if cut < largest and above:
            # And no larger cut-off would do.
            assert sum(size for size in fits if size <= above[0]) > cap


@pytest.mark.parametrize('name, depth', [
    ('/a/c/o', 0), ('/a/c/dir/o', 1), ('/a/c/x/y/z/o', 3), ('', 0)])
def test_depth_is_that_of_the_object(name, depth):
    assert depth_of(name) == depth


@pytest.mark.parametrize('name, size, kind, classes, why', [
    ('/a/c/d/o', 1000, 'text/plain; charset=utf-8', {5}, None),
    ('/a/c/d/o', 5001, 'text/plain', {5}, 'larger than 5000'),
    ('/a/c/o', 10, 'text/plain', {5}, 'depth 0'),
    ('/a/c/d/e/f/o', 10, 'text/plain', {5}, 'depth 3'),
    ('/a/c/d/o', 10, 'image/png', {5}, 'type image/png'),
    ('/a/c/d/o', 10, 'text/plain', {5, 9}, 'class 9')])
def test_a_rule_says_what_does_not_fit(name, size, kind, classes, why):
    rule = PinRule(5000, (1, 2), (Glob.of('text/*'),), frozenset({5}))
    assert rule.why_not(name, size, kind, classes) == why
