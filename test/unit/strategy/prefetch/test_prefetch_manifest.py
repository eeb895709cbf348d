"""Segments in the order of their manifest, as one long object."""

from __future__ import annotations

from swift_dss.strategy.prefetch.amp import Amp
from swift_dss.strategy.prefetch.base import (
    ITEM_BYTES, Access, Settings)
from swift_dss.strategy.prefetch.graph import Graph
from swift_dss.strategy.prefetch.manifest import MEMBER_BYTES, Manifests

UNIT = 100
SETTINGS = Settings(UNIT, max_degree=16)
SEGMENTS = [('s%d' % number, 250) for number in range(8)]


def amp(settings):
    return Amp(settings, first_degree=4)


def made(inner=amp, settings=SETTINGS):
    return Manifests(settings, inner(SETTINGS))


def read(manifests, object_id, offset, length=UNIT, hit=False, size=250,
         account='a'):
    """What is wanted after a read, as (object, offset, length)."""
    return [(want.object_id, want.offset, want.length)
            for want in manifests.on_request(Access(
                account, 'c', object_id, offset, length, size, hit, 0.0),
                1 << 40)]


def test_the_first_segment_after_its_manifest_is_a_stream():
    manifests = made()
    manifests.on_manifest('a', 'c', 'm', SEGMENTS, 0.0)
    assert read(manifests, 's0', 0) == [
        ('s0', 100, 150), ('s1', 0, 250)]


def test_a_stream_goes_on_from_segment_to_segment():
    manifests = made()
    manifests.on_manifest('a', 'c', 'm', SEGMENTS, 0.0)
    wanted = []
    for segment, size in SEGMENTS:
        for offset in range(0, size, 50):
            wanted += read(manifests, segment, offset, 50, hit=any(
                piece[0] == segment
                and piece[1] <= offset < piece[1] + piece[2]
                for piece in wanted))
            for piece in wanted:
                manifests.on_arrival('a', *piece, False, 0.0)
    covered = {(segment, byte) for segment, offset, length in wanted
               for byte in range(offset, offset + length)}
    # Until the degree is over four, each set begins with a miss.
    assert len(covered) == 8 * 250 - 2 * 50
    assert sum(length for _, _, length in wanted) == len(covered)


def test_without_its_manifest_a_segment_says_nothing_of_the_next():
    manifests = made()
    assert read(manifests, 's0', 0) == []
    assert read(manifests, 's0', 100) == [('s0', 200, 50)]


def test_another_account_has_other_segments():
    manifests = made()
    manifests.on_manifest('a', 'c', 'm', SEGMENTS, 0.0)
    assert read(manifests, 's0', 0, account='b') == []


def test_a_segment_belongs_to_the_manifest_that_was_read_last():
    manifests = made()
    manifests.on_manifest('a', 'c', 'm', SEGMENTS, 0.0)
    manifests.on_manifest('a', 'c', 'n', [('s0', 250), ('t', 250)], 0.0)
    assert read(manifests, 's0', 0)[1] == ('t', 0, 250)


def test_what_became_of_wants_reaches_the_strategy_inside():
    manifests = made()
    manifests.on_manifest('a', 'c', 'm', SEGMENTS, 0.0)
    wants = read(manifests, 's0', 0)
    manifests.on_arrival('a', 's1', 0, 250, False, 0.0)
    assert manifests.on_last_chance('a', 's1', 0, 250, 0.0)
    assert not manifests.on_last_chance('a', 's1', 0, 250, 0.0)
    manifests.on_evict('a', 's1', 0, 250, False, 0.0)
    read(manifests, 's0', 100, 150, hit=True)
    assert wants and read(manifests, 's1', 0) != []


def test_empty_segments_and_manifests_are_no_trouble():
    manifests = made()
    manifests.on_manifest('a', 'c', 'm', [], 0.0)
    manifests.on_manifest('a', 'c', 'm', [('z', 0)], 0.0)
    manifests.on_manifest('a', 'c', 'm', [('z', 0), ('s0', 250)], 0.0)
    assert read(manifests, 's0', 0) == [('s0', 100, 150)]


def test_history_of_a_manifest_is_kept_like_any_other():
    manifests = made(Graph)
    manifests.on_manifest('a', 'c', 'm', SEGMENTS, 0.0)
    for segment in ('s6', 's2', 's5'):
        read(manifests, segment, 0, 50)
    for segment in ('s6', 's2', 's5'):
        manifests.on_evict('a', segment, 0, 50, True, 0.0)
    assert read(manifests, 's6', 0, 50) == [('s2', 0, 50), ('s5', 0, 50)]


def test_manifests_are_bounded_and_the_oldest_go():
    limit = 40 * (MEMBER_BYTES + ITEM_BYTES)
    manifests = made(settings=Settings(UNIT, 16, limit))
    for number in range(200):
        manifests.on_manifest(
            'a', 'c', 'm%d' % number,
            [('m%d-%d' % (number, n), 250) for n in range(8)], 0.0)
    assert 5 <= manifests.counts()['manifests'] < 40
    assert read(manifests, 'm0-0', 0) == []
    assert read(manifests, 'm199-0', 0) != []
