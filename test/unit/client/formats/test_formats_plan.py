"""Ranges: joined, brought under a server's limit, and in a share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift_dss.client.formats import plan as planning
from swift_dss.client.formats.contract import BadFile, Hot
from swift_dss.client.formats.plan import Limits, coarsened, joined, plan

MIB = 1 << 20
RANGES = st.lists(st.tuples(st.integers(0, 10 * MIB),
                            st.integers(1, 20000)), max_size=40)


def covers(ranges, offset, length):
    return any(start <= offset and offset + length <= start + size
               for start, size in ranges)


@given(RANGES)
def test_joined_ranges_cover_and_do_not_touch(ranges):
    made = joined(ranges)
    assert all(covers(made, *span) for span in ranges)
    assert all(first + length < second
               for (first, length), (second, _) in zip(made, made[1:]))


@given(RANGES, st.integers(1, 10))
def test_coarsened_ranges_cover_and_are_few(ranges, count):
    before = joined(ranges)
    made = coarsened(before, count)
    assert len(made) <= count
    assert all(covers(made, *span) for span in before)
    assert made == joined(made)


def test_the_smallest_gaps_are_joined():
    assert coarsened([(0, 10), (20, 10), (100, 10), (115, 10)], 2) == [
        (0, 30), (100, 25)]


@given(RANGES, RANGES, st.integers(3, 30))
def test_a_plan_keeps_its_limits(needed, nice, spans):
    size = 10 * MIB
    hots = [Hot(*span) for span in needed] + [
        Hot(*span, is_needed=False) for span in nice]
    try:
        made = plan(hots, size, Limits(spans, 0.02))
    except BadFile:
        return
    assert len(made.ranges) <= (spans - 1) // 2
    assert made.hot_bytes == sum(length for _, length in made.ranges)
    assert all(offset >= 0 and length > 0 and offset + length <= size
               for offset, length in made.ranges)
    assert all(covers(made.ranges, offset, min(length, size - offset))
               for offset, length in needed if offset < size)


def test_of_optional_ranges_every_second_is_taken_until_they_fit():
    nice = [Hot(at * MIB, 30000, False) for at in range(100)]
    made = plan(nice, 100 * MIB, Limits(2048, 0.02))
    assert made.hot_bytes <= 2 * MIB
    assert made.ranges == [(at * MIB, 65536) for at in range(0, 100, 4)]
    assert made.left_out == 75


def test_ranges_are_whole_blocks_where_the_share_allows_it():
    """Or a server reads the rest of a block from the HDD to check it."""
    hots = [Hot(70000, 10), Hot(10 * MIB - 5, 5)]
    size = 10 * MIB + 7
    made = plan(hots, size, Limits(2048, 0.02))
    assert made.ranges == [(65536, 65536), (10 * MIB - 65536, 65536)]
    made = plan(hots, size, Limits(2048, 0.0124))
    assert made.ranges == [(70000, 10), (10 * MIB - 5, 5)]


def test_the_last_block_ends_with_the_file():
    made = plan([Hot(MIB + 3, 1), Hot(MIB + 9000, 1, False)], MIB + 10000,
                Limits(2048, 0.02))
    assert made.ranges == [(MIB, 10000)] and made.left_out == 0


def test_no_share_leaves_the_needed_alone():
    made = plan([Hot(0, 5 * MIB), Hot(6 * MIB, 1, False)], 10 * MIB,
                Limits(2048, 0.0))
    assert made.ranges == [(0, 5 * MIB)] and made.left_out == 1


def test_an_index_in_too_many_places_is_refused():
    hots = (Hot(at * MIB, 1) for at in range(10))
    with pytest.raises(BadFile, match='10 places.*takes 3 ranges'):
        plan(hots, 10 * MIB, Limits(7))


def test_endless_ranges_end(monkeypatch):
    monkeypatch.setattr(planning, '_MAX_RANGES', 100)

    def endless():
        at = 0
        while True:
            at += 8192
            yield Hot(at, 1)
    with pytest.raises(BadFile, match='more than 100 places'):
        plan(endless(), 1 << 60, Limits())
