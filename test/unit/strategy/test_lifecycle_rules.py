"""Which action of lifecycle rules is due."""

from __future__ import annotations

from typing import Any

import pytest

from swift_dss.core.lifecycle import Rule, Transition, When
from swift_dss.strategy.s3 import lifecycle
from swift_dss.strategy.s3.lifecycle import DAY_SECONDS, DELETE, Action, Facts

#: Midnight UTC.
DAY_0 = 20000 * DAY_SECONDS
IA = Transition(When(days=30), 'STANDARD_IA')
COLD = Transition(When(days=90), 'GLACIER')


def rule(*transitions: Transition, **fields: Any) -> Rule:
    return Rule('r', fields.pop('is_enabled', True),
                transitions=transitions, **fields)


def facts(**fields: Any) -> Facts:
    return Facts('a/o', 100, DAY_0, 0.0)._replace(**fields)


def due(rules: Any, days: float, tags: Any = (), day: int = DAY_SECONDS,
        **fields: Any) -> Any:
    return lifecycle.due(rules, facts(**fields), dict(tags),
                         DAY_0 + days * DAY_SECONDS, day)


def test_days_are_rounded_up_to_the_next_midnight() -> None:
    rules = [rule(IA)]
    noon = DAY_0 + DAY_SECONDS / 2
    assert due(rules, 29.99) is None
    assert due(rules, 30) == Action('STANDARD_IA')
    assert due(rules, 30.99, data_at=noon) is None
    assert due(rules, 31, data_at=noon) == Action('STANDARD_IA')
    # Days of tests are not.
    assert due(rules, 0.5, day=1000) == Action('STANDARD_IA')
    assert due(rules, 0.3, day=1000) is None


def test_a_date_is_the_same_for_all() -> None:
    rules = [rule(Transition(When(date=DAY_0 + DAY_SECONDS), 'GLACIER'))]
    assert due(rules, 0.9) is None
    assert due(rules, 1, data_at=DAY_0 + 1000 * DAY_SECONDS) == \
        Action('GLACIER')


def test_the_last_to_become_due_counts_and_a_deletion_before_all() -> None:
    for rules in ([rule(IA, COLD)], [rule(COLD, IA)], [rule(COLD), rule(IA)]):
        assert due(rules, 60) == Action('STANDARD_IA')
        assert due(rules, 90) == Action('GLACIER')
        assert due([*rules, rule(expiration=When(days=90))], 90) == DELETE
        assert due([*rules, rule(expiration=When(days=91))], 90) == \
            Action('GLACIER')


def test_a_class_that_a_client_gave_counts_from_then() -> None:
    given = DAY_0 + 10 * DAY_SECONDS
    assert due([rule(IA)], 39, class_at=given) is None
    assert due([rule(IA)], 40, class_at=given) == Action('STANDARD_IA')
    assert due([rule(expiration=When(days=30))], 30, class_at=given) == DELETE


@pytest.mark.parametrize('fields, fits', [
    ({'prefix': 'a/'}, True), ({'prefix': 'b'}, False),
    ({'prefix': 'a/o/'}, False), ({'is_enabled': False}, False),
    ({'size_over': 99}, True), ({'size_over': 100}, False),
    ({'size_under': 101}, True), ({'size_under': 100}, False),
    ({'size_over': 99, 'size_under': 101}, True),
    ({'tags': (('k', 'v'),)}, True), ({'tags': (('k', 'w'),)}, False),
    ({'tags': (('k', 'v'), ('no', ''))}, False)])
def test_all_conditions_must_hold(fields: Any, fits: bool) -> None:
    assert (due([rule(IA, **fields)], 30, {'k': 'v'}) is not None) == fits
