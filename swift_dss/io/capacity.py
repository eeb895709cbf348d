"""The capacity tier of one device: its folder on an HDD file system.

Layout and meaning are in ``wire.layout``. The marker file proves that the
tier is mounted; where it is missing every call raises ``TierUnavailable``,
so that an unmounted HDD is never taken for an empty one. The marker holds
an identity that is random for every tier ever made: data files carry it
beside their residency record, so a record that strayed here from another node,
or that names a replaced disk, is not trusted.

All calls block on the HDD: object servers make them in its pool only.
"""

from __future__ import annotations

import errno
import json
import os
import time
import uuid
from typing import Dict, NamedTuple, Tuple

from swift_dss.core.errors import (
    FULL_ERRNOS, TierFull, TierUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.io.place.groups import Placement
from swift_dss.wire import layout

_PUBLISH_TRIES = 16
#: More than a tick of any file system's clock: ext3 counts seconds.
_TICK_NS = 2 * 10 ** 9
#: Folders from a capacity file up to ``data``, itself and its parent.
_DEPTH = 5


class _Seen(NamedTuple):
    stamp: Tuple[int, int, int]
    device: str
    identity: str


class Capacity:
    """The capacity folder of one device.

    Cheap to make and safe to share between threads: it holds no file open
    and remembers only which marker it has read.

    :param path: the folder (``wire.nodeconf.capacity_path``); '' if the
        device has no HDD tier, which reads as unavailable for ever
    :param device: Swift's device name
    """

    def __init__(self, path: str, device: str) -> None:
        self.path = path
        self.device = device
        self._seen: Dict[str, _Seen] = {}
        self._placement = Placement(path, 0o600)

    @property
    def configured(self) -> bool:
        """True if this device has an HDD tier at all."""
        return bool(self.path)

    def initialise(self) -> str:
        """Make the folder a capacity tier; idempotent.

        For installers and tests. Servers never call it: a tier that they
        cannot find is unmounted, not new.

        :returns: its identity
        """
        os.makedirs(layout.capacity_tmp_dir(self.path), exist_ok=True)
        marker = layout.capacity_marker(self.path)
        if not os.path.exists(marker):
            fresh = '%s.%s' % (marker, uuid.uuid4().hex)
            with open(fresh, 'w', encoding='utf-8') as target:
                json.dump({'device': self.device,
                           'identity': uuid.uuid4().hex}, target)
                target.flush()
                os.fsync(target.fileno())
            # From here on the tier exists: the marker is whole or absent.
            os.rename(fresh, marker)
            sync_dir(self.path)
        return self.check()

    def check(self) -> str:
        """The tier's identity.

        :raises TierUnavailable: not mounted, not readable, or another
            device's folder
        """
        if not self.path:
            raise TierUnavailable('device %s has no capacity tier'
                                  % self.device)
        marker = layout.capacity_marker(self.path)
        try:
            status = os.stat(marker)
            stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
            seen = self._seen.get(marker)
            if seen is None or seen.stamp != stamp:
                with open(marker, encoding='utf-8') as source:
                    said = json.load(source)
                seen = _Seen(stamp, said['device'], said['identity'])
                # Within a tick of the file system's clock it may be written
                # again and keep its stamp: read a young marker each time.
                if time.time_ns() - status.st_ctime_ns > _TICK_NS:
                    self._seen[marker] = seen
        except (OSError, ValueError, KeyError, TypeError) as err:
            raise TierUnavailable('capacity tier of %s is not there: %s'
                                  % (self.device, err)) from err
        if seen.device != self.device:
            raise TierUnavailable(
                'capacity folder %s belongs to device %s, not %s'
                % (self.path, seen.device, self.device))
        return seen.identity

    @property
    def identity(self) -> str:
        """Same as :meth:`check`."""
        return self.check()

    def file_path(self, version: VersionId) -> str:
        """The capacity file of a version, whether or not it exists."""
        return layout.capacity_file(self.path, version)

    def open_read(self, version: VersionId) -> int:
        """A descriptor to read the capacity file; the caller closes it.

        :raises TierUnavailable: the tier is not mounted
        :raises VersionGone: it is mounted and has no such file
        """
        self.check()
        return self._open(version, os.O_RDONLY)

    def open_update(self, version: VersionId) -> int:
        """A descriptor to write bytes that no record calls valid yet.

        :raises TierUnavailable: the tier is not mounted
        :raises VersionGone: it is mounted and has no such file
        """
        self.check()
        return self._open(version, os.O_RDWR)

    def create(self) -> int:
        """A descriptor of a new file without a name, to be published.

        It begins beside the file before it (:mod:`swift_dss.io.place.groups`).
        A crash before :meth:`publish` leaves nothing behind.

        :raises TierUnavailable: the tier is not mounted
        :raises TierFull: no inode left
        """
        self.check()
        folder = layout.capacity_tmp_dir(self.path)
        try:
            placed = self._placement.open()
            if placed is not None:
                return placed
            try:
                return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
            except FileNotFoundError:
                os.makedirs(folder, exist_ok=True)
                return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError as err:
            raise self._translate(err) from err

    def publish(self, fd: int, version: VersionId,
                replace: bool = True) -> None:
        """Give a file from :meth:`create` its name, durably.

        The caller MUST have fsynced ``fd``. Replaces a file of that name,
        or raises FileExistsError if ``replace`` is False.
        After it returns the name and the bytes survive a power cut.
        """
        self.check()
        self._placement.landed(fd)
        target = self.file_path(version)
        parent = os.path.dirname(target)
        for attempt in range(_PUBLISH_TRIES):
            try:
                os.makedirs(parent, exist_ok=True)
                self._link(fd, target, replace)
                break
            except FileExistsError:
                raise
            except FileNotFoundError:
                # remove() of another version took the empty folder away.
                if attempt == _PUBLISH_TRIES - 1:
                    raise
            except OSError as err:
                raise self._translate(err) from err
        # The name is in its folder, but only in memory. Sync the folder and
        # all above it: another thread may have made them and not synced them
        # yet. A clean folder costs no disk I/O.
        for _ in range(_DEPTH):
            sync_dir(parent)
            parent = os.path.dirname(parent)

    def remove(self, version: VersionId) -> bool:
        """Take a capacity file away, and its folders if empty; idempotent.

        The caller MUST have made durable that no record needs it.

        :returns: True if there was one
        :raises TierUnavailable: the tier is not mounted
        """
        self.check()
        path = self.file_path(version)
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        folder = os.path.dirname(path)
        for _ in range(2):
            try:
                os.rmdir(folder)
            except OSError:
                break  # not empty, or another thread was faster
            folder = os.path.dirname(folder)
        return True

    def _open(self, version: VersionId, flags: int) -> int:
        try:
            return os.open(self.file_path(version), flags | os.O_CLOEXEC)
        except FileNotFoundError as err:
            raise VersionGone('no capacity file of %s' % version.key) \
                from err
        except OSError as err:
            raise self._translate(err) from err

    def _link(self, fd: int, target: str, replace: bool) -> None:
        source = '/proc/self/fd/%d' % fd
        try:
            # A folder descriptor (not used: the path is absolute) is what
            # makes Python call linkat() and follow the link.
            os.link(source, target, src_dir_fd=fd)
        except FileExistsError:
            if not replace:
                raise
            # A repeated PUT of one version: replace it in one step.
            name = os.path.join(layout.capacity_tmp_dir(self.path),
                                uuid.uuid4().hex)
            os.link(source, name, src_dir_fd=fd)
            os.rename(name, target)

    def _translate(self, err: OSError) -> Exception:
        if err.errno in FULL_ERRNOS:
            return TierFull('capacity tier of %s is full' % self.device)
        if err.errno in (errno.EIO, errno.ENODEV, errno.ENXIO,
                         errno.ESTALE, errno.EROFS, errno.ENOENT):
            return TierUnavailable('capacity tier of %s: %s'
                                   % (self.device, err))
        return err


def sync_dir(path: str) -> None:
    """fsync a folder: the names in it survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
