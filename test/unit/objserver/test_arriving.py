"""Writing versions of which only the record comes."""

from __future__ import annotations

import os

import pytest
from support.rigs.dss_disk import Disk
from swift.common.utils import Timestamp

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.io import residency_store
from swift_dss.objserver.travel.arriving import Arriving

#: More than a window.
SIZE = 20 << 20
RECORD = Residency.whole(SIZE).with_remote(RemoteCopy(
    's3', 'k', 'e', 1.0)).drop(0, SIZE, Tier.SSD)
#: SSD, HDD, and both at once.
MIXED = ClassMap.from_spans(
    [Span(0, 2 << 20, 1), Span(2 << 20, 2 << 20, 2)], rest=3)


@pytest.mark.parametrize('has_hdd', [True, False])
def test_the_record_is_written_and_takes_no_room(
        disk: Disk, green: None, has_hdd: bool) -> None:
    if not has_hdd:
        os.rename(disk.capacity_path, disk.capacity_path + '.away')
    disk_file = disk.open_file('o')
    disk_file.dss_tag(MIXED)
    disk_file.dss_arriving = Arriving(RECORD, 'f' * 32)
    stamp = Timestamp.now()
    writer = disk_file.writer(size=SIZE)
    try:
        writer.open()
        length, etag = writer.chunks_finished()
        assert (length, etag) == (SIZE, 'f' * 32)
        writer.put({'X-Timestamp': stamp.internal, 'ETag': etag,
                    'Content-Type': 'a/b', 'Content-Length': str(length)})
        writer.commit(stamp)
    finally:
        writer.close()
    path = disk.data_path('o')
    with open(path, 'rb') as source:
        assert residency_store.judge(source.fileno(), SIZE) == RECORD
    assert os.stat(path).st_blocks < 64
    assert not [names for _, _, names in os.walk(disk.capacity_path)
                if any(len(name) > 40 for name in names)]


def test_bytes_behind_the_record_are_refused(disk: Disk) -> None:
    disk_file = disk.open_file('o')
    disk_file.dss_arriving = Arriving(RECORD, 'e')
    writer = disk_file.writer(size=SIZE)
    try:
        writer.open()
        with pytest.raises(DamagedRecord):
            writer.write(b'x')
    finally:
        writer.close()
