"""Raw images of disks: partition tables, and the file systems behind them.

Needed: the partition table, and what :mod:`ext4`, :mod:`xfs` and :mod:`ntfs`
say of each file system that they know. Swap, LVM and others stay cold.
"""

from __future__ import annotations

from typing import Iterator, List

from swift_dss.client.formats.contract import (
    BadFile, Format, Hot, Reader, Wish)
from swift_dss.client.formats.images import ext4, ntfs, partitions, xfs
from swift_dss.client.formats.readers import Part

_SYSTEMS = (xfs, ntfs, ext4)


def _fits(reader: Reader) -> bool:
    return any(system.fits(reader) for system in _SYSTEMS) \
        or partitions.fits(reader)


def metadata(reader: Reader) -> Iterator[Hot]:
    """The ranges of a disk's metadata, in its own offsets.

    :raises BadFile: a table or a file system contradicts itself
    """
    for system in _SYSTEMS:
        if system.fits(reader):
            yield from system.metadata(reader)
            return
    places: List[partitions.Place] = []
    yield from partitions.table(reader, places)
    for offset, size in places:
        part = Part(reader, offset, size)
        for system in _SYSTEMS:
            if system.fits(part):
                for hot in system.metadata(part):
                    yield _moved(hot, offset, size)
                break


def _moved(hot: Hot, offset: int, size: int) -> Hot:
    start = max(0, hot.offset)
    length = min(size, hot.offset + hot.length) - start
    return Hot(offset + start, max(0, length), hot.is_needed)


def _hot(reader: Reader, _: Wish) -> Iterator[Hot]:
    if not _fits(reader):
        raise BadFile('disk image', 'has neither partitions nor a file '
                      'system that is known', 0)
    return metadata(reader)


FORMAT = Format('disk', _fits, _hot)
