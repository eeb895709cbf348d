"""Moves between SSD and HDD keep every byte and every invariant."""

from __future__ import annotations

import dataclasses
import os

import pytest
from support.nodes.sample_node import SampleNode, read_version, sample_bytes
from swift.obj.diskfile import read_metadata

from swift_dss.core.errors import (
    DamagedRecord, TierUnavailable, VersionGone)
from swift_dss.core.residency import (
    RemoteCopy, Residency, Tier, tier_text)
from swift_dss.core.spans import ClassMap, Span
from swift_dss.io import moves, steps, switch
from swift_dss.io.carriers import Carrier
from swift_dss.wire import layout

DATA = sample_bytes(3 * 1024 * 1024 + 17, 1)
REMOTE = RemoteCopy('s3', 'k', 'e', 1.0)


@pytest.fixture
def node(tmp_path):
    return SampleNode(str(tmp_path))


@pytest.fixture
def place(node):
    return node.put('o', DATA)


def tiers_of(place):
    with switch.LiveVersion(place) as live:
        return tier_text(live.residency.tiers)


def size_of(place):
    return os.stat(place.data_file()).st_size


def test_a_clean_version_is_on_both_tiers_and_still_whole(place):
    moves.copy_to_capacity(place)
    assert tiers_of(place) == 'ssd+hdd'
    assert size_of(place) == len(DATA)
    with open(place.capacity.file_path(place.version), 'rb') as hdd:
        assert hdd.read() == DATA


def test_a_demoted_version_is_one_byte_longer_and_holds_no_blocks(place):
    moves.copy_to_capacity(place)
    moves.evict_ssd(place)
    assert size_of(place) == len(DATA) + 1
    assert os.stat(place.data_file()).st_blocks * 512 < 65536
    assert read_version(place, {}) == DATA


def test_a_promoted_version_is_whole_again(place):
    moves.copy_to_capacity(place)
    moves.evict_ssd(place)
    moves.promote(place)
    assert size_of(place) == len(DATA)
    with open(place.data_file(), 'rb') as ssd:
        assert ssd.read() == DATA


def test_swift_metadata_and_mtime_survive_both_switches(place):
    before = read_metadata(place.data_file())
    os.utime(place.data_file(), ns=(1, 1234567890))
    moves.copy_to_capacity(place)
    moves.evict_ssd(place)
    assert read_metadata(place.data_file()) == before
    assert os.stat(place.data_file()).st_mtime_ns == 1234567890


def test_only_the_asked_range_leaves_the_ssd(place):
    moves.copy_to_capacity(place)
    residency = moves.evict_ssd(place, [(1000, 2000)])
    assert residency.bytes_on(Tier.SSD) == len(DATA) - 2000
    assert read_version(place, {}) == DATA


def test_spans_are_cut_for_the_carrier_by_class(place):
    calls = []

    class Spy(Carrier):
        def pwritev(self, fd, buffers, offset, class_id):
            written = super().pwritev(fd, buffers, offset, class_id)
            calls.append((offset, written, class_id))
            return written

    class_map = ClassMap.from_spans([Span(0, 100, 5), Span(100, 50, 6)], 7)
    moves.copy_to_capacity(place, class_map=class_map, io=Spy())
    assert calls[:2] == [(0, 100, 5), (100, 50, 6)]
    assert {class_id for offset, _, class_id in calls[2:]} == {7}
    assert sum(length for _, length, _ in calls) == len(DATA)


def test_bytes_that_lie_nowhere_else_are_never_evicted(place):
    residency = moves.evict_ssd(place)
    assert residency.bytes_on(Tier.SSD) == len(DATA)
    assert size_of(place) == len(DATA)


def test_eviction_refuses_when_the_capacity_file_is_gone(place):
    moves.copy_to_capacity(place)
    os.unlink(place.capacity.file_path(place.version))
    with pytest.raises(VersionGone):
        moves.evict_ssd(place)
    assert read_version(place, {}) == DATA


def test_eviction_refuses_when_the_capacity_file_is_short(place):
    moves.copy_to_capacity(place)
    os.truncate(place.capacity.file_path(place.version), 10)
    with pytest.raises(DamagedRecord):
        moves.evict_ssd(place)
    assert read_version(place, {}) == DATA


def test_an_unmounted_hdd_is_unavailable_and_nothing_changes(place):
    os.unlink(layout.capacity_marker(place.capacity.path))
    for move in (moves.copy_to_capacity, moves.drop_capacity):
        with pytest.raises(TierUnavailable):
            move(place)
    assert read_version(place, {}) == DATA


def test_a_replaced_hdd_is_not_believed(node, place):
    moves.copy_to_capacity(place)
    os.unlink(layout.capacity_marker(place.capacity.path))
    os.unlink(place.capacity.file_path(place.version))
    node.capacity.initialise()
    assert tiers_of(place) == 'ssd'
    moves.copy_to_capacity(place)
    moves.evict_ssd(place)
    assert read_version(place, {}) == DATA


def _mark_remote(place):
    with switch.LiveVersion(place) as live:
        moves.mark_remote(live, REMOTE)


def test_a_remote_copy_lets_both_local_ones_go(place):
    moves.copy_to_capacity(place)
    _mark_remote(place)
    moves.evict_ssd(place)
    moves.drop_capacity(place, proven=REMOTE)
    assert tiers_of(place) == 'remote'
    assert not os.path.exists(place.capacity.file_path(place.version))
    assert read_version(place, {'k': DATA}) == DATA


def test_the_last_hdd_copy_is_never_dropped(place):
    moves.copy_to_capacity(place)
    moves.evict_ssd(place)
    moves.drop_capacity(place)
    assert read_version(place, {}) == DATA


def test_a_remote_copy_that_is_the_only_one_cannot_be_forgotten(place):
    _mark_remote(place)
    moves.evict_ssd(place, proven=REMOTE)
    with pytest.raises(ValueError, match='on no tier'):
        moves.forget_remote(place)
    assert tiers_of(place) == 'remote'


def test_a_relinked_version_keeps_its_capacity_file(place):
    moves.copy_to_capacity(place)
    _mark_remote(place)
    os.link(place.data_file(), place.data_file() + '.relinked')
    moves.drop_capacity(place)
    assert os.path.exists(place.capacity.file_path(place.version))


def test_a_reader_that_is_open_keeps_the_old_bytes(place):
    with open(place.data_file(), 'rb') as reader:
        moves.copy_to_capacity(place)
        moves.evict_ssd(place)
        assert reader.read() == DATA


def test_a_deleted_version_is_gone_and_leaves_no_temporary_file(place):
    moves.copy_to_capacity(place)
    path = place.data_file()

    class Deletes(Carrier):
        def pwritev(self, fd, buffers, offset, class_id):
            if os.path.exists(path):
                os.unlink(path)
            return super().pwritev(fd, buffers, offset, class_id)

    with pytest.raises(VersionGone):
        moves.evict_ssd(place, [(0, 100)], io=Deletes())
    assert not os.path.exists(path)
    assert os.listdir(layout.stub_tmp_dir(place.device_path)) == []


def while_it_writes(do):
    """An I/O during whose first write something else happens."""
    class Meanwhile(Carrier):
        done = False

        def pwritev(self, fd, buffers, offset, class_id):
            if not self.done:
                self.done = True
                do()
            return super().pwritev(fd, buffers, offset, class_id)
    return Meanwhile()


def test_an_inode_swapped_in_meanwhile_stays(place):
    moves.copy_to_capacity(place)
    path = place.data_file()
    with switch.LiveVersion(place) as live:
        records = [(name, os.getxattr(live.fd, name))
                   for name in os.listxattr(live.fd)]

    def swap():
        # As like the one before as it gets: one name, and its record.
        with open(path + '.other', 'wb') as target:
            target.write(b'another inode')
        for name, value in records:
            os.setxattr(path + '.other', name, value)
        os.rename(path + '.other', path)

    with pytest.raises(VersionGone):
        moves.evict_ssd(place, [(0, 100)], io=while_it_writes(swap))
    with open(path, 'rb') as live:
        assert live.read() == b'another inode'
    assert os.listdir(layout.stub_tmp_dir(place.device_path)) == []


def test_a_record_that_changes_meanwhile_stays(place):
    moves.copy_to_capacity(place)

    def arrive():
        with switch.LiveVersion(place) as live:
            moves.mark_remote(live, REMOTE)

    with pytest.raises(VersionGone):
        moves.evict_ssd(place, [(0, 100)], io=while_it_writes(arrive))
    assert tiers_of(place) == 'ssd+hdd+remote'
    assert size_of(place) == len(DATA)


def test_every_move_may_happen_twice(place):
    for _ in range(2):
        moves.copy_to_capacity(place)
    for _ in range(2):
        moves.evict_ssd(place)
    for _ in range(2):
        moves.promote(place)
    for _ in range(2):
        moves.drop_capacity(place)
    assert tiers_of(place) == 'ssd'
    assert read_version(place, {}) == DATA


def test_left_over_files_are_removed_at_the_start(node):
    folder = layout.stub_tmp_dir(node.device_path)
    os.makedirs(folder)
    open(os.path.join(folder, 'x'), 'w').close()
    open(os.path.join(layout.capacity_tmp_dir(node.capacity.path), 'y'),
         'w').close()
    assert switch.clean_tmp(node.device_path, node.capacity.path) == 2
    assert os.listdir(folder) == []


@pytest.mark.parametrize('move', [moves.evict_ssd, moves.promote])
def test_a_file_with_two_names_keeps_its_inode(place, tmp_path, move):
    """The relinker's second name must not part from the first."""
    moves.copy_to_capacity(place)
    if move is moves.promote:
        moves.evict_ssd(place)
    second = str(tmp_path / 'second')
    os.link(place.data_file(), second)
    before = os.stat(second)
    with pytest.raises(VersionGone, match='relinked'):
        move(place)
    assert os.path.samefile(second, place.data_file())
    assert os.stat(second).st_size == before.st_size
    assert read_version(place, {}) == DATA
    os.unlink(second)
    move(place)
    assert read_version(place, {}) == DATA


def test_a_name_that_came_during_the_move_undoes_it(place, tmp_path):
    moves.copy_to_capacity(place)
    second = str(tmp_path / 'second')
    steps.listen(lambda name: os.link(place.data_file(), second)
                 if name == 'evict.built' else None)
    try:
        with pytest.raises(VersionGone, match='relinked'):
            moves.evict_ssd(place)
    finally:
        steps.listen(None)
    assert os.path.samefile(second, place.data_file())
    assert read_version(place, {}) == DATA


@pytest.mark.parametrize('proven', [
    None, dataclasses.replace(REMOTE, key='another'),
    dataclasses.replace(REMOTE, verified_at=REMOTE.verified_at + 1)])
def test_what_only_s3_would_have_stays_without_its_word_of_now(
        place, proven):
    _mark_remote(place)
    moves.evict_ssd(place, proven=proven)
    assert tiers_of(place) == 'ssd+remote'
    moves.copy_to_capacity(place)
    moves.evict_ssd(place, proven=proven)
    assert tiers_of(place) == 'hdd+remote'
    moves.drop_capacity(place, proven=proven)
    assert tiers_of(place) == 'hdd+remote'
    assert read_version(place, {}) == DATA


def test_a_lost_hdd_file_is_no_copy_though_s3_has_one(place):
    moves.copy_to_capacity(place)
    _mark_remote(place)
    os.unlink(place.capacity.file_path(place.version))
    with pytest.raises(VersionGone):
        moves.evict_ssd(place)
    assert read_version(place, {}) == DATA
    moves.evict_ssd(place, proven=REMOTE)
    assert not tiers_of(place).startswith('ssd')


def test_only_bytes_that_lie_nowhere_else_here_need_a_proof():
    residency = Residency.whole(100).with_remote(REMOTE)
    both = residency.add(0, 50, Tier.HDD)
    assert moves.leaves_to_s3(residency, Tier.SSD)
    assert moves.leaves_to_s3(both, Tier.SSD)
    assert not moves.leaves_to_s3(both, Tier.HDD)
    assert moves.leaves_to_s3(both, moves.LOCAL)
    assert not moves.leaves_to_s3(Residency.whole(100), Tier.SSD)
    assert not moves.leaves_to_s3(
        residency.add(0, 100, Tier.HDD), Tier.SSD)
