"""Rules by their plain text: the same decisions, without trying each."""

from __future__ import annotations

import random
import time
from typing import Any, List, Optional

import pytest

from swift_dss.core.classes import ClassTable
from swift_dss.core.globs import Glob
from swift_dss.core.rules import RequestFacts, Rule, Rules
from swift_dss.strategy.classify import first_match, matches
from swift_dss.wire.settings.rules import parse

_PATTERNS = ('a', 'b', 'ab', 'a*', '*b', 'a*b', '*', '*a*', 'a?', '?b',
             '[ab]*', 'x[', 'ab*', '*ab', 'a' * 40, 'a' * 40 + '*',
             '*' + 'b' * 40, 'a[!x]b', '')
_VALUES = ('', 'a', 'b', 'ab', 'aab', 'abb', 'ba', 'x[', 'a' * 40, 'a' * 41,
           'b' * 45, 'axb', 'ayb')


def linear(facts: RequestFacts, rules: Rules) -> Optional[Rule]:
    """What the index must agree with."""
    return next((rule for rule in rules.rules if matches(rule, facts)), None)


def _globs(dice: random.Random) -> Any:
    if dice.random() < 0.5:
        return ()
    return tuple(Glob.of(dice.choice(_PATTERNS))
                 for _ in range(dice.randrange(1, 4)))


def _rules(dice: random.Random) -> Rules:
    made: List[Rule] = []
    for number in range(dice.randrange(1, 40)):
        made.append(Rule(
            str(number), number % 32, content_types=_globs(dice),
            names=_globs(dice), users=_globs(dice), accounts=_globs(dice),
            containers=_globs(dice), by_size=dice.random() < 0.2,
            min_bytes=dice.randrange(3), max_bytes=3))
    return Rules(tuple(made))


@pytest.mark.parametrize('seed', range(20))
def test_the_index_decides_as_one_rule_after_the_other(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(20):
        rules = _rules(dice)
        for _ in range(50):
            facts = RequestFacts(
                account=dice.choice(_VALUES), obj=dice.choice(_VALUES),
                container=dice.choice(_VALUES), user=dice.choice(_VALUES),
                content_type=dice.choice(('', 'A; x=y', 'ab', ' B ;')),
                size=dice.choice((None, 0, 1, 2, 3, 4)))
            assert first_match(facts, rules) is linear(facts, rules)


@pytest.mark.parametrize('text, literals', [
    ('abc', ('abc', 'abc', 'abc')), ('a*c', (None, 'a', 'c')),
    ('*', (None, '', '')), ('a[bc]d', (None, 'a', 'd')),
    ('a?*b', (None, 'a', 'b')), ('x[', ('x[', 'x[', 'x[')), ('', ('',) * 3)])
def test_the_plain_text_of_a_pattern(text: str, literals: Any) -> None:
    assert Glob.of(text).literals() == literals


def _many(count: int) -> Rules:
    return parse('\n'.join(
        '[rule:r%d]\nclass = %d\n%s\n' % (number, number % 32, (
            'account = AUTH_%d' % number,
            'account = AUTH_x\nname = logs/%d/*' % number,
            'name = *.x%d' % number,
            'container = c%d*\ncontent_type = image/*' % number)[number % 4])
        for number in range(count)), ClassTable.of([]))


def test_a_thousand_rules_cost_some_microseconds() -> None:
    rules = _many(1000)
    assert rules.index.always_tried == 0
    facts = RequestFacts('AUTH_x', 'c', 'logs/997/y.x998', 'u:u',
                         'image/png', 5)
    assert first_match(facts, rules) is linear(facts, rules)
    best = {}
    for name, way in (('index', first_match), ('linear', linear)):
        best[name] = 1e9
        for _ in range(20):
            begin = time.perf_counter()
            for _ in range(10):
                way(facts, rules)
            best[name] = min(best[name],
                             (time.perf_counter() - begin) / 10)
    print('figure: 1,000 rules: %.1f us a request, %.0f us one by one' % (
        best['index'] * 1e6, best['linear'] * 1e6))
    assert best['index'] < 50e-6
    assert best['index'] < best['linear'] / 10
