"""Versions that replication takes away: the index follows the disk."""

from __future__ import annotations

import hashlib
import os
import shutil
from types import SimpleNamespace

import pytest
from support.nodes.sample_node import PARTITION, sample_bytes
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.errors import TierUnavailable
from swift_dss.strategy.watermarks import bytes_to_free, used_bytes
from swift_dss.tier.local.departures import SETTLE_SECONDS, Departures
from swift_dss.wire import layout
from swift_dss.wire.control import EventKind

SIZE = 100 * KIB


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


def device(rig):
    return rig.local.devices.get('sda')


def put_in(rig, partition, name):
    """An object of a partition, by a ring of 16, and in the index."""
    name = next('%s-%d' % (name, number) for number in range(10 ** 6)
                if int(hashlib.md5(('%s-%d' % (name, number)).encode())
                       .hexdigest()[0], 16) == int(partition))
    place = rig.node.put(name, sample_bytes(SIZE, len(name)))
    folder = os.path.join(rig.node.device_path, 'objects')
    moved = os.path.join(folder, partition, place.version.object_hash[-3:])
    os.makedirs(moved, exist_ok=True)
    os.rename(place.hash_dir,
              os.path.join(moved, place.version.object_hash))
    rig.local.mover.track(place.version, partition)
    return place.version


def drop(rig, partition):
    """As Swift's replicator does once a handoff is where it belongs."""
    shutil.rmtree(os.path.join(rig.node.device_path, 'objects', partition))


def test_a_partition_that_left_leaves_the_index(rig):
    left = [put_in(rig, '5', 'o%d' % number) for number in range(4)]
    stays = put_in(rig, '7', 'stays')
    assert rig.ledger.departures.look(device(rig)) == 0
    drop(rig, '5')
    assert rig.ledger.departures.look(device(rig)) == 4
    assert [rig.index.get(version) for version in left] == [None] * 4
    assert rig.index.get(stays) is not None
    assert rig.ssd(0) == SIZE


def test_what_the_hdd_has_of_them_goes_too_but_not_what_s3_has(rig):
    version = put_in(rig, '5', 'o')
    rig.local.clean(version, '5')
    copy = layout.capacity_file(rig.node.capacity_path, version)
    assert os.path.exists(copy)
    drop(rig, '5')
    rig.ledger.departures.look(device(rig))
    assert not os.path.exists(copy)
    assert rig.gateway.deletes == []


def test_what_was_quarantined_keeps_its_hdd_copy(rig):
    version = put_in(rig, '5', 'o')
    rig.local.clean(version, '5')
    aside = os.path.join(rig.node.device_path, 'quarantined', 'objects')
    os.makedirs(aside)
    os.rename(layout.hash_dir(rig.node.device_path, 0, '5',
                              version.object_hash),
              os.path.join(aside, version.object_hash))
    drop(rig, '5')
    assert rig.ledger.departures.look(device(rig)) == 1
    assert os.path.exists(layout.capacity_file(rig.node.capacity_path,
                                               version))


@pytest.mark.parametrize('old', ['0', '5'])
def test_a_partition_that_was_split_is_followed(rig, old):
    """As the relinker leaves it, by the next power of the ring."""
    moved = [put_in(rig, old, 'o%d' % number) for number in range(3)]
    lost = put_in(rig, old, 'lost')
    folder = os.path.join(rig.node.device_path, 'objects')
    partitions = {}
    for version in moved:
        partitions[version] = str(int(version.object_hash[:8], 16) >> 27)
        suffix = version.object_hash[-3:]
        os.makedirs(os.path.join(folder, partitions[version], suffix),
                    exist_ok=True)
        if partitions[version] != old:
            os.rename(os.path.join(folder, old, suffix, version.object_hash),
                      os.path.join(folder, partitions[version], suffix,
                                   version.object_hash))
    if old == '0':
        os.rename(os.path.join(folder, '0'), os.path.join(folder, 'away'))
    else:
        drop(rig, old)
    rig.ledger.departures.look(device(rig))
    assert rig.index.get(lost) is None
    for version, partition in partitions.items():
        row = rig.index.get(version)
        assert (row and row.partition) == (
            None if partition == old else partition)


def test_a_row_that_comes_late_is_forgotten_too(rig):
    version = put_in(rig, '5', 'o')
    row = rig.index.get(version)
    drop(rig, '5')
    rig.ledger.departures.look(device(rig))
    rig.index.put(row)
    assert rig.ledger.departures.look(device(rig)) == 1


def test_a_folder_that_did_not_change_is_not_compared_for_ever(
        rig, monkeypatch):
    now = [100.0]
    looked = Departures(rig.local, rig.gateway, rig.due,
                        rig.metrics, SimpleNamespace(
                            monotonic=lambda: now[0]))
    put_in(rig, '5', 'o')
    asked = []
    real = rig.index.leaving.partitions
    monkeypatch.setattr(rig.index.leaving, 'partitions', lambda *key: (
        asked.append(key), real(*key))[1])
    for _ in range(3):
        looked.look(device(rig))
    assert len(asked) == 3
    now[0] += SETTLE_SECONDS + 1
    looked.look(device(rig))
    assert len(asked) == 3
    drop(rig, '5')
    assert looked.look(device(rig)) == 1


def test_what_came_back_while_its_rows_went_is_known(rig, monkeypatch):
    version = put_in(rig, '5', 'o')
    folder = os.path.join(rig.node.device_path, 'objects')
    os.rename(os.path.join(folder, '5'), os.path.join(folder, 'away'))
    real = rig.index.leaving.remove_departed

    def back_again(rows):
        real(rows)
        os.rename(os.path.join(folder, 'away'), os.path.join(folder, '5'))

    monkeypatch.setattr(rig.index.leaving, 'remove_departed', back_again)
    rig.ledger.departures.look(device(rig))
    assert rig.index.get(version) is not None


def test_a_partition_that_is_back_before_its_rows_go_keeps_them(
        rig, monkeypatch):
    back, gone = put_in(rig, '5', 'back'), put_in(rig, '6', 'gone')
    folder = os.path.join(rig.node.device_path, 'objects')
    for partition in '56':
        os.rename(os.path.join(folder, partition),
                  os.path.join(folder, 'away' + partition))
    real = rig.index.leaving.ids_of_partitions

    def back_again(*key):
        if not os.path.exists(os.path.join(folder, '5')):
            os.rename(os.path.join(folder, 'away5'),
                      os.path.join(folder, '5'))
        return real(*key)

    monkeypatch.setattr(rig.index.leaving, 'ids_of_partitions', back_again)
    removed = []
    leaving = rig.index.leaving
    monkeypatch.setattr(leaving, 'remove_departed', lambda rows: (
        removed.extend(rows), type(leaving).remove_departed(leaving, rows)))
    assert rig.ledger.departures.look(device(rig)) == 1
    assert [row.version for row in removed] == [gone]
    assert rig.index.get(back) is not None


def test_more_rows_than_are_held_at_once_all_go(rig, monkeypatch):
    monkeypatch.setattr('swift_dss.tier.index.leaving._IDS', 3)
    monkeypatch.setattr('swift_dss.tier.index.leaving.ASKED_AT_ONCE', 2)
    left = [put_in(rig, partition, 'o%d' % number)
            for number in range(4) for partition in '567']
    stays = put_in(rig, '8', 'stays')
    for partition in '567':
        drop(rig, partition)
    assert rig.ledger.departures.look(device(rig)) == 12
    assert not any(map(rig.index.get, left))
    assert rig.index.get(stays) is not None
    assert rig.ssd(0) == SIZE


def test_a_device_that_is_not_mounted_has_lost_nothing(rig, monkeypatch):
    version = put_in(rig, '5', 'o')
    rig.local.clean(version, '5')
    os.rename(rig.node.device_path, rig.node.device_path + '.away')
    with pytest.raises(TierUnavailable):
        rig.ledger.departures.look(device(rig))
    os.makedirs(rig.node.device_path)
    # An empty mount point, where nobody checks for mounts.
    assert rig.ledger.departures.look(device(rig)) == 0
    assert rig.index.get(version) is not None


@pytest.mark.parametrize('newer', [False, True])
def test_the_daemon_hears_that_a_version_left(rig, newer):
    place = rig.put('o', sample_bytes(SIZE, 1))
    os.unlink(place.data_file())
    if newer:
        open(os.path.join(place.hash_dir, '1800000000.00000.ts'),
             'w').close()
    rig.tell(EventKind.GONE, place)
    assert rig.index.get(place.version) is None
    # Not what S3 has, which the primaries still need, but for an older
    # version that nobody wants any more.
    assert rig.gateway.deletes == ([place.version] if newer else [])


def test_a_version_that_left_is_not_deleted_in_s3(rig):
    """An emptied handoff; its key is the primaries'."""
    left, replaced = rig.put('left', b'x' * SIZE), rig.put(
        'replaced', b'x' * SIZE)
    shutil.rmtree(left.hash_dir)
    newer = replaced.version.timestamp[:-1] + '1'
    os.rename(replaced.data_file(),
              os.path.join(replaced.hash_dir, newer + '.ts'))
    for place in (left, replaced):
        rig.tell(EventKind.GONE, place)
        assert rig.index.get(place.version) is None
    assert rig.gateway.deletes == [replaced.version]


def test_a_version_that_is_here_stays_whoever_says_it_left(rig):
    place = rig.put('o', sample_bytes(SIZE, 1))
    rig.tell(EventKind.GONE, place)
    assert rig.index.get(place.version) is not None
    assert rig.ssd(0) == SIZE


# -- watermarks ------------------------------------------------------------

def test_no_more_than_the_disk_holds_counts_as_used():
    # A disk of 1000 with 100 on it: the index claims 950.
    assert used_bytes(1000, 950, 100, 900) == 100
    assert bytes_to_free(1000, used_bytes(1000, 950, 100, 900), .9, .8) == 0
    # A budget of 200 on it: the index knows what counts against it.
    assert used_bytes(200, 150, 800, 200) == 150
    # The disk has less left than the index believes.
    assert used_bytes(1000, 100, 950, 50) == 950
    # A budget that the index claims twice, with little on the disk.
    assert used_bytes(500, 990, 80, 920) == 80


def test_nothing_leaves_for_rows_whose_partition_left(rig):
    for number in range(5):
        put_in(rig, '5', 'gone%d' % number)
    for number in range(5):
        rig.put('o%d' % number, sample_bytes(SIZE, number))
    drop(rig, '5')
    assert rig.ssd(0) == 10 * SIZE
    rig.keeper.round()
    assert rig.ssd(0) == 5 * SIZE
    assert rig.keeper.state.pressure.ssd_used_bytes <= 5 * SIZE


def test_bytes_of_rows_whose_file_is_gone_count_as_freed(rig):
    """Where nobody said so, and the partition is still there."""
    places = [rig.put('o%d' % number, sample_bytes(SIZE, number))
              for number in range(10)]
    for place in places[:5]:
        os.unlink(place.data_file())
    assert places[0].partition == PARTITION
    rig.keeper.round()
    # Three of those that are gone made all the room that was wanted.
    assert [rig.index.get(place.version).spans[0].ssd_bytes
            for place in places[5:]] == [SIZE] * 5
