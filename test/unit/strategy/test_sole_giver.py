"""The short way of the strict rule gives the answer of the long one."""

from __future__ import annotations

import copy
import random

import pytest

from swift_dss.core.classes import Allocate
from swift_dss.strategy.eviction.rule import (
    Account, Entry, Mode, in_order, sole_giver)

CASES = 4000


def cases(seed):
    """(accounts, own, size, free), with every kind of shortage."""
    dice = random.Random(seed)
    for _ in range(CASES):
        accounts = []
        for class_id in range(dice.randint(1, 5)):
            used = dice.choice([0, dice.randrange(100)])
            accounts.append(Account(
                (class_id,), dice.randrange(4), dice.choice(
                    [0, 0, dice.randrange(100)]),
                dice.choice([1000, dice.randrange(1, 120)]),
                allocate=dice.choice([Allocate.ALWAYS] * 6 + list(Allocate)),
                used=used, loose=dice.choice([used, dice.randint(0, used)])))
        size = dice.randint(1, 30)
        yield (in_order(accounts), dice.choice(accounts), size,
               dice.randrange(-10, size), dice)


def givers(ranked, own, size, free, dice):
    """Every class that the long way names; None: the newcomer stays out."""
    at = ranked.index(own)
    ranked = copy.deepcopy(ranked)
    entry = Entry(ranked, ranked[at], size, free, Mode.STRICT)
    if entry.is_refused:
        return None
    named = []
    giver = entry.next()
    while giver is not None:
        named.append(giver.class_ids)
        # Objects are whole, so the last one may be larger than the rest.
        amount = dice.randint(1, giver.loose)
        giver.gave(amount)
        entry.left(giver, amount)
        giver = entry.next()
    return named


def differing(short, seed):
    """How many answers are wrong, and how many are given at all."""
    wrong = answers = 0
    for ranked, own, size, free, dice in cases(seed):
        sole = short(ranked, own, size, size - free)
        if sole is not None:
            answers += 1
            named = givers(ranked, own, size, free, dice)
            wrong += named is None or set(named) != {sole.class_ids}
    return wrong, answers


@pytest.mark.parametrize('seed', range(5))
def test_a_sole_giver_is_the_only_one_that_the_long_way_names(seed):
    wrong, answers = differing(sole_giver, seed)
    assert not wrong
    assert answers > CASES / 10


def _blind_to(name, value):
    def short(ranked, own, size, over):
        blind = copy.deepcopy(ranked)
        for account in blind:
            setattr(account, name, value)
        sole = sole_giver(blind, blind[ranked.index(own)], size, over)
        return sole and ranked[blind.index(sole)]
    return short


@pytest.mark.parametrize('name, value', [
    ('floor', 0), ('cap', 1000), ('rank', 0), ('loose', 1000),
    ('allocate', Allocate.ALWAYS)])
def test_a_short_way_that_forgets_a_share_is_seen(name, value):
    assert differing(_blind_to(name, value), 0)[0]
