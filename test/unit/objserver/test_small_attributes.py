"""Swift's metadata is kept in values that an inode has room for."""

from __future__ import annotations

import glob
import os
from typing import Dict

from support.rigs.dss_disk import Disk
from swift.common.utils import Timestamp
from swift.obj import diskfile

from swift_dss.io.place import attributes

#: More than two values.
NOTE = 'n' * 600


def _values(path: str) -> Dict[str, bytes]:
    return {name: os.getxattr(path, name) for name in os.listxattr(path)
            if name.startswith('user.swift.metadata')}


def _are_small(path: str, count: int) -> bool:
    values = _values(path)
    return len(values) == count and max(
        map(len, values.values())) <= attributes.VALUE_BYTES


def test_stock_swift_reads_an_object_of_small_values(disk: Disk) -> None:
    disk.put('o', b'bytes')
    path = disk.data_path('o')
    # Two parts and their checksum.
    assert _are_small(path, 3)
    assert diskfile.read_metadata(path)['Content-Length'] == '5'
    assert disk.read('o', manager=disk.stock) == b'bytes'


def test_a_post_and_a_tombstone_have_small_values_too(disk: Disk) -> None:
    disk_file = disk.put('o', b'bytes')
    folder = os.path.dirname(disk.data_path('o'))
    disk_file = disk.open_file('o')
    with disk_file.open():
        pass
    disk_file.write_metadata({'X-Timestamp': Timestamp.now().internal,
                              'X-Object-Meta-Note': NOTE})
    path, = glob.glob(os.path.join(folder, '*.meta'))
    assert _are_small(path, len(_values(path))) and len(_values(path)) > 3
    assert diskfile.read_metadata(path)['X-Object-Meta-Note'] == NOTE
    disk_file.delete(Timestamp.now())
    path, = glob.glob(os.path.join(folder, '*.ts'))
    assert _are_small(path, len(_values(path)))


def test_files_of_other_policies_stay_as_swift_has_them(disk: Disk) -> None:
    disk.put('o', b'bytes', manager=disk.stock)
    values = _values(disk.data_path('o'))
    assert len(values) == 2
    assert max(map(len, values.values())) > attributes.VALUE_BYTES
