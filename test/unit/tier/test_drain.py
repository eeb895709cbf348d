"""A drain is done when the data files are whole, not when rows say so."""

from __future__ import annotations

import pytest
from node import KIB, Rig

from swift_dss.core.residency import Tier
from swift_dss.tier.walk.drain import Drainer



@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


def drain(rig):
    """``gateway drain --to local``, without S3."""
    return Drainer(rig.local, None, None).run(
        'local', 1.0, lambda done: None)


def stub(rig, name='o'):
    """A version that only the HDD has."""
    place = rig.put(name, b'x' * 20 * KIB)
    rig.local.demote(place.version, place.partition)
    return place


def is_whole(rig, place):
    """True if the SSD has all of it."""
    found = rig.local.describe(place.version, place.partition)
    return all(extent.tiers & Tier.SSD for extent in found.residency.extents)


def test_what_a_mover_takes_again_before_the_pin_is_brought_back(
        rig, monkeypatch):
    place = stub(rig)
    pin, times = rig.local.pin, []

    def pin_late(version, partition, pinned):
        if not times:
            times.append(1)
            rig.local.demote(version, partition)
        pin(version, partition, pinned)
    monkeypatch.setattr(rig.local, 'pin', pin_late)
    assert drain(rig)['failures'] == 0
    assert is_whole(rig, place)


def test_what_is_always_taken_again_is_a_failure(rig, monkeypatch):
    place = stub(rig)
    monkeypatch.setattr(
        rig.local, 'pin', lambda version, partition, pinned:
        rig.local.demote(version, partition))
    found = drain(rig)
    assert found['failures'] == 1
    assert 'moved away again and again' in found['failed'][0]
    assert not is_whole(rig, place)


def test_a_row_that_says_too_much_is_not_believed(rig, monkeypatch):
    place = rig.put('o', b'x' * 20 * KIB)
    rig.local.pin(place.version, place.partition, True)
    with monkeypatch.context() as patch:
        # The index is told last, and may miss it.
        patch.setattr(rig.index, 'put', lambda row: None)
        rig.local.demote(place.version, place.partition)
    assert not is_whole(rig, place)
    assert drain(rig)['failures'] == 0
    assert is_whole(rig, place)
