"""A fixed number of units ahead of each sequential stream."""

from __future__ import annotations

from swift_dss.strategy.prefetch.base import (
    ITEM_BYTES, Access, Settings, Urgency)
from swift_dss.strategy.prefetch.seq import Seq

UNIT = 100
SETTINGS = Settings(UNIT)


def read(seq, offset, length=UNIT, hit=True, object_id='x', end=10000):
    """What is wanted after one read, as (offset, length)."""
    return [(want.offset, want.length) for want in seq.on_request(
        Access('a', 'c', object_id, offset, length, end, hit, 0.0), 1 << 40)]


def test_the_second_read_in_a_row_makes_a_stream():
    seq = Seq(SETTINGS, degree=4, trigger=2)
    assert read(seq, 0, hit=False) == []
    assert read(seq, 100, hit=False) == [(200, 400)]


def test_more_is_wanted_when_the_trigger_distance_is_left():
    seq = Seq(SETTINGS, degree=4, trigger=2)
    read(seq, 0, hit=False)
    read(seq, 100, hit=False)
    assert read(seq, 200) == []
    assert read(seq, 300) == [(600, 400)]


def test_streams_in_one_object_do_not_disturb_one_another():
    seq = Seq(SETTINGS, degree=2, trigger=1)
    read(seq, 0)
    read(seq, 5000)
    assert read(seq, 100) == [(200, 200)]
    assert read(seq, 5100) == [(5200, 200)]
    assert read(seq, 0, object_id='y') == []


def test_a_miss_in_a_stream_asks_again_from_there():
    seq = Seq(SETTINGS, degree=4, trigger=1)
    read(seq, 0)
    assert read(seq, 100) == [(200, 400)]
    wants = seq.on_request(
        Access('a', 'c', 'x', 200, UNIT, 10000, False, 0.0), 1 << 40)
    assert [(want.offset, want.length, want.urgency) for want in wants] == [
        (300, 400, Urgency.WITH_MISS)]


def test_nothing_is_wanted_past_the_end():
    seq = Seq(SETTINGS, degree=4, trigger=2)
    read(seq, 700, end=1000)
    assert read(seq, 800, end=1000) == [(900, 100)]
    assert read(seq, 900, end=1000) == []


def test_the_place_that_was_not_used_longest_is_forgotten():
    seq = Seq(Settings(UNIT, state_bytes=2 * ITEM_BYTES))
    read(seq, 0)
    read(seq, 2000)
    read(seq, 4000)
    assert read(seq, 100) == []
    assert seq.state_bytes() == 2 * ITEM_BYTES
