"""The switch: give a live version's name another inode, in one instant.

Whatever changes the bytes that the SSD holds builds a *new* inode in the
device's ``dss/tmp`` and exchanges names with the live one. A reader that
opened the old inode keeps all of it; a reader that opens the name sees the
old version of the file or the new one, complete either way. Nothing here
decides anything: :mod:`swift_dss.io.moves` says which bytes go where.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import (
    Callable, List, NamedTuple, Optional, Sequence, Tuple, Type)

from swift_dss.core.errors import (
    DamagedRecord, FULL_ERRNOS, TierFull, TierUnavailable, VersionGone)
from swift_dss.core.residency import Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.io import residency_store, steps
from swift_dss.io.capacity import Capacity, sync_dir
from swift_dss.wire import layout
from swift_dss.wire.names import XATTR_CAPACITY_ID, XATTR_RESIDENCY

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_RECORDS = frozenset((XATTR_RESIDENCY, XATTR_CAPACITY_ID))
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Place:
    """Where the files of one version lie on this node.

    :param device_path: mount point of Swift's device (the SSD)
    :param capacity: the device's capacity folder
    :param partition: Swift's partition, as the folder is named
    :param content_length: of the version, from its own metadata
    :param etag: its MD5, from there too; '' where no checksums are made
    """

    device_path: str
    capacity: Capacity
    version: VersionId
    partition: str
    content_length: int
    etag: str = ''

    @property
    def hash_dir(self) -> str:
        """Swift's folder of the object."""
        return layout.hash_dir(self.device_path, self.version.policy,
                               self.partition, self.version.object_hash)

    def names(self) -> List[str]:
        """The files in Swift's folder of the object; none if it is gone."""
        return listdir(self.hash_dir)

    def data_file(self, names: Optional[Sequence[str]] = None) -> str:
        """Path of the version's data file, durable or not.

        :param names: from :meth:`names`, if the caller has just asked
        :raises VersionGone: it was overwritten, deleted or moved
        """
        wanted = (self.version.timestamp, self.version.frag_index)
        for name in sorted(self.names() if names is None else names):
            if name.startswith(self.version.timestamp):
                parsed = layout.parse_data_file(name)
                if parsed is not None and parsed[:2] == wanted:
                    return os.path.join(self.hash_dir, name)
        raise VersionGone('%s has no data file on %s' % (
            self.version.key, self.version.device))


def listdir(folder: str) -> List[str]:
    """Names in a folder; none if it is gone."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


class Opened(NamedTuple):
    """A data file that is open, and the names of its attributes."""

    path: str
    fd: int
    attributes: Sequence[str]

    @property
    def has_record(self) -> bool:
        """True if it says of other tiers that they have bytes of it."""
        return XATTR_RESIDENCY in self.attributes or \
            XATTR_CAPACITY_ID in self.attributes


def open_data_file(path: str) -> Opened:
    """The data file at ``path``; the caller closes its descriptor.

    :raises FileNotFoundError: there is none any more
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return Opened(path, fd, os.listxattr(fd))
    except BaseException:
        os.close(fd)
        raise


class LiveVersion:
    """A version's open data file with its records.

    Use as a context manager. May block on the SSD.

    :param opened: its data file, if the caller has opened it; this object owns
        it from now on, even if the constructor raises
    :param for_reading: do not raise for a missing HDD; record nothing then
    :param keep_foreign: keep bytes in the residency that only another HDD
        had; the caller MUST NOT read from it if ``says_foreign`` is True
    :raises VersionGone: the file does not exist any more
    :raises TierUnavailable: the HDD that the record names is missing
    :raises DamagedRecord: its residency cannot be trusted; the caller MUST NOT
        drop bytes
    """

    def __init__(self, place: Place,
                 opened: Optional[Opened] = None,
                 for_reading: bool = False,
                 keep_foreign: bool = False) -> None:
        self.place = place
        self._keep_foreign = keep_foreign
        self._for_reading = for_reading
        #: The record speaks of an HDD that is not the one mounted now.
        self.says_foreign = False
        self.path, self.fd, self._names = opened or _opened(place)
        try:
            self.stat = os.fstat(self.fd)
            self.records = _records(self.fd, self._names)
            self.residency = self._judge()
        except BaseException:
            os.close(self.fd)
            raise

    def __enter__(self) -> LiveVersion:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        os.close(self.fd)

    def has(self, attribute: str) -> bool:
        """True if the file had this extended attribute when we opened it.
        """
        return attribute in self._names

    @property
    def is_linked_once(self) -> bool:
        """False while the relinker has given the inode a second name."""
        return os.fstat(self.fd).st_nlink == 1

    def mark(self, residency: Residency, synced: bool = True) -> None:
        """Write ``residency`` into the live inode; durable on return.

        :param synced: False leaves it to the caller to make it durable

        Only for changes of HDD and REMOTE: the caller MUST NOT change
        which bytes the SSD holds. One attribute is replaced as a whole by
        the file system's journal, so a power cut leaves the old record or
        the new one.
        """
        try:
            residency_store.store(self.fd, residency,
                                  self.capacity_id(residency))
            if synced:
                # After this a power cut finds the new record.
                os.fsync(self.fd)
        except OSError as err:
            raise translated(err, 'residency of ' + self.path) from err
        self.records = _records(self.fd, os.listxattr(self.fd))
        self.residency = residency
        self.says_foreign = False

    def capacity_id(self, residency: Residency) -> str:
        """Identity of the HDD that ``residency`` speaks of; '' if none."""
        if not residency.tiers & Tier.HDD:
            return ''
        return self.place.capacity.identity

    def _judge(self) -> Residency:
        """The record without its claims about another HDD."""
        if self.stat.st_size == self.place.content_length and \
                self.records[0] is None:
            return Residency.whole(self.place.content_length)
        record = residency_store.judge(self.fd, self.place.content_length,
                                       self.stat.st_size)
        if not record.tiers & Tier.HDD or not self.place.capacity.configured:
            return record
        try:
            if residency_store.load_capacity_id(self.fd) == \
                    self.place.capacity.identity:
                return record
        except TierUnavailable:
            if not self._for_reading:
                raise
            with contextlib.suppress(ValueError):
                return record.drop(0, record.content_length, Tier.HDD)
            return record
        self.says_foreign = True
        try:
            return record.drop(0, record.content_length, Tier.HDD)
        except ValueError as err:
            if self._keep_foreign:
                return record
            raise DamagedRecord('%s has bytes on an HDD that is not the one '
                                'mounted now' % self.path) from err


def _opened(place: Place) -> Opened:
    path = place.data_file()
    try:
        return open_data_file(path)
    except FileNotFoundError as err:
        raise VersionGone(path) from err


def _records(fd: int, names: Sequence[str]
             ) -> Tuple[Optional[bytes], Optional[bytes]]:
    """Residency record and capacity id, of those that ``names`` lists."""
    record, capacity_id = (
        os.getxattr(fd, name) if name in names else None
        for name in (XATTR_RESIDENCY, XATTR_CAPACITY_ID))
    return record, capacity_id


def switch(live: LiveVersion, residency: Residency,
           fill: Callable[[int], None], label: str) -> None:
    """Replace the live inode by a new one that ``fill`` writes.

    :param residency: of the new inode, record and size
    :param fill: writes every byte that ``residency`` says the SSD holds
        into the descriptor it is given, at the object's offsets
    :param label: names the steps, ``<label>.built`` and so on
    :raises VersionGone: the name is gone or has another inode, or the
        inode has a second name (see ``_refuse_linked``); nothing has
        changed
    :raises TierFull: no room for the new inode; nothing has changed
    """
    _refuse_linked(live.path, os.fstat(live.fd).st_nlink)
    tmp_path = tmp_path_of(live.place)
    try:
        build(live, residency, fill, tmp_path, label)
        _exchange_checked(live, tmp_path)
        steps.reached(label + '.exchanged')
        # From here on a power cut finds the new inode under the name;
        # before it, either one: both are complete.
        sync_dir(os.path.dirname(live.path))
        steps.reached(label + '.settled')
    finally:
        # The old inode (or the unused new one). A power cut that leaves
        # it costs room until the daemon's start cleans the folder.
        remove_if_there(tmp_path)
    steps.reached(label + '.unlinked')


def build(live: LiveVersion, residency: Residency,
          fill: Callable[[int], None], tmp_path: str, label: str) -> None:
    """A new, durable inode of a version at ``tmp_path``; see ``switch``."""
    try:
        fd = os.open(tmp_path, os.O_RDWR | os.O_CREAT | os.O_EXCL
                     | os.O_CLOEXEC, live.stat.st_mode & 0o777)
    except OSError as err:
        raise translated(err, tmp_path) from err
    try:
        steps.reached(label + '.created')
        _copy_attributes(live, fd)
        fill(fd)
        steps.reached(label + '.filled')
        os.ftruncate(fd, residency.file_size)
        residency_store.store(fd, residency, live.capacity_id(residency))
        # Swift judges how long a fragment has waited by this time.
        os.utime(fd, ns=(live.stat.st_atime_ns, live.stat.st_mtime_ns))
        # All that the new inode holds survives a power cut before any
        # name but the one in dss/tmp leads to it.
        os.fsync(fd)
        steps.reached(label + '.built')
    except OSError as err:
        raise translated(err, tmp_path) from err
    finally:
        os.close(fd)


def _copy_attributes(live: LiveVersion, fd: int) -> None:
    for name in os.listxattr(live.fd):
        if name.startswith('user.') and name not in _RECORDS:
            os.setxattr(fd, name, os.getxattr(live.fd, name))
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (live.stat.st_uid, live.stat.st_gid):
        os.fchown(fd, live.stat.st_uid, live.stat.st_gid)


def _exchange_checked(live: LiveVersion, tmp_path: str) -> None:
    """Exchange names, and back again if it was not our inode."""
    exchange(tmp_path, live.path)
    swapped_fd = os.open(tmp_path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        swapped = os.fstat(swapped_fd)
        same = (swapped.st_ino == live.stat.st_ino
                and _records(swapped_fd, os.listxattr(swapped_fd))
                == live.records)
    finally:
        os.close(swapped_fd)
    if same and swapped.st_nlink != 1:
        # The relinker was faster than our look at the link count.
        exchange(tmp_path, live.path)
        _refuse_linked(live.path, swapped.st_nlink)
    if not same:
        # The name held the same version throughout, so readers got right
        # bytes; but a change of the other inode would be lost.
        exchange(tmp_path, live.path)
        raise VersionGone('%s was replaced meanwhile' % live.path)


def _refuse_linked(path: str, links: int) -> None:
    """Leave an inode alone that has a name in two partitions.

    While an operator increases the partition power, each data file has
    two names. An exchange would reach one of them only: the two would
    differ from then on, the relinker would refuse to take the old one
    away, and HDD bytes that one name no longer needs the other still
    would. Marks reach the inode itself, so they go on.
    """
    if links != 1:
        raise VersionGone('%s is being relinked: %d names'
                          % (path, links))


def exchange(path: str, other: str) -> None:
    """Exchange two names of one file system in one instant.

    :raises VersionGone: one of the names is gone; nothing has changed
    """
    done = _libc.renameat2(_AT_FDCWD, os.fsencode(path), _AT_FDCWD,
                           os.fsencode(other), _RENAME_EXCHANGE)
    if done:
        number = ctypes.get_errno()
        if number == errno.ENOENT:
            raise VersionGone('%s is gone' % other)
        raise OSError(number, os.strerror(number), other)


def tmp_path_of(place: Place) -> str:
    """A name for a new inode; the folder is there afterwards."""
    folder = layout.stub_tmp_dir(place.device_path)
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, '%s-%s' % (
        place.version.key.replace('/', '-'), uuid.uuid4().hex))


def clean_tmp(device_path: str, capacity_path: str = '') -> int:
    """Remove the remains of an interrupted operation; how many files.

    Only at the daemon's start, when nothing runs on the device. None is the
    only copy of anything: a new inode that was not exchanged yet, an old one
    that was, or a partial HDD file.
    """
    folders = [layout.stub_tmp_dir(device_path)]
    if capacity_path:
        folders.append(layout.capacity_tmp_dir(capacity_path))
    removed = 0
    for folder in folders:
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            continue
        for name in names:
            removed += remove_if_there(os.path.join(folder, name))
    return removed


def remove_if_there(path: str) -> bool:
    """Unlink ``path``; False if there was nothing."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def translated(err: OSError, what_failed: str) -> Exception:
    """An error of a system call in our own words, errno looked at once."""
    if err.errno in FULL_ERRNOS:
        return TierFull('%s: %s' % (what_failed, os.strerror(err.errno)))
    return err
