"""Which copies are warm, and which is read first."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from typing import Any, Optional

import pytest

from swift_dss.core.classes import (
    Allocate, ClassSpec, ClassTable, Direct)
from swift_dss.core.spans import ClassMap, Span
from swift_dss.strategy.eviction.bytes.verbs import Occupancy
from swift_dss.strategy.eviction.warmth import (
    AGAIN_SECONDS, DETOUR_MS, Copy, Warmth, cold_first, detour, is_hot, kept,
    least_busy_first, rank_of, reading_order, staged_map, warmth)


def hashes(count: int = 3000) -> list[str]:
    return [hashlib.md5(b'%d' % number).hexdigest()
            for number in range(count)]


@pytest.mark.parametrize('replicas', [1, 2, 3, 4, 5])
def test_the_ranks_of_an_objects_primaries_are_all_different(
        replicas: int) -> None:
    for digest in hashes(50):
        assert sorted(rank_of(digest, index, replicas)
                      for index in range(replicas)) == list(range(replicas))


def test_each_primary_is_the_first_of_as_many_objects() -> None:
    first = Counter(index for digest in hashes() for index in range(3)
                    if rank_of(digest, index, 3) == 0)
    assert min(first.values()) > 900


def test_the_objects_of_one_partition_have_different_first_primaries(
        ) -> None:
    digests = [digest for digest in hashes() if digest.startswith('a')]
    first = Counter(index for digest in digests for index in range(3)
                    if rank_of(digest, index, 3) == 0)
    assert min(first.values()) > 0.25 * len(digests)


@pytest.mark.parametrize('copies, warm', [
    (1, [0]), (2, [0, 1]), (3, [0, 1, 2, 3, 4])])
def test_so_many_copies_are_warm_and_three_are_all(
        copies: int, warm: list[int]) -> None:
    spec = ClassSpec(1, 'c', 1, warm_copies=copies)
    assert [rank for rank in range(5)
            if warmth(rank, spec) is Warmth.WARM] == warm
    assert warmth(None, spec) is Warmth.WARM


def test_a_hot_copy_stays_so_while_it_is_on_the_ssd() -> None:
    assert kept(Warmth.HOT, Warmth.COLD, 1) is Warmth.HOT
    assert kept(Warmth.HOT, Warmth.COLD, 0) is Warmth.COLD
    assert kept(Warmth.HOT, Warmth.WARM, 1) is Warmth.WARM
    assert kept(Warmth.WARM, Warmth.COLD, 1) is Warmth.COLD


def test_the_second_read_within_the_time_makes_a_copy_hot() -> None:
    assert not is_hot(5.0, 5.0, 6.0)
    assert is_hot(5.0, 6.0, 6.0 + AGAIN_SECONDS)
    assert not is_hot(5.0, 6.0, 6.1 + AGAIN_SECONDS)
    assert not is_hot(5.0, 6.0, 6.0)


def test_cold_copies_leave_by_rank_whatever_floors_and_caps_say() -> None:
    table = ClassTable.of([
        ClassSpec(1, 'low', 1, floor=0.9), ClassSpec(2, 'high', 2, cap=0.1),
        ClassSpec(3, 'pinned', 0, pin=True)])
    relief = cold_first({1: Occupancy(100, 100), 2: Occupancy(500, 500),
                         3: Occupancy(50, 50)}, table, 150)
    given = []
    giver = relief.next()
    while giver is not None:
        taken = min(relief.most(giver), giver.loose)
        given.append((giver.class_ids[0], taken))
        giver.gave(taken)
        relief.left(giver, taken)
        giver = relief.next()
    assert given == [(1, 100), (2, 50)]


def test_the_lowest_rank_is_read_first() -> None:
    assert reading_order([Copy(2), Copy(0), Copy(1)]) == [1, 2, 0]


def test_a_slow_one_hands_its_role_to_the_next_rank() -> None:
    assert reading_order([Copy(0, is_slow=True), Copy(2), Copy(1)]) == [
        2, 1, 0]


def test_groups_go_before_ranks_and_slowness() -> None:
    assert reading_order([Copy(0, 2.0), Copy(1, 1.0, True), Copy(2, 1.0)]
                         ) == [2, 1, 0]


def copies(*backlogs: Optional[float], **values: Any) -> list[Copy]:
    """Of ranks from 0 on."""
    return [Copy(rank, backlog_ms=backlog_ms, **values)
            for rank, backlog_ms in enumerate(backlogs)]


def test_a_detour_asks_the_first_rank_and_then_the_least_busy() -> None:
    assert detour(copies(900, 300, 20)) == ([0, 2, 1], 20 + DETOUR_MS)
    assert detour(copies(900, 0.9, None)) == ([0, 1, 2], DETOUR_MS)


@pytest.mark.parametrize('backlogs', [
    (), (900,), (None, 0, 0), (900, None, None), (0, 0, 0),
    (DETOUR_MS + 20, 20, 20), (20, 900, 900)])
def test_there_is_no_detour_without_a_copy_known_to_be_less_busy(
        backlogs: Any) -> None:
    assert detour(copies(*backlogs)) is None


def test_a_detour_leads_to_no_other_group_and_to_no_slow_copy() -> None:
    near, far, slow = (Copy(0, 0.0, False, 900), Copy(1, 1.0, False, 0),
                       Copy(2, 0.0, True, 0))
    assert detour([near, far, slow]) is None
    assert detour([near, far, slow, Copy(3, 0.0, False, 100)]) == (
        [0, 3, 2, 1], 100 + DETOUR_MS)


def test_a_detour_never_moves_the_first_copy() -> None:
    dice = random.Random(11)
    for _ in range(2000):
        drawn = [Copy(rank, dice.randrange(2), dice.random() < 0.2,
                      dice.choice((None, 0.0, dice.uniform(0, 2000))))
                 for rank in dice.sample(range(9), dice.randrange(1, 6))]
        way = detour(drawn)
        if way is None:
            continue
        first = reading_order(drawn)[0]
        assert way.order[0] == first
        assert sorted(way.order) == list(range(len(drawn)))
        mine = drawn[first].backlog_ms
        assert mine is not None and mine > way.limit_ms >= DETOUR_MS


def test_without_warm_copies_the_least_busy_is_first() -> None:
    assert least_busy_first(copies(900, 300, 20)) == [2, 1, 0]
    assert least_busy_first(copies(900, None, 900)) == [0, 2, 1]
    assert least_busy_first([Copy(0, 1.0, False, 0), Copy(1, 0.0, True, 0),
                             Copy(2, 0.0, False, 900)]) == [2, 1, 0]


STAGED = ClassTable.of([
    ClassSpec(0, 'unclassified', 0), ClassSpec(9, 'cold', 1),
    ClassSpec(1, 'one', 10), ClassSpec(2, 'two', 20, warm_copies=2),
    ClassSpec(3, 'pinned', 30, pin=True),
    ClassSpec(4, 'away', 40, allocate=Allocate.NEVER),
    ClassSpec(5, 'past', 50, direct=Direct.HDD)])


@pytest.mark.parametrize('rank, classes', [
    (None, [0, 1, 2, 3, 4, 5, 9]), (0, [0, 1, 2, 3, 4, 5, 9]),
    (1, [0, 9, 2, 3, 4, 5, 9]), (2, [0, 9, 9, 3, 4, 5, 9]),
    (3, [0, 9, 9, 3, 4, 5, 9])])
def test_the_kernel_reads_cold_copies_under_the_lowest_class(
        rank: Optional[int], classes: list[int]) -> None:
    assert [staged_map(ClassMap.uniform(class_id), rank, STAGED, False).rest
            for class_id in (0, 1, 2, 3, 4, 5, 9)] == classes


@pytest.mark.parametrize('rank, classes', [
    (None, [0, 1, 2, 3, 4, 5, 9]), (0, [0, 1, 2, 3, 4, 5, 9]),
    (1, [0, 30, 2, 3, 4, 5, 9]), (2, [0, 30, 31, 3, 4, 5, 9])])
def test_the_kernel_writes_cold_copies_under_classes_of_their_own(
        rank: Optional[int], classes: list[int]) -> None:
    assert [staged_map(ClassMap.uniform(class_id), rank, STAGED, True).rest
            for class_id in (0, 1, 2, 3, 4, 5, 9)] == classes


def test_classes_of_cold_copies_have_ids_that_no_row_has() -> None:
    table = ClassTable.of([ClassSpec(class_id, 'c%d' % class_id, class_id)
                           for class_id in range(4, 32)])
    assert table.passing == {31: 3, 30: 2, 29: 1}
    assert table.kernel_name_of(2) == 'c30 (cold copies)'
    assert table.kernel_name_of(4) == 'c4'
    # No id is left for the others.
    assert [staged_map(ClassMap.uniform(class_id), 1, table, True).rest
            for class_id in (31, 28)] == [3, 4]


def test_a_class_whose_copies_are_all_warm_has_none_of_its_own() -> None:
    table = ClassTable.of([ClassSpec(9, 'cold', 1), ClassSpec(
        1, 'one', 10, warm_copies=3)])
    assert table.passing == {}


def test_spans_of_a_cold_copy_are_staged_each_by_its_class() -> None:
    mixed = ClassMap.from_spans([Span(0, 10, 1), Span(20, 5, 3)], rest=2)
    assert staged_map(mixed, 0, STAGED, False) is not None
    assert staged_map(mixed, 2, STAGED, False) == ClassMap.from_spans(
        [Span(0, 20, 9), Span(20, 5, 3)], rest=9)


def test_without_a_class_for_them_cold_copies_keep_their_own() -> None:
    table = ClassTable.of([ClassSpec(3, 'pinned', 30, pin=True)])
    assert staged_map(ClassMap.uniform(3), 2, table, True).rest == 3
