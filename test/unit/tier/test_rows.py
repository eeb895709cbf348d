"""Rows add up to the version, whatever its spans and extents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.residency import Residency, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.tier.index.rows import spans_of, wants_remote

TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(1, 'pinned', 1, pin=True),
    ClassSpec(2, 'here', 2, remote=RemoteMode.NEVER)])


@st.composite
def versions(draw):
    size = draw(st.integers(1, 60))
    cuts = sorted(draw(st.sets(st.integers(1, 59), max_size=5)))
    bounds = [0] + [cut for cut in cuts if cut < size] + [size]
    class_map = ClassMap.from_spans(
        [Span(start, end - start, draw(st.integers(0, 3)))
         for start, end in zip(bounds, bounds[1:])])
    residency = Residency.whole(size)
    for _ in range(draw(st.integers(0, 4))):
        offset = draw(st.integers(0, size - 1))
        length = draw(st.integers(1, size - offset))
        residency = residency.add(offset, length, draw(
            st.sampled_from((Tier.HDD, Tier.REMOTE))))
        try:
            residency = residency.drop(offset, length // 2, Tier.SSD)
        except ValueError:
            pass
    return class_map, residency


@given(versions())
def test_rows_say_for_each_class_what_its_bytes_say(version):
    class_map, residency = version
    rows = {row.class_id: row for row in spans_of(
        class_map, residency, TABLE, False, 0)}
    size = residency.content_length
    seen = {}
    for at in range(size):
        totals = seen.setdefault(class_map.class_at(at), [0] * 6)
        tiers = next(residency.split(at, 1)).tiers
        for column, is_so in enumerate((
                True, tiers & Tier.SSD, tiers & Tier.HDD,
                tiers & Tier.REMOTE, tiers == Tier.SSD,
                tiers & Tier.HDD and tiers & Tier.REMOTE)):
            totals[column] += bool(is_so)
    assert {class_id: [row.total_bytes, row.ssd_bytes, row.hdd_bytes,
                       row.remote_bytes, row.dirty_bytes, row.spare_bytes]
            for class_id, row in rows.items()} == seen


def rows_of(class_map, size=100, pinned=False, small=0):
    return spans_of(class_map, Residency.whole(size), TABLE, pinned, small)


def test_a_pinned_class_version_or_small_size_does_not_move():
    plain, silver = ClassMap.uniform(0), ClassMap.uniform(1)
    assert rows_of(plain)[0].movable
    assert not rows_of(silver)[0].movable
    assert not rows_of(plain, pinned=True)[0].movable
    assert not rows_of(plain, small=100)[0].movable


def test_one_class_that_stays_keeps_the_whole_version_from_s3():
    mixed = ClassMap.from_spans([Span(0, 10, 2)], 0)
    assert wants_remote(rows_of(ClassMap.uniform(0)), TABLE)
    assert not wants_remote(rows_of(mixed), TABLE)
    assert wants_remote([], TABLE)
