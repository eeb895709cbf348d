"""What a disk changed is found in all copies here, and replaced."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.nodes.sample_node import SampleNode, read_version, sample_bytes
from support.nodes.tier_node import Rig

from swift_dss.core.errors import RottenBytes, TierUnavailable
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.gateway.peers.aside import Asides
from swift_dss.gateway.peers.primaries import Primaries
from swift_dss.io import mending, moves, switch
from swift_dss.io.capacity import Capacity
from swift_dss.io.carriers import Carrier
from swift_dss.io.sums import blocks
from swift_dss.io.workers import inline
from swift_dss.strategy.agreement import Answer
from swift_dss.tier.keep import checks, mender
from swift_dss.tier.keep.wishes import Wish
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
    assert [extent.tiers
            for extent in left.split(0, BLOCK_BYTES)] == [Tier.REMOTE]
    assert all(extent.tiers & moves.LOCAL
               for extent in left.split(BLOCK_BYTES, SIZE))
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
    other = [name for name in PLACES if name != at][0]
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
    with switch.LiveVersion(place) as live:
        assert blocks.load(live.fd, SIZE) is None


# -- what cannot be read -----------------------------------------------------


class Failing(Carrier):
    """Disks that cannot read some places."""

    def __init__(self, *bad):
        self.bad = [(os.stat(path).st_ino, at) for path, at in bad]

    def pread(self, fd, length, offset, class_id):
        if any(os.fstat(fd).st_ino == inode
               and offset <= at < offset + length
               for inode, at in self.bad):
            raise OSError(errno.EIO, 'a bad place')
        return super().pread(fd, length, offset, class_id)


@pytest.fixture(params=[True, False], ids=['sums', 'no-sums'])
def any_place(node, request):
    return node.put('o', DATA, with_sums=request.param)


@pytest.mark.parametrize('at', PLACES)
@pytest.mark.parametrize('bad', ['ssd', 'hdd'])
def test_what_a_disk_cannot_read_comes_from_the_other(any_place, bad, at):
    moves.copy_to_capacity(any_place)
    io = Failing((any_place.data_file() if bad == 'ssd'
                  else hdd_of(any_place), at))
    rot = mending.look(any_place, io)
    wanted = [of_block(at)]
    assert rot == mending.Rot(*(
        (wanted, []) if bad == 'ssd' else ([], wanted)), [], [])
    # The place is written anew, and can be read then.
    mending.mend(any_place, rot)
    assert is_whole(any_place)


def test_what_only_s3_has_leaves_the_disk_that_cannot_read_it(any_place):
    in_s3(any_place)
    io = Failing((any_place.data_file(), 9))
    rot = mending.look(any_place, io)
    assert rot == mending.Rot([], [], [of_block(9)], [])
    left = mending.mend(any_place, rot, io=io, proven=REMOTE)
    assert [extent.tiers
            for extent in left.split(0, BLOCK_BYTES)] == [Tier.REMOTE]
    assert read_version(any_place, {'k': DATA}) == DATA


@pytest.mark.parametrize('move', [
    moves.copy_to_capacity, moves.promote,
    lambda place, io: moves.evict_ssd(place, [of_block(0)], io=io)])
def test_a_move_that_cannot_read_says_so_and_changes_nothing(
        any_place, move):
    if move is not moves.copy_to_capacity:
        moves.copy_to_capacity(any_place)
    bad = any_place.data_file()
    if move is moves.promote:
        moves.evict_ssd(any_place)
        bad = hdd_of(any_place)
    with switch.LiveVersion(any_place) as live:
        before = live.residency
    with pytest.raises(RottenBytes):
        move(any_place, io=Failing((bad, PLACES[1])))
    with switch.LiveVersion(any_place) as live:
        assert live.residency == before


def test_an_hdd_file_that_is_too_short_is_not_promoted(any_place):
    moves.copy_to_capacity(any_place)
    moves.evict_ssd(any_place)
    os.truncate(hdd_of(any_place), SIZE - 5)
    with pytest.raises(RottenBytes):
        moves.promote(any_place)


# -- checksums are made ------------------------------------------------------


def sums_of(place):
    with switch.LiveVersion(place) as live:
        sums = blocks.load(live.fd, SIZE)
        return None if sums is None else [
            sums.expected(block) for block in range(5)]


@pytest.fixture
def true_sums():
    summer = blocks.Summer()
    summer.update(DATA)
    return list(summer.finish())


@pytest.fixture
def old(node):
    """A version of before, whose ETag is known."""
    return replace(node.put('o', DATA),
                   etag=hashlib.md5(DATA).hexdigest())


def test_a_copy_of_all_of_an_old_version_makes_its_sums(old, true_sums):
    moves.copy_to_capacity(old)
    assert sums_of(old) == true_sums
    assert mending.look(old).length == 0


def test_a_promotion_of_all_of_an_old_version_makes_its_sums(
        old, true_sums):
    plain = replace(old, etag='')
    moves.copy_to_capacity(plain)
    moves.evict_ssd(plain)
    assert sums_of(old) is None
    moves.promote(old)
    assert sums_of(old) == true_sums


def test_bytes_that_are_not_the_versions_get_no_sums(old):
    flip(old.data_file(), 9)
    moves.copy_to_capacity(old)
    assert sums_of(old) is None


def test_a_part_of_an_old_version_gets_no_sums(old):
    moves.copy_to_capacity(old, [(0, 2 * BLOCK_BYTES)])
    moves.copy_to_capacity(old)
    assert sums_of(old) is None


def source_of(tmp_path, data=DATA):
    (tmp_path / 'source').write_bytes(data)
    return os.open(str(tmp_path / 'source'), os.O_RDONLY)


def as_stub(place):
    in_s3(place)
    moves.evict_ssd(place, proven=REMOTE)


@pytest.mark.parametrize('fill', [moves.fill_capacity, moves.fill_ssd])
def test_what_comes_from_s3_gets_sums_of_its_whole_blocks(
        old, true_sums, tmp_path, fill):
    as_stub(old)
    source = source_of(tmp_path)
    fill(old, source, BLOCK_BYTES + 5, 2 * BLOCK_BYTES)
    assert sums_of(old) == [0, 0, true_sums[2], 0, 0]
    fill(old, source, 3 * BLOCK_BYTES, SIZE - 3 * BLOCK_BYTES)
    # Of the fourth block a part was here, which nobody has proven.
    assert sums_of(old) == [0, 0, true_sums[2], 0, true_sums[4]]
    os.close(source)


@pytest.mark.parametrize('fill', [moves.fill_capacity, moves.fill_ssd])
def test_a_fill_of_all_makes_all_sums(old, true_sums, tmp_path, fill):
    as_stub(old)
    source = source_of(tmp_path)
    fill(old, source, 0, SIZE)
    assert sums_of(old) == true_sums
    os.close(source)
    flip(hdd_of(old) if fill is moves.fill_capacity else old.data_file(), 9)
    assert mending.look(old).in_s3 == [of_block(9)]


@pytest.mark.parametrize('fill', [moves.fill_capacity, moves.fill_ssd])
def test_a_spool_that_rotted_is_not_kept(place, tmp_path, fill):
    """The version has sums, as one that was evicted here."""
    as_stub(place)
    wrong = bytearray(DATA)
    wrong[9] ^= 1
    source = source_of(tmp_path, bytes(wrong))
    with pytest.raises(RottenBytes):
        fill(place, source, 0, SIZE)
    os.close(source)
    with switch.LiveVersion(place) as live:
        assert live.residency.tiers == Tier.REMOTE


def test_a_fill_beside_a_wrong_block_of_the_ssd_is_not_kept(
        place, tmp_path):
    in_s3(place)
    moves.evict_ssd(place, [(2 * BLOCK_BYTES, SIZE - 2 * BLOCK_BYTES)],
                    proven=REMOTE)
    flip(place.data_file(), 5)
    source = source_of(tmp_path)
    with pytest.raises(RottenBytes):
        moves.fill_ssd(place, source, 2 * BLOCK_BYTES, BLOCK_BYTES)
    os.close(source)


def test_a_block_whose_tiers_meet_in_it_is_proven_in_a_move(place):
    moves.copy_to_capacity(place)
    moves.evict_ssd(place, [(1000, BLOCK_BYTES)])
    flip(place.data_file(), 10)
    with pytest.raises(RottenBytes):
        moves.promote(place)


# -- in the daemon -----------------------------------------------------------


@pytest.fixture
def rig(tmp_path):
    # Other nodes are asked within a round.
    made = Rig(tmp_path, pool=inline)
    yield made
    made.keeper.duties.stop()


def put(rig):
    place = rig.node.put('o', DATA, with_sums=True)
    rig.local.mover.track(place.version, place.partition)
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
    rig.local.mover.track(place.version, place.partition)
    with pytest.raises(RottenBytes):
        rig.local.promote(place.version, place.partition)
    rig.keeper.wish(Wish(place.version, place.partition, (0,)))
    rig.keeper.round()
    rig.keeper.round()
    assert rig.metrics.snapshot()['tier.rotten_versions_mended'] == 1
    assert rig.witness.asked
    with switch.LiveVersion(place) as live:
        assert [extent.tiers for extent in live.residency.split(
            0, BLOCK_BYTES)] == [Tier.REMOTE]


# -- what no tier here has right ---------------------------------------------


class Others(Primaries):
    """What the other primaries prove of any version."""

    def __init__(self):
        self.have, self.asked = False, 0

    def ask(self, wanted, records=False):
        raise AssertionError('nobody decides by claims')

    def prove(self, wanted):
        self.asked += 1
        return [Answer(wanted.version.timestamp, '', self.have, '',
                       self.have)]


@pytest.fixture
def others(rig, monkeypatch):
    """Those of the rig, whose clock stands still until ``rig.passed``."""
    primaries, rig.passed = Others(), 0.0
    rig.local.put_aside_if = Asides(rig.local, primaries,
                                    rig.metrics).put_aside
    for module in (mender, checks):
        monkeypatch.setattr(module, 'time', SimpleNamespace(
            monotonic=lambda: 1000.0 + rig.passed))
    return primaries


def lost(rig, name='o'):
    """A version of which both copies are wrong."""
    place = rig.node.put(name, DATA, with_sums=True)
    rig.local.mover.track(place.version, place.partition)
    rig.local.clean(place.version, place.partition)
    flip(place.data_file(), 5)
    flip(hdd_of(place), 6)
    rig.keeper.to_mend(place.version, place.partition)
    return place


def quarantined(rig):
    return sorted(name for _, _, names in os.walk(os.path.join(
        rig.node.device_path, 'quarantined')) for name in names)


def test_what_others_have_is_left_to_replication(rig, others):
    others.have = True
    place = lost(rig)
    rig.keeper.round()
    assert quarantined(rig) == [place.version.timestamp + '.data']
    assert rig.index.get(place.version) is None
    # Nothing is thrown away, and the suffix is hashed anew.
    assert os.path.exists(hdd_of(place))
    suffix_dir = os.path.dirname(place.hash_dir)
    with open(os.path.join(os.path.dirname(suffix_dir),
                           'hashes.invalid')) as invalid:
        assert set(invalid.read().split()) == {
            os.path.basename(suffix_dir)}
    counts = rig.metrics.snapshot()
    assert counts['tier.rotten_versions_lost'] == 1
    assert rig.keeper.duties.mender.lacking == 0
    # What replication has brought may be lost again.
    lost(rig)
    rig.keeper.round()
    assert len(quarantined(rig)) == 2


def test_what_nobody_has_stays_and_is_asked_for_again(rig, others):
    place = lost(rig)
    for _ in range(3):
        rig.keeper.round()
        told(rig, place)
    assert others.asked == 1, 'readers do not hurry it'
    assert not quarantined(rig)
    assert rig.index.get(place.version) is not None
    assert rig.keeper.duties.mender.lacking == 1
    assert rig.metrics.snapshot()['tier.rotten_versions_kept'] == 1
    for passed, asked in ((59, 1), (60, 2), (179, 2), (180, 3)):
        rig.passed = passed
        rig.keeper.round()
        assert others.asked == asked
    # Another node is back that has it.
    others.have, rig.passed = True, 420
    rig.keeper.round()
    assert len(quarantined(rig)) == 1
    assert rig.keeper.duties.mender.lacking == 0


def test_what_goes_away_lacks_nothing(rig, others):
    place = lost(rig)
    rig.keeper.round()
    os.unlink(place.data_file())
    rig.passed = 60
    rig.keeper.round()
    mender_ = rig.keeper.duties.mender
    assert (mender_.lacking, others.asked, mender_.waiting) == (0, 1, 0)


def test_what_can_be_read_again_lacks_nothing(rig, others):
    place = lost(rig)
    rig.keeper.round()
    flip(place.data_file(), 5)
    rig.passed = 60
    rig.keeper.round()
    assert is_whole(place), 'mended from the copy that is right by now'
    assert rig.keeper.duties.mender.lacking == 0
    assert not quarantined(rig)


def replace_hdd(rig):
    """By an empty one, as an operator does."""
    path = rig.node.capacity_path
    shutil.rmtree(path)
    os.mkdir(path)
    Capacity(path, 'sda').initialise()


@pytest.mark.parametrize('have', [False, True])
def test_an_hdd_that_was_replaced_has_taken_its_versions(
        rig, others, have):
    """Those of which no byte is anywhere else on this node."""
    others.have = have
    place = put(rig)
    rig.local.demote(place.version, place.partition)
    replace_hdd(rig)
    rig.keeper.to_mend(place.version, place.partition)
    rig.keeper.round()
    assert bool(quarantined(rig)) is have
    assert others.asked == 1
    # An upload fails, and does not take the version for gone.
    if not have:
        with rig.local.open(place.version, place.partition) as reader, \
                pytest.raises(TierUnavailable):
            reader.read(0, 1)


def test_a_file_of_the_hdd_that_cannot_be_opened_is_wrong(
        rig, others, monkeypatch):
    others.have = True
    place = put(rig)
    rig.local.demote(place.version, place.partition)

    def broken(*_args):
        raise TierUnavailable('its inode cannot be read')
    monkeypatch.setattr(Capacity, 'open_read', broken)
    rig.keeper.to_mend(place.version, place.partition)
    rig.keeper.round()
    assert len(quarantined(rig)) == 1


def test_an_hdd_that_is_not_mounted_has_lost_nothing(rig, others):
    others.have = True
    place = put(rig)
    rig.local.demote(place.version, place.partition)
    os.rename(rig.node.capacity_path, rig.node.capacity_path + '.away')
    rig.keeper.to_mend(place.version, place.partition)
    rig.keeper.round()
    assert not quarantined(rig) and not others.asked
    os.rename(rig.node.capacity_path + '.away', rig.node.capacity_path)
    rig.passed = 60
    rig.keeper.round()
    assert not quarantined(rig) and not others.asked


# -- a disk that fails as a whole --------------------------------------------


class FailingDisk(Carrier):
    """A disk that gives no byte of most of its files."""

    def __init__(self, root, good=()):
        self.root = os.path.realpath(root)
        self.good = {os.stat(path).st_ino for path in good}
        self.fails = True

    def pread(self, fd, length, offset, class_id):
        path = os.readlink('/proc/self/fd/%d' % fd)
        if self.fails and path.startswith(self.root + os.sep) and \
                os.fstat(fd).st_ino not in self.good:
            raise OSError(errno.EIO, 'no answer')
        return super().pread(fd, length, offset, class_id)


def many(rig, count, on_hdd=False):
    # No pressure, which moves bytes.
    rig.conf = replace(rig.conf, tier=replace(rig.conf.tier, ssd_bytes=0))
    places = []
    for number in range(count):
        place = rig.node.put('m%d' % number, DATA, with_sums=True)
        rig.local.mover.track(place.version, place.partition)
        if on_hdd:
            rig.local.demote(place.version, place.partition)
        places.append(place)
    return places


@pytest.mark.parametrize('bad', ['ssd', 'hdd'])
def test_a_disk_that_fails_as_a_whole_empties_no_device(rig, others, bad):
    others.have = True
    places = many(rig, 12, on_hdd=bad == 'hdd')
    disk = rig.local.mover.io = FailingDisk(
        rig.node.device_path if bad == 'ssd' else rig.node.capacity_path)
    state = '%s_state' % bad
    for place in places:
        rig.keeper.to_mend(place.version, place.partition)
    for minute in range(5):
        rig.passed = 60.0 * minute
        rig.keeper.round()
        assert getattr(rig.keeper.state, state) == 'failing'
    assert not quarantined(rig) and not others.asked
    assert rig.local.is_failing('sda')
    assert rig.keeper.duties.checks.is_failing
    # It reads again: nothing was wrong.
    disk.fails = False
    for minute in range(5, 9):
        rig.passed = 60.0 * minute
        rig.keeper.round()
    assert getattr(rig.keeper.state, state) == 'ready'
    assert not rig.local.is_failing('sda')
    assert not quarantined(rig) and not others.asked


def test_a_few_bad_versions_are_no_failing_disk(rig, others):
    others.have = True
    places = many(rig, 30)
    rig.local.mover.io = FailingDisk(rig.node.device_path, [
        place.data_file() for place in places[2:]])
    for place in places[:2]:
        rig.keeper.to_mend(place.version, place.partition)
    rig.keeper.round()
    assert len(quarantined(rig)) == 2
    assert rig.keeper.state.ssd_state == 'ready'


def test_nothing_of_a_failing_disk_is_mended(rig, others):
    places = many(rig, 8)
    for place in places:
        rig.local.clean(place.version, place.partition)
    rig.local.mover.io = FailingDisk(rig.node.device_path)
    before = [os.stat(place.data_file()).st_ino for place in places]
    for place in places:
        rig.keeper.to_mend(place.version, place.partition)
    rig.keeper.round()
    assert [os.stat(place.data_file()).st_ino
            for place in places] == before
    assert 'tier.rotten_versions_mended' not in rig.metrics.snapshot()


def test_a_drive_that_was_replaced_is_not_failing(rig, others):
    places = many(rig, 8, on_hdd=True)
    rig.local.mover.io = FailingDisk(rig.node.capacity_path)
    for place in places:
        rig.keeper.to_mend(place.version, place.partition)
    rig.keeper.round()
    assert rig.keeper.state.hdd_state == 'failing'
    replace_hdd(rig)
    rig.passed = 60.0
    others.have = True
    rig.keeper.round()
    assert rig.keeper.state.hdd_state == 'ready'
    rig.passed = 120.0
    rig.keeper.round()
    assert len(quarantined(rig)) == 8, 'others bring them back'


def test_a_sample_looks_once_at_each_version(rig, others, monkeypatch):
    """However often so few are drawn, and at each partition."""
    places = many(rig, 3)
    leaving, looked = rig.local.index.leaving, []
    ids, departing = leaving.ids_of_partitions, leaving.departing
    monkeypatch.setattr(leaving, 'ids_of_partitions', lambda *asked: (
        looked.append(('partition', asked[2][0])), ids(*asked))[1])
    monkeypatch.setattr(leaving, 'departing', lambda *asked: (
        looked.append(('version', asked[2][0])), departing(*asked))[1])
    assert not rig.keeper.duties.checks.look(something_is_wrong=True)
    # Once for each of two disks.
    assert set(map(looked.count, looked)) == {2}
    assert len([kind for kind, _ in looked if kind == 'version']) == \
        2 * len(places)


def test_nothing_is_read_while_nothing_is_wrong(rig, others):
    many(rig, 8)

    class Untouched(Carrier):

        def pread(self, *_args):
            raise AssertionError('nobody asked for it')
    rig.local.mover.io = Untouched()
    for minute in range(3):
        rig.passed = 60.0 * minute
        rig.keeper.round()


def test_a_move_that_fails_holds_no_other_up(rig, monkeypatch):
    """One version's trouble is not the HDD's."""
    places = [rig.node.put('o%d' % number, DATA) for number in range(3)]
    for place in places:
        rig.local.mover.track(place.version, place.partition)
    inner = moves.copy_to_capacity

    def copy(place, *options):
        if place.version == places[0].version:
            raise OSError(errno.EIO, 'its inode cannot be read')
        return inner(place, *options)
    monkeypatch.setattr(moves, 'copy_to_capacity', copy)
    rig.now += 3600
    rig.keeper.round()
    assert rig.keeper.state.hdd_state == 'ready'
    assert [os.path.exists(hdd_of(place)) for place in places] == [
        False, True, True]
    assert rig.metrics.snapshot()['tier.move_errors'] >= 1
