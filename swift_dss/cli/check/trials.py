"""What a file system can do, tried with files that are gone afterwards."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import struct
import tempfile
from typing import Dict, Optional

from swift_dss.io.switch import exchange

#: Swift's metadata of an object and ours: more than ext4 takes.
_XATTR_BYTES = 8192
#: XFS_IOC_FSGEOMETRY_V1: 112 bytes, of which the seventh word is the size of
#: an inode.
_XFS_GEOMETRY = 0x80705864
_XFS_GEOMETRY_BYTES = 112
_PREFIX = '.dss-check-'


def lacks(folder: str) -> Dict[str, str]:
    """Features that the file system of a folder lacks, and the reason.

    :raises OSError: nothing can be made in the folder
    """
    place = tempfile.mkdtemp(prefix=_PREFIX, dir=folder)
    reasons = {}
    try:
        for feature, trial in (
                ('xattrs', _xattrs), ('large xattrs', _large_xattrs),
                ('RENAME_EXCHANGE', _exchange), ('O_TMPFILE', _tmpfile)):
            try:
                trial(place)
            except OSError as err:
                reasons[feature] = os.strerror(err.errno or errno.EIO)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if 'xattrs' in reasons:
        reasons.pop('large xattrs', None)
    return reasons


def inode_bytes(folder: str) -> Optional[int]:
    """Size of an inode of XFS; None of another file system."""
    space = bytearray(_XFS_GEOMETRY_BYTES)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(fd, _XFS_GEOMETRY, space)
    except OSError:
        return None
    finally:
        os.close(fd)
    return int(struct.unpack_from('<I', space, 24)[0])


def is_rotating(folder: str) -> Optional[bool]:
    """True for a disk with an arm; None if the kernel does not say."""
    number = os.stat(folder).st_dev
    base = os.path.realpath('/sys/dev/block/%d:%d' % (
        os.major(number), os.minor(number)))
    for place in (base, os.path.dirname(base)):  # a partition has no queue
        try:
            with open(os.path.join(place, 'queue', 'rotational')) as source:
                return source.read().strip() == '1'
        except OSError:
            continue
    return None


def _file(place: str, name: str) -> str:
    path = os.path.join(place, name)
    with open(path, 'wb') as target:
        target.write(name.encode())
    return path


def _xattrs(place: str) -> None:
    os.setxattr(_file(place, 'small'), 'user.swift.check', b'x' * 64)


def _large_xattrs(place: str) -> None:
    os.setxattr(_file(place, 'large'), 'user.swift.check',
                b'x' * _XATTR_BYTES)


def _exchange(place: str) -> None:
    exchange(_file(place, 'one'), _file(place, 'other'))


def _tmpfile(place: str) -> None:
    fd = os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600)
    try:
        # A descriptor of a folder makes Python call linkat() and follow.
        os.link('/proc/self/fd/%d' % fd, os.path.join(place, 'linked'),
                src_dir_fd=fd)
    finally:
        os.close(fd)
