"""Writing versions that come in part."""

from __future__ import annotations

import hashlib
import os
from typing import Any, List

import pytest
from dss_disk import Disk
from swift.common.utils import Timestamp

from swift_dss.core.errors import DamagedRecord, TierUnavailable
from swift_dss.core.residency import Extent, RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.io import residency_store
from swift_dss.objserver.arriving import Arriving

BODY = os.urandom(6 << 20)
#: SSD, HDD, and both at once.
MIXED = ClassMap.from_spans(
    [Span(0, 2 << 20, 1), Span(2 << 20, 2 << 20, 2)], rest=3)
#: What stays in S3, and what comes: across all borders of classes.
REST = [(100, 70000), ((2 << 20) - 5000, 10000), ((4 << 20) - 1, 2),
        ((6 << 20) - 10, 10)]


def arriving() -> Arriving:
    residency = Residency.whole(len(BODY)).with_remote(
        RemoteCopy('s3', 'k', 'e', 1.0))
    for offset, length in REST:
        residency = residency.drop(offset, length, Tier.SSD)
    return Arriving(residency, hashlib.md5(BODY).hexdigest())


def parts(found: Arriving) -> List[bytes]:
    return [BODY[extent.offset:extent.end]
            for extent in found.residency.extents
            if extent.tiers & Tier.SSD]


def take(disk: Disk, chunks: List[bytes]) -> Residency:
    """Write it as the object server does; its record."""
    found = disk.open_file('o')
    found.dss_tag(MIXED)
    found.dss_arriving = arriving()
    stamp = Timestamp.now()
    writer = found.writer(size=len(BODY))
    try:
        writer.open()
        for chunk in chunks:
            writer.write(chunk)
        length, etag = writer.chunks_finished()
        assert (length, etag) == (len(BODY), found.dss_arriving.etag)
        writer.put({'X-Timestamp': stamp.internal, 'ETag': etag,
                    'Content-Type': 'a/b', 'Content-Length': str(length)})
        writer.commit(stamp)
    finally:
        writer.close()
    with open(disk.data_path('o'), 'rb') as source:
        return residency_store.judge(source.fileno(), len(BODY))


def local(residency: Residency) -> List[Extent]:
    return [extent for extent in residency.extents
            if extent.tiers & (Tier.SSD | Tier.HDD)]


def read_local(disk: Disk, residency: Residency) -> None:
    for extent in local(residency):
        assert disk.read('o', extent.offset, extent.end) == \
            BODY[extent.offset:extent.end]


@pytest.mark.parametrize('size', [4099, 65536, len(BODY)])
def test_what_comes_is_placed_by_class(disk: Disk, green: None,
                                       size: int) -> None:
    whole = b''.join(parts(arriving()))
    found = take(disk, [whole[at:at + size]
                        for at in range(0, len(whole), size)])
    read_local(disk, found)
    assert found.remote == arriving().residency.remote
    assert all(extent.tiers & Tier.REMOTE for extent in found.extents)
    assert sum(extent.length for extent in local(found)) == len(whole)
    for extent in local(found):
        at_hdd = extent.offset >= 2 << 20
        assert bool(extent.tiers & Tier.HDD) is at_hdd
        assert bool(extent.tiers & Tier.SSD) is (
            extent.offset < 2 << 20 or extent.offset >= 4 << 20)


def test_an_hdd_that_goes_meanwhile_leaves_its_bytes_to_s3(
        disk: Disk, green: None, monkeypatch: Any) -> None:
    """Not to the SSD: the HDD's file has holes where S3 has bytes."""
    def gone(*_args: Any, **_kwargs: Any) -> None:
        raise TierUnavailable('gone')

    monkeypatch.setattr(type(disk.node.capacity('sda')), 'publish', gone)
    found = take(disk, parts(arriving()))
    assert not found.bytes_on(Tier.HDD)
    assert all(extent.tiers == Tier.REMOTE for extent in found.extents
               if 2 << 20 <= extent.offset < 4 << 20)
    read_local(disk, found)


def test_no_hdd_at_all_leaves_what_comes_to_the_ssd(
        disk: Disk, green: None) -> None:
    os.rename(disk.capacity_path, disk.capacity_path + '.away')
    found = take(disk, parts(arriving()))
    assert not found.bytes_on(Tier.HDD)
    assert found.bytes_on(Tier.SSD) == sum(map(len, parts(arriving())))
    read_local(disk, found)


def test_more_bytes_than_the_record_says_are_refused(disk: Disk) -> None:
    with pytest.raises(DamagedRecord):
        take(disk, parts(arriving()) + [b'x'])


def test_fewer_bytes_than_the_record_says_are_no_version(
        disk: Disk) -> None:
    found = disk.open_file('o')
    found.dss_arriving = arriving()
    writer = found.writer(size=len(BODY))
    try:
        writer.open()
        for chunk in parts(arriving())[:-1]:
            writer.write(chunk)
        assert writer.chunks_finished()[0] < len(BODY)
    finally:
        writer.close()


def test_a_version_of_which_nothing_comes(disk: Disk) -> None:
    found = disk.open_file('o')
    found.dss_arriving = Arriving(Residency.whole(
        len(BODY)).with_remote(RemoteCopy('s3', 'k', 'e', 1.0)).drop(
            0, len(BODY), Tier.SSD), 'e')
    writer = found.writer(size=len(BODY))
    try:
        writer.open()
        assert writer.chunks_finished() == (len(BODY), 'e')
    finally:
        writer.close()
