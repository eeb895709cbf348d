"""A drain is done when the data files are right, not when rows say so."""

from __future__ import annotations

import os

import pytest
from support.nodes.tier_node import KIB, TABLE, Rig

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.io import residency_store
from swift_dss.tier.walk.drain import Drainer
from swift_dss.tier.walk.left import stubs_of
from swift_dss.tier.walk.relocate import Relocator

#: Of a class that lives in S3 alone.
ONLY = 7


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path, table=ClassTable.of(list(TABLE.specs.values()) + [
        ClassSpec(ONLY, 'attic', 5, remote=RemoteMode.ONLY)]))
    yield made
    made.close()


class Ready:
    """A gateway with which every version comes to S3 that is sent."""

    def __init__(self, rig):
        self._rig = rig

    def require_ours(self):
        pass

    def hurry(self):
        pass

    def enqueue_uploads(self, wanted):
        for upload in wanted:
            in_s3(self._rig, upload.version, upload.partition)


def in_s3(rig, version, partition):
    rig.local.record_remote(version, partition,
                            RemoteCopy('s3', 'key', 'e', 1.0))


def drain(rig, to='local', progress=lambda said: None):
    """``gateway drain``; local is without S3."""
    gateway = Ready(rig) if to == 'remote' else None
    return Drainer(rig.local, gateway, Relocator(
        rig.local, gateway, rig.metrics, rig.keeper.duties.stopping)).run(
            to, 1.0, progress)


def stub(rig, name='o', class_id=0):
    """A version that only the HDD has."""
    place = rig.put(name, b'x' * 20 * KIB, class_id)
    rig.local.demote(place.version, place.partition)
    return place


def tiers(rig, place):
    """Those that have all of a version."""
    extent, = rig.local.describe(
        place.version, place.partition).residency.extents
    return extent.tiers


def is_whole(rig, place):
    """True if the SSD has all of it."""
    return bool(tiers(rig, place) & Tier.SSD)


def test_a_keeper_that_chose_it_before_the_pin_leaves_it(
        rig, monkeypatch):
    """S3 takes its time to say that it has it, and the drain ends."""
    place = rig.put('o', b'x' * 20 * KIB, ONLY)
    in_s3(rig, place.version, place.partition)
    said = []
    with monkeypatch.context() as patch:
        patch.setattr(rig.witness, 'ask_ahead',
                      lambda leaving: said.append(drain(rig)))
        rig.keeper.duties.drop_remote_only()
    assert [report['failures'] for report in said] == [0]
    assert is_whole(rig, place)
    rig.local.pin(place.version, place.partition, False)
    rig.keeper.duties.drop_remote_only()
    assert not is_whole(rig, place)


def test_bytes_that_came_back_for_a_drain_wait_for_it_on_the_hdd(
        rig, monkeypatch):
    """They come by way of the HDD, and S3 has them as well."""
    place = stub(rig, class_id=ONLY)
    in_s3(rig, place.version, place.partition)
    asked = []

    def ask_ahead(leaving):
        asked.extend(leaving)
        rig.local.pin(place.version, place.partition, True)
    monkeypatch.setattr(rig.witness, 'ask_ahead', ask_ahead)
    duties = rig.keeper.duties
    duties.look_at_hdd()
    duties.drop_remote_only()
    assert len(asked) == 1
    assert tiers(rig, place) == Tier.HDD | Tier.REMOTE
    # Now its row says so, and it hides no other.
    duties.drop_remote_only()
    assert len(asked) == 1
    # Those that the SSD has too may go.
    rig.local.promote(place.version, place.partition)
    duties.drop_remote_only()
    assert tiers(rig, place) == Tier.SSD | Tier.REMOTE


def test_nothing_chooses_a_version_while_it_comes_back(rig, monkeypatch):
    place = stub(rig, class_id=ONLY)
    in_s3(rig, place.version, place.partition)
    promote = rig.local.promote

    def promote_late(*named):
        promote(*named)
        rig.keeper.duties.drop_remote_only()
    monkeypatch.setattr(rig.local, 'promote', promote_late)
    assert drain(rig)['failures'] == 0
    assert rig.witness.asked == []
    assert is_whole(rig, place)


def test_what_is_moved_away_again_is_a_failure(rig, monkeypatch):
    place = stub(rig)
    promote = rig.local.promote

    def in_vain(*named):
        promote(*named)
        rig.local.demote(*named)
    monkeypatch.setattr(rig.local, 'promote', in_vain)
    report = drain(rig)
    assert report['failures'] == 1
    assert 'bytes of it are not on the SSD' in report['failed'][0]
    assert place.data_file() in report['failed'][0]
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


def test_a_stub_without_a_row_is_brought_back_and_pinned(rig):
    """Its event was lost, or is under way."""
    place = stub(rig)
    rig.index.remove(place.version)
    assert drain(rig) == {
        'versions': 1, 'moved': 1, 'failed': [], 'failures': 0}
    assert is_whole(rig, place)
    assert rig.index.get(place.version).pinned


def test_a_stub_that_comes_during_the_drain_is_brought_back(rig):
    stub(rig, 'a')
    late = []

    def progress(said):
        if not late:
            late.append(stub(rig, 'late'))
    report = drain(rig, progress=progress)
    assert (report['versions'], report['moved'], report['failures']) == (2, 2,
                                                                         0)
    assert is_whole(rig, late[0])


def test_a_stub_that_cannot_be_brought_back_is_named_once(rig):
    lost, place = stub(rig, 'a'), stub(rig, 'b')
    rig.index.remove(lost.version)
    os.unlink(lost.capacity.file_path(lost.version))
    report = drain(rig)
    assert (report['moved'], report['failures']) == (1, 1)
    assert lost.data_file() in report['failed'][0]
    assert is_whole(rig, place)


def test_a_damaged_record_is_a_failure(rig):
    place = stub(rig)
    os.setxattr(place.data_file(), 'user.dss.residency', b'rotted')
    report = drain(rig)
    assert report['failures'] == 1
    assert place.data_file() in report['failed'][0]


def test_a_version_that_is_deleted_during_the_drain_is_no_failure(
        rig, monkeypatch):
    place = stub(rig)
    monkeypatch.setattr(
        rig.local, 'promote', lambda version, partition, class_ids:
        os.unlink(place.data_file()) if os.path.exists(
            place.hash_dir + '/' + version.timestamp + '.data') else None)
    assert drain(rig)['failures'] == 0


@pytest.mark.parametrize('to', ['local', 'remote'])
def test_a_device_that_is_not_mounted_is_a_failure(rig, to, monkeypatch):
    def gone(self):
        raise TierUnavailable('sda is not mounted')
    stub(rig)
    monkeypatch.setattr('swift_dss.tier.devices.Device.require_mounted', gone)
    report = drain(rig, to)
    assert (report['versions'], report['failed']) == (
        0, ['sda is not mounted'])


def test_everything_leaves_for_s3_rows_or_not(rig):
    known, unknown = rig.put('a', b'x' * KIB, ONLY), stub(rig, 'b')
    rig.index.remove(unknown.version)
    assert drain(rig, 'remote') == {
        'versions': 2, 'moved': 2, 'failed': [], 'failures': 0}
    assert tiers(rig, known) == tiers(rig, unknown) == Tier.REMOTE


def test_what_stays_here_is_named(rig, monkeypatch):
    """The drop says that it went well, and it did not."""
    place = rig.put('a', b'x' * KIB)
    monkeypatch.setattr(rig.local, 'demote', lambda *_, **__: None)
    report = drain(rig, 'remote')
    assert (report['moved'], report['failures']) == (0, 1)
    assert place.data_file() in report['failed'][0]


def test_a_stub_that_is_deleted_during_the_look_counts_as_none(
        rig, monkeypatch):
    place, load = stub(rig), residency_store.load

    def load_late(path):
        read = load(path)
        os.unlink(path)
        return read
    device = rig.local.devices.get('sda')
    assert len(list(stubs_of(device, 0))) == 1
    monkeypatch.setattr(residency_store, 'load', load_late)
    assert list(stubs_of(device, 0)) == []
    assert not os.path.exists(place.hash_dir + '/1700000001.00000.data')


def test_only_local_and_remote_are_sides(rig):
    with pytest.raises(BadConfig, match='neither local nor remote'):
        drain(rig, 'hdd')


def test_without_s3_nothing_is_drained_to_it(rig):
    with pytest.raises(TierUnavailable, match='gateway'):
        Drainer(rig.local, None, None).run('remote', 1.0, lambda said: None)


def plan(rig, to):
    """``gateway drain --dry-run``."""
    gateway = Ready(rig) if to == 'remote' else None
    return Drainer(rig.local, gateway, Relocator(
        rig.local, gateway, rig.metrics, rig.keeper.duties.stopping)).plan(
            to, lambda said: None)


def state(rig, places):
    return [rig.local.describe(place.version, place.partition)
            for place in places]


def test_a_dry_run_says_what_the_drain_to_s3_then_does(rig):
    in_both = rig.put('both', b'x' * 20 * KIB)
    in_s3(rig, in_both.version, in_both.partition)
    places = [in_both, rig.put('here', b'x' * 8 * KIB), stub(rig)]
    before = state(rig, places)
    said = plan(rig, 'remote')
    assert state(rig, places) == before
    assert (said['versions'], said['moves'], said['stays']) == (3, 3, 0)
    # A version on the HDD has no second copy on the SSD.
    assert (said['sent_bytes'], said['freed_bytes'], said['fetched_bytes']) \
        == (28 * KIB, 48 * KIB, 0)
    assert drain(rig, 'remote')['moved'] == said['moves']
    again = plan(rig, 'remote')
    assert (again['moves'], again['sent_bytes'], again['freed_bytes']) == (
        0, 0, 0)


def test_a_dry_run_says_what_would_come_back(rig):
    place, other = rig.put('o', b'x' * 20 * KIB), stub(rig, 'p')
    in_s3(rig, place.version, place.partition)
    rig.local.demote(place.version, place.partition, to_hdd=False)
    before = state(rig, [place, other])
    said = plan(rig, 'local')
    assert state(rig, [place, other]) == before
    assert (said['moves'], said['fetched_bytes'], said['sent_bytes']) == (
        2, 20 * KIB, 0)


def test_a_dry_run_refuses_what_the_drain_refuses(rig):
    with pytest.raises(BadConfig):
        plan(rig, 'elsewhere')
    with pytest.raises(TierUnavailable):
        Drainer(rig.local, None, None).plan('remote', lambda said: None)
