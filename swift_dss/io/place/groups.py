"""Begin the files of a device side by side, in the order of their writing.

XFS gives each new folder the next allocation group, and a file that of its
folder. Swift has a folder for each object, so a disk's arm moves for each
object. A file that is begun without a name in another folder, and linked into
its own, stays in the group of the first.

``<device>/.dss-place/<n>`` is a folder in group ``n``; on an HDD it is
``<capacity folder>/.dss-place/<n>``. New files begin in one group, nearest to
the journal, which is written for each of them. Up to 32 writers share a group:
XFS itself goes on to the next group where it finds the lock of one taken.

Inside a group XFS takes the nearest hole that is large enough. Once files were
deleted, new ones lie in their holes, to and fro. So a process that sees its
files lie before one another leaves the group: it sets the time of the group's
folder, and all processes go on to the one that was left longest ago. They look
at the disk alone, and so come to the same groups. A file system without groups
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
from typing import Dict, List, NamedTuple, Optional

from swift_dss.io.place import arms

FOLDER = '.dss-place'
#: Writers that share a group, and groups in use at a time.
_WRITERS, _MOST_GROUPS = 32, 4
#: A group with a smaller share of free blocks takes no new file.
_ROOM = 1 / 16
#: The room of groups is looked up after so long.
_LOOK_SECONDS = 5.0
#: Of so many files of a process, so many lie well before the one that came
#: before them: the group is full of holes. Of files that come at once one may.
_WATCHED, _BACK = 16, 4
#: Errors that say: not this way, on this file system or now.
_NOT_HERE = frozenset((
    errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.EACCES,
    errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOSPC, errno.EDQUOT))
#: ``XFS_IOC_FSGEOMETRY_V1`` and ``XFS_IOC_AG_GEOMETRY`` of ``xfs_fs.h``.
_GEOMETRY, _GEOMETRY_BYTES = 0x80705864, 112
_JOURNAL_AT = 56
_GROUP, _GROUP_BYTES = 0xC080583D, 128


class Groups(NamedTuple):
    """Allocation groups of a mounted file system.

    :param number: of groups
    :param shift: bits of an inode's number below those of its group
    :param bytes: of a group; the last may have fewer
    :param journal: the group that has the journal
    """

    number: int
    shift: int
    bytes: int
    journal: int

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
    journal, = struct.unpack_from('=Q', said, _JOURNAL_AT)
    of_group = (blocks - 1).bit_length()
    return Groups(count, of_group + (block // inode).bit_length() - 1,
                  block * blocks, journal >> of_group)


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


class _Watch:
    """How the last files of this process lie in a group."""

    def __init__(self) -> None:
        self._last = self._files = self._back = 0

    def is_holey(self, at: int) -> bool:
        """Add a file; True if too many lie before the one before them."""
        self._files += 1
        self._back += at < self._last - arms.NEAR_BYTES
        self._last = at
        if self._files < _WATCHED:
            return False
        back, self._files, self._back = self._back, 0, 0
        return back >= _BACK


class Placement:
    """The placement folders of one device.

    Thread-safe: two threads may do the same work, to the same end. Blocks on
    the device.

    :param device: path of the mounted device, or of a capacity folder
    :param mode: of new files, less the umask
    :param near_journal: begin near the journal, not at the disk's first
        sector, where it is fastest
    """

    def __init__(self, device: str, mode: int = 0o777,
                 near_journal: bool = True) -> None:
        self.path = os.path.join(device, FOLDER)
        self._device = device
        self._mode = mode
        self._near_journal = near_journal
        self._groups: Optional[Groups] = None
        self._order: List[int] = []
        self._look_at = 0.0
        #: Time of the placement folders' folder when they were looked at.
        self._seen = -1
        self._watches: Dict[int, _Watch] = {}
        #: Groups in which no folder could be made, and when to try again.
        self._without: Dict[int, float] = {}

    def open(self, writers: int = 1) -> Optional[int]:
        """A new file without a name, to write and read; None if the file
        system has none, or the folders cannot be made now.

        :param writers: files that are being written on the device, with
            this one
        """
        try:
            if time.monotonic() >= self._look_at or \
                    _changed(self.path) != self._seen:
                self._look()
            try:
                return self._begin(self._choose(writers))
            except FileNotFoundError:
                # Another file system may be mounted by now.
                self._look()
                group = self._choose(writers)
                return self._begin(group) if self._make(group) else None
        except OSError as err:
            if err.errno in _NOT_HERE:
                return None
            raise

    def landed(self, fd: int) -> bool:
        """Look where a file of :meth:`open` lies, once it has its blocks;
        leave its group if that is full of holes.

        :returns: False if it lies in another group than it began in
        """
        groups = self._groups
        at = arms.begins(fd) if groups is not None else None
        if at is None or groups is None:
            return True
        group = groups.of(os.fstat(fd).st_ino)
        watch = self._watches.setdefault(group, _Watch())
        # Another process may have left it: not twice.
        if watch.is_holey(at) and group == self._order[0] and \
                _changed(self.path) == self._seen:
            with contextlib.suppress(OSError):
                os.utime(os.path.join(self.path, str(group)))
                os.utime(self.path)
        return at // groups.bytes == group

    def _begin(self, group: int) -> int:
        return os.open(os.path.join(self.path, str(group)),
                       os.O_TMPFILE | os.O_RDWR, self._mode)

    def _choose(self, writers: int) -> int:
        order = self._order
        return order[min((writers - 1) // _WRITERS, len(order) - 1)]

    def _look(self) -> None:
        """Order the groups that may take files."""
        now = time.monotonic()
        self._seen = _changed(self.path)
        fd = os.open(self._device, os.O_RDONLY)
        try:
            self._groups = groups = groups_of(fd)
            usable: List[int] = []
            for group in self._preferred() if groups is not None else ():
                if self._without.get(group, now) > now:
                    continue
                free = free_share(fd, group)
                if free is None or free >= _ROOM:
                    usable.append(group)
                    if len(usable) == _MOST_GROUPS:
                        break
        finally:
            os.close(fd)
        self._order = usable or [0]
        self._look_at = now + _LOOK_SECONDS

    def _preferred(self) -> List[int]:
        """All groups: those never left, then those left longest ago."""
        assert self._groups is not None
        middle = self._groups.journal if self._near_journal else 0
        return sorted(range(self._groups.number), key=lambda group: (
            _changed(os.path.join(self.path, str(group))),
            abs(group - middle), group))

    def _make(self, group: int) -> bool:
        """Make the folder of a group; False if none could be made there. XFS
        gives folders to groups in turn, others' as well, so it takes some.
        """
        os.makedirs(self.path, 0o700, exist_ok=True)
        groups = self._groups
        for _ in range(2 * groups.number + 2 if groups is not None else 1):
            fresh = os.path.join(self.path, 'new-' + uuid.uuid4().hex)
            os.mkdir(fresh, 0o700)
            # Nobody has left it.
            os.utime(fresh, (0, 0))
            number = groups.of(os.stat(fresh).st_ino) \
                if groups is not None else 0
            target = os.path.join(self.path, str(number))
            try:
                # One that is there may have been left: that time stays.
                if os.path.isdir(target):
                    os.rmdir(fresh)
                else:
                    os.rename(fresh, target)
            except OSError as err:
                os.rmdir(fresh)
                # Another process was first; a folder that is not empty stays.
                if err.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
            if number == group:
                return True
        self._without[group] = time.monotonic() + 60.0
        self._look_at = 0.0
        return False


def _changed(path: str) -> int:
    """When a folder was changed or left; 0 if there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def remove(device: str) -> None:
    """Remove the placement folders of a device; idempotent.

    :raises OSError: a file is in one of them, or the device refuses
    """
    path = os.path.join(device, FOLDER)
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(path):
            os.rmdir(os.path.join(path, name))
        os.rmdir(path)
