"""Diskfiles on both tiers: whole, stub, damaged, and stock over them."""

from __future__ import annotations

import errno
import gc
import os
import weakref
from typing import Any, List

import pytest
from support.rigs.dss_disk import Disk
from support.rigs.open_files import open_below
from swift.common.exceptions import (
    DiskFileNoSpace, DiskFileNotExist, DiskFileQuarantined)

from swift_dss.core.errors import TierUnavailable
from swift_dss.core.limits import (
    IO_WINDOW_BYTES, WIDE_WINDOW_BYTES, WIDE_WINDOW_UPLOADS)
from swift_dss.core.residency import Extent, RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.io import residency_store
from swift_dss.io.sums import blocks as block_sums
from swift_dss.objserver import writer
from swift_dss.objserver.reader import BytesUnavailable, RottenBlock
from swift_dss.wire import layout, names

BODY = os.urandom(3 << 20)
MIXED = ClassMap.from_spans(
    [Span(0, 1 << 20, 1), Span(1 << 20, 1000001, 2)], rest=3)
ALL_HDD = ClassMap.uniform(2)


def capacity_files(disk: Disk) -> List[str]:
    return [os.path.join(folder, name) for folder, _, names in
            os.walk(os.path.join(disk.capacity_path, 'data'))
            for name in names]


@pytest.mark.parametrize('size', [
    0, 1, 4096, 65537, (1 << 20), 3 << 20, (9 << 20) + 1])
@pytest.mark.parametrize('class_map', [
    None, ClassMap.uniform(1), ALL_HDD, ClassMap.uniform(3), MIXED])
def test_what_is_put_is_read(disk: Disk, green: None, size: int,
                             class_map: Any) -> None:
    body = (BODY * 4)[:size]
    disk.put('o', [body[at:at + 65536] for at in range(0, size, 65536)],
             class_map, size=size)
    assert disk.read('o') == body
    assert disk.read('o', 1, size - 1) == body[1:size - 1] or size < 3
    assert not disk.quarantined()


def test_the_first_uploads_have_wider_windows(
        disk: Disk, green: None) -> None:
    written = disk.carrier.moved
    open_ones = []
    for number in range(WIDE_WINDOW_UPLOADS):
        upload = disk.open_file('o%d' % number).writer(size=None)
        upload.open()
        open_ones.append(upload)
    wide, narrow = open_ones[0], disk.open_file('n').writer(size=None)
    narrow.open()
    for upload, limit in ((wide, WIDE_WINDOW_BYTES),
                          (narrow, IO_WINDOW_BYTES)):
        for _ in range(limit // 65536 - 1):
            upload.write(BODY[:65536])
        upload.chunks_finished()
        assert not written
        upload.write(BODY[:65536])
        upload.chunks_finished()
        assert sum(move.length for move in written) == limit
        del written[:]
    for upload in open_ones + [narrow]:
        upload.close()
        upload.close()
    assert disk.node.uploads == 0


def test_the_end_of_an_object_makes_no_trip_of_its_own(
        disk: Disk, green: None) -> None:
    upload = disk.open_file('o').writer(size=WIDE_WINDOW_BYTES)
    upload.open()
    for _ in range(WIDE_WINDOW_BYTES // 65536):
        upload.write(BODY[:65536])
    upload.chunks_finished()
    assert not disk.carrier.moved
    assert disk.pools() == {}
    upload.close()


def test_a_size_not_known_beforehand(disk: Disk) -> None:
    disk.put('o', [BODY[:700000], BODY[700000:]], MIXED, size=None)
    assert disk.read('o') == BODY


def test_a_stub_is_one_byte_longer_and_whole_files_are_not(
        disk: Disk) -> None:
    disk.put('stub', BODY, MIXED)
    disk.put('both', BODY, ClassMap.uniform(3))
    disk.put('ssd', BODY, ClassMap.uniform(1))
    sizes = {name: os.stat(disk.data_path(name)).st_size
             for name in ('stub', 'both', 'ssd')}
    assert sizes == {'stub': len(BODY) + 1, 'both': len(BODY),
                     'ssd': len(BODY)}
    assert residency_store.load(disk.data_path('ssd')) is None
    residency = residency_store.load(disk.data_path('both'))
    assert residency == Residency.whole(len(BODY), Tier.SSD | Tier.HDD)


@pytest.mark.parametrize('class_map', [MIXED, ALL_HDD])
def test_stock_swift_refuses_a_stub_before_its_first_byte(
        disk: Disk, class_map: ClassMap) -> None:
    disk.put('o', BODY, class_map)
    with pytest.raises(DiskFileQuarantined):
        disk.open_file('o', disk.stock).open()


def test_stock_swift_reads_what_is_whole(disk: Disk) -> None:
    disk.put('o', BODY, ClassMap.uniform(3))
    assert disk.read('o', manager=disk.stock) == BODY
    disk.put('p', BODY, None, manager=disk.stock)
    assert disk.read('p') == BODY


@pytest.mark.parametrize('surplus,record', [
    (2, 'keep'), (-1, 'keep'), (1, 'drop'), (1, 'damage'), (1, 'other')])
def test_anything_else_is_quarantined(disk: Disk, surplus: int,
                                      record: str) -> None:
    disk.put('o', BODY, MIXED)
    path = disk.data_path('o')
    os.truncate(path, len(BODY) + surplus)
    raw = os.getxattr(path, names.XATTR_RESIDENCY)
    if record == 'drop':
        os.removexattr(path, names.XATTR_RESIDENCY)
    elif record == 'damage':
        os.setxattr(path, names.XATTR_RESIDENCY,
                    raw[:9] + bytes((raw[9] ^ 1,)) + raw[10:])
    elif record == 'other':
        with open(path, 'rb+') as target:
            residency_store.store(
                target.fileno(), Residency.whole(5, Tier.HDD))
    with pytest.raises(DiskFileQuarantined):
        disk.open_file('o').open()
    assert disk.quarantined()


def test_a_record_that_cannot_be_read_is_no_damage(
        disk: Disk, monkeypatch: Any) -> None:
    disk.put('o', BODY, MIXED)

    def broken(*_args: Any) -> None:
        raise OSError(errno.EIO, 'bad sector')

    with monkeypatch.context() as patch:
        patch.setattr(residency_store, 'judge', broken)
        with pytest.raises(DiskFileNotExist):
            disk.open_file('o').open()
    assert not disk.quarantined()
    assert disk.read('o') == BODY


def test_a_damaged_record_of_a_whole_file_costs_no_byte(
        disk: Disk) -> None:
    disk.put('o', BODY, ClassMap.uniform(3))
    os.setxattr(disk.data_path('o'), names.XATTR_RESIDENCY, b'rubbish')
    assert disk.read('o') == BODY
    assert not disk.quarantined()


def test_an_unmounted_hdd_is_unavailable_and_never_quarantined(
        disk: Disk) -> None:
    disk.put('o', BODY, MIXED)
    os.rename(disk.capacity_path, disk.capacity_path + '.away')
    disk_file = disk.open_file('o')
    with disk_file.open():
        reader = disk_file.reader()
    with pytest.raises(TierUnavailable):
        reader.dss_prepare([(0, len(BODY))])
    reader.dss_prepare([(0, 1000)])  # that much is on the SSD
    reader.close()
    assert disk.read('o', 0, 1000) == BODY[:1000]
    with pytest.raises(BytesUnavailable):
        disk.read('o')
    assert not disk.quarantined()
    os.rename(disk.capacity_path + '.away', disk.capacity_path)
    assert disk.read('o') == BODY


def test_an_unmounted_hdd_at_write_leaves_all_to_the_ssd(
        disk: Disk) -> None:
    os.rename(disk.capacity_path, disk.capacity_path + '.away')
    disk.put('o', BODY, MIXED)
    assert os.stat(disk.data_path('o')).st_size == len(BODY)
    assert disk.read('o') == BODY
    assert disk.logger.counts['dss.errors.tier_unavailable'] == 1


def test_an_hdd_lost_between_open_and_put_brings_the_bytes_home(
        disk: Disk, monkeypatch: Any) -> None:
    def gone(*_args: Any, **_kwargs: Any) -> None:
        raise TierUnavailable('gone')

    monkeypatch.setattr(type(disk.node.capacity('sda')), 'publish', gone)
    disk.put('o', BODY, MIXED)
    assert os.stat(disk.data_path('o')).st_size == len(BODY)
    assert disk.read('o') == BODY
    assert not capacity_files(disk)


def test_a_missing_capacity_file_is_a_damaged_copy(disk: Disk) -> None:
    disk.put('o', BODY, MIXED)
    os.unlink(capacity_files(disk)[0])
    with pytest.raises(BytesUnavailable):
        disk.read('o')
    assert disk.lacking() and not disk.quarantined()


def test_a_capacity_file_that_was_cut_off_is_a_damaged_copy(
        disk: Disk) -> None:
    disk.put('o', BODY, MIXED)
    os.truncate(capacity_files(disk)[0], len(BODY) - 1)
    with pytest.raises(BytesUnavailable):
        disk.read('o')
    assert disk.lacking() and not disk.quarantined()


def test_a_record_of_another_capacity_tier_is_not_believed(
        disk: Disk) -> None:
    """A stub that a copy tool brought from another node."""
    disk.put('o', BODY, MIXED)
    os.setxattr(disk.data_path('o'), names.XATTR_CAPACITY_ID, b'other')
    with pytest.raises(BytesUnavailable):
        disk.read('o')
    assert disk.lacking() and not disk.quarantined()


def test_wrong_bytes_on_the_hdd_are_found_at_the_end(disk: Disk) -> None:
    disk.put('o', BODY, ALL_HDD)
    path = capacity_files(disk)[0]
    with open(path, 'rb+') as target:
        target.seek(12345)
        target.write(b'wrong')
    with open(disk.data_path('o'), 'rb') as source:
        # Else the first block that is wrong is: test_rotten_blocks.py.
        assert block_sums.remove(source.fileno())
    assert disk.read('o') != BODY
    assert disk.quarantined()


@pytest.mark.parametrize('damage', [False, True])
def test_the_auditor_checks_local_bytes_and_recalls_none(
        disk: Disk, damage: bool) -> None:
    disk.put('o', BODY, MIXED)
    if damage:
        with open(capacity_files(disk)[0], 'rb+') as target:
            target.seek(1 << 20)
            target.write(b'wrong')
        with pytest.raises(RottenBlock):
            _audit(disk)
    else:
        assert _audit(disk) == BODY
    assert bool(disk.lacking()) is damage and not disk.quarantined()


@pytest.mark.parametrize('lost', ['hdd', 'remote'])
def test_the_auditor_leaves_alone_what_it_cannot_reach(
        disk: Disk, lost: str) -> None:
    disk.put('o', BODY, MIXED)
    if lost == 'hdd':
        os.rename(disk.capacity_path, disk.capacity_path + '.away')
    else:
        _make_remote(disk, 'o')
    assert len(_audit(disk)) < len(BODY)
    assert not disk.quarantined()


def _audit(disk: Disk) -> bytes:
    from swift.obj.diskfile import AuditLocation
    disk_file = disk.ours.get_diskfile_from_audit_location(AuditLocation(
        os.path.dirname(disk.data_path('o')), 'sda', '7',
        disk.policies[0]))
    with disk_file.open():
        reader = disk_file.reader()
    return b''.join(reader)


def _make_remote(disk: Disk, name: str) -> None:
    path = disk.data_path(name)
    with open(path, 'rb+') as target:
        residency = residency_store.load(target.fileno())
        assert residency is not None
        moved = Residency(residency.content_length, tuple(
            Extent(extent.offset, extent.length,
                   extent.tiers if extent.tiers & Tier.SSD
                   else Tier.REMOTE) for extent in residency.extents),
            RemoteCopy('s3', 'key', 'etag', 1.0))
        residency_store.store(target.fileno(), moved)


def test_remote_bytes_without_a_daemon_are_unavailable(
        disk: Disk) -> None:
    from swift_dss.core.errors import RemoteUnavailable
    disk.put('o', BODY, MIXED)
    _make_remote(disk, 'o')
    disk_file = disk.open_file('o')
    with disk_file.open():
        reader = disk_file.reader()
    with pytest.raises(RemoteUnavailable):
        reader.dss_prepare([(0, len(BODY))])
    reader.close()
    with pytest.raises(BytesUnavailable):
        disk.read('o')
    assert not disk.quarantined()


def test_the_daemon_hears_of_a_bad_sector_of_the_ssd(
        disk: Disk, monkeypatch: Any) -> None:
    disk.put('o', BODY, ClassMap.uniform(1))

    def broken(*_args: Any) -> bytes:
        raise OSError(errno.EIO, 'bad sector')

    monkeypatch.setattr(disk.carrier, 'pread', broken)
    monkeypatch.setattr(disk.node.page_cache, 'look', lambda *_: 0)
    with pytest.raises(RottenBlock):
        disk.read('o')
    assert disk.lacking() and not disk.quarantined()


@pytest.mark.parametrize('step', ['window', 'finalize'])
def test_a_full_ssd_is_refused_and_leaves_nothing(
        disk: Disk, monkeypatch: Any, step: str) -> None:
    def full(*_args: Any) -> None:
        raise OSError(errno.ENOSPC, 'full')

    if step == 'window':
        monkeypatch.setattr(disk.carrier, 'pwritev', full)
    else:
        monkeypatch.setattr(writer.residency_store, 'store', full)
    with pytest.raises(DiskFileNoSpace):
        disk.put('o', BODY, MIXED)
    with pytest.raises(DiskFileNotExist):
        disk.open_file('o').open()
    assert not capacity_files(disk)


def test_the_ssd_reserves_only_what_it_will_hold(disk: Disk) -> None:
    disk_file = disk.open_file('o')
    disk_file.dss_tag(MIXED)
    upload = disk_file.writer(size=len(BODY))
    upload.open()
    blocks = sum(_reserved(disk.device))
    upload.close()
    assert not _reserved(disk.device)
    on_ssd = len(BODY) - 1000001
    assert on_ssd <= blocks < on_ssd + 3 * 4096


def _reserved(folder: str) -> List[int]:
    """The room of each file below a folder that this process has open."""
    return [os.fstat(fd).st_blocks * 512 for fd in open_below(folder)]


def test_a_stub_can_be_posted_to_deleted_and_relinked(disk: Disk) -> None:
    disk.put('o', BODY, MIXED, timestamp='1000000000.00000')
    disk_file = disk.open_file('o')
    disk_file.open()
    disk_file.write_metadata({'X-Timestamp': '1000000001.00000',
                              'X-Object-Meta-A': 'b'})
    assert disk.read('o') == BODY
    path = disk.data_path('o')
    os.link(path, path.replace('/7/', '/7/') + '.link')
    os.rename(path + '.link', path)
    assert disk.read('o') == BODY
    disk_file.delete('1000000002.00000')
    with pytest.raises(DiskFileNotExist):
        disk.open_file('o').open()


def test_fragments_are_stubs_of_their_own(disk: Disk) -> None:
    policy = disk.policies[1]
    archives = [policy.pyeclib_driver.encode(BODY[at:at + 65536])
                for at in range(0, 6 * 65536, 65536)]
    class_map = ClassMap.from_spans(
        [Span(0, 65536, 1), Span(65536, 100000, 2)], rest=1)
    for index in (0, 2):
        body = b''.join(frags[index] for frags in archives)
        disk.put('o', body, class_map, policy=1, frag_index=index,
                 timestamp='1000000000.00000')
        assert disk.read('o', policy=1, frag_index=index) == body
    assert len(capacity_files(disk)) == 2
    versions = {layout.version_of_path('sda', disk.data_path('o', 1))}
    assert None not in versions
    # Class 2 covers segments 1 and half of 2; class 1 ranks above it.
    residency = residency_store.load(disk.data_path('o', 1))
    assert residency is not None
    assert [(extent.offset, extent.length) for extent in residency.extents
            if extent.tiers == Tier.HDD] == [
        (policy.fragment_size, policy.fragment_size)]


def test_an_abandoned_read_frees_its_descriptors(
        disk: Disk, green: None) -> None:
    disk.put('o', BODY, MIXED)
    _settle(disk)
    before = open_below(disk.root)
    for stop in range(3):
        disk_file = disk.open_file('o')
        with disk_file.open():
            reader = disk_file.reader()
        source = iter(reader)
        for _ in range(stop):
            next(source)
        if stop:
            source.close()
        reader.close()
    _settle(disk)
    assert open_below(disk.root) == before


def _settle(disk: Disk) -> None:
    for pool in (disk.node.pool(Tier.SSD, 'sda'),
                 disk.node.pool(Tier.HDD, 'sda')):
        # Two rounds through every thread: whatever was begun is done.
        for job in [pool.submit(os.getpid) for _ in range(64)]:
            job.wait()


def test_an_audit_needs_no_event_loop_and_no_thread(
        disk: Disk, green: None) -> None:
    disk.put('o', BODY, MIXED)
    before = {name: counts['jobs'] for name, counts in
              disk.pools().items()}
    assert _audit(disk) == BODY
    _settle(disk)
    after = disk.pools()
    # The 64 of _settle, and the close of the capacity file.
    assert {name: counts['jobs'] - before[name] for name, counts in
            after.items()} == {'ssd-sda': 64, 'hdd-sda': 65}


@pytest.mark.parametrize('size', [4096, 3 << 20])
def test_a_read_leaves_nothing_to_the_garbage_collector(
        disk: Disk, green: None, size: int) -> None:
    disk.put('o', BODY[:size])
    disk_file = disk.open_file('o')
    with disk_file.open():
        reader = disk_file.reader()
    assert sum(map(len, reader)) == size
    reader.close()
    gone = weakref.ref(disk_file), weakref.ref(reader)
    gc.disable()
    try:
        del disk_file, reader
        assert [each() for each in gone] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize('name, ctype', [
    # Merged: the offset is no part of the type's time.
    ('4000000089.00055_2d798844c1202+0.meta', '4000000089.00055'),
    ('4000000089.00057_2d79884e19bb0-2.meta', '4000000089.00055'),
    ('4000000089.00057+0.meta', '4000000089.00057')])
def test_the_time_of_a_type_is_the_same_in_all_names(
        disk: Disk, name: str, ctype: str) -> None:
    parts = disk.ours.parse_on_disk_filename(name, disk.policies[0])
    assert parts['ctype_timestamp'].internal == ctype
    assert parts['timestamp'].internal[:16] == name[:16]
