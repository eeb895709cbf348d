"""What goes to S3 because an operator says so, and what stays anyway."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest
from support.nodes.tier_node import KIB, Rig

from swift_dss.cli.gateway.planned import text as planned_text
from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.errors import TierUnavailable
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.tier.walk.relocate import Planned, Relocator
from swift_dss.wire import layout

TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(2, 'pinned', 2, pin=True),
    ClassSpec(3, 'home', 3, remote=RemoteMode.NEVER)])


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path, table=TABLE)
    made.gateway.require_ours = lambda: None
    yield made
    made.close()


@pytest.mark.parametrize('class_id, goes', [(0, True), (2, False),
                                            (3, False)])
def test_what_stays_on_the_cluster_is_not_relocated(rig, class_id, goes):
    place = rig.put('o', b'x' * 64 * KIB, class_map=ClassMap.from_spans(
        [Span(0, 8 * KIB, class_id)], 0))
    # As it would be of a class that stays since.
    rig.local.record_remote(place.version, place.partition, RemoteCopy(
        's3', 'k', 'e', 1.0))
    work = Relocator(rig.local, rig.gateway, rig.metrics,
                     threading.Event())
    said = work.relocate([rig.index.get(place.version)], 5.0,
                         lambda done, of: None)
    assert len(said) == (0 if goes else 1)
    tiers = rig.local.describe(place.version,
                               place.partition).residency.tiers
    assert (tiers == Tier.REMOTE) is goes


def test_a_dry_run_says_what_would_go_and_what_stays(rig):
    places = [rig.put(name, b'x' * 64 * KIB, class_map=ClassMap.from_spans(
        [Span(0, 8 * KIB, class_id)], 0))
        for name, class_id in (('o', 0), ('p', 0), ('stays', 2))]
    rig.local.record_remote(places[0].version, places[0].partition,
                            RemoteCopy('s3', 'k', 'e', 1.0))
    before = [rig.index.get(place.version) for place in places]
    work = Relocator(rig.local, rig.gateway, rig.metrics, threading.Event())
    planned = Planned()
    work.plan(before, planned)
    assert planned == Planned(0, 3, 1, 64 * KIB, 0, 128 * KIB)
    assert [rig.index.get(place.version) for place in places] == before


@pytest.mark.parametrize('counts, text', [
    ((10, 3, 1, 2 << 20, 0, 5 << 20), 'would relocate: 3 of 10 versions, '
     '2.0 MiB to S3, 5.0 MiB of SSD and HDD freed, 1 stay, by their class'),
    ((10, 2, 0, 0, 1 << 30, 0), 'would relocate: 2 of 10 versions, 1.0 GiB '
     'from S3'),
    ((4, 0, 0, 0, 0, 0), 'would relocate: 0 of 4 versions')])
def test_it_says_so_in_a_line(counts, text):
    assert planned_text('relocate', Planned(*counts).plain()) == text


EVERYWHERE = Tier.SSD | Tier.HDD | Tier.REMOTE


@pytest.fixture
def spills(rig):
    """Spill all that may go: everything is above the mark."""
    rig.conf = replace(rig.conf, gateway=replace(
        rig.conf.gateway, spill_at=1e-9))
    work = Relocator(rig.local, rig.gateway, rig.metrics, threading.Event())
    return lambda: work.spill(rig.local.devices.get('sda'))


def everywhere(rig, name, size=64 * KIB):
    place = rig.put(name, b'x' * size)
    rig.local.clean(place.version, place.partition)
    rig.local.record_remote(place.version, place.partition, RemoteCopy(
        's3', 'k', 'e', 1.0))
    return place


def tiers_of(rig, place):
    return rig.local.describe(place.version, place.partition).residency.tiers


def pin_by_rule(rig, place):
    rig.conf = replace(rig.conf, tier=replace(
        rig.conf.tier, pin_share=0.5, pin_largest_bytes=64 * KIB))
    rig.local.mover.track(place.version, place.partition)
    rig.local.mover.pins.round('sda', 1000 * KIB)


def call_small(rig, place):
    rig.conf = replace(rig.conf, tier=replace(
        rig.conf.tier, min_demote_bytes=64 * KIB))
    rig.local.mover.track(place.version, place.partition)


def pin_by_operator(rig, place):
    rig.local.pin(place.version, place.partition, True)


@pytest.mark.parametrize('keep', [pin_by_rule, call_small, pin_by_operator])
def test_a_spill_takes_only_the_spare_copy_of_what_the_ssd_keeps(
        rig, spills, keep):
    kept = everywhere(rig, 'kept')
    keep(rig, kept)
    goes = everywhere(rig, 'goes', 65 * KIB)
    assert [span.movable for place in (kept, goes) for span in
            rig.index.get(place.version).spans] == [False, True]
    spills()
    assert tiers_of(rig, kept) == Tier.SSD | Tier.REMOTE
    assert tiers_of(rig, goes) == Tier.REMOTE
    spills()
    assert tiers_of(rig, kept) == Tier.SSD | Tier.REMOTE
    assert 'tier.spill_errors' not in rig.metrics.snapshot()


def test_a_device_that_is_not_there_is_not_spilled(rig, spills):
    place = everywhere(rig, 'o')
    marker = layout.capacity_marker(rig.node.capacity_path)
    os.rename(marker, marker + '.away')
    with pytest.raises(TierUnavailable):
        spills()
    os.rename(marker + '.away', marker)
    for path in (rig.node.capacity_path, rig.node.device_path):
        os.rename(path, path + '.away')
        with pytest.raises(TierUnavailable):
            spills()
        os.rename(path + '.away', path)
    assert tiers_of(rig, place) == EVERYWHERE
    spills()
    assert tiers_of(rig, place) == Tier.REMOTE
