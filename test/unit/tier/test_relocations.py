"""What goes to S3 because an operator says so, and what stays anyway."""

from __future__ import annotations

import threading

import pytest
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.tier.walk.relocate import Relocator

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
