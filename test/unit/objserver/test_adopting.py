"""A lost fragment that S3 has."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List

import pytest
from support.rigs.dss_disk import Disk
from swift.common.utils import Timestamp

from swift_dss.core.errors import RemoteUnavailable, VersionGone
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.io import residency_store
from swift_dss.objserver.travel import adopting
from swift_dss.wire.records import proof

SETTLED, SILENT, ABSENT = (
    adopting.Answer.SETTLED, adopting.Answer.SILENT, adopting.Answer.ABSENT)
BODY = os.urandom(100000)
#: Recent: Swift forgets old tombstones.
T1, T2, T3 = ('%010d.00000' % (time.time() - 9 + number)
              for number in (1, 2, 3))
METADATA = {'name': '/a/c/o', 'X-Timestamp': T3, 'Content-Type': 'a/b',
            'X-Object-Sysmeta-Ec-Frag-Index': '1',
            'X-Object-Sysmeta-Ec-Etag': 'x', 'X-Object-Meta-Color': 'red'}


class S3:
    """What the daemon answers, and what it was asked."""

    def __init__(self) -> None:
        self.asked: List[proof.ProofRequest] = []
        self.metadata: Dict[str, str] = dict(METADATA)
        self.error: Any = None

    def __call__(self, _run_dir: str, request: proof.ProofRequest,
                 _seconds: float) -> proof.ProofReply:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return proof.ProofReply(200, '', Residency.whole(
            len(BODY)).with_remote(RemoteCopy('s3', 'k', 'e', 2.0)).drop(
                0, len(BODY), Tier.SSD), 'f' * 32, self.metadata)


@pytest.fixture
def s3(monkeypatch: Any) -> S3:
    made = S3()
    monkeypatch.setattr(adopting, 'ask_for_proof', made)
    return made


def adopt(disk: Disk, timestamp: str = T2,
          waits: bool = False) -> adopting.Answer:
    disk.ec.logger = disk.logger
    return adopting.adopt(disk.ec, adopting.Wanted(
        'sda', '7', disk.policies[1], disk.open_file(
            'o', policy=1).dss_hash, Timestamp(timestamp), 1, waits))


def files(disk: Disk) -> List[str]:
    return sorted(name for _, _, names in os.walk(os.path.join(
        disk.device, 'objects-1')) for name in names
        if name.endswith(('.data', '.ts')))


def test_it_is_written_as_a_stub_under_its_own_timestamp(
        disk: Disk, s3: S3) -> None:
    adopt(disk)
    assert files(disk) == [T2 + '#1#d.data']
    assert s3.asked[0].version.frag_index == 1
    assert s3.asked[0].residency is None
    with open(disk.data_path('o', 1), 'rb') as source:
        assert residency_store.judge(
            source.fileno(), len(BODY)).tiers == Tier.REMOTE
    with disk.open_file('o', policy=1).open() as disk_file:
        metadata = disk_file.get_datafile_metadata()
    assert metadata['X-Timestamp'] == T2
    assert metadata['ETag'] == 'f' * 32
    assert metadata['X-Object-Meta-Color'] == 'red'
    assert disk.logger.counts['dss.ssync.adopted'] == 1


@pytest.mark.parametrize('at,stays', [(T3, False), (T2, True)],
                         ids=['later', 'same'])
def test_what_a_later_post_set_is_not_of_the_data(
        disk: Disk, s3: S3, at: str, stays: bool) -> None:
    s3.metadata.update({'X-Timestamp': at, 'X-Delete-At': '1',
                        'Content-Type-Timestamp': at})
    adopt(disk)
    with disk.open_file('o', policy=1, open_expired=True).open() as disk_file:
        metadata = disk_file.get_datafile_metadata()
    assert ('X-Delete-At' in metadata) is stays
    assert ('Content-Type-Timestamp' in metadata) is stays


@pytest.mark.parametrize('has,asks', [
    (T1, True), (T2, False), (T3, False)], ids=['older', 'same', 'newer'])
def test_what_is_here_or_newer_is_not_asked_for(
        disk: Disk, s3: S3, has: str, asks: bool) -> None:
    disk.put('o', BODY, timestamp=has, policy=1, frag_index=1)
    adopt(disk)
    assert bool(s3.asked) is asks
    assert files(disk) == [(T2 if asks else has) + '#1#d.data']


def test_what_was_deleted_since_stays_so(disk: Disk, s3: S3) -> None:
    disk.open_file('o', policy=1).delete(Timestamp(T3))
    adopt(disk)
    assert not s3.asked and files(disk) == [T3 + '.ts']


@pytest.mark.parametrize('changed', [
    {'name': '/a/c/other'}, {'name': 'rubbish'},
    {'X-Object-Sysmeta-Ec-Frag-Index': '2'}])
def test_another_object_is_not_taken_for_it(disk: Disk, s3: S3,
                                            changed: Any) -> None:
    s3.metadata.update(changed)
    adopt(disk)
    assert s3.asked and not files(disk)
    assert disk.logger.counts['dss.ssync.not_adopted'] == 1


def test_what_s3_has_not_is_rebuilt(disk: Disk, s3: S3) -> None:
    s3.error = VersionGone('no such key')
    assert adopt(disk) is SETTLED
    assert not files(disk)


def test_what_no_bundle_has_is_not_rebuilt_yet(disk: Disk, s3: S3) -> None:
    """Another node may bring it; S3 is not asked for its own key."""
    s3.error = VersionGone('no bundle has it')
    assert adopt(disk, waits=True) is ABSENT
    assert s3.asked[0].packed and not files(disk)
    assert 'dss.ssync.not_adopted' not in disk.logger.counts
    s3.error = None
    assert adopt(disk, waits=True) is SETTLED
    assert files(disk) == [T2 + '#1#d.data']


def test_what_nobody_can_say_is_not_rebuilt_yet(disk: Disk, s3: S3) -> None:
    s3.error = RemoteUnavailable('the daemon has just begun', 1)
    assert adopt(disk) is SILENT
    assert not files(disk)
    assert 'dss.ssync.not_adopted' not in disk.logger.counts
    s3.error = None
    assert adopt(disk) is SETTLED
    assert files(disk) == [T2 + '#1#d.data']


def test_a_rebuild_waits_only_so_long_for_s3(monkeypatch: Any) -> None:
    now = [1000.0]
    monkeypatch.setattr(adopting.time, 'monotonic', lambda: now[0])
    adoptions, place = adopting.Adoptions(), ('sda', '7', 1)
    assert not adoptions.heard(place, 'a', SILENT)
    now[0] += adopting._PATIENCE_SECONDS - 1
    assert not adoptions.heard(place, 'a', SILENT)
    assert not adoptions.heard(('sda', '8', 1), 'a', SILENT)
    now[0] += 1
    assert adoptions.heard(place, 'a', SILENT)
    assert adoptions.heard(place, 'a', SETTLED)
    assert not adoptions.heard(place, 'a', SILENT)


def test_a_rebuild_waits_only_so_long_for_another_node(
        monkeypatch: Any) -> None:
    now = [1000.0]
    monkeypatch.setattr(adopting.time, 'monotonic', lambda: now[0])
    adoptions, place = adopting.Adoptions(), ('sda', '7', 1)
    assert not adoptions.has_waited(place, 'a')
    assert not adoptions.heard(place, 'a', ABSENT)
    now[0] += adopting._PATIENCE_SECONDS - 1
    assert not adoptions.has_waited(place, 'a')
    assert not adoptions.heard(place, 'a', ABSENT)
    now[0] += 1
    assert adoptions.has_waited(place, 'a')
    # Another object of the partition has a time of its own.
    assert not adoptions.has_waited(place, 'b')
    assert adoptions.heard(place, 'a', SETTLED)
    assert not adoptions.has_waited(place, 'a')


def test_what_came_waits_anew_another_time(monkeypatch: Any) -> None:
    now = [1000.0]
    monkeypatch.setattr(adopting.time, 'monotonic', lambda: now[0])
    adoptions, place = adopting.Adoptions(), ('sda', '7', 1)
    adoptions.heard(place, 'a', ABSENT)
    adoptions.came(place, 'a')
    now[0] += adopting._PATIENCE_SECONDS
    assert not adoptions.has_waited(place, 'a')


def test_more_than_may_wait_are_rebuilt_at_once(monkeypatch: Any) -> None:
    now = [1000.0]
    monkeypatch.setattr(adopting.time, 'monotonic', lambda: now[0])
    monkeypatch.setattr(adopting, '_MAX_WAITING', 2)
    adoptions, place = adopting.Adoptions(), ('sda', '7', 1)
    for object_hash in 'ab':
        adoptions.heard(place, object_hash, ABSENT)
    assert adoptions.has_waited(place, 'c')
    now[0] += adopting._PATIENCE_SECONDS
    # Nobody has asked for the oldest since: it makes room.
    assert not adoptions.has_waited(place, 'c')


@pytest.mark.parametrize('in_s3, asks', [(True, False), (False, True)])
def test_a_stub_that_was_put_aside_is_rebuilt(
        disk: Disk, s3: S3, in_s3: bool, asks: bool) -> None:
    """S3 was asked for its bytes then. What was never sent may be there by
    now."""
    disk.put('o', BODY, timestamp=T2, policy=1, frag_index=1)
    path = disk.data_path('o', 1)
    if in_s3:
        fd = os.open(path, os.O_RDWR)
        residency_store.store(fd, Residency.whole(len(BODY)).with_remote(
            RemoteCopy('s3', 'k', 'e', 2.0)))
        os.close(fd)
    aside = os.path.join(disk.device, 'quarantined', 'objects-1')
    os.makedirs(aside)
    os.rename(os.path.dirname(path), os.path.join(
        aside, os.path.basename(os.path.dirname(path))))
    assert adopt(disk) is SETTLED
    assert bool(s3.asked) is asks
    assert bool(files(disk)) is asks
    assert disk.logger.counts['dss.ssync.not_adopted' if in_s3
                              else 'dss.ssync.adopted'] == 1
