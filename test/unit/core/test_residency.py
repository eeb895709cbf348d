"""Residency: every byte on some tier, always."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from swift_dss.core.residency import (
    STUB_SURPLUS, RemoteCopy, Residency, Tier, tier_text)

SIZE = 24
REMOTE = RemoteCopy('s3', 'key', 'etag', 1.0)
steps = some.lists(some.tuples(
    some.sampled_from(['add', 'drop']), some.integers(0, SIZE),
    some.integers(0, SIZE),
    some.sampled_from([Tier.SSD, Tier.HDD])), max_size=12)


@given(steps)
def test_any_steps_are_those_of_a_list_of_bytes(taken):
    residency = Residency.whole(SIZE)
    model = [Tier.SSD] * SIZE
    for verb, offset, length, tier in taken:
        stop = min(SIZE, offset + length)
        if verb == 'add':
            changed = [item | tier for item in model[offset:stop]]
            residency = residency.add(offset, length, tier)
        else:
            changed = [item & ~tier for item in model[offset:stop]]
            if not all(changed):
                with pytest.raises(ValueError, match='on no tier'):
                    residency.drop(offset, length, tier)
                continue
            residency = residency.drop(offset, length, tier)
        model[offset:stop] = changed
    flat = [extent.tiers for extent in residency.extents
            for _ in range(extent.length)]
    assert flat == model
    assert [extent.offset for extent in residency.extents] == [0] + [
        extent.end for extent in residency.extents[:-1]]
    assert all(left.tiers != right.tiers for left, right in zip(
        residency.extents, residency.extents[1:]))
    assert residency.is_stub == any(
        not item & Tier.SSD for item in model)
    assert residency.file_size == SIZE + residency.is_stub * STUB_SURPLUS
    for tier in (Tier.SSD, Tier.HDD):
        assert residency.bytes_on(tier) == sum(
            bool(item & tier) for item in model)


@given(some.integers(0, SIZE), some.integers(0, SIZE))
def test_split_cuts_on_extent_borders(offset, length):
    residency = Residency.whole(SIZE).add(5, 9, Tier.HDD)
    covered = [(at, extent.tiers)
               for extent in residency.split(offset, length)
               for at in range(extent.offset, extent.end)]
    assert covered == [
        (at, Tier.SSD | Tier.HDD if 5 <= at < 14 else Tier.SSD)
        for at in range(offset, min(SIZE, offset + length))]


def test_a_whole_file_is_no_stub():
    assert not Residency.whole(SIZE).is_stub
    assert Residency.whole(SIZE).file_size == SIZE
    assert Residency.whole(0).extents == ()
    assert Residency.whole(0).file_size == 0
    assert Residency.whole(SIZE, Tier.HDD).file_size == SIZE + STUB_SURPLUS


def test_the_remote_copy_goes_with_the_last_remote_byte():
    residency = Residency.whole(SIZE).with_remote(REMOTE)
    assert residency.remote == REMOTE
    half = residency.drop(0, 12, Tier.REMOTE)
    assert half.remote == REMOTE
    assert half.drop(12, 12, Tier.REMOTE).remote is None


def test_tiers_have_names():
    assert tier_text(Tier.NONE) == 'none'
    assert tier_text(Tier.REMOTE | Tier.SSD) == 'ssd+remote'
    assert Residency.whole(3).add(0, 1, Tier.HDD).tiers == (
        Tier.SSD | Tier.HDD)
