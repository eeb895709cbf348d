"""S3 has got versions: records and rows of many in one go."""

from __future__ import annotations

import dataclasses
import os
import threading

import pytest
from support import kept_memory
from support.nodes.tier_node import KIB, Rig
from support.rigs.open_files import open_below
from swift.obj.diskfile import read_metadata, write_metadata

from swift_dss.core.errors import DamagedRecord, VersionGone
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import Arrival
from swift_dss.tier.local import locks, metadata
from swift_dss.tier.local.locks import VersionLocks


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path, with_hdd=False)
    yield made
    made.close()


def _copy(number):
    return RemoteCopy('s3', 'bundle', 'e%d' % number, 1.0, 100 + number)


def test_many_arrive_and_the_index_says_what_a_look_would(rig):
    places = [rig.put('o%d' % n, b'x' * (n + 1) * KIB) for n in range(5)]
    told = []
    rig.local.on_remote = lambda version, length: told.append(length)
    arrivals = [Arrival(place.version, place.partition, _copy(n),
                        (n + 1) * KIB if n % 2 else -1)
                for n, place in enumerate(places)]
    assert rig.local.record_remotes(arrivals) == [None] * 5
    assert told == [(n + 1) * KIB for n in range(5)]
    for n, place in enumerate(places):
        local_version = rig.local.describe(place.version, place.partition)
        assert local_version.residency.remote == _copy(n)
        assert local_version.residency.tiers == Tier.SSD | Tier.REMOTE
        said = rig.index.get(place.version)
        seen = rig.local.mover.row(place.version, place.partition)
        assert said.on_remote and said.spans == seen.spans
        assert sum(span.dirty_bytes for span in said.spans) == 0


def test_one_that_is_gone_does_not_keep_the_others(rig):
    places = [rig.put('o%d' % n, b'x' * KIB) for n in range(3)]
    os.unlink(places[1].data_file())
    os.setxattr(places[2].data_file(), 'user.dss.residency', b'nonsense')
    os.truncate(places[2].data_file(), KIB + 1)
    said = rig.local.record_remotes([
        Arrival(place.version, place.partition, _copy(n), KIB)
        for n, place in enumerate(places)])
    assert said[0] is None
    assert isinstance(said[1], VersionGone)
    assert isinstance(said[2], DamagedRecord)
    assert rig.index.get(places[0].version).on_remote
    assert not rig.index.get(places[2].version).on_remote
    with pytest.raises(VersionGone):
        rig.local.record_remote(places[1].version, places[1].partition,
                                _copy(1))


def test_one_that_the_index_does_not_know_is_looked_at(rig):
    place = rig.put('o', b'x' * KIB)
    rig.index.remove(place.version)
    rig.local.record_remotes([Arrival(
        place.version, place.partition, _copy(0), KIB)])
    assert rig.index.get(place.version).on_remote


def test_a_small_version_is_read_with_what_it_says_of_itself(rig):
    place = rig.put('o', b'abc' * 1000)
    local_version, data = rig.local.read_whole(place.version, place.partition)
    assert data == b'abc' * 1000
    assert local_version == rig.local.describe(place.version, place.partition)


def test_what_may_have_changed_since_it_was_parked_is_not_just_read(rig):
    names = ('same', 'posted', 'gone', 'cut', 'longer', 'stub', 'empty',
             'marked')
    places = [rig.put(name, b'' if name == 'empty' else name.encode() * 99)
              for name in names]
    parked = [(place.version, place.partition, place.content_length)
              for place in places]
    by_name = dict(zip(names, places))
    data = {name: by_name[name].data_file() for name in names}
    with open(data['posted'][:-5] + 'x.meta', 'wb'):
        pass
    os.unlink(data['gone'])
    os.truncate(data['cut'], 5)
    with open(data['longer'], 'ab') as target:
        target.write(b'x')
    assert rig.local.record_remotes([
        Arrival(by_name[name].version, by_name[name].partition, _copy(1))
        for name in ('stub', 'marked')]) == [None, None]
    rig.local.demote(by_name['stub'].version, by_name['stub'].partition,
                     to_hdd=False)
    fragment = dataclasses.replace(places[0].version, frag_index=3)
    elsewhere = dataclasses.replace(places[0].version, device='sdx')
    bodies = list(rig.local.read_as_parked(parked + [
        (fragment, places[0].partition, 396),
        (elsewhere, places[0].partition, 396)]))
    assert dict(zip(names, bodies)) == {
        'same': b'same' * 99, 'posted': None, 'gone': None, 'cut': None,
        'longer': None, 'stub': None, 'empty': b'',
        'marked': b'marked' * 99}
    assert bodies[len(names):] == [None, None]


def test_whoever_holds_all_waits_for_whoever_holds_one(rig):
    versions = [rig.put('o%d' % n, b'x').version for n in range(3)]
    held = VersionLocks()
    order = []

    def both(turn):
        with held.hold_all(turn):
            order.append(len(order))

    with held.hold(versions[1]):
        # In opposite orders: they must not wait for each other.
        threads = [threading.Thread(target=both, args=(turn,))
                   for turn in (versions, versions[::-1])]
        for thread in threads:
            thread.start()
        assert order == []
    for thread in threads:
        thread.join(30)
    assert order == [0, 1]


def test_a_lock_that_nobody_holds_is_forgotten():
    held = VersionLocks()
    versions = [VersionId('sda', 0, '%032x' % number, '1.0')
                for number in range(300)]
    with kept_memory.pieces_of(locks) as pieces:
        with held.hold_all(versions):
            assert pieces() > 300
        for version in versions:
            with held.hold(version):
                pass
        assert pieces() < 50


@pytest.mark.parametrize('said', [
    {'name': '/a/c/o', 'X-Timestamp': '1700000000.00000', 'ETag': 'e'},
    {'name': '/a/c/ä\udce4', 'X-Timestamp': '1', 'X-Object-Meta-Ä': 'ü€'},
    {'name': '/a/c/o', 'X-Timestamp': '1', 'X-Object-Meta-Long': 'x' * 1500},
])
def test_metadata_is_what_swifts_own_reader_says(tmp_path, said):
    path = str(tmp_path / 'data')
    with open(path, 'wb') as target:
        # Over several attributes.
        write_metadata(target, said, xattr_size=100)
    assert metadata.read(path) == read_metadata(path) == said


def test_metadata_of_a_python_2_of_long_ago_is_read_too(tmp_path):
    path = str(tmp_path / 'data')
    with open(path, 'wb'):
        pass
    os.setxattr(path, 'user.swift.metadata', (
        b"(dp1\nS'name'\np2\nS'/a/c/\\xc3\\xa4'\np3\nsS'X-Object-Meta-A'"
        b"\np4\nS'\\xe4'\np5\nsS'X-Timestamp'\np6\nS'1'\np7\ns."))
    assert metadata.read(path) == read_metadata(path) == {
        'name': '/a/c/ä', 'X-Object-Meta-A': 'ä', 'X-Timestamp': '1'}


def test_damaged_metadata_is_refused(tmp_path):
    path = str(tmp_path / 'data')
    with open(path, 'wb') as target:
        write_metadata(target, {'name': '/a/c/o', 'X-Timestamp': '1'})
    raw = os.getxattr(path, 'user.swift.metadata')
    os.setxattr(path, 'user.swift.metadata', raw[:-1] + b'x')
    with pytest.raises(DamagedRecord, match='checksum'):
        metadata.read(path)
    with pytest.raises(VersionGone):
        metadata.read(path + 'gone')


def test_an_empty_version_gets_no_record_when_it_arrives(rig):
    place = rig.put('o', b'')
    for length in (0, -1):
        assert rig.local.record_remotes([Arrival(
            place.version, place.partition, _copy(0), length)]) == [None]
    assert 'user.dss.residency' not in os.listxattr(place.data_file())
    assert rig.local.describe(
        place.version, place.partition).residency.tiers == Tier.NONE


def test_many_arrive_in_versions_that_have_a_record_already(
        rig, tmp_path):
    places = [rig.put('o%d' % n, b'x' * KIB) for n in range(3)]
    before = open_below(str(tmp_path))
    for turn in range(2):
        assert rig.local.record_remotes([
            Arrival(place.version, place.partition, _copy(turn * 10 + n),
                    KIB) for n, place in enumerate(places)]) == [None] * 3
    for n, place in enumerate(places):
        assert rig.local.describe(place.version, place.partition
                                  ).residency.remote == _copy(10 + n)
    assert open_below(str(tmp_path)) == before
