"""What a disk changed is found in all copies here, and replaced."""

from __future__ import annotations

import os

import pytest
from node import Rig
from sample_node import SampleNode, read_version, sample_bytes

from swift_dss.core.errors import RottenBytes
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.io import mending, moves, switch
from swift_dss.io.sums import blocks
from swift_dss.wire.control import Event, EventKind
from swift_dss.wire.records.blocks import BLOCK_BYTES

SIZE = 4 * BLOCK_BYTES + 777
DATA = sample_bytes(SIZE, 7)
REMOTE = RemoteCopy('s3', 'k', 'e', 1.0)
#: In the first, a middle and the last block.
PLACES = [0, 2 * BLOCK_BYTES + 5, SIZE - 1]


@pytest.fixture
def node(tmp_path):
    return SampleNode(str(tmp_path))


@pytest.fixture
def place(node):
    return node.put('o', DATA, with_sums=True)


def flip(path, offset):
    with open(path, 'r+b') as target:
        target.seek(offset)
        was = target.read(1)[0]
        target.seek(offset)
        target.write(bytes([was ^ 1]))


def hdd_of(place):
    return place.capacity.file_path(place.version)


def in_s3(place):
    with switch.LiveVersion(place) as live:
        moves.mark_remote(live, REMOTE)


def of_block(offset):
    first = offset - offset % BLOCK_BYTES
    return first, min(BLOCK_BYTES, SIZE - first)


def is_whole(place):
    with open(place.data_file(), 'rb') as ssd, open(
            hdd_of(place), 'rb') as hdd:
        return ssd.read() == hdd.read() == DATA


def test_nothing_is_wrong_with_what_was_written(place):
    moves.copy_to_capacity(place)
    assert mending.look(place) == mending.Rot([], [], [], [])


@pytest.mark.parametrize('at', PLACES)
def test_a_block_of_the_ssd_comes_from_the_hdd(place, at):
    moves.copy_to_capacity(place)
    flip(place.data_file(), at)
    rot = mending.look(place)
    assert rot == mending.Rot([of_block(at)], [], [], [])
    mending.mend(place, rot)
    assert is_whole(place)
    assert mending.look(place).length == 0


@pytest.mark.parametrize('at', PLACES)
def test_a_block_of_the_hdd_comes_from_the_ssd(place, at):
    moves.copy_to_capacity(place)
    flip(hdd_of(place), at)
    rot = mending.look(place)
    assert rot == mending.Rot([], [of_block(at)], [], [])
    mending.mend(place, rot)
    assert is_whole(place)


def test_each_copy_mends_the_other(place):
    moves.copy_to_capacity(place)
    flip(place.data_file(), 5)
    flip(hdd_of(place), BLOCK_BYTES)
    mending.mend(place, mending.look(place))
    assert is_whole(place)


def test_an_hdd_file_that_is_gone_is_written_again(place):
    moves.copy_to_capacity(place)
    flip(place.data_file(), 5)
    os.unlink(hdd_of(place))
    rot = mending.look(place)
    assert rot.lost == [of_block(5)] and len(rot.hdd) == 4
    assert not rot.ssd


@pytest.mark.parametrize('copies', ['ssd', 'hdd', 'both'])
def test_what_only_s3_can_have_leaves_on_its_proof(place, copies):
    if copies != 'ssd':
        moves.copy_to_capacity(place)
        flip(hdd_of(place), 9)
    if copies == 'hdd':
        moves.evict_ssd(place)
    else:
        flip(place.data_file(), 9)
    in_s3(place)
    rot = mending.look(place)
    assert rot == mending.Rot([], [], [of_block(9)], [])
    mending.mend(place, rot)
    assert mending.look(place) == rot
    left = mending.mend(place, rot, proven=REMOTE)
    assert [one.tiers for one in left.split(0, BLOCK_BYTES)] == [Tier.REMOTE]
    assert all(one.tiers & moves.LOCAL
               for one in left.split(BLOCK_BYTES, SIZE))
    assert read_version(place, {'k': DATA}) == DATA


def test_what_no_tier_has_stays_as_it_is(place):
    moves.copy_to_capacity(place)
    flip(place.data_file(), 9)
    flip(hdd_of(place), 10)
    rot = mending.look(place)
    assert rot == mending.Rot([], [], [], [of_block(9)])
    assert mending.mend(place, rot).extents == Residency.whole(
        SIZE, Tier.SSD | Tier.HDD).extents


def test_tiers_that_meet_within_a_block_mend_one_another(place):
    moves.copy_to_capacity(place)
    moves.evict_ssd(place, [(1000, BLOCK_BYTES)])
    flip(place.data_file(), 10)
    rot = mending.look(place)
    assert rot.ssd == [(0, 1000)] and not rot.hdd and not rot.lost
    mending.mend(place, rot)
    assert read_version(place, {}) == DATA


def test_sums_go_along_with_every_move(place):
    moves.copy_to_capacity(place)
    moves.evict_ssd(place)
    flip(hdd_of(place), 3)
    with pytest.raises(RottenBytes):
        moves.promote(place)
    with switch.LiveVersion(place) as live:
        assert blocks.load(live.fd, SIZE)
        assert live.residency.tiers == Tier.HDD


@pytest.mark.parametrize('at', PLACES)
def test_a_wrong_block_is_not_copied(place, at):
    flip(place.data_file(), at)
    with pytest.raises(RottenBytes):
        moves.copy_to_capacity(place)
    with switch.LiveVersion(place) as live:
        assert live.residency == Residency.whole(SIZE)


@pytest.mark.parametrize('at', PLACES)
def test_a_wrong_block_is_not_left_alone_on_the_ssd(place, at):
    """The rest leaves the SSD; its new inode would carry the block on."""
    moves.copy_to_capacity(place)
    flip(place.data_file(), at)
    other = [one for one in PLACES if one != at][0]
    with pytest.raises(RottenBytes):
        moves.evict_ssd(place, [of_block(other)])
    with switch.LiveVersion(place) as live:
        assert not live.residency.is_stub


def test_a_version_of_before_moves_as_it_is(node):
    place = node.put('o', DATA)
    flip(place.data_file(), 0)
    moves.copy_to_capacity(place)
    moves.evict_ssd(place)
    assert mending.look(place).length == 0


# -- in the daemon -----------------------------------------------------------


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.keeper.duties.stop()


def put(rig):
    place = rig.node.put('o', DATA, with_sums=True)
    rig.local.track(place.version, place.partition)
    return place


def told(rig, place):
    rig.ledger.apply([Event(EventKind.ROT, place.version, place.partition,
                            SIZE, at=1.0)])
    rig.keeper.round()


def test_what_a_reader_tells_of_is_mended_in_a_round(rig):
    place = put(rig)
    rig.local.clean(place.version, place.partition)
    flip(place.data_file(), 5)
    told(rig, place)
    assert is_whole(place)
    counts = rig.metrics.snapshot()
    assert counts['tier.rotten_versions_mended'] == 1
    assert counts['tier.rotten_bytes'] == BLOCK_BYTES
    # Said twice, or of a version that is gone: no harm.
    told(rig, place)
    os.unlink(place.data_file())
    told(rig, place)
    assert rig.metrics.snapshot()['tier.rotten_versions_mended'] == 1


def test_what_a_move_meets_is_mended_too(rig):
    place = put(rig)
    rig.local.clean(place.version, place.partition)
    rig.local.demote(place.version, place.partition)
    in_s3(place)
    flip(hdd_of(place), 5)
    rig.local.track(place.version, place.partition)
    with pytest.raises(RottenBytes):
        rig.local.promote(place.version, place.partition)
    rig.keeper.wish(place.version, place.partition, [0])
    rig.keeper.round()
    rig.keeper.round()
    assert rig.metrics.snapshot()['tier.rotten_versions_mended'] == 1
    assert rig.witness.asked
    with switch.LiveVersion(place) as live:
        assert [one.tiers for one in live.residency.split(
            0, BLOCK_BYTES)] == [Tier.REMOTE]


def test_what_is_lost_is_counted(rig):
    place = put(rig)
    flip(place.data_file(), 5)
    told(rig, place)
    assert rig.metrics.snapshot()['tier.rotten_versions_lost'] == 1
