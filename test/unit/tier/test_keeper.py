"""The keeper: order under pressure, cleaning, promotion, and trouble."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import pytest
from support import wait_until
from support.nodes.sample_node import read_version, sample_bytes
from support.nodes.tier_node import KIB, TABLE, FakeGateway, Rig

from swift_dss.core.classes import (
    Allocate, ClassSpec, ClassTable, RemoteMode)
from swift_dss.core.errors import TierFull
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.strategy.placement import plan
from swift_dss.tier.keep import keeper
from swift_dss.wire import layout
from swift_dss.wire.node import pressure
from swift_dss.wire.control import EventKind

SIZE = 100 * KIB


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


def fill(rig, *class_ids):
    return [rig.put('o%d' % number, sample_bytes(SIZE, number), class_id)
            for number, class_id in enumerate(class_ids)]


def with_class(*specs):
    return ClassTable.of([*TABLE.specs.values(), *specs])


def test_below_the_high_watermark_nothing_leaves(rig):
    fill(rig, *[0] * 8)
    rig.keeper.round()
    assert rig.ssd(0) == 8 * SIZE


def test_the_lowest_class_leaves_down_to_the_low_watermark(rig):
    fill(rig, 9, 0, 5, 0, 9, 5, 0, 5, 9)
    rig.keeper.round()
    assert rig.ssd(9) == 3 * SIZE
    assert rig.ssd(5) == 3 * SIZE
    assert rig.ssd(0) == SIZE
    assert rig.keeper.state.room_state == 'ready'


def test_inside_a_class_the_least_recently_read_leaves(rig):
    places = fill(rig, *[0] * 9)
    rig.now += 100
    rig.tell(EventKind.READ, places[0], ClassMap.uniform(0), int(Tier.SSD))
    rig.keeper.round()
    assert rig.index.get(places[0].version).spans[0].ssd_bytes == SIZE
    assert rig.index.get(places[1].version).spans[0].ssd_bytes == 0


@pytest.mark.parametrize('inner, eviction, gone', [
    ('sieve', 'class_ordered', [7, 8]), ('gdsf', 'weighted', [7, 8]),
    ('lru', 'gdsf', [7, 8]), ('s3fifo', 'class_ordered', [1, 2]),
    ('lru', 'class_ordered', [0, 1]), ('sarc', 'class_ordered', [0, 1])])
def test_the_order_that_the_class_or_the_node_names_is_obeyed(
        tmp_path, inner, eviction, gone):
    table = ClassTable.of([ClassSpec(0, 'plain', 0, inner=inner)])
    rig = Rig(tmp_path, table=table, eviction=eviction)
    places = fill(rig, *[0] * 7)
    for _ in range(3):
        # Read three times, but before all others came or were read.
        rig.now += 100
        rig.tell(EventKind.READ, places[0], ClassMap.uniform(0),
                 int(Tier.SSD))
    for place in places[1:]:
        rig.now += 100
        rig.tell(EventKind.READ, place, ClassMap.uniform(0), int(Tier.SSD))
    places += [rig.put(name, sample_bytes(SIZE, 7), 0)
               for name in ('new', 'newer')]
    rig.keeper.round()
    assert [number for number, place in enumerate(places)
            if not rig.index.get(place.version).spans[0].ssd_bytes] == gone
    rig.close()


def test_a_burst_of_dirty_low_bytes_does_not_push_out_clean_high_ones(rig):
    fill(rig, *[9] * 5)
    rig.now += 100
    rig.keeper.round()
    fill_more = [rig.put('more%d' % number, sample_bytes(SIZE, 50 + number))
                 for number in range(5)]
    rig.keeper.round()
    assert rig.ssd(9) == 5 * SIZE
    assert len(fill_more) * SIZE > rig.ssd(0)


def test_spans_of_one_object_leave_by_their_own_class(rig):
    data = sample_bytes(9 * SIZE, 3)
    place = rig.put('video', data, class_map=ClassMap.from_spans(
        [Span(0, 2 * SIZE, 9)], 0))
    rig.keeper.round()
    assert rig.ssd(9) == 2 * SIZE
    assert rig.ssd(0) == 0
    assert read_version(place, {}) == data


def test_a_pinned_version_and_a_pinned_class_stay(tmp_path):
    rig = Rig(tmp_path, table=with_class(ClassSpec(1, 'p', 1, pin=True)))
    places = fill(rig, 1, 1, 0, 0, 0, 0, 0, 0, 0)
    rig.local.pin(places[2].version, places[2].partition, True)
    rig.keeper.round()
    assert rig.ssd(1) == 2 * SIZE
    assert rig.index.get(places[2].version).spans[0].ssd_bytes == SIZE
    rig.close()


def test_a_floor_is_kept_and_a_cap_enforced(tmp_path):
    table = ClassTable.of([
        ClassSpec(0, 'plain', 0, floor=0.5),
        ClassSpec(5, 'silver', 50), ClassSpec(9, 'gold', 90, cap=0.2)])
    rig = Rig(tmp_path, table=table)
    fill(rig, 0, 0, 0, 0, 0, 0, 9, 9, 9)
    rig.keeper.round()
    assert rig.ssd(9) <= 200 * KIB
    assert rig.ssd(0) >= 500 * KIB
    rig.close()


def test_the_cleaner_copies_what_is_old_enough(rig):
    place, = fill(rig, 0)
    rig.keeper.round()
    assert rig.index.get(place.version).spans[0].dirty_bytes == SIZE
    rig.now += 31
    rig.keeper.round()
    assert rig.index.get(place.version).spans[0].dirty_bytes == 0
    assert rig.ssd(0) == SIZE


def test_above_the_dirty_watermark_everything_is_cleaned_at_once(rig):
    fill(rig, 0, 5, 9)
    rig.keeper.round()
    assert sum(sums['dirty'] for sums in
               rig.index.occupancy('sda').values()) == 0


def test_small_versions_stay_whole(tmp_path):
    rig = Rig(tmp_path, ssd_bytes=10 * KIB, min_demote_bytes=4096)
    for number in range(4):
        rig.put('s%d' % number, sample_bytes(3000, number))
    rig.keeper.round()
    assert rig.ssd(0) == 12000
    assert rig.keeper.state.room_state == 'short'
    rig.close()


def demoted(rig, class_id):
    place, = fill(rig, class_id)
    rig.local.demote(place.version, place.partition)
    return place


@pytest.mark.parametrize('allocate, comes_back', [
    (Allocate.ALWAYS, True), (Allocate.ROOM, True),
    (Allocate.NEVER, False)])
def test_a_read_from_the_hdd_brings_back_what_may_be_there(
        tmp_path, allocate, comes_back):
    rig = Rig(tmp_path, table=with_class(
        ClassSpec(1, 'c', 1, allocate=allocate)))
    place = demoted(rig, 1)
    rig.tell(EventKind.READ, place, ClassMap.uniform(1), int(Tier.HDD))
    rig.keeper.round()
    assert (rig.ssd(1) == SIZE) == comes_back
    rig.close()


def test_a_promotion_displaces_lower_classes_only(rig):
    low = rig.put('low', sample_bytes(SIZE, 90), 0)
    high = rig.put('high', sample_bytes(SIZE, 91), 9)
    for place in (low, high):
        rig.local.demote(place.version, place.partition)
    fill(rig, *[5] * 8)
    rig.now += 100
    rig.keeper.round()
    for place, class_id in ((low, 0), (high, 9)):
        rig.tell(EventKind.READ, place, ClassMap.uniform(class_id),
                 int(Tier.HDD))
    rig.keeper.round()
    assert rig.ssd(9) == SIZE
    assert rig.ssd(0) == 0
    assert rig.ssd(5) < 8 * SIZE


def test_an_unmounted_hdd_pauses_and_comes_back(rig, caplog):
    fill(rig, *[0] * 9)
    marker = layout.capacity_marker(rig.node.capacity_path)
    os.rename(marker, marker + '.away')
    for _ in range(3):
        rig.keeper.round()
    assert rig.keeper.state.hdd_state == 'unmounted'
    assert rig.keeper.state.room_state == 'short'
    assert rig.ssd(0) == 9 * SIZE
    assert [record.message for record in caplog.records
            if 'hdd is unmounted' in record.message].__len__() == 1
    os.rename(marker + '.away', marker)
    rig.keeper.round()
    assert rig.keeper.state.hdd_state == 'ready'
    assert rig.ssd(0) < 9 * SIZE


def test_a_full_hdd_stops_the_cleaner_and_loses_nothing(
        rig, caplog, monkeypatch):
    places = fill(rig, *[0] * 9)

    def full(path, length):
        raise TierFull('%s has no room' % path)

    monkeypatch.setattr(rig.local.mover, 'require_room', full)
    for _ in range(3):
        rig.keeper.round()
    assert rig.keeper.state.hdd_state == 'full'
    assert len([record for record in caplog.records
                if 'hdd is full' in record.message]) == 1
    for number, place in enumerate(places):
        assert read_version(place, {}) == sample_bytes(SIZE, number)


def test_the_pressure_file_says_what_is_so(rig):
    fill(rig, 0, 9)
    rig.now += 100
    rig.keeper.round()
    with open(os.path.join(rig.conf.run_dir, 'state', 'sda.json'),
              'rb') as source:
        shown = pressure.decode(source.read())
    assert shown.ssd_bytes == 1000 * KIB
    assert shown.ssd_used_bytes == 2 * SIZE
    assert shown.lowest_rank == 0
    assert shown.hdd_ready


def test_writes_of_a_class_below_its_floor_find_the_ssd(tmp_path):
    table = ClassTable.of([ClassSpec(0, 'low', 0, floor=0.3),
                           ClassSpec(9, 'high', 90)])
    rig = Rig(tmp_path, table=table)
    fill(rig, *[9] * 8)
    rig.keeper.round()
    seen = rig.keeper.state.pressure
    assert seen.claims == {0: int(0.3 * seen.ssd_bytes)}
    assert seen.ssd_used_bytes + SIZE > seen.high_bytes
    low = ClassMap.uniform(0)
    assert plan(low, SIZE, seen, table, 0)[0].tiers == Tier.SSD
    assert plan(low, 4 * SIZE, seen, table, 0)[0].tiers == Tier.HDD
    rig.close()


def test_a_pressure_file_is_not_written_again_before_it_says_more(rig):
    fill(rig, 0)
    rig.keeper.round()
    path = os.path.join(rig.conf.run_dir, 'state', 'sda.json')
    # A file that takes the old one's place may get its inode number too.
    os.utime(path, (1, 1))
    rig.keeper.round()
    assert os.stat(path).st_mtime == 1
    rig.now += 60
    rig.keeper.round()
    assert os.stat(path).st_mtime != 1
    os.unlink(path)
    fill(rig, 0, 0)
    rig.keeper.round()
    assert os.path.exists(path)


class Clocked:
    """A running keeper whose rounds are counted."""

    def __init__(self, rig):
        self.rounds = 0
        self.keeper = rig.keeper
        self._round = rig.keeper.round
        rig.keeper.round = self._count
        self.keeper.start()
        assert self.keeper.wait_round(60)

    def _count(self):
        finished = self._round()
        self.rounds += 1
        return finished


@pytest.mark.parametrize('length, due', [
    (5 * KIB, keeper.SOON_SECONDS), (20 * KIB, 0.0), (900 * KIB, 0.0)])
def test_a_round_is_near_after_bytes_came_and_at_once_after_many(
        tmp_path, monkeypatch, length, due):
    rig = Rig(tmp_path, interval_seconds=3600.0)
    clocked = Clocked(rig)
    asked = []
    monkeypatch.setattr(
        clocked.keeper, '_look_by',
        lambda at: asked.append(max(0.0, at - time.monotonic())))
    clocked.keeper.came(length)
    monkeypatch.undo()
    assert asked[0] == pytest.approx(due, abs=0.5)
    before = clocked.rounds
    clocked.keeper.came(length)
    wait_until(lambda: clocked.rounds > before, 30)
    clocked.keeper.stop()
    rig.index.file.close()


def test_nothing_is_looked_at_before_its_time(tmp_path):
    rig = Rig(tmp_path, interval_seconds=3600.0)
    clocked = Clocked(rig)
    before = clocked.rounds
    for _ in range(10):
        clocked.keeper.came(100)
    assert clocked.rounds == before
    wait_until(lambda: clocked.rounds > before, 30)
    assert clocked.rounds == before + 1
    clocked.keeper.stop()
    rig.index.file.close()


def remote(rig, place):
    rig.local.record_remote(place.version, place.partition,
                            RemoteCopy('s3', 'k', 'e', 1.0))


def test_remote_only_classes_leave_once_verified_and_not_before(tmp_path):
    rig = Rig(tmp_path, table=with_class(
        ClassSpec(1, 'cold', 1, remote=RemoteMode.ONLY)))
    place, = fill(rig, 1)
    rig.now += 100
    rig.keeper.round()
    assert rig.ssd(1) == SIZE
    remote(rig, place)
    rig.keeper.round()
    span = rig.index.get(place.version).spans[0]
    assert (span.ssd_bytes, span.hdd_bytes, span.remote_bytes) == (
        0, 0, SIZE)
    rig.close()


def test_a_full_hdd_is_relieved_by_what_s3_has(rig, monkeypatch):
    places = fill(rig, 0, 9)
    for place in places:
        rig.local.demote(place.version, place.partition)
        remote(rig, place)
    statvfs = os.statvfs
    monkeypatch.setattr(os, 'statvfs', lambda path: SimpleNamespace(
        f_frsize=SIZE, f_blocks=10, f_bavail=1)
        if path == rig.node.capacity_path else statvfs(path))
    rig.keeper.round()
    assert rig.index.get(places[0].version).spans[0].hdd_bytes == 0
    for place in places:
        with rig.local.open(place.version, place.partition) as reader:
            assert reader.residency.tiers & Tier.REMOTE


def test_without_an_hdd_only_what_s3_has_leaves(tmp_path):
    rig = Rig(tmp_path, with_hdd=False)
    places = fill(rig, *[0] * 9)
    rig.keeper.round()
    assert rig.ssd(0) == 9 * SIZE
    for place in places[:4]:
        remote(rig, place)
    rig.keeper.round()
    assert rig.ssd(0) == 7 * SIZE
    rig.close()


def test_an_overwrite_frees_the_old_version_here_and_in_s3(rig):
    old, = fill(rig, 0)
    rig.local.demote(old.version, old.partition)
    hdd_path = old.capacity.file_path(old.version)
    os.unlink(old.data_file())
    rig.put('o0', b'x' * SIZE)
    assert not os.path.exists(hdd_path)
    assert rig.index.get(old.version) is None
    assert rig.gateway.deletes == [old.version]


def test_a_version_whose_file_is_still_there_is_not_reclaimed(rig):
    old, = fill(rig, 0)
    rig.local.demote(old.version, old.partition)
    rig.put('o0', b'x' * SIZE)
    assert os.path.exists(old.capacity.file_path(old.version))
    assert rig.gateway.deletes == []


def test_uploads_are_asked_for_by_class(tmp_path):
    rig = Rig(tmp_path, table=with_class(
        ClassSpec(1, 'here', 1, remote=RemoteMode.NEVER),
        ClassSpec(2, 't', 2, remote=RemoteMode.THROUGH)))
    places = fill(rig, 0, 1, 2)
    assert isinstance(rig.gateway, FakeGateway)
    assert rig.gateway.uploads == [(places[0].version, False),
                                   (places[2].version, True)]
    rig.close()
