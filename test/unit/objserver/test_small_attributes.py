"""Swift's metadata is kept in values that an inode has room for."""

from __future__ import annotations

import glob
import os
from hashlib import md5
from typing import Dict

import pytest
from support.rigs.dss_disk import Disk
from swift.common.exceptions import DiskFileQuarantined
from swift.common.utils import Timestamp
from swift.obj import diskfile

from swift_dss.objserver.stock import attributes

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


def _set(path: str, raw: bytes, size: int, checksum: bool = True) -> None:
    """Swift's metadata, in values of some size."""
    for name in _values(path):
        os.removexattr(path, name)
    for number, at in enumerate(range(0, len(raw), size)):
        os.setxattr(path, 'user.swift.metadata%s' % (number or ''),
                    raw[at:at + size])
    if checksum:
        os.setxattr(path, 'user.swift.metadata_checksum',
                    md5(raw).hexdigest().encode())


#: Of Python 2, which pickled text that is not ASCII in its own way.
OLD = b"(dp0\nS'X-Object-Meta-A'\np1\nS'\\xc3\\xa9'\np2\ns."


@pytest.mark.parametrize('size', [65536, 254, 100])
@pytest.mark.parametrize('is_old', [False, True])
@pytest.mark.parametrize('checksum', [True, False])
def test_metadata_is_read_as_swift_reads_it(
        scratch_folder: str, size: int, is_old: bool,
        checksum: bool) -> None:
    path = os.path.join(scratch_folder, 'file')
    # As long as two and three values are, and a little more and less.
    for length in (200, 254, 255, 508, 509, 700, 762):
        with open(path, 'wb') as target:
            target.write(b'bytes')
        diskfile.write_metadata(path, {
            'name': '/a/c/\u00e9\udcff', 'ETag': 'e',
            'X-Object-Meta-Note': 'n' * length})
        raw = b''.join(value for name, value in sorted(
            _values(path).items()) if 'checksum' not in name)
        _set(path, OLD if is_old else raw, size, checksum)
        expected = diskfile.read_metadata(path)
        assert attributes.read(path) == expected
        with open(path, 'rb') as source:
            assert attributes.read(source) == expected


def test_written_values_end_where_they_are_full(
        scratch_folder: str) -> None:
    with open(os.path.join(scratch_folder, 'file'), 'wb') as target:
        for length in range(150, 450):
            for name in _values(target.name):
                os.removexattr(target.name, name)
            metadata = {'X-Object-Meta-Note': 'n' * length}
            attributes.write(target.fileno(), metadata)
            assert attributes.read(target.name) == metadata
            assert diskfile.read_metadata(target.name) == metadata


def test_a_missing_checksum_is_added_if_that_is_asked(
        scratch_folder: str) -> None:
    path = os.path.join(scratch_folder, 'file')
    with open(path, 'wb') as target:
        attributes.write(target.fileno(), {'ETag': 'e'})
    os.removexattr(path, 'user.swift.metadata_checksum')
    attributes.read(path)
    assert len(_values(path)) == 1
    attributes.read(path, add_missing_checksum=True)
    assert len(_values(path)) == 2


def test_metadata_with_other_bytes_goes_into_quarantine(disk: Disk) -> None:
    disk.put('o', b'bytes')
    path = disk.data_path('o')
    # Swift itself looks at no other byte of it.
    (name, raw), = [(name, raw) for name, raw in _values(path).items()
                    if b'ETag' in raw]
    os.setxattr(path, name, raw.replace(b'ETag', b'ETah'))
    with pytest.raises(DiskFileQuarantined):
        disk.open_file('o').open()


def test_swift_names_what_is_wrong(scratch_folder: str) -> None:
    with pytest.raises(diskfile.DiskFileStateChanged):
        attributes.read(os.path.join(scratch_folder, 'none'))
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError):
            attributes.write(writing, {'ETag': 'e'})
    finally:
        os.close(reading)
        os.close(writing)
