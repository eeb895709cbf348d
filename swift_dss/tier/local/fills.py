"""Bytes that come back from S3, on their way to a local tier."""

from __future__ import annotations

import os
from swift_dss.core.errors import TierFull
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import LocalFill
from swift_dss.io import moves
from swift_dss.io.sums.copying import write
from swift_dss.io.switch import translated
from swift_dss.tier.local.mover import Mover
from swift_dss.wire import layout


class Fill(LocalFill):
    """See :class:`LocalFill`.

    The bytes gather in a file without a name: uncommitted bytes always go with
    their descriptor.
    """

    def __init__(self, mover: Mover, version: VersionId, partition: str,
                 on_hdd: bool) -> None:
        self._mover = mover
        self._version = version
        self._partition = partition
        self._on_hdd = on_hdd
        self._start = self._end = -1
        device = mover.devices.get(version.device)
        if on_hdd:
            self._fd = device.capacity.create()
        else:
            folder = layout.stub_tmp_dir(device.path)
            os.makedirs(folder, exist_ok=True)
            self._fd = os.open(folder, os.O_TMPFILE | os.O_RDWR
                               | os.O_CLOEXEC, 0o600)

    def write(self, offset: int, data: bytes) -> None:
        """See :meth:`LocalFill.write`."""
        if self._start < 0:
            self._start = self._end = offset
        if offset != self._end:
            raise ValueError('byte %d after byte %d' % (offset, self._end))
        try:
            write(self._mover.io, self._fd, data, offset, 0)
        except OSError as err:
            failure = translated(err, 'fill')
            if isinstance(failure, TierFull):
                raise failure from err
            raise TierFull('fill: %s' % err) from err
        self._end += len(data)

    def commit(self) -> None:
        """See :meth:`LocalFill.commit`."""
        try:
            if self._end <= self._start:
                return
            mover, version = self._mover, self._version
            length = self._end - self._start
            with mover.locks.hold(version):
                place, _, class_map = mover.look_for_move(
                    version, self._partition, ())
                if self._on_hdd:
                    moves.fill_capacity(place, self._fd, self._start,
                                        length, mover.io)
                else:
                    moves.fill_ssd(place, self._fd, self._start, length,
                                   class_map, mover.io)
                mover.retrack(version, self._partition)
        finally:
            self.abort()

    def abort(self) -> None:
        """See :meth:`LocalFill.abort`."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
