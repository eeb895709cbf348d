"""Pins by rule: under their cap, out of every eviction, still synced."""

from __future__ import annotations

import dataclasses

import pytest
from support.nodes.sample_node import sample_bytes
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.errors import BadConfig
from swift_dss.tier.index.pins import IDLE, PINNED, TOO_LARGE


@pytest.fixture
def rigs(tmp_path):
    made = []

    def make(**options):
        made.append(Rig(tmp_path, **options))
        return made[-1]
    yield make
    for rig in made:
        rig.close()


def put(rig, prefix, count, kib):
    return [rig.put('%s%d' % (prefix, number), sample_bytes(
        kib * KIB, number), 5) for number in range(count)]


def rules(rig, places):
    return {rig.index.get(place.version).pin_rule for place in places}


def on_ssd(rig, place):
    return sum(span.ssd_bytes for span in
               rig.index.get(place.version).spans)


def settle(rig):
    for _ in range(3):
        rig.keeper.round()


def test_the_smallest_are_pinned_and_no_more_than_the_cap(rigs):
    rig = rigs(pin_share=0.3, high_watermark=0.99, low_watermark=0.98)
    tiny, small = put(rig, 't', 10, 4), put(rig, 's', 10, 8)
    large = put(rig, 'l', 10, 32)
    settle(rig)
    shown = rig.local.mover.pins.shown('sda')
    assert shown['cut_off'] == 16 * KIB
    assert shown['pinned_bytes'] == 120 * KIB <= shown['cap_bytes']
    assert (rules(rig, tiny), rules(rig, small), rules(rig, large)) == (
        {PINNED}, {PINNED}, {TOO_LARGE})
    row = rig.index.get(small[0].version)
    assert not any(span.movable for span in row.spans)
    assert 'cut-off of 16384' in rig.local.mover.pins.why('sda', row)
    # More of them than fit: the cut-off comes down, and they are let go.
    put(rig, 'u', 25, 8)
    settle(rig)
    assert rig.local.mover.pins.shown('sda')['cut_off'] == 4 * KIB
    assert rules(rig, small) == {TOO_LARGE}
    assert all(span.movable for span in
               rig.index.get(small[0].version).spans)
    assert rules(rig, tiny) == {PINNED}


def test_pressure_takes_what_is_not_pinned(rigs):
    rig = rigs(pin_share=0.1, high_watermark=0.3, low_watermark=0.2)
    tiny = put(rig, 't', 20, 4)
    large = put(rig, 'l', 12, 32)
    for _ in range(5):
        rig.now += 100
        settle(rig)
    assert all(on_ssd(rig, place) == 4 * KIB for place in tiny)
    assert sum(on_ssd(rig, place) for place in large) < 300 * KIB


def test_what_is_pinned_is_synced_like_any_other(rigs):
    rig = rigs(pin_share=0.5)
    tiny = put(rig, 't', 3, 4)
    settle(rig)
    assert rules(rig, tiny) == {PINNED}
    assert {version for version, _ in rig.gateway.uploads} >= {
        place.version for place in tiny}


def test_what_nobody_uses_is_let_go_and_comes_back(rigs):
    rig = rigs(pin_share=0.5, pin_idle_seconds=1e-6)
    tiny = put(rig, 't', 3, 4)
    settle(rig)
    assert rules(rig, tiny) == {IDLE}
    assert rig.local.mover.pins.shown('sda')['sizes'] == []
    rig.conf = dataclasses.replace(rig.conf, tier=dataclasses.replace(
        rig.conf.tier, pin_idle_seconds=1e12))
    settle(rig)
    assert rules(rig, tiny) == {PINNED}


@pytest.mark.parametrize('options', [
    {'pin_depth': '1'}, {'pin_depth': 'a-b'}, {'pin_classes': 'nobody'}])
def test_a_rule_that_cannot_be_understood_says_so(rigs, options):
    rig = rigs(pin_share=0.5, **options)
    with pytest.raises(BadConfig, match='pin_'):
        rig.local.mover.pins.round('sda', 1)


def test_a_rule_that_fails_does_not_fill_the_ssd(rigs):
    rig = rigs(pin_share=0.5, pin_classes='nobody')
    for number in range(15):
        put(rig, 'x%d' % number, 1, 64)
    assert rig.ssd(5) == 960 * KIB
    with pytest.raises(BadConfig, match='pin_classes'):
        rig.keeper.round()
    assert rig.ssd(5) <= 900 * KIB
    assert rig.keeper.state.pressure.ssd_used_bytes == rig.ssd(5)


def test_a_rule_that_is_taken_back_lets_all_go(rigs):
    rig = rigs(pin_share=0.5, pin_classes='silver', pin_depth='0-0')
    tiny = put(rig, 't', 3, 4)
    settle(rig)
    assert rules(rig, tiny) == {PINNED}
    rig.conf = dataclasses.replace(rig.conf, tier=dataclasses.replace(
        rig.conf.tier, pin_share=0.0))
    settle(rig)
    assert rules(rig, tiny) == {TOO_LARGE}
