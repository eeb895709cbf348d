"""Read the local bytes of a version."""

from __future__ import annotations

import errno
import os
from typing import List, Optional, Tuple

from swift_dss.core.errors import TierUnavailable, VersionGone
from swift_dss.core.residency import Extent, Tier
from swift_dss.gateway.ports import LocalReader
from swift_dss.io.switch import LiveVersion, Opened


class _DiskErrors:
    """I/O errors of a disk mean that its tier is not available."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, OSError) and error.errno in (
                errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE,
                errno.EROFS):
            raise TierUnavailable(str(error)) from error


DISK_ERRORS = _DiskErrors()


class Reader(LocalReader):
    """The local bytes of a version as they were when it was opened."""

    def __init__(self, live: LiveVersion) -> None:
        self.live = live
        self._capacity_fd: Optional[int] = None
        self._closed = False
        self.residency = live.residency
        try:
            if any(extent.tiers & Tier.HDD and not extent.tiers & Tier.SSD
                   for extent in live.residency.extents):
                if live.says_foreign:
                    raise TierUnavailable(
                        'the record of %s speaks of another HDD than the '
                        'one mounted now' % live.path)
                self._capacity_fd = live.place.capacity.open_read(
                    live.place.version)
        except (VersionGone, TierUnavailable) as err:
            self._missing: Exception = err
        except BaseException:
            self.close()
            raise

    def read(self, offset: int, length: int) -> bytes:
        """See :meth:`LocalReader.read`."""
        pieces = []
        for extent in self.residency.split(offset, length):
            fd = self._file_of(extent)
            with DISK_ERRORS:
                piece = os.pread(fd, extent.length, extent.offset)
            if len(piece) != extent.length:
                raise TierUnavailable('a local file ends at byte %d'
                                      % (extent.offset + len(piece)))
            pieces.append(piece)
        return b''.join(pieces)

    def files(self) -> List[Tuple[int, int, int]]:
        """Where all bytes are: offset, bytes, number of the open file, which
        has them at the same offset.

        :raises VersionGone: some are only remote
        :raises TierUnavailable: some are on an HDD that is not there
        """
        return [(extent.offset, extent.length, self._file_of(extent))
                for extent in self.residency.split(
                    0, self.residency.content_length)]

    def _file_of(self, extent: Extent) -> int:
        if extent.tiers & Tier.SSD:
            return self.live.fd
        if not extent.tiers & Tier.HDD:
            raise VersionGone('bytes %d-%d are only remote'
                              % (extent.offset, extent.end))
        if self._capacity_fd is None:
            raise self._missing
        return self._capacity_fd

    def close(self) -> None:
        """See :meth:`LocalReader.close`."""
        if not self._closed:
            self._closed = True
            os.close(self.live.fd)
            if self._capacity_fd is not None:
                os.close(self._capacity_fd)


def is_whole(opened: Opened, content_length: int) -> bool:
    """As :func:`read_if_whole`, without reading."""
    if opened.has_record:
        return False
    try:
        size = os.fstat(opened.fd).st_size
    except BaseException:
        os.close(opened.fd)
        raise
    if size != content_length:
        return False
    os.close(opened.fd)
    return True


def read_if_whole(opened: Opened, content_length: int) -> Optional[bytes]:
    """All bytes of a file that says nothing of other tiers; None if a
    longer look has to find out where they are. Closes it in the first case,
    and if this raises."""
    if opened.has_record:
        return None
    try:
        # One more than there may be: then the size is known to be right.
        data = os.pread(opened.fd, content_length + 1, 0)
    except BaseException:
        os.close(opened.fd)
        raise
    if len(data) != content_length:
        return None
    os.close(opened.fd)
    return data


def read_lonely(folder: str, name: str, length: int) -> Optional[bytes]:
    """All bytes of the only file in a folder; None if it is not that, or
    has another length, or cannot be read."""
    try:
        if os.listdir(folder) != [name]:
            return None
        fd = os.open('%s/%s' % (folder, name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            # One more than there may be: then the size is known to be right.
            data = os.pread(fd, length + 1, 0)
        finally:
            os.close(fd)
    except OSError:
        return None  # the full read handles the cause
    return data if len(data) == length else None
