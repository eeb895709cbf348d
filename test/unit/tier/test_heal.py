"""Versions in quarantine: kept, named, and brought back if they are right.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from dataclasses import replace

import pytest
from support.nodes.tier_node import Rig
from swift.obj.diskfile import write_metadata

from swift_dss.core.errors import RemoteCorrupt
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.gateway.ports import Witness
from swift_dss.io import moves, quarantine, steps
from swift_dss.io.switch import LiveVersion
from swift_dss.tier.walk.heal import (
    HEALED, OBSOLETE, Healer, NotHealed, patients)
from swift_dss.tier.walk.survey import ORPHAN_SECONDS, Survey
from swift_dss.wire.control import Event, EventKind

BODY = bytes(range(256)) * 64
DAY = 86400.0


class Cloud(Witness):
    """S3 that has what it is told."""

    def __init__(self):
        self.keys, self.asked = {'key'}, 0

    def ask_ahead(self, leaving):
        """Nobody asks here."""

    def proven(self, local):
        self.asked += 1
        if local.residency.remote.key not in self.keys:
            raise RemoteCorrupt('no such key')
        return local.residency.remote


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    made.local.witness = Cloud()
    yield made
    made.close()


def _quarantine(rig, place, suffix_wise=False):
    """As Swift's ``quarantine_dir_renamer``."""
    top = os.path.join(rig.node.device_path, 'quarantined', 'objects')
    os.makedirs(top, exist_ok=True)
    source = os.path.dirname(place.hash_dir) if suffix_wise \
        else place.hash_dir
    target = os.path.join(top, os.path.basename(source))
    if os.path.exists(target):
        target += '-' + uuid.uuid4().hex
    os.rename(source, target)
    return target


def _stub(rig, name, remote=False):
    place = rig.put(name, BODY)
    if remote:
        rig.local.record_remote(place.version, place.partition, RemoteCopy(
            's3', 'key', 'etag', 1.0))
        rig.local.demote(place.version, place.partition, to_hdd=False)
    else:
        rig.local.demote(place.version, place.partition)
    return place


def _walk(rig):
    old = time.time() - 2 * ORPHAN_SECONDS
    for folder, _, files in os.walk(rig.node.capacity_path):
        for name in files:
            os.utime(os.path.join(folder, name), (old, old))
    return Survey(rig.local, rig.ledger, rig.metrics).device(
        rig.local.devices.get('sda'), 0, True, lambda said: None)


def _capacity(place):
    return place.capacity.file_path(place.version)


def _read(rig, place):
    with rig.local.open(place.version, place.partition) as reader:
        return reader.read(0, len(BODY))


def _patients(rig):
    return list(patients(rig.local.devices.get('sda'), {0, 1, 2}, {0, 1}))


def _heal(rig, place, **options):
    return Healer(rig.local).heal(place.version, place.partition, **options)


# -- kept ---------------------------------------------------------------

@pytest.mark.parametrize('suffix_wise', [False, True])
def test_a_sweep_keeps_the_hdd_file_of_what_is_in_quarantine(
        rig, suffix_wise):
    place = _stub(rig, 'one')
    _quarantine(rig, place, suffix_wise)
    # The first forgets the row, the next looks for orphans.
    for _ in range(2):
        assert _walk(rig).orphans == 0
    assert rig.index.get(place.version) is None
    assert os.path.exists(_capacity(place))


@pytest.mark.parametrize('how', ['put', 'delete'])
def test_what_replaces_it_takes_no_hdd_file(rig, how):
    place = _stub(rig, 'one')
    folder = _quarantine(rig, place)
    if how == 'put':
        rig.put('one', b'newer')
    else:
        os.makedirs(place.hash_dir)
        newer = replace(place.version, timestamp='%016.5f' % (rig.now + 1))
        open(os.path.join(place.hash_dir, newer.timestamp + '.ts'),
             'w').close()
        rig.ledger.apply([Event(EventKind.DELETE, newer, place.partition, 0,
                                at=rig.now)])
    _walk(rig)
    assert os.path.exists(_capacity(place))
    # Once an operator has taken it out of quarantine, nobody needs it.
    shutil.rmtree(folder)
    _walk(rig)
    assert not os.path.exists(_capacity(place))


def test_the_second_quarantine_of_an_object_counts_too(rig):
    first = _stub(rig, 'one')
    _quarantine(rig, first)
    second = _stub(rig, 'one')
    folder = _quarantine(rig, second)
    assert '-' in os.path.basename(folder)
    for _ in range(2):
        _walk(rig)
    assert os.path.exists(_capacity(first))
    assert os.path.exists(_capacity(second))
    assert len(_patients(rig)) == 2


def test_other_versions_are_no_reason_to_keep_one(rig):
    place = _stub(rig, 'one')
    other = _stub(rig, 'two')
    _quarantine(rig, other)
    os.unlink(place.data_file())
    _walk(rig)
    assert not os.path.exists(_capacity(place))
    assert os.path.exists(_capacity(other))


def test_quarantines_are_seen_as_they_come(rig):
    held = rig.local.devices.get('sda').quarantine
    places = [_stub(rig, 'o%d' % number) for number in range(5)]
    top = os.path.join(rig.node.device_path, 'quarantined', 'objects')
    tick = time.time()
    for at, place in enumerate(places):
        _quarantine(rig, place)
        # All within one tick of the file system's clock.
        os.utime(top, (tick, tick))
        assert [held.holds(place.version) for place in places] == [
            number <= at for number in range(5)]
    os.utime(top, (tick - 100, tick - 100))
    assert held.holds(places[0].version)
    shutil.rmtree(os.path.join(top, places[0].version.object_hash))
    assert not held.holds(places[0].version)


def test_the_newest_of_an_object_in_quarantine_is_known(rig):
    held = rig.local.devices.get('sda').quarantine
    first, second = _stub(rig, 'one'), _stub(rig, 'two')

    def newest(place):
        version = place.version
        assert rig.local.newest_in_quarantine(
            version) == held.newest(version.policy, version.object_hash)
        return held.newest(version.policy, version.object_hash)

    assert newest(first) == newest(second) == ''
    _quarantine(rig, first)
    assert (newest(first), newest(second)) == (first.version.timestamp, '')
    _quarantine(rig, second, suffix_wise=True)
    assert newest(second) == second.version.timestamp
    again = _stub(rig, 'one')
    _quarantine(rig, again)
    assert newest(first) == max(first.version.timestamp,
                                again.version.timestamp)


def test_a_quarantine_is_listed_once_for_many_questions(rig, monkeypatch):
    held = rig.local.devices.get('sda').quarantine
    place = _stub(rig, 'o')
    _quarantine(rig, place)
    listed = []
    inner = quarantine.listdir
    monkeypatch.setattr(quarantine, 'listdir',
                        lambda path: listed.append(path) or inner(path))
    for number in range(100):
        assert held.newest(0, '%032x' % number) == ''
    assert len(listed) == 1
    assert held.newest(0, place.version.object_hash)
    assert len(listed) == 2, 'and the folder of the object'
    os.unlink(os.path.join(listed[1], os.path.basename(
        inner(listed[1])[0])))
    assert held.newest(0, place.version.object_hash) == ''


# -- named --------------------------------------------------------------

def test_each_is_named_with_what_is_left_of_it(rig):
    hdd, cloud, whole = (_stub(rig, 'hdd'), _stub(rig, 'cloud', True),
                         rig.put('whole', BODY))
    for place in (hdd, cloud, whole):
        _quarantine(rig, place)
    patients = {patient.name: patient for patient in _patients(rig)}
    assert {name: patient.has for name, patient in patients.items()} == {
        '/a/c/hdd': ['hdd'], '/a/c/cloud': ['s3'], '/a/c/whole': ['ssd']}
    assert patients['/a/c/cloud'].remote_key == 'key'
    os.unlink(_capacity(hdd))
    lost, = (patient for patient in _patients(rig)
             if patient.name == '/a/c/hdd')
    assert lost.has == [] and 'no file' in lost.why


def test_of_other_policies_only_what_has_our_record_is_named(rig):
    theirs = rig.put('theirs', BODY, policy=2)
    top = os.path.join(rig.node.device_path, 'quarantined', 'objects-2')
    os.makedirs(top)
    os.rename(theirs.hash_dir, os.path.join(
        top, os.path.basename(theirs.hash_dir)))
    assert _patients(rig) == []


# -- brought back -------------------------------------------------------

def test_a_stub_comes_back_from_the_hdd(rig):
    place = _stub(rig, 'one')
    _quarantine(rig, place)
    _walk(rig)
    assert _heal(rig, place) == HEALED
    assert _read(rig, place) == BODY
    assert rig.index.get(place.version).spans[0].hdd_bytes == len(BODY)
    assert _patients(rig) == []
    partition = os.path.dirname(os.path.dirname(place.hash_dir))
    with open(os.path.join(partition, 'hashes.invalid')) as source:
        assert source.read() == place.version.object_hash[-3:] + '\n'
    with pytest.raises(NotHealed, match='nothing of it'):
        _heal(rig, place)


def test_a_stub_of_s3_costs_a_question_and_no_byte(rig):
    place = _stub(rig, 'one', remote=True)
    _quarantine(rig, place)
    before = rig.local.witness.asked
    assert _heal(rig, place) == HEALED
    assert rig.local.witness.asked == before + 1
    assert rig.local.describe(
        place.version, place.partition).residency.tiers == Tier.REMOTE


def test_what_s3_has_not_got_stays_in_quarantine(rig):
    place = _stub(rig, 'one', remote=True)
    _quarantine(rig, place)
    rig.local.witness.keys.clear()
    with pytest.raises(NotHealed, match='no such key'):
        _heal(rig, place)
    assert len(_patients(rig)) == 1


def test_wrong_bytes_never_come_back(rig):
    place = _stub(rig, 'one')
    with open(_capacity(place), 'r+b') as target:
        target.write(b'wrong')
    _quarantine(rig, place)
    with pytest.raises(NotHealed, match='MD5'):
        _heal(rig, place)
    assert not os.path.exists(place.hash_dir)


@pytest.mark.parametrize('backed', ['hdd', 's3'])
def test_of_a_file_that_rotted_the_other_tier_comes_back(rig, backed):
    place = rig.put('one', BODY)
    if backed == 'hdd':
        rig.local.clean(place.version, place.partition)
    else:
        rig.local.record_remote(place.version, place.partition, RemoteCopy(
            's3', 'key', 'etag', 1.0))
    with open(place.data_file(), 'r+b') as target:
        target.write(b'wrong')
    _quarantine(rig, place)
    assert _heal(rig, place) == HEALED
    with LiveVersion(place) as live:
        assert live.residency.tiers == (
            Tier.HDD if backed == 'hdd' else Tier.REMOTE)
    if backed == 'hdd':
        assert _read(rig, place) == BODY


def test_nothing_comes_back_over_a_newer_version(rig):
    place = _stub(rig, 'one')
    _quarantine(rig, place)
    newer = rig.put('one', b'newer')
    assert _heal(rig, place) == OBSOLETE
    assert os.listdir(newer.hash_dir) == [newer.version.timestamp + '.data']


def test_nothing_comes_back_over_a_tombstone(rig):
    place = _stub(rig, 'one')
    _quarantine(rig, place)
    os.makedirs(place.hash_dir)
    open(os.path.join(place.hash_dir, '%016.5f.ts' % (rig.now + 5)),
         'w').close()
    assert _heal(rig, place) == OBSOLETE
    assert len(_patients(rig)) == 1


def test_what_is_deleted_while_it_is_proven_stays_so(rig, monkeypatch):
    place = _stub(rig, 'one', remote=True)
    _quarantine(rig, place)
    proven = rig.local.witness.proven

    def and_then_deleted(patient):
        said = proven(patient)
        os.makedirs(place.hash_dir)
        open(os.path.join(place.hash_dir, '%016.5f.ts' % (rig.now + 1)),
             'w').close()
        return said

    monkeypatch.setattr(rig.local.witness, 'proven', and_then_deleted)
    assert _heal(rig, place) == OBSOLETE
    assert [name for name in os.listdir(place.hash_dir)
            if name.endswith('.data')] == []


def test_what_is_older_than_tombstones_wants_to_be_asked_for(
        rig, monkeypatch):
    from swift_dss.tier.walk import heal
    place = _stub(rig, 'one')
    _quarantine(rig, place)
    now = time.time()
    monkeypatch.setattr(heal.time, 'time', lambda: now + 8 * DAY)
    with pytest.raises(NotHealed, match='--old'):
        _heal(rig, place)
    assert _heal(rig, place, old=True) == HEALED


@pytest.mark.parametrize('step', ['heal.linked', 'heal.invalidated'])
def test_a_repair_that_is_cut_off_is_done_by_the_next(
        rig, monkeypatch, step):
    class Cut(Exception):
        pass

    def reached(name):
        if name == step:
            raise Cut

    place = _stub(rig, 'one')
    folder = _quarantine(rig, place)
    monkeypatch.setattr(steps, 'reached', reached)
    with pytest.raises(Cut):
        _heal(rig, place)
    monkeypatch.undo()
    assert _heal(rig, place) == OBSOLETE
    assert not os.path.exists(folder)
    assert _read(rig, place) == BODY


# -- put aside ----------------------------------------------------------

def _lost(rig, name, hdd_bytes=False):
    """A stub of which S3 has lost the key; some of it may be on the HDD."""
    place = rig.put(name, BODY)
    if hdd_bytes:
        rig.local.clean(place.version, place.partition)
    rig.local.record_remote(place.version, place.partition, RemoteCopy(
        's3', 'key', 'etag', 1.0))
    rig.local.demote(place.version, place.partition, to_hdd=False)
    return place


def _put_aside(rig, place):
    rig.local.put_aside(place.version, place.partition, rig.local.describe(
        place.version, place.partition).residency)


def _invalid(place):
    path = os.path.join(os.path.dirname(os.path.dirname(place.hash_dir)),
                        'hashes.invalid')
    with open(path) as source:
        return source.read().split()


def test_a_stub_that_is_put_aside_is_in_quarantine_and_nowhere_else(rig):
    place = _lost(rig, 'one')
    meta = os.path.join(place.hash_dir, '1800000000.00000.meta')
    with open(meta, 'wb') as target:
        write_metadata(target, {'name': '/a/c/one',
                                'X-Timestamp': '1800000000.00000'})
    _put_aside(rig, place)
    held, = rig.local.devices.get('sda').quarantine.files_of(place.version)
    assert os.listdir(held.folder) == [place.version.timestamp + '.data']
    # What a POST has set is for the version that comes.
    assert os.listdir(place.hash_dir) == [os.path.basename(meta)]
    assert rig.index.get(place.version) is None
    assert _invalid(place)[-1] == place.version.object_hash[-3:]
    assert not rig.gateway.deletes


def test_the_second_time_has_a_folder_of_its_own(rig):
    for _ in range(2):
        place = _lost(rig, 'one')
        _put_aside(rig, place)
    assert len(list(rig.local.devices.get('sda').quarantine.files(0))) == 2


def test_replication_hears_of_one_that_a_power_cut_left_half_done(rig):
    place = _lost(rig, 'one')

    def cut(name):
        if name == 'aside.moved':
            raise KeyboardInterrupt

    steps.listen(cut)
    try:
        with pytest.raises(KeyboardInterrupt):
            _put_aside(rig, place)
    finally:
        steps.listen(None)
    assert _invalid(place) == [place.version.object_hash[-3:]]


@pytest.mark.parametrize('why', ['moved', 'filled', 'overwritten'])
def test_what_is_another_one_by_now_stays_in_its_place(rig, why):
    place = _lost(rig, 'one', hdd_bytes=why == 'moved')
    seen = rig.local.describe(place.version, place.partition).residency
    names = [place.version.timestamp + '.data']
    if why == 'moved':
        rig.local.drop_capacity(place.version, place.partition)
    elif why == 'filled':
        with LiveVersion(place) as live:
            moves.mark_remote(live, RemoteCopy('s3', 'other', 'e', 2.0))
    else:
        names.append('1800000000.00000.data')
        shutil.copy(place.data_file(), os.path.join(
            place.hash_dir, names[1]))
    with pytest.raises(ValueError):
        rig.local.put_aside(place.version, place.partition, seen)
    assert sorted(os.listdir(place.hash_dir)) == names
    assert rig.index.get(place.version) is not None
