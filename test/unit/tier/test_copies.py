"""Cold copies: staged, first to leave, brought back by nothing but reads."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from dataclasses import replace

import pytest
from support.nodes.sample_node import read_version, sample_bytes
from support.nodes.tier_node import KIB, TABLE, Rig

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.ranks import NoRing
from swift_dss.strategy.eviction.warmth import AGAIN_SECONDS, Warmth
from swift_dss.tier.devices import Devices
from swift_dss.tier.index import placing, schema
from swift_dss.tier.index.filters import Filter
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.rows import SpanRow, VersionRow
from swift_dss.tier.inforce import InForce
from swift_dss.tier.local import copies
from swift_dss.tier.local.copies import Copies
from swift_dss.tier.walk.survey import Survey
from swift_dss.wire.node import pressure
from swift_dss.wire.control import Event, EventKind

SIZE = 100 * KIB


class Places:
    """Ranks of objects, by what their names begin with."""

    def __init__(self):
        self.ranks = {}
        self.asked = 0

    def place(self, version):
        self.asked += 1
        if not self.ranks:
            raise NoRing('none')
        rank = self.ranks[version.object_hash]
        if rank == 3:
            return 3, 3
        return (rank + int(version.object_hash[-8:], 16)) % 3, 3


class CopiesRig(Rig):
    """With ranks: ``put(name, rank, class)``."""

    def __init__(self, root, **options):
        super().__init__(root, **options)
        self.places = Places()
        self.local.mover.copies = Copies(
            self.in_force, self.local.devices, self.places)
        self.there = {}

    def add(self, name, rank, class_id=0, size=SIZE, **options):
        self.places.ranks[hashlib.md5(name.encode()).hexdigest()] = rank
        self.there[name] = self.put(name, sample_bytes(size, len(self.there)),
                                    class_id, **options)
        return self.there[name]

    def read(self, name, class_id=0, tier=Tier.HDD, after=1.0):
        self.now += after
        self.tell(EventKind.READ, self.there[name],
                  ClassMap.uniform(class_id), int(tier))

    def row(self, name):
        return self.index.get(self.there[name].version)

    def on_ssd(self):
        return {name for name in self.there
                if self.row(name).spans[0].ssd_bytes}

    def warmth(self, name):
        return self.row(name).spans[0].warmth


@pytest.fixture
def rig(tmp_path):
    made = CopiesRig(tmp_path)
    yield made
    made.close()


def test_cold_copies_of_any_class_leave_before_warm_ones(rig):
    for number in range(3):
        rig.add('plain%d' % number, 0, 0)
    for number in range(6):
        rig.add('gold%d' % number, number % 3, 9)
    rig.now += 100
    rig.keeper.round()
    # 900 KiB of 1,000: 200 have to leave.
    assert set(rig.there) - rig.on_ssd() == {'gold1', 'gold2'}
    for name, place in rig.there.items():
        assert len(read_version(place, {})) == SIZE, name


def test_cold_copies_leave_in_the_order_of_their_class_and_of_use(rig):
    for number, class_id in enumerate((9, 0, 0, 0, 5, 9, 9, 9, 9)):
        rig.add('o%d' % number, 1, class_id)
    rig.read('o1', 0, Tier.SSD)
    rig.now += 100
    rig.keeper.round()
    assert set(rig.there) - rig.on_ssd() == {'o2', 'o3'}
    for number in range(3):
        rig.add('p%d' % number, 0, 9)
    rig.now += 100
    rig.keeper.round()
    assert set(rig.there) - rig.on_ssd() == {'o2', 'o3', 'o1', 'o4', 'o0'}


def test_dirty_cold_copies_are_cleaned_before_warm_ones_leave(rig):
    for number in range(4):
        rig.add('clean%d' % number, 0, 0)
    rig.now += 100
    rig.keeper.round()
    for number in range(5):
        rig.add('cold%d' % number, 1 + number % 2, 9)
    rig.keeper.round()
    assert set(rig.there) - rig.on_ssd() == {'cold0', 'cold1'}


@pytest.mark.parametrize('rank, is_cold', [
    (0, False), (1, True), (2, True), (3, True)])
def test_copies_past_the_first_and_handoffs_are_cold(rig, rank, is_cold):
    rig.add('o', rank)
    assert (rig.warmth('o') is Warmth.COLD) is is_cold


@pytest.mark.parametrize('copies, ranks', [
    (1, [0]), (2, [0, 1]), (3, [0, 1, 2, 3])])
def test_the_class_says_how_many_are_warm(tmp_path, copies, ranks):
    rig = CopiesRig(tmp_path, table=ClassTable.of([
        ClassSpec(0, 'plain', 0), ClassSpec(7, 'c', 7, warm_copies=copies)]))
    for rank in range(4):
        rig.add('o%d' % rank, rank, 7)
    assert [rank for rank in range(4)
            if rig.warmth('o%d' % rank) is Warmth.WARM] == ranks
    rig.close()


def test_with_three_warm_copies_everywhere_rings_are_not_asked(tmp_path):
    rig = CopiesRig(tmp_path, table=ClassTable.of([
        replace(spec, warm_copies=3) for spec in TABLE.specs.values()]))
    rig.add('o', 2)
    assert rig.places.asked == 0 and rig.warmth('o') is Warmth.WARM
    rig.close()


def test_fragments_have_no_rank(rig):
    rig.add('o', 1)
    version = rig.there['o'].version
    assert rig.local.mover.copies.rank(version) == 1
    assert rig.local.mover.copies.rank(replace(version, frag_index=1)) is None


def test_the_kernels_devices_have_no_ranks(rig):
    rig.add('o', 1)
    conf = replace(rig.conf, engines={'sda': 'block'})
    local_copies = Copies(InForce(conf, TABLE), Devices(conf), rig.places)
    assert local_copies.rank(rig.there['o'].version) is None


def test_a_policy_without_a_ring_is_not_asked_for_each_version(
        rig, monkeypatch):
    rig.places.ranks.clear()
    version = VersionId('sda', 0, 'a' * 32, '1')
    local_copies = rig.local.mover.copies
    assert [local_copies.rank(version) for _ in range(5)] == [None] * 5
    assert rig.places.asked == 1
    monkeypatch.setattr(copies.time, 'monotonic', lambda: 1e9)
    assert local_copies.rank(version) is None and rig.places.asked == 2


def test_a_cold_copy_comes_back_with_its_second_read_alone(rig):
    rig.add('o', 1)
    rig.local.demote(rig.there['o'].version, rig.there['o'].partition)
    rig.read('o')
    rig.keeper.round()
    assert rig.warmth('o') is Warmth.COLD and not rig.on_ssd()
    rig.read('o')
    assert rig.warmth('o') is Warmth.HOT
    rig.keeper.round()
    assert rig.on_ssd() == {'o'} and rig.warmth('o') is Warmth.HOT


def test_reads_that_are_heard_of_together_count_each(rig):
    rig.add('o', 1)
    rig.local.demote(rig.there['o'].version, rig.there['o'].partition)
    place = rig.there['o']
    rig.ledger.apply([Event(
        EventKind.READ, place.version, place.partition, SIZE, '', 0, SIZE,
        int(Tier.HDD), rig.now + number) for number in (1, 2)])
    rig.keeper.round()
    assert rig.on_ssd() == {'o'}


def test_reads_far_apart_make_no_copy_warm(rig):
    rig.add('o', 1)
    rig.local.demote(rig.there['o'].version, rig.there['o'].partition)
    for _ in range(3):
        rig.read('o', after=AGAIN_SECONDS + 1)
        rig.keeper.round()
        assert not rig.on_ssd()


def test_a_hot_copy_leaves_like_a_warm_one_and_is_cold_then(rig):
    rig.add('hot', 1)
    rig.read('hot', tier=Tier.SSD)
    rig.read('hot', tier=Tier.SSD)
    assert rig.warmth('hot') is Warmth.HOT
    for number in range(6):
        rig.add('warm%d' % number, 0)
    rig.add('cold0', 1, 9)
    rig.add('cold1', 1, 9)
    rig.now += 100
    rig.keeper.round()
    assert set(rig.there) - rig.on_ssd() == {'cold0', 'cold1'}
    rig.add('more0', 0)
    rig.add('more1', 0)
    rig.now += 100
    rig.keeper.round()
    assert 'hot' not in rig.on_ssd()
    assert rig.warmth('hot') is Warmth.COLD


def test_a_warm_copy_comes_back_in_the_place_of_cold_ones(rig):
    rig.add('low', 0, 0)
    rig.local.demote(rig.there['low'].version, rig.there['low'].partition)
    for number in range(8):
        rig.add('gold%d' % number, 1, 9)
    rig.now += 100
    rig.keeper.round()
    rig.read('low')
    rig.keeper.round()
    assert 'low' in rig.on_ssd()
    assert len(rig.on_ssd()) == 8


def test_cold_copies_make_room_once(rig):
    rig.add('large', 0, 5, size=2 * SIZE)
    rig.local.demote(rig.there['large'].version,
                     rig.there['large'].partition)
    rig.add('cold', 1, 5)
    fill_to_high(rig, 'gold', 9)
    for place in rig.there.values():
        rig.local.clean(place.version, place.partition)
    rig.read('large', 5)
    promote(rig)
    assert rig.on_ssd() == set(rig.there) - {'large'}


def test_a_floor_is_claimed_for_warm_copies_alone(tmp_path):
    rig = CopiesRig(tmp_path, table=ClassTable.of([
        ClassSpec(0, 'plain', 0), ClassSpec(7, 'c', 7, floor=0.3),
        ClassSpec(9, 'gold', 9)]))
    rig.add('o', 0, 7)
    rig.local.demote(rig.there['o'].version, rig.there['o'].partition)
    for number in range(3):
        rig.add('cold%d' % number, 1, 7)
    fill_to_high(rig, 'gold', 9)
    for name in rig.there:
        if 'gold' in name:
            place = rig.there[name]
            rig.local.clean(place.version, place.partition)
    rig.read('o', 7)
    promote(rig)
    # Dirty ones of its class are in no way, though they fill the floor.
    assert 'o' in rig.on_ssd()
    rig.close()


def fill_to_high(rig, name, class_id):
    room = int(rig.conf.tier.ssd_bytes * rig.conf.tier.high_watermark)
    for number in range((room - len(rig.on_ssd()) * SIZE) // SIZE):
        rig.add('%s%d' % (name, number), 0, class_id)


def promote(rig):
    rig.keeper.duties.begin()
    rig.keeper.duties.look_at_hdd()
    rig.keeper.duties.promote(rig.conf)


def test_object_servers_hear_that_cold_copies_make_room(rig):
    for number in range(8):
        rig.add('o%d' % number, 1, 9)
    rig.now += 100
    rig.keeper.round()
    with open(os.path.join(rig.conf.run_dir, 'state', 'sda.json'),
              'rb') as source:
        assert pressure.decode(source.read()).lowest_rank == 0


def test_floors_and_caps_are_of_warm_copies(tmp_path):
    rig = CopiesRig(tmp_path, table=ClassTable.of([
        ClassSpec(0, 'plain', 0), ClassSpec(7, 'c', 7, floor=0.5, cap=0.5)]))
    for number in range(8):
        rig.add('cold%d' % number, 1, 7)
    rig.add('warm', 0, 0)
    rig.now += 100
    rig.keeper.round()
    rig.keeper.round()
    # No class is over its cap, and the floor keeps no cold copy.
    assert rig.on_ssd() == set(rig.there) - {'cold0', 'cold1'}
    rig.close()


def test_a_pinned_class_keeps_its_cold_copies(tmp_path):
    rig = CopiesRig(tmp_path, table=ClassTable.of([
        ClassSpec(0, 'plain', 0), ClassSpec(7, 'c', 7, pin=True)]))
    for number in range(5):
        rig.add('pinned%d' % number, 1, 7)
    for number in range(4):
        rig.add('warm%d' % number, 0, 0)
    rig.now += 100
    rig.keeper.round()
    assert len([name for name in rig.on_ssd() if 'pinned' in name]) == 5
    rig.close()


@pytest.mark.parametrize('inner', ['s3fifo', 'sieve', 'gdsf', 'sarc'])
def test_orders_see_warm_copies_alone(tmp_path, inner):
    rig = CopiesRig(tmp_path, table=ClassTable.of([
        ClassSpec(0, 'plain', 0, inner=inner)]))
    for number in range(9):
        rig.add('o%d' % number, number % 2)
    rig.now += 100
    rig.keeper.round()
    assert set(rig.there) - rig.on_ssd() == {'o1', 'o3'}
    rig.read('o5', tier=Tier.SSD)
    rig.read('o5', tier=Tier.SSD)
    for number in range(3):
        rig.add('p%d' % number, 0)
    rig.now += 100
    rig.keeper.round()
    assert 'o7' not in rig.on_ssd()
    assert rig.warmth('o5') is (
        Warmth.HOT if 'o5' in rig.on_ssd() else Warmth.COLD)
    rig.close()


def test_orders_give_cold_copies_no_place(tmp_path):
    rig = CopiesRig(tmp_path, table=ClassTable.of([
        ClassSpec(0, 'plain', 0, inner='s3fifo')]))
    rig.add('warm', 0)
    rig.add('cold', 1)
    for place in rig.there.values():
        rig.local.clean(place.version, place.partition)
    while not rig.index.victims.settle_orders('sda'):
        pass
    rows = dict(rig.index.file.db.execute('SELECT warmth, queue FROM span'))
    assert rows[0] is not None and rows[1] is None
    order = rig.index.file.order
    memory = order.memories.load(rig.index.file.db, (1, 0))
    queues = placing.Rows(rig.index.file.db, 1, [0], memory, ())
    assert sum(queues.used_bytes(queue) for queue in (0, 1)) == SIZE
    rig.close()


def test_each_question_to_the_index_says_which_copies_it_means(tmp_path):
    index = Index(str(tmp_path / 'index.db'))
    for number, warmth in enumerate(Warmth):
        index.put(VersionRow(
            VersionId('sda', 0, '%032x' % number, '1'), '7', 100,
            put_at=number, spans=[SpanRow(
                1, 100, 100, 100, 100, warmth=warmth)]))

    def found(rows):
        return {int(row.version.object_hash, 16) for row in rows}

    assert found(index.victims.least_recent('sda', [1], 9)) == {0, 2}
    assert found(index.victims.cold('sda', [1], 9)) == {1}
    assert found(index.victims.least_recent_remote('sda', [1], 9)) == {0, 1, 2}
    assert index.occupancy('sda')[1]['cold_evictable'] == 100
    index.file.close()


def test_a_walk_brings_ranks_up_to_date(rig):
    rig.add('o', 0)
    rig.places.ranks[rig.there['o'].version.object_hash] = 2
    Survey(rig.local, rig.ledger, rig.metrics).device(
        rig.local.devices.get('sda'), 0, False, lambda progress: None)
    assert rig.warmth('o') is Warmth.COLD
    assert rig.index.occupancy('sda')[0]['cold'] == SIZE


def test_an_index_of_the_version_before_is_taken_over(tmp_path):
    rig = CopiesRig(tmp_path)
    for number in range(9):
        rig.add('o%d' % number, number % 3)
    rig.close()
    path = rig.index.file.path
    as_version_3(path)
    again = Index(path)
    assert again.occupancy('sda')[0]['ssd'] == 9 * SIZE
    assert again.occupancy('sda')[0]['cold'] == 0
    rows = [row for page in again.pages.all(Filter(), 100) for row in page]
    assert {row.spans[0].warmth for row in rows} == {Warmth.WARM}
    again.put(replace(rows[0], spans=[replace(
        rows[0].spans[0], warmth=Warmth.COLD)]))
    assert again.occupancy('sda')[0]['cold'] == SIZE
    again.file.close()


def as_version_3(path):
    """What the version before would have written."""
    with sqlite3.connect(path) as db:
        for name in ('span_insert', 'span_delete', 'span_update'):
            db.execute('DROP TRIGGER ' + name)
        for name in ('span_warm', 'span_cold', 'span_cold_dirty'):
            db.execute('DROP INDEX ' + name)
        db.execute('ALTER TABLE span DROP COLUMN warmth')
        for name in ('cold', 'cold_evictable', 'cold_cleanable'):
            db.execute('ALTER TABLE occupancy DROP COLUMN ' + name)
        db.execute('CREATE INDEX span_lru ON span (device_id, class_id, '
                   'read_at) WHERE movable = 1 AND ssd > dirty')
        for name, when in (('insert', 'INSERT'), ('delete', 'DELETE'),
                           ('update', 'UPDATE OF movable')):
            db.execute('CREATE TRIGGER span_%s AFTER %s ON span BEGIN '
                       'SELECT 1; END' % (name, when))
        db.execute('PRAGMA user_version = 3')
    assert schema.VERSION == 4
