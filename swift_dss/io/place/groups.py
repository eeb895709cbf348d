"""Begin the files of a device side by side, in the order of their writing.

XFS gives each new folder the next allocation group, and a file that of its
folder. Swift has a folder for each object, so a disk's arm moves for each
object. A file that is begun without a name in another folder, and linked into
its own, stays in the group of the first.

``<device>/.dss-place/<n>`` is a folder in group ``n``. New files begin in the
first group with room; the more of them are written at a time, the more groups
take them, as each group has one lock. All processes of a node look at the
disk alone, and so come to the same groups. A file system without such groups
has folder 0.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import time
import uuid
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

FOLDER = '.dss-place'
#: Writers that share a group, and groups in use at a time.
_WRITERS, _MOST_GROUPS = 8, 4
#: A group with a smaller share of free blocks takes no new file.
_ROOM = 1 / 16
#: The room of groups is looked up after so long.
_LOOK_SECONDS = 5.0
#: Errors that say: not this way, on this file system or now.
_NOT_HERE = frozenset((
    errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.EACCES,
    errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOSPC, errno.EDQUOT))
#: ``XFS_IOC_FSGEOMETRY_V1`` and ``XFS_IOC_AG_GEOMETRY`` of ``xfs_fs.h``.
_GEOMETRY, _GEOMETRY_BYTES = 0x80705864, 112
_GROUP, _GROUP_BYTES = 0xC080583D, 128


class Groups(NamedTuple):
    """Allocation groups of a mounted file system.

    :param number: of groups
    :param shift: bits of an inode's number below those of its group
    """

    number: int
    shift: int

    def of(self, inode: int) -> int:
        """The group of an inode."""
        return inode >> self.shift


def groups_of(fd: int) -> Optional[Groups]:
    """The groups of the file system of an open file; None if it is not
    XFS."""
    said = bytearray(_GEOMETRY_BYTES)
    try:
        fcntl.ioctl(fd, _GEOMETRY, said)
    except OSError:
        return None
    block, _, blocks, count, _, _, inode = struct.unpack_from('=7I', said)
    return Groups(count, (blocks - 1).bit_length()
                  + (block // inode).bit_length() - 1)


def free_share(fd: int, group: int) -> Optional[float]:
    """The share of a group's blocks that is free; None if the kernel does
    not say (before 5.2)."""
    said = bytearray(struct.pack('=I', group).ljust(_GROUP_BYTES, b'\0'))
    try:
        fcntl.ioctl(fd, _GROUP, said)
    except OSError:
        return None
    _, length, free = struct.unpack_from('=3I', said)
    return float(free) / length if length else 0.0


class Placement:
    """The placement folders of one device.

    Thread-safe: two threads may do the same work, to the same end. Blocks on
    the device.

    :param device: path of the mounted device
    """

    def __init__(self, device: str,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.path = os.path.join(device, FOLDER)
        self._clock = clock
        #: Of the file system that is mounted now.
        self._mounted: Tuple[int, Optional[Groups]] = (0, None)
        self._order: List[int] = []
        self._look_at = 0.0
        #: Groups in which no folder could be made, and when to try again.
        self._without: Dict[int, float] = {}

    def open(self, writers: int = 1) -> Optional[int]:
        """A new file without a name, for writing; None if the file system
        has none, or the folders cannot be made now.

        :param writers: files that are being written on the device, with
            this one
        """
        try:
            group = self._choose(writers)
            try:
                return self._begin(group)
            except FileNotFoundError:
                if not self._make(group):
                    return None
                return self._begin(group)
        except OSError as err:
            if err.errno in _NOT_HERE:
                return None
            raise

    def _begin(self, group: int) -> int:
        return os.open(os.path.join(self.path, str(group)),
                       os.O_TMPFILE | os.O_WRONLY)

    def _choose(self, writers: int) -> int:
        now = self._clock()
        device = os.stat(os.path.dirname(self.path)).st_dev
        if now >= self._look_at or device != self._mounted[0]:
            self._look(device, now)
        order = self._order
        return order[min((writers - 1) // _WRITERS, len(order) - 1)]

    def _look(self, device: int, now: float) -> None:
        """Order the groups that may take files."""
        fd = os.open(os.path.dirname(self.path), os.O_RDONLY)
        try:
            if device != self._mounted[0]:
                self._mounted = device, groups_of(fd)
            groups = self._mounted[1]
            found: List[int] = []
            for group in range(groups.number if groups is not None else 0):
                if self._without.get(group, now) > now:
                    continue
                free = free_share(fd, group)
                if free is None or free >= _ROOM:
                    found.append(group)
                    if len(found) == _MOST_GROUPS:
                        break
        finally:
            os.close(fd)
        self._order = found or [0]
        self._look_at = now + _LOOK_SECONDS

    def _make(self, group: int) -> bool:
        """Make the folder of a group; False if none could be made there. XFS
        gives folders to groups in turn, others' as well, so it takes some.
        """
        os.makedirs(self.path, 0o700, exist_ok=True)
        groups = self._mounted[1]
        for _ in range(2 * groups.number + 2 if groups is not None else 1):
            fresh = os.path.join(self.path, 'new-' + uuid.uuid4().hex)
            os.mkdir(fresh, 0o700)
            number = groups.of(os.stat(fresh).st_ino) \
                if groups is not None else 0
            try:
                # Over an empty folder of another process, it takes its place.
                os.rename(fresh, os.path.join(self.path, str(number)))
            except OSError:
                os.rmdir(fresh)
                raise
            if number == group:
                return True
        self._without[group] = self._clock() + 60.0
        self._look_at = 0.0
        return False


def remove(device: str) -> None:
    """Remove the placement folders of a device; idempotent.

    :raises OSError: a file is in one of them, or the device refuses
    """
    path = os.path.join(device, FOLDER)
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(path):
            os.rmdir(os.path.join(path, name))
        os.rmdir(path)
