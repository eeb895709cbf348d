"""When a bundle goes, and which one is written anew."""

from __future__ import annotations

from swift_dss.strategy.bundling import (
    Batch, Kept, Waiting, due, next_due, rewrite)

BATCH = Batch(1000, 5, 60.0)


def test_full_ones_go_first_then_the_longest_waiting():
    young = Waiting('young', 10, 1, 100.0)
    old = Waiting('old', 10, 1, 30.0)
    older = Waiting('older', 10, 1, 20.0)
    full = Waiting('full', 1000, 2, 109.0)
    many = Waiting('many', 10, 5, 108.0)
    some = [young, old, older, full, many]
    assert [one.group for one in due(some, BATCH, 110.0)] == [
        'many', 'full', 'older', 'old']
    assert due(some, BATCH, 110.0) == due(reversed(some), BATCH, 110.0)


def test_who_waits_is_due_by_age_and_nobody_else():
    assert next_due([], BATCH) is None
    assert next_due([Waiting('g', 0, 0, 1.0)], BATCH) is None
    waiting = [Waiting('a', 1, 1, 50.0), Waiting('b', 1, 1, 40.0)]
    assert next_due(waiting, BATCH) == 100.0
    assert not due(waiting, BATCH, 99.9)
    assert [one.group for one in due(waiting, BATCH, 100.0)] == ['b']


def test_the_emptiest_bundles_are_written_anew():
    kept = [Kept('half', 100, 50), Kept('live', 100, 0),
            Kept('dead', 100, 100), Kept('third', 100, 30),
            Kept('nearly', 100, 29)]
    assert [one.key for one in rewrite(kept, 0.3, 9)] == [
        'dead', 'half', 'third']
    assert [one.key for one in rewrite(kept, 0.3, 1)] == ['dead']
    assert not rewrite([Kept('empty', 0, 0), Kept('live', 9, 0)], 0.0, 9)
