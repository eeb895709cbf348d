"""Request, then rules, then container, then class 0."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from swift_dss.core.errors import ClassNotAllowed
from swift_dss.core.globs import Glob
from swift_dss.core.rules import (
    HeaderCondition, RequestFacts, Rule, Rules)
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap, Span
from swift_dss.strategy.classify import (
    auto_class, check_allowed, classify, first_match, matches)

RULES = Rules((Rule('jpg', 5, names=(Glob.of('*.jpg'),)),))


@pytest.mark.parametrize('facts, class_id', [
    (RequestFacts(obj='a.jpg', object_class=7, container_class=9), 7),
    (RequestFacts(obj='a.jpg', object_class=0, container_class=9), 0),
    (RequestFacts(obj='a.jpg', container_class=9), 5),
    (RequestFacts(obj='a.txt', container_class=9), 9),
    (RequestFacts(obj='a.txt', container_class=0), 0),
    (RequestFacts(obj='a.txt'), 0)])
def test_the_order_of_precedence(facts, class_id):
    assert classify(facts, RULES) == ClassMap.uniform(class_id)


def test_a_map_that_the_request_brings_settles_everything():
    class_map = ClassMap((Span(0, 5, 1),), 2)
    facts = RequestFacts(obj='a.jpg', object_class=7, class_map=class_map)
    assert classify(facts, RULES) is class_map


def test_bytes_between_ranges_go_on_to_the_rules():
    ranges = (Span(10, 5, 1),)
    for facts, rest in ((RequestFacts(obj='a.jpg', ranges=ranges), 5),
                        (RequestFacts(ranges=ranges, container_class=9), 9),
                        (RequestFacts(ranges=ranges, object_class=3), 3),
                        (RequestFacts(ranges=ranges), 0)):
        class_map = classify(facts, RULES)
        assert [class_map.class_at(at) for at in (9, 10, 14, 15)] == [
            rest, 1, 1, rest]


def test_unclassified_costs_no_map_of_its_own():
    assert classify(RequestFacts(), Rules()) is UNCLASSIFIED_MAP


def test_the_first_rule_that_matches_decides():
    rules = Rules((Rule('a', 1, users=(Glob.of('bob'),)), Rule('b', 2),
                   Rule('c', 3)))
    assert first_match(RequestFacts(user='bob'), rules).name == 'a'
    assert first_match(RequestFacts(user='eve'), rules).name == 'b'
    assert first_match(RequestFacts(), Rules()) is None


FACTS = RequestFacts(
    'AUTH_a', 'photos', '2024/IMG_1.jpg', 'a:bob', 'Image/JPEG; q=1', 100,
    {'x-app': 'phone'})


@pytest.mark.parametrize('rule, wanted', [
    (Rule('', 1), True),
    (Rule('', 1, accounts=(Glob.of('AUTH_*'),)), True),
    (Rule('', 1, accounts=(Glob.of('auth_*'),)), False),
    (Rule('', 1, containers=(Glob.of('x'), Glob.of('photos'))), True),
    (Rule('', 1, containers=(Glob.of('photo'),)), False),
    (Rule('', 1, users=(Glob.of('a:*'),)), True),
    (Rule('', 1, content_types=(Glob.of('image/*'),)), True),
    (Rule('', 1, content_types=(Glob.of('image/jpeg; *'),)), False),
    (Rule('', 1, names=(Glob.of('*.jpg'),)), True),
    (Rule('', 1, names=(Glob.of('IMG*'),)), False),
    (Rule('', 1, name_regex=re.compile(r'\d+/.*')), True),
    (Rule('', 1, name_regex=re.compile(r'\d+')), False),
    (Rule('', 1, headers=(HeaderCondition('x-app', (Glob.of('ph*'),)),)),
     True),
    (Rule('', 1, headers=(HeaderCondition('x-app', (Glob.of('x'),)),)),
     False),
    (Rule('', 1, headers=(HeaderCondition('x-no', (Glob.of('*'),)),)),
     False),
    (Rule('', 1, by_size=True, min_bytes=100, max_bytes=100), True),
    (Rule('', 1, by_size=True, min_bytes=101), False),
    (Rule('', 1, by_size=True, max_bytes=99), False),
    (Rule('', 1, names=(Glob.of('*.jpg'),), by_size=True, max_bytes=99),
     False)])
def test_every_condition_of_a_rule_must_hold(rule, wanted):
    assert matches(rule, FACTS) is wanted


def test_no_size_condition_matches_an_upload_of_unknown_size():
    rule = Rule('any size', 1, by_size=True)
    assert matches(rule, RequestFacts(size=0))
    assert not matches(rule, RequestFacts(size=None))


def test_a_class_that_the_account_may_not_use_is_403():
    check_allowed({1, 2}, None)
    check_allowed({0, 1}, {1})
    with pytest.raises(ClassNotAllowed) as caught:
        check_allowed({1, 2, 3}, {1}, 'X-DSS-Object-Class')
    assert caught.value.http_status == 403
    assert str(caught.value) == (
        'X-DSS-Object-Class: this account may not use class 2 '
        '(it may use: 1)')
    with pytest.raises(ClassNotAllowed, match='it may use: none'):
        check_allowed({1}, frozenset())


@given(some.integers(0, 31), some.integers(0, 31), some.integers(0, 31),
       some.booleans(), some.booleans(), some.booleans())
def test_precedence_is_a_total_order(asked, ruled, contained, has_asked,
                                     has_rule, has_container):
    rules = Rules((Rule('all', ruled),)) if has_rule else Rules()
    facts = RequestFacts(
        object_class=asked if has_asked else None,
        container_class=contained if has_container else None)
    wanted = asked if has_asked else ruled if has_rule else \
        contained if has_container else 0
    assert classify(facts, rules) == ClassMap.uniform(wanted)


AUTO = Rules((Rule('jpg', 5, names=(Glob.of('*.jpg'),), auto_class=9),
              Rule('all', 3)))


@pytest.mark.parametrize('facts, hot', [
    (RequestFacts(obj='a.jpg'), 9),
    (RequestFacts(obj='a.jpg', container_class=7), 9),
    (RequestFacts(obj='a.gif'), None),
    (RequestFacts(obj='a.jpg', object_class=0), None),
    (RequestFacts(obj='a.jpg', object_class=7), None),
    (RequestFacts(obj='a.jpg', ranges=(Span(0, 1, 7),)), None),
    (RequestFacts(obj='a.jpg', class_map=ClassMap.uniform(0)), None)])
def test_a_node_looks_only_where_the_client_names_no_class(facts, hot):
    assert auto_class(facts, AUTO) == hot


def test_rules_without_auto_are_not_tried_for_it():
    assert not RULES.has_auto
    assert auto_class(RequestFacts(obj='a.jpg'), RULES) is None
