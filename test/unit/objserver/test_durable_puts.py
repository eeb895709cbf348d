"""What is durable of a PUT, and what it may not touch."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, List, Optional

import pytest
from support.rigs.dss_disk import Disk, Logger
from swift.common.swob import HTTPException, Request

from swift_dss.core.config import NodeConf
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.core.version import VersionId
from swift_dss.io import moves
from swift_dss.io.capacity import Capacity
from swift_dss.io.switch import Place
from swift_dss.objserver.reader import BytesUnavailable
from swift_dss.objserver.settings import Node
from swift_dss.objserver.travel import adopting, arriving
from swift_dss.objserver.travel.adopting import Adoptions
from swift_dss.objserver.travel.newest import Newest
from swift_dss.wire import layout, names, newest
from swift_dss.wire.records import proof

BODY = os.urandom(3 << 20)
HDD = ClassMap.uniform(2)
MIXED = ClassMap.from_spans([Span(0, 1 << 20, 1)], rest=2)
AT = '1700000000.00000'


def capacity_file(disk: Disk) -> str:
    path, = [os.path.join(folder, name) for folder, _, there in os.walk(
        os.path.join(disk.capacity_path, 'data')) for name in there]
    return path


def place_of(disk: Disk, name: str) -> Place:
    version = layout.version_of_path('sda', disk.data_path(name))
    assert version is not None
    return Place(disk.device, disk.node.capacity('sda'), version, '7',
                 len(BODY))


def test_bytes_on_the_hdd_are_durable_before_they_have_a_name(
        disk: Disk, monkeypatch: Any) -> None:
    synced: List[int] = []
    named: List[bool] = []
    fsync, publish = os.fsync, Capacity.publish

    def note(self: Capacity, fd: int, *args: Any, **options: Any) -> None:
        named.append(os.fstat(fd).st_ino in synced)
        publish(self, fd, *args, **options)

    monkeypatch.setattr(os, 'fsync', lambda fd: (
        fsync(fd), synced.append(os.fstat(fd).st_ino)))
    monkeypatch.setattr(Capacity, 'publish', note)
    disk.put('o', BODY, HDD)
    assert named == [True]
    assert os.stat(disk.data_path('o')).st_ino in synced


def test_a_second_try_of_a_version_takes_no_bytes_of_the_first(
        disk: Disk) -> None:
    """The name of the first may lean on its HDD file still."""
    disk.put('o', BODY, HDD, timestamp=AT)
    first = os.stat(capacity_file(disk)).st_ino
    disk.put('o', BODY[::-1], HDD, timestamp=AT)
    assert os.stat(capacity_file(disk)).st_ino == first
    with open(capacity_file(disk), 'rb') as source:
        assert source.read() == BODY
    assert disk.read('o') == BODY[::-1]


def test_what_is_moved_while_it_is_read_is_not_quarantined(
        disk: Disk) -> None:
    disk.put('o', BODY, MIXED)
    disk_file = disk.open_file('o')
    with disk_file.open():
        reader = disk_file.reader()
    place = place_of(disk, 'o')
    moves.promote(place)
    moves.drop_capacity(place)
    with pytest.raises(BytesUnavailable):
        b''.join(reader)
    assert not disk.quarantined()
    assert disk.read('o') == BODY


# -- what other nodes say ------------------------------------------------

REMOTE = Residency.whole(len(BODY), Tier.SSD).with_remote(RemoteCopy(
    's3', 'k', 'e', 1.0))
STUB = REMOTE.drop(0, len(BODY), Tier.SSD)


def receive(monkeypatch: Any, residency: Residency,
            adoptions: Optional[Adoptions] = None) -> Any:
    """What becomes of a stub that S3 would prove."""
    monkeypatch.setattr(arriving, 'ask_for_proof', lambda *_: proof.ProofReply(
        200, '', STUB, 'f' * 32))
    request = Request.blank('/sda/7/a/c/o', method='PUT', headers={
        'X-Timestamp': AT, 'Etag': 'f' * 32,
        names.BACKEND_STUB: str(len(BODY))},
        body=proof.encode_stub(residency))
    return arriving.receive(request, SimpleNamespace(
        _logger=Logger(), policy=0, dss_device='sda', dss_hash='a' * 32,
        dss_partition='7',
        manager=SimpleNamespace(
            dss_adoptions=adoptions or Adoptions(),
            dss_node=Node(NodeConf(), Logger()))))


def test_a_stub_that_lies_in_s3_alone_is_taken(monkeypatch: Any) -> None:
    assert receive(monkeypatch, STUB).residency == STUB


def test_what_waits_for_a_stub_that_came_waits_anew_once_it_is_lost(
        monkeypatch: Any) -> None:
    now, adoptions = [1000.0], Adoptions()
    monkeypatch.setattr(adopting.time, 'monotonic', lambda: now[0])
    place = ('sda', '7', 0)
    adoptions.heard(place, 'a' * 32, adopting.Answer.ABSENT)
    receive(monkeypatch, STUB, adoptions)
    now[0] += adopting._PATIENCE_SECONDS
    assert not adoptions.has_waited(place, 'a' * 32)


@pytest.mark.parametrize('residency', [
    REMOTE, REMOTE.add(0, 10, Tier.HDD),
    STUB.add(0, len(BODY), Tier.HDD)])
def test_a_record_of_tiers_of_another_node_is_refused(
        monkeypatch: Any, residency: Residency) -> None:
    with pytest.raises(HTTPException) as raised:
        receive(monkeypatch, residency)
    assert raised.value.status_int == 422


def test_a_device_that_is_not_there_says_nothing(disk: Disk) -> None:
    version = VersionId('sda', 0, 'a' * 32, AT)
    app = Newest({'devices': disk.devices, 'mount_check': 'false'},
                 disk.logger, {})
    asked = [newest.Asked(device, 0, '7', version.object_hash)
             for device in ('sda', 'sdb')]
    answer = Request.blank(
        names.NEWEST_PATH, method='POST', body=newest.encode_question(
            newest.Question(asked, False))).get_response(app)
    assert newest.decode_answer(answer.body, 2) == [
        ('', '', False, '', False), None]
