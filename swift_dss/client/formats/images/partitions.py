"""Partition tables: MBR with logical partitions, and GPT.

Sectors have 512 bytes: images of disks with larger ones are rare, and their
tables are not read.
"""

from __future__ import annotations

import struct
from typing import Iterator, List, Tuple

from swift_dss.client.formats.contract import BadFile, Hot, Reader

_SECTOR = 512
_SIGNATURE = b'\x55\xaa'
_MBR_ENTRY = struct.Struct('<B3sB3sII')
_GPT_HEADER = struct.Struct('<8s64xQII')
_EXTENDED = frozenset((0x05, 0x0f, 0x85))
_PROTECTIVE = 0xee
_MAX_LOGICAL = 256
_MAX_ENTRIES = 1024
#: (offset, bytes).
Place = Tuple[int, int]


def fits(reader: Reader) -> bool:
    """May this be a disk with partitions? A boot sector of NTFS or FAT has
    the same signature, so ask their file systems first."""
    return reader.read(510, 2) == _SIGNATURE \
        and any(_entries(reader.read(0, _SECTOR)))


def table(reader: Reader, places: List[Place]) -> Iterator[Hot]:
    """The ranges of the tables.

    :param places: is told of each partition that lies in the disk
    :raises BadFile: a table contradicts itself
    """
    raw = reader.exact(0, _SECTOR, 'partition table')
    entries = list(_entries(raw))
    # Tools read the first MiB, where no partition begins.
    yield Hot(0, min(start for _, start, _ in entries) * _SECTOR
              if entries else _SECTOR)
    if any(kind == _PROTECTIVE for kind, _, _ in entries):
        yield from _gpt(reader, places)
        return
    for kind, start, sectors in entries:
        if kind in _EXTENDED:
            yield from _logical(reader, start, places)
        else:
            _note(reader, start, sectors, places)


def _entries(raw: bytes) -> Iterator[Tuple[int, int, int]]:
    """(type, first sector, sectors) of an MBR's entries that are used."""
    if len(raw) < _SECTOR:
        return
    for at in range(446, 510, _MBR_ENTRY.size):
        active, _, kind, _, start, sectors = _MBR_ENTRY.unpack_from(raw, at)
        if active not in (0, 0x80):
            return
        if kind and start and sectors:
            yield kind, start, sectors


def _logical(reader: Reader, extended: int,
             places: List[Place]) -> Iterator[Hot]:
    at = extended
    for _ in range(_MAX_LOGICAL):
        raw = reader.exact(at * _SECTOR, _SECTOR, 'logical partition')
        yield Hot(at * _SECTOR, _SECTOR)
        following = 0
        for kind, start, sectors in list(_entries(raw))[:2]:
            if kind in _EXTENDED:
                following = extended + start
            else:
                _note(reader, at + start, sectors, places)
        if following <= at:
            return
        at = following
    raise BadFile('logical partition', 'is one of more than %d'
                  % _MAX_LOGICAL, at * _SECTOR)


def _gpt(reader: Reader, places: List[Place]) -> Iterator[Hot]:
    magic, first, count, size = _GPT_HEADER.unpack(
        reader.exact(_SECTOR, _GPT_HEADER.size, 'GPT header'))
    if magic != b'EFI PART':
        raise BadFile('GPT header', 'does not begin with EFI PART', _SECTOR)
    if size < 48 or count > _MAX_ENTRIES or count * size > 1 << 20:
        raise BadFile('GPT header', 'claims %d entries of %d bytes'
                      % (count, size), _SECTOR + 80)
    raw = reader.exact(first * _SECTOR, count * size, 'GPT entries')
    yield Hot(first * _SECTOR, len(raw))
    # The other copy is at the end.
    spare = len(raw) + _SECTOR
    yield Hot(reader.size - spare, spare)
    for at in range(0, len(raw), size):
        start, last = struct.unpack_from('<QQ', raw, at + 32)
        if any(raw[at:at + 16]) and last >= start:
            _note(reader, start, last - start + 1, places)


def _note(reader: Reader, start: int, sectors: int,
          places: List[Place]) -> None:
    """A partition past the end belongs to a disk that was cut: no file
    system can be read there."""
    if (start + sectors) * _SECTOR <= reader.size:
        places.append((start * _SECTOR, sectors * _SECTOR))
