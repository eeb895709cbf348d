"""What is read, and how it is told."""

from __future__ import annotations

from swift_dss.bench.cluster import prefetch
from swift_dss.bench.cluster.client import Sample
from swift_dss.bench.cluster.prefetch import Cell, Plan

PLAN = Plan(parts=2, segments=3, chain=4)


def test_segments_are_read_in_their_order_and_whole():
    assert [(request.path, request.headers, length) for request, length
            in prefetch.requests_of(PLAN, 'segments')] == [
        ('prefetch/seg-%04d' % number, None, 1 << 18)
        for number in range(3)]


def test_a_large_object_is_read_from_end_to_end():
    size, count = 10 << 20, 10
    requests = list(prefetch.requests_of(PLAN, 'parts'))
    assert len(requests) == count
    at = 0
    for request, length in requests:
        assert request.headers == {'Range': 'bytes=%d-%d' % (
            at, at + length - 1)}
        at += length
    assert at == size


def test_a_chain_has_one_order_and_not_that_of_its_names():
    once, again = ([request.path for request, _ in prefetch.requests_of(
        Plan(chain=40), 'chains')] for _ in range(2))
    assert once == again and once != sorted(once)
    assert len(set(once)) == 40


def test_bodies_are_the_same_for_a_seed():
    assert prefetch.body_of('a', 1000) == prefetch.body_of('a', 1000)
    assert len(prefetch.body_of('a', 1000)) == 1000
    assert prefetch.body_of('a', 1000) != prefetch.body_of('b', 1000)


def cell(strategy, ms, **spent):
    return Cell(strategy, 'parts', [
        Sample('parts', 206, 0.0, duration_ms / 1000, 10)
        for duration_ms in ms], spent)


def test_gains_are_ratios_to_none():
    report = prefetch.report(PLAN, [
        cell('none', [100, 100, 200]), cell('amp', [10, 20, 50],
                                            useful_pieces=3.0, here=1.0),
        cell(prefetch.LOCAL, [5, 10, 15])])
    amp = report['cells'][1]
    assert (amp['p50_ms'], amp['p50_gain'], amp['p90_gain']) == (
        20.0, 5.0, 4.0)
    assert [row['waited_ms'] for row in report['cells']] == [90, 10, 0]
    assert amp['useful_pieces'] == 3 and amp['unread_pieces'] == 1
    text = prefetch.text(report)
    assert 'amp' in text and '20.0' in text and '5.0' in text
