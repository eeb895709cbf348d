"""When a bundle goes, and which one is written anew."""

from __future__ import annotations

from swift_dss.core.config import GatewayConf
from swift_dss.strategy.bundling import (
    Batch, Kept, Waiting, due, next_due, next_size, pays, rewrite)

MIB = 1 << 20
BATCH = Batch(1000, 5, 60.0)


def always(waiting):
    """The same size for each group."""
    return BATCH


def test_full_ones_go_first_then_the_longest_waiting():
    young = Waiting('young', 10, 1, 100.0)
    old = Waiting('old', 10, 1, 30.0)
    older = Waiting('older', 10, 1, 20.0)
    full = Waiting('full', 1000, 2, 109.0)
    many = Waiting('many', 10, 5, 108.0)
    groups = [young, old, older, full, many]
    assert [group.group for group in due(groups, always, 110.0)] == [
        'many', 'full', 'older', 'old']
    assert due(groups, always, 110.0) == due(reversed(groups), always, 110.0)


def test_who_waits_is_due_by_age_and_nobody_else():
    assert next_due([], BATCH) is None
    assert next_due([Waiting('g', 0, 0, 1.0)], BATCH) is None
    waiting = [Waiting('a', 1, 1, 50.0), Waiting('b', 1, 1, 40.0)]
    assert next_due(waiting, BATCH) == 100.0
    assert not due(waiting, always, 99.9)
    assert [group.group for group in due(waiting, always, 100.0)] == ['b']


def test_the_emptiest_bundles_are_written_anew():
    kept = [Kept('half', 100, 50), Kept('live', 100, 0),
            Kept('dead', 100, 100), Kept('third', 100, 30),
            Kept('nearly', 100, 29)]
    assert [bundle.key for bundle in rewrite(kept, 0.3, 9)] == [
        'dead', 'half', 'third']
    assert [bundle.key for bundle in rewrite(kept, 0.3, 1)] == ['dead']
    assert not rewrite([Kept('empty', 0, 0), Kept('live', 9, 0)], 0.0, 9)


def test_a_link_that_has_nothing_gets_a_part_if_more_is_to_come():
    batch = Batch(64 * MIB, 1000, 60.0)
    part = Batch(16 * MIB, 250, 60.0)
    group = Waiting('g', 64 * MIB, 10, 0.0)
    assert next_size(group, batch, 0, False) == batch
    assert next_size(group, batch, 0, True) == part
    assert next_size(group, batch, 1, True) == part
    assert next_size(group, batch, 2, True) == batch
    for more in (Waiting('g', 80 * MIB, 10, 0.0),
                 Waiting('g', MIB, 1250, 0.0)):
        assert next_size(more, batch, 1, False) == part
        assert next_size(more, batch, 2, False) == batch
    for less in (Waiting('g', 80 * MIB - 1, 10, 0.0),
                 Waiting('g', MIB, 1249, 0.0)):
        assert next_size(less, batch, 0, False) == batch


def test_no_part_is_less_than_eight_mib_or_more_than_all():
    assert Batch(16 * MIB, 1001, 60.0).part == Batch(8 * MIB, 501, 60.0)
    assert Batch(MIB, 10, 60.0).part == Batch(MIB, 10, 60.0)


def test_what_is_full_may_differ_by_group():
    groups = [Waiting('a', 500, 1, 1.0), Waiting('b', 500, 1, 0.0)]
    due_now = due(groups, lambda group: Batch(
        400 if group.group == 'a' else 600, 5, 60.0), 2.0)
    assert [group.group for group in due_now] == ['a']


def test_a_key_of_its_own_is_worth_18_kb_for_a_year():
    put, gigabyte_month = 0.005 / 1000, 0.023
    assert round(put / gigabyte_month * 1e9 / 12, -3) == \
        GatewayConf().bundle_put_bytes == 18000
    assert pays(18000, 1, 18000) and not pays(17999, 1, 18000)
    assert not pays(18000, 2, 18000)
    assert pays(0, 0, 18000) and pays(0, 1000, 0)
