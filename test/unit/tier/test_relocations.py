"""What goes to S3 because an operator says so, and what stays anyway."""

from __future__ import annotations

import threading

import pytest
from support.nodes.tier_node import KIB, Rig

from swift_dss.cli.gateway.planned import text as planned_text
from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.tier.walk.relocate import Planned, Relocator

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
