"""The SSD of a cache that no kernel uses: reading it, writing it, copies.

A block device is opened exclusively, so that neither a running target nor
a mount can be under it. A file (a copy of the SSD) will do as well.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import stat
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type

from swift_dss.block.ondisk.findings import Chunk, Place
from swift_dss.block.ondisk.superblock import Superblock
from swift_dss.core.errors import BadConfig, DssError, TierUnavailable

_SECTOR = 512
_COPY_BYTES = 1 << 20


class DeviceInUse(DssError):
    """The device is in use by a target, a mount or a process."""

    exit_code = 75


class SsdDevice:
    """A block device or a file; a context manager.

    :raises BadConfig: it is neither, or cannot be opened
    :raises DeviceInUse: it is in use
    """

    def __init__(self, path: str, write: bool = False) -> None:
        self.path = path
        flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC
        try:
            mode = os.stat(path).st_mode
            if stat.S_ISBLK(mode):
                flags |= os.O_EXCL
            elif not stat.S_ISREG(mode):
                raise BadConfig('%s: neither a block device nor a file'
                                % path)
            self._fd = os.open(path, flags)
        except OSError as err:
            if err.errno == errno.EBUSY:
                raise DeviceInUse(
                    '%s: in use; a running cache is looked at with '
                    '"swift-dss block message NAME check"' % path) from err
            raise BadConfig('%s: %s' % (path, err.strerror)) from err
        self.sectors = os.lseek(self._fd, 0, os.SEEK_END) // _SECTOR

    def read(self, sector: int, count: int) -> bytes:
        """:raises TierUnavailable: the device cannot read it"""
        try:
            return os.pread(self._fd, count * _SECTOR, sector * _SECTOR)
        except OSError as err:
            raise TierUnavailable('%s: cannot read sector %d: %s' % (
                self.path, sector, err.strerror)) from err

    def write(self, sector: int, data: bytes) -> None:
        """:raises TierUnavailable: the device does not take it"""
        try:
            at = sector * _SECTOR
            while data:
                done = os.pwrite(self._fd, data, at)
                at, data = at + done, data[done:]
        except OSError as err:
            raise TierUnavailable('%s: cannot write sector %d: %s' % (
                self.path, sector, err.strerror)) from err

    def sync(self) -> None:
        """All that was written survives a power cut after this."""
        os.fsync(self._fd)

    def zero(self, sector: int, count: int) -> None:
        """Write zeroes."""
        block = bytes(_COPY_BYTES)
        left, at = count * _SECTOR, sector
        while left:
            part = min(left, _COPY_BYTES)
            self.write(at, block[:part])
            at, left = at + part // _SECTOR, left - part

    def __enter__(self) -> SsdDevice:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        os.close(self._fd)


def apply(device: SsdDevice, writes: List[Place]) -> None:
    """Carry out a plan; each write is durable before the next."""
    for place in writes:
        device.write(place.sector, place.wanted)
        device.sync()


def save_undo(path: str, device: str, writes: List[Place]) -> None:
    """Save the blocks that a plan will overwrite; durable on return.

    :raises BadConfig: the file is there already, or cannot be made
    """
    record = {'device': device, 'blocks': [
        {'sector': place.sector,
         'bytes': base64.b64encode(place.found).decode('ascii')}
        for place in writes]}
    _write_new(path, json.dumps(record, indent=1).encode())


def undo(device: SsdDevice, path: str) -> int:
    """Write back what :func:`save_undo` kept; returns how many blocks."""
    try:
        with open(path, encoding='utf-8') as source:
            blocks = [(int(block['sector']), base64.b64decode(
                block['bytes'], validate=True))
                for block in json.load(source)['blocks']]
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise BadConfig('%s: not an undo file: %s' % (path, err)) from err
    for sector, data in reversed(blocks):
        device.write(sector, data)
    device.sync()
    return len(blocks)


def salvage(device: SsdDevice, superblock: Superblock, chunks: List[Chunk],
            folder: str) -> List[str]:
    """Keep the bytes of chunks as files of a folder, durable on return.

    ``index.json`` says for each where it belongs on the origin and which
    of its grains are valid and dirty.

    :returns: the files
    """
    os.makedirs(folder, exist_ok=True)
    index: List[Dict[str, Any]] = []
    paths = []
    for slot, record in chunks:
        name = 'chunk-%s-slot-%d' % (record.oblock, slot)
        assert record.oblock is not None
        index.append({
            'file': name, 'slot': slot, 'class': record.class_id,
            'origin_sector': record.oblock * superblock.chunk_sectors,
            'sectors': superblock.chunk_sectors,
            'grain_sectors': superblock.grain_sectors,
            'valid': grain_list(record.valid),
            'dirty': grain_list(record.dirty)})
        paths.append(os.path.join(folder, name))
        _write_new(paths[-1], device.read(
            superblock.slot_sector(slot), superblock.chunk_sectors))
    paths.append(os.path.join(folder, 'index.json'))
    _write_new(paths[-1], json.dumps(index, indent=1).encode())
    return paths


def grain_list(bits: int) -> List[int]:
    """The numbers of the bits that are set."""
    return [bit for bit in range(bits.bit_length()) if bits >> bit & 1]


def copy_to(device: SsdDevice, path: str, writes: List[Place],
            progress: Callable[[int, int], None] = lambda done, of: None
            ) -> None:
    """A copy of the whole SSD as a sparse file, with a plan applied."""
    total = device.sectors * _SECTOR
    fd = _create(path)
    try:
        os.ftruncate(fd, total)
        for at in range(0, total, _COPY_BYTES):
            data = device.read(at // _SECTOR,
                               min(_COPY_BYTES, total - at) // _SECTOR)
            if any(data):
                os.pwrite(fd, data, at)
            progress(at, total)
        for place in writes:
            os.pwrite(fd, place.wanted, place.sector * _SECTOR)
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_new(path: str, data: bytes) -> None:
    fd = _create(path)
    try:
        while data:
            data = data[os.write(fd, data):]
        os.fsync(fd)
    finally:
        os.close(fd)
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        # The name, too, survives a power cut.
        os.fsync(folder)
    finally:
        os.close(folder)


def _create(path: str) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL
                       | os.O_CLOEXEC, 0o600)
    except OSError as err:
        raise BadConfig('%s: %s' % (path, err.strerror)) from err
