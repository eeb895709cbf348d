"""An SSD over its watermark whose HDD is away: bounded work, and S3."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from support.nodes.sample_node import sample_bytes
from support.nodes.tier_node import KIB, TABLE, Rig

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire import layout

#: A batch of victims.
BATCH = 64
#: The class that lives in S3.
ONLY = 7


class Away:
    """A rig whose HDD can go; notes which versions were tried."""

    def __init__(self, rig, monkeypatch):
        self.rig, self.tried = rig, []
        self.marker = layout.capacity_marker(rig.node.capacity_path)
        demote = rig.local.demote

        def noted(version, *arguments, **options):
            self.tried.append(version)
            return demote(version, *arguments, **options)

        monkeypatch.setattr(rig.local, 'demote', noted)

    def put(self, count, on_hdd=True, in_s3=False, **options):
        places = []
        for _ in range(count):
            number = len(self.rig.node.places())
            places.append(self.rig.put('o%d' % number, sample_bytes(
                5 * KIB, number), **options))
        for place in places:
            if on_hdd:
                self.rig.local.clean(place.version, place.partition)
            if in_s3:
                self.rig.local.record_remote(
                    place.version, place.partition,
                    RemoteCopy('s3', 'k', 'e', 1.0))
        return places

    def goes(self):
        os.rename(self.marker, self.marker + '.away')

    def round(self):
        """How many versions the round tried, and asked S3 for."""
        self.tried.clear()
        self.rig.witness.asked.clear()
        self.rig.keeper.round()
        return len(self.tried), len(self.rig.witness.asked)

    def on_ssd(self, place):
        return sum(span.ssd_bytes for span in
                   self.rig.index.get(place.version).spans)

    def tiers(self, place):
        return self.rig.local.describe(
            place.version, place.partition).residency.tiers


@pytest.fixture
def away(tmp_path, monkeypatch):
    rig = Rig(tmp_path, ssd_bytes=2000 * KIB, table=ClassTable.of([
        *TABLE.specs.values(),
        ClassSpec(ONLY, 'only', 70, remote=RemoteMode.ONLY)]))
    yield Away(rig, monkeypatch)
    rig.close()


def over_the_watermark(away):
    away.rig.conf = replace(away.rig.conf, tier=replace(
        away.rig.conf.tier, ssd_bytes=300 * KIB))


@pytest.mark.parametrize('in_s3', [False, True])
def test_versions_whose_other_copy_is_away_are_not_tried(
        away, in_s3, monkeypatch):
    def walks(*_arguments, **_options):
        raise AssertionError('a look at every row')

    away.put(150, in_s3=in_s3)
    over_the_watermark(away)
    away.goes()
    with monkeypatch.context() as patched:
        # The sums say that there is nothing.
        patched.setattr(away.rig.index.victims, 'least_recent', walks)
        patched.setattr(away.rig.index.victims, 'next', walks)
        assert away.round() == (0, 0)
        assert away.round() == (0, 0)
    assert away.rig.keeper.state.hdd_state == 'unmounted'
    assert away.rig.keeper.state.room_state == 'short'
    os.rename(away.marker + '.away', away.marker)
    away.round()
    assert away.rig.keeper.state.room_state == 'ready'


def test_cold_copies_wait_for_the_hdd_too(away):
    # All of them: a rank past the copies that are kept warm.
    away.rig.local.mover.copies.rank = lambda version: 1
    away.put(70)
    s3 = away.put(3, on_hdd=False, in_s3=True)
    over_the_watermark(away)
    away.goes()
    assert away.rig.keeper.duties.cold()
    assert away.round() == (3, 3)
    assert not any(away.on_ssd(place) for place in s3)


@pytest.mark.parametrize('in_s3', [False, True])
def test_an_hdd_that_goes_during_a_round_ends_it_after_a_batch(
        away, in_s3, monkeypatch):
    away.put(150, in_s3=in_s3)
    over_the_watermark(away)
    duties = away.rig.keeper.duties
    look = duties.look_at_hdd
    monkeypatch.setattr(duties, 'look_at_hdd',
                        lambda: (look(), away.goes()))
    tried, asked = away.round()
    assert 0 < tried <= BATCH and asked <= BATCH
    monkeypatch.setattr(duties, 'look_at_hdd', look)
    assert away.round() == (0, 0)


def test_what_s3_has_and_the_hdd_has_not_leaves_all_the_same(away):
    first = away.put(70)
    s3 = away.put(5, on_hdd=False, in_s3=True)
    over_the_watermark(away)
    away.goes()
    assert away.round() == (5, 5)
    assert {away.tiers(place) for place in s3} == {Tier.REMOTE}
    assert all(away.on_ssd(place) for place in first)
    assert away.round() == (0, 0)


def test_a_class_of_s3_is_not_held_up_by_what_waits_for_the_hdd(away):
    away.put(70, in_s3=True, class_id=ONLY)
    s3 = away.put(3, on_hdd=False, in_s3=True, class_id=ONLY)
    away.goes()
    assert away.round() == (3, 3)
    assert {away.tiers(place) for place in s3} == {Tier.REMOTE}


def test_a_version_with_another_class_on_the_hdd_is_not_tried(away):
    mixed = away.put(1, on_hdd=False, in_s3=True, class_map=
                     ClassMap.from_spans([Span(0, 3 * KIB, 9)], 5))[0]
    away.rig.local.clean(mixed.version, mixed.partition, [9])
    away.put(70)
    over_the_watermark(away)
    away.goes()
    assert away.round() == (0, 0)
