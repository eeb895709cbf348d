"""Where new bytes go."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

import pytest

from swift_dss.core.classes import (
    Allocate, ClassSpec, ClassTable, WriteMode)
from swift_dss.core.residency import Extent, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.strategy.placement import place, plan, plan_past_ssd
from swift_dss.wire.node.pressure import Pressure

SSD, HDD = Tier.SSD, Tier.HDD


def pressure(used: int = 0, lowest: Optional[int] = None,
             ready: bool = True) -> Pressure:
    return Pressure(1000, used, 850, lowest, ready, 0.0)


def spec(allocate: str = 'always', rank: int = 50,
         **more: Any) -> ClassSpec:
    return ClassSpec(1, 'x', rank, allocate=Allocate(allocate), **more)


@pytest.mark.parametrize('allocate,used,lowest,expected', [
    ('always', 0, None, SSD), ('room', 0, None, SSD),
    ('never', 0, None, HDD),
    # 100 more bytes reach the high watermark of 850 exactly.
    ('always', 750, None, SSD), ('room', 750, None, SSD),
    # Over it: only who outranks, or equals, what can be evicted.
    ('room', 751, 10, HDD), ('always', 751, 10, SSD),
    ('always', 751, 50, SSD), ('always', 751, 51, HDD),
    ('always', 751, None, HDD),
    # No room at all until the eviction has been.
    ('always', 901, 10, HDD)])
def test_selective_allocation(allocate: str, used: int,
                              lowest: Optional[int],
                              expected: Tier) -> None:
    assert place(spec(allocate), pressure(used, lowest), 100, 1) == expected


@pytest.mark.parametrize('allocate,claim,used,expected', [
    ('always', 100, 800, SSD), ('always', 99, 800, HDD),
    ('room', 100, 800, HDD), ('never', 100, 0, HDD),
    ('always', 100, 950, HDD)])
def test_what_is_left_of_a_floor_goes_to_the_ssd_whoever_is_there(
        allocate: str, claim: int, used: int, expected: Tier) -> None:
    seen = dataclasses.replace(pressure(used, 99), claims={7: claim})
    assert place(spec(allocate), seen, 100, 7) == expected
    if used == 800:
        assert place(spec(allocate), seen, 100, 8) == HDD


@pytest.mark.parametrize('allocate', ['always', 'room', 'never'])
def test_without_an_hdd_everything_goes_to_the_ssd(allocate: str) -> None:
    assert place(spec(allocate), pressure(999, 99, False), 500, 1) == SSD


@pytest.mark.parametrize('allocate,expected', [
    ('always', SSD), ('room', SSD), ('never', HDD)])
def test_without_news_a_class_goes_where_it_wants(
        allocate: str, expected: Tier) -> None:
    assert place(spec(allocate), None, 10 ** 12, 1) == expected


def test_a_pinned_class_always_takes_the_ssd() -> None:
    assert place(spec(pin=True), pressure(999, 99), 100, 1) == SSD


def test_write_through_makes_both_copies_where_it_takes_the_ssd() -> None:
    through = spec(write=WriteMode.THROUGH)
    assert place(through, pressure(), 1, 1) == SSD | HDD
    assert place(through, pressure(ready=False), 1, 1) == SSD
    assert place(through, pressure(900), 100, 1) == HDD


TABLE = ClassTable.of([spec(), ClassSpec(
    2, 'cold', 1, allocate=Allocate.NEVER)])
MAP = ClassMap.from_spans(
    [Span(0, 10, 1), Span(10, 10, 2), Span(20, 10, 1)], rest=2)


def test_spans_are_placed_one_by_one() -> None:
    assert plan(MAP, 100, None, TABLE, 0) == [
        Extent(0, 10, SSD), Extent(10, 10, HDD), Extent(20, 10, SSD),
        Extent(30, 70, HDD)]


def test_small_objects_stay_whole() -> None:
    assert plan(MAP, 100, None, TABLE, 100) == [Extent(0, 100, SSD)]


def test_an_unknown_size_ends_with_the_class_of_the_rest() -> None:
    assert plan(MAP, None, None, TABLE, 100)[-1] == Extent(30, 1, HDD)


def test_spans_of_a_class_are_placed_together() -> None:
    """The first must not take the last room and part the second."""
    tight = pressure(835)
    assert plan(MAP, 30, tight, TABLE, 0) == [Extent(0, 30, HDD)]


def test_an_empty_object_has_no_extent_to_lose() -> None:
    assert plan(MAP, 0, None, TABLE, 0) == [Extent(0, 0, SSD)]


def test_past_a_full_ssd_all_goes_to_the_hdd() -> None:
    table = ClassTable.of([spec('always'), ClassSpec(7, 'kept', 90, pin=True)])
    through = ClassMap.uniform(1)
    for seen in (None, pressure(1000, None)):
        assert plan_past_ssd(through, 500, seen, table) == [
            Extent(0, 500, HDD)]
        assert plan_past_ssd(through, None, seen, table) == [
            Extent(0, 0, HDD)]
    assert not plan_past_ssd(through, 500, pressure(ready=False), table)
    mixed = ClassMap.from_spans([Span(0, 10, 1), Span(10, 20, 7)])
    assert not plan_past_ssd(mixed, 500, None, table)
    # Of the class that is pinned the object has no byte.
    assert plan_past_ssd(mixed, 5, None, table)
