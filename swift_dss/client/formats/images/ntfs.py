"""NTFS: what a mount reads, and what shows directories.

Needed: the boot sectors, the whole master file table (MFT) and its mirror, the
other system files but the log, of which the first 64 KiB are, and the indexes
of directories. The MFT has 1 KiB a file, so a disk of very small files has
more than 2 % hot. Parts of the MFT that an attribute list names (it is in
hundreds of pieces then) stay cold.
"""

from __future__ import annotations

import struct
from typing import Iterator, List, NamedTuple, Tuple

from swift_dss.client.formats.contract import BadFile, Hot, Reader
from swift_dss.client.formats.images.scattered import Scattered

_MAGIC = b'NTFS    '
_DATA, _INDEX, _BITMAP, _END = 0x80, 0xa0, 0xb0, 0xffffffff
_IN_USE, _DIRECTORY = 1, 2
_LOG, _BAD_CLUSTERS, _SYSTEM_FILES = 2, 8, 12
_LOG_BYTES = 64 << 10
_WINDOW_BYTES = 1 << 20
_MAX_ATTRIBUTES = 256


class _Volume(NamedTuple):
    """The numbers of a boot sector."""

    cluster: int
    record: int
    table: int


def fits(reader: Reader) -> bool:
    """May this be such a file system?"""
    return reader.read(3, 8) == _MAGIC


def metadata(reader: Reader) -> Iterator[Hot]:
    """The ranges of its metadata.

    :raises BadFile: it contradicts itself
    """
    volume = _boot(reader)
    yield Hot(0, 16 * 512)
    yield Hot(reader.size - 512, 512)
    first = reader.exact(volume.table * volume.cluster, volume.record,
                         'NTFS MFT')
    runs = [run for kind, run in _runs(
        reader, volume, first, volume.table * volume.cluster)
        if kind == _DATA]
    if not runs:
        raise BadFile('NTFS MFT', 'does not name its own place',
                      volume.table * volume.cluster)
    scattered = Scattered()
    number = 0
    for offset, length in runs:
        yield Hot(offset, length)
        for at in range(offset, offset + length, _WINDOW_BYTES):
            raw = reader.exact(at, min(_WINDOW_BYTES, offset + length - at),
                               'NTFS MFT')
            for place in range(0, len(raw) - volume.record + 1,
                               volume.record):
                _look(reader, volume, number, (
                    raw[place:place + volume.record], at + place), scattered)
                number += 1
    yield from scattered.hot()


def _boot(reader: Reader) -> _Volume:
    raw = reader.exact(0, 512, 'NTFS boot sector')
    sector, per_cluster = struct.unpack_from('<HB', raw, 11)
    table, = struct.unpack_from('<Q', raw, 48)
    size, = struct.unpack_from('<b', raw, 64)
    # Large clusters and small records are powers of two, negated.
    if per_cluster > 0x80:
        per_cluster = 1 << min(12, 256 - per_cluster)
    cluster = sector * per_cluster
    record = 1 << min(16, -size) if size < 0 else size * cluster
    if sector not in (512, 1024, 2048, 4096) or not cluster \
            or cluster > 2 << 20 or not 256 <= record <= 65536:
        raise BadFile('NTFS boot sector', 'has clusters of %d bytes and '
                      'records of %d' % (cluster, record), 11)
    return _Volume(cluster, record, table)


def _look(reader: Reader, volume: _Volume, number: int,
          record: Tuple[bytes, int], scattered: Scattered) -> None:
    """Note the blocks of metadata of one file."""
    raw, at = record
    if raw[:4] != b'FILE':
        return
    flags, = struct.unpack_from('<H', raw, 22)
    is_system = number < _SYSTEM_FILES and number != _BAD_CLUSTERS
    if not flags & _IN_USE or not (flags & _DIRECTORY or is_system):
        return
    for kind, (offset, length) in _runs(reader, volume, raw, at):
        if number == _LOG:
            scattered.add(offset, min(length, _LOG_BYTES))
            return
        # The MFT itself is hot already.
        if kind in (_INDEX, _BITMAP) or (is_system and number
                                         and kind == _DATA):
            scattered.add(offset, length)


def _runs(reader: Reader, volume: _Volume, raw: bytes,
          at: int) -> Iterator[Tuple[int, Tuple[int, int]]]:
    """(type of the attribute, (offset, bytes)) of what is not in a record."""
    raw = _mended(raw, at)
    place, = struct.unpack_from('<H', raw, 20)
    for _ in range(_MAX_ATTRIBUTES):
        if place + 16 > len(raw):
            break
        kind, length = struct.unpack_from('<II', raw, place)
        if kind == _END:
            return
        if length < 16 or place + length > len(raw):
            break
        attribute = raw[place:place + length]
        if attribute[8] and length >= 64:
            for start, count in _decoded(attribute, at + place):
                reader.check(start * volume.cluster, count * volume.cluster,
                             'NTFS run')
                yield kind, (start * volume.cluster, count * volume.cluster)
        place += length
    raise BadFile('NTFS record', 'has a damaged attribute', at + place)


def _mended(raw: bytes, at: int) -> bytes:
    """A record with the last two bytes of each sector put back."""
    if raw[:4] != b'FILE':
        raise BadFile('NTFS record', 'does not begin with FILE', at)
    where, count = struct.unpack_from('<HH', raw, 4)
    if where + 2 * count > len(raw) or (count - 1) * 512 > len(raw):
        raise BadFile('NTFS record', 'has a damaged update sequence', at)
    made = bytearray(raw)
    for number in range(1, count):
        end = number * 512
        made[end - 2:end] = raw[where + 2 * number:where + 2 * number + 2]
    return bytes(made)


def _decoded(attribute: bytes, at: int) -> List[Tuple[int, int]]:
    """(first cluster, clusters) of each run that is not a hole."""
    place, = struct.unpack_from('<H', attribute, 32)
    made: List[Tuple[int, int]] = []
    cluster = 0
    while place < len(attribute) and attribute[place]:
        lengths, starts = attribute[place] & 15, attribute[place] >> 4
        end = place + 1 + lengths + starts
        if end > len(attribute) or lengths > 8 or starts > 8:
            raise BadFile('NTFS run', 'is damaged', at + place)
        middle = place + 1 + lengths
        count = int.from_bytes(attribute[place + 1:middle], 'little')
        if starts:
            cluster += int.from_bytes(attribute[middle:end], 'little',
                                      signed=True)
            made.append((cluster, count))
        place = end
    return made
