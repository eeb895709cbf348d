"""List a device's quarantine, and bring versions back from it.

Swift moves the whole folder of an object to
``<device>/quarantined/objects[-N]/<hash>``, or ``<hash>-<hex>`` if that is
taken; a whole suffix goes to ``.../<suffix>`` with such folders in it. A stub
that stock Swift met lies there with its residency record, and its bytes
where they were. So nothing that a file there names may be removed, until an
operator has removed the file.

All calls block on the SSD.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import re
import threading
import time
import uuid
from array import array
from bisect import bisect_left
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from swift_dss.core.errors import TierUnavailable, VersionGone
from swift_dss.core.residency import Residency
from swift_dss.core.version import VersionId
from swift_dss.io import steps
from swift_dss.io.capacity import sync_dir
from swift_dss.io.switch import (
    LiveVersion, Place, build, listdir, remove_if_there, tmp_path_of)
from swift_dss.wire import layout

_HASH_FOLDER = re.compile(r'(?P<hash>[0-9a-f]{32})(?:-[0-9a-f]{32})?\Z')
_PLAIN_FOLDER = re.compile(r'[0-9a-f]{32}\Z')
_SUFFIX_FOLDER = re.compile(r'[0-9a-f]{3}(?:-[0-9a-f]{32})?\Z')
#: A folder that changed so short a time before it was listed may have
#: changed after it within the same tick of the file system's clock.
_TICK_SECONDS = 2.0
#: Swift holds the lock of a partition while it hashes it.
_LOCK_SECONDS = 10.0
_LOCK_POLL_SECONDS = 0.05


class Held(NamedTuple):
    """A data file in quarantine."""

    version: VersionId
    path: str

    @property
    def folder(self) -> str:
        """The quarantined folder of the object."""
        return os.path.dirname(self.path)

    @property
    def since(self) -> float:
        """When it was quarantined: a rename changes this time of a folder.

        :raises VersionGone: it is not there any more
        """
        try:
            return os.stat(self.folder).st_ctime
        except FileNotFoundError as err:
            raise VersionGone(self.folder) from err


class _Listed(NamedTuple):
    """A listing of a folder: the first half of each hash, 8 bytes each.

    :param others: paths of folders that are not named by their hash, or are an
        object's second one
    :param until: monotonic; a listing so soon after a change holds until then,
        and only for callers that may miss a change within the same tick
    """

    stamp: Tuple[int, int]
    hashes: array[int]
    others: Dict[int, List[str]]
    until: float


class Quarantine:
    """The quarantine of one device. Safe to use from any thread.

    :param device_path: mount point of Swift's device
    """

    def __init__(self, device_path: str, device: str) -> None:
        self._device_path = device_path
        self._device = device
        self._guard = threading.Lock()
        self._listed: Dict[int, _Listed] = {}

    def files(self, policy: int) -> Iterator[Held]:
        """Every data file of a policy in quarantine, one folder at a time.
        """
        top = self._top(policy)
        for name in sorted(listdir(top)):
            for folder in _hash_folders(top, name):
                yield from self._files_in(folder, policy)

    def files_of(self, version: VersionId) -> List[Held]:
        """The data files of one version: it may have been quarantined
        more than once."""
        return [held for held in self._files_of_object(
            version.policy, version.object_hash, True)
            if held.version == version]

    def newest(self, policy: int, object_hash: str) -> str:
        """Timestamp of the newest data file of an object in quarantine; ''
        if there is none.

        Costs one stat where nothing was quarantined since the last call.
        Of two that came within one tick of the file system's clock it may
        know one for two seconds.
        """
        return max((held.version.timestamp for held in self._files_of_object(
            policy, object_hash, False)), default='')

    def holds(self, version: VersionId) -> bool:
        """True if a data file of the version is in quarantine. Costs one
        stat where nothing was quarantined since the last call."""
        return bool(self.files_of(version))

    def _files_of_object(self, policy: int, object_hash: str,
                         exactly: bool) -> Iterator[Held]:
        for folder in self._folders_of(policy, object_hash, exactly):
            yield from self._files_in(folder, policy)

    def _top(self, policy: int) -> str:
        return os.path.join(self._device_path, 'quarantined',
                            layout.data_dir_name(policy))

    def _files_in(self, folder: str, policy: int) -> Iterator[Held]:
        match = _HASH_FOLDER.match(os.path.basename(folder))
        assert match is not None
        for name in sorted(listdir(folder)):
            parsed = layout.parse_data_file(name)
            if parsed is not None:
                yield Held(VersionId(
                    self._device, policy, match.group('hash'), parsed[0],
                    parsed[1]), os.path.join(folder, name))

    def _folders_of(self, policy: int, object_hash: str,
                    exactly: bool) -> List[str]:
        """Folders of an object in quarantine, without a listing of all of
        it unless it has changed."""
        top = self._top(policy)
        try:
            status = os.stat(top)
        except FileNotFoundError:
            return []
        stamp = (status.st_ino, status.st_mtime_ns)
        with self._guard:
            listed = self._listed.get(policy)
            if listed is None or listed.stamp != stamp or listed.until < (
                    math.inf if exactly else time.monotonic()):
                listed = self._listed[policy] = _list(top, stamp)
        wanted = _short(object_hash)
        at = bisect_left(listed.hashes, wanted)
        if at == len(listed.hashes) or listed.hashes[at] != wanted:
            return []
        # Others may have the same first half.
        return [os.path.join(top, object_hash)] + [
            path for path in listed.others.get(wanted, ())
            if os.path.basename(path).startswith(object_hash)]


def _list(top: str, stamp: Tuple[int, int]) -> _Listed:
    until = math.inf if time.time() - stamp[1] / 1e9 > _TICK_SECONDS \
        else time.monotonic() + _TICK_SECONDS
    hashes: List[int] = []
    others: Dict[int, List[str]] = {}
    for name in listdir(top):
        if _PLAIN_FOLDER.match(name):
            hashes.append(_short(name))
            continue
        for folder in _hash_folders(top, name):
            short = _short(os.path.basename(folder))
            hashes.append(short)
            others.setdefault(short, []).append(folder)
    return _Listed(stamp, array('Q', sorted(hashes)), others, until)


def _short(object_hash: str) -> int:
    return int(object_hash[:16], 16)


def _hash_folders(top: str, name: str) -> List[str]:
    """The folders of objects that a name in a quarantine stands for."""
    path = os.path.join(top, name)
    if _HASH_FOLDER.match(name):
        return [path]
    if not _SUFFIX_FOLDER.match(name):
        return []
    return [os.path.join(path, entry) for entry in sorted(listdir(path))
            if _HASH_FOLDER.match(entry)]


def put_aside(place: Place) -> None:
    """Move the data file of a version into quarantine, durably. Other files of
    its folder stay, because POSTs concern other versions too. Replication then
    brings the version again.

    The caller MUST hold the version's lock, and MUST know that another device
    has the version.

    :raises VersionGone: it is not there any more
    :raises TierUnavailable: the partition is locked
    """
    path = place.data_file()
    top = os.path.join(place.device_path, 'quarantined',
                       layout.data_dir_name(place.version.policy))
    folder = os.path.join(top, place.version.object_hash)
    os.makedirs(top, exist_ok=True)
    try:
        os.mkdir(folder)
    except FileExistsError:
        folder += '-' + uuid.uuid4().hex
        os.mkdir(folder)
    # Before as well: if it ends here, the file's absence is seen.
    invalidate(place)
    try:
        os.rename(path, os.path.join(folder, os.path.basename(path)))
    except FileNotFoundError as err:
        os.rmdir(folder)
        raise VersionGone(path) from err
    for changed in (folder, top, os.path.dirname(top), place.hash_dir):
        sync_dir(changed)
    steps.reached('aside.moved')
    invalidate(place)


def put_back(held: Held, place: Place, source: Optional[str] = None) -> None:
    """Give a quarantined version its name in Swift's folder again, durably,
    and take it out of quarantine. Idempotent: the next call completes a move
    that a power cut interrupted.

    The caller MUST hold the version's lock, MUST have seen that no newer
    version stands there, and MUST have proven the bytes.

    :param source: an inode on the same file system to stand there in its
        stead; None takes the quarantined one
    :raises TierUnavailable: the partition is locked
    """
    os.makedirs(place.hash_dir, exist_ok=True)
    _link(source or held.path, os.path.join(
        place.hash_dir, os.path.basename(held.path)))
    metas = [name for name in listdir(held.folder)
             if name.endswith('.meta') and name > held.version.timestamp]
    for name in metas:
        _link(os.path.join(held.folder, name),
              os.path.join(place.hash_dir, name))
    folder = place.hash_dir
    for _ in range(3):
        # The names, and the folders that were made for them, survive a
        # power cut from here on.
        sync_dir(folder)
        folder = os.path.dirname(folder)
    steps.reached('heal.linked')
    invalidate(place)
    steps.reached('heal.invalidated')
    _leave(held, metas)


def build_without_ssd(live: LiveVersion, residency: Residency) -> str:
    """Path of a new stub in ``dss/tmp`` that has a version's attributes
    and none of its bytes; durable. The caller gives it its name.

    :param residency: has no byte on the SSD
    :raises TierFull: no room for the new inode
    """
    path = tmp_path_of(live.place)
    try:
        build(live, residency, lambda fd: None, path, 'heal')
    except BaseException:
        remove_if_there(path)
        raise
    return path


def _link(source: str, target: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.link(source, target)


def _leave(held: Held, metas: List[str]) -> None:
    """Take a version, and the files that belong to it alone, out of
    quarantine.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(held.path)
    if any(name.endswith('.data') for name in listdir(held.folder)):
        return  # the other versions need the metadata
    for name in metas:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(held.folder, name))
    with contextlib.suppress(OSError):
        os.rmdir(held.folder)
        sync_dir(os.path.dirname(held.folder))


def invalidate(place: Place) -> None:
    """Have Swift rehash the suffix of an object, as its own servers do after a
    change; without that, replication would not see the change.

    :raises TierUnavailable: another process holds the partition's lock
    """
    suffix_dir = os.path.dirname(place.hash_dir)
    partition_dir, suffix = os.path.split(suffix_dir)
    lock_fd = os.open(os.path.join(partition_dir, '.lock'),
                      os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _wait_for(lock_fd, partition_dir)
        with open(os.path.join(partition_dir, 'hashes.invalid'),
                  'ab') as invalid:
            invalid.write(suffix.encode('ascii') + b'\n')
    finally:
        os.close(lock_fd)


def _wait_for(lock_fd: int, path: str) -> None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as err:
            if time.monotonic() > deadline:
                raise TierUnavailable('%s is locked; try again'
                                      % path) from err
            time.sleep(_LOCK_POLL_SECONDS)
