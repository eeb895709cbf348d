"""Versions whose partition changed under the daemon."""

from __future__ import annotations

import os

from support.nodes.tier_node import KIB, Rig

from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.gateway.ports import Arrival
from swift_dss.wire import layout


def _relink(rig, place):
    """What relink and cleanup leave of a file; its new partition."""
    moved = str(int(place.version.object_hash[:8], 16) >> (32 - 10))
    assert moved != place.partition
    old = place.data_file()
    new = os.path.join(layout.hash_dir(
        place.device_path, 0, moved, place.version.object_hash),
        os.path.basename(old))
    os.makedirs(os.path.dirname(new))
    os.link(old, new)
    os.unlink(old)
    return moved


def test_a_relinked_version_is_found_and_moved(tmp_path):
    rig = Rig(tmp_path)
    place = rig.put('o', b'x' * 100 * KIB, 5)
    moved = _relink(rig, place)
    residency = rig.local.demote(place.version, place.partition)
    assert residency.tiers == Tier.HDD
    assert rig.index.get(place.version).partition == moved
    with rig.local.open(place.version, place.partition) as reader:
        assert reader.read(0, 100 * KIB) == b'x' * 100 * KIB


def test_the_newest_timestamp_is_found_in_the_new_partition(tmp_path):
    rig = Rig(tmp_path)
    place = rig.put('o', b'x' * 100 * KIB, 5)
    _relink(rig, place)
    assert rig.local.newest(
        place.version, place.partition) == place.version.timestamp


def test_a_relinked_version_arrives_in_s3_all_the_same(tmp_path):
    rig = Rig(tmp_path)
    place = rig.put('o', b'x' * KIB)
    moved = _relink(rig, place)
    copy = RemoteCopy('s3', 'bundle', 'e', 1.0, 100)
    assert rig.local.record_remotes([Arrival(
        place.version, place.partition, copy, KIB)]) == [None]
    assert rig.local.describe(
        place.version, moved).residency.remote == copy
