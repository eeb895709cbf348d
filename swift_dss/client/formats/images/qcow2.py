"""qcow2: its tables, and the metadata of the disk in it.

Needed: the header, the tables of levels 1 and 2, reference counts and the
list of snapshots; and the clusters with metadata of the disk, as :mod:`disk`
says. They are 0.02 % of an image with clusters of 64 KiB.

Of an image that is encrypted, or leans on a backing file or a data file, only
its own tables are hot; so they are where clusters are compressed by zstd.
"""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict
from typing import Iterator, List, NamedTuple, Tuple

from swift_dss.client.formats.contract import (
    BadFile, Format, Hot, Reader, Wish)
from swift_dss.client.formats.images import disk
from swift_dss.client.formats.readers import Bounded

_MAGIC = b'QFI\xfb'
_HEADER = struct.Struct('>4sIQIIQIIQQIIQ')
_FEATURES = struct.Struct('>Q')
_OFFSET = 0x00fffffffffffe00
_COMPRESSED, _ZERO = 1 << 62, 1
_DATA_FILE, _COMPRESSION, _EXTENDED_L2 = 4, 8, 16
_MAX_L1_BYTES = 32 << 20
_KEPT_TABLES = 64
#: With metadata of the disk: 256 GiB of them.
_MAX_CLUSTERS = 1 << 22
_SECTOR = 512


class _Header(NamedTuple):
    """The numbers of a header."""

    cluster: int
    size: int
    l1: List[int]
    is_plain: bool


def _fits(reader: Reader) -> bool:
    return reader.read(0, 4) == _MAGIC


def _hot(reader: Reader, _: Wish) -> Iterator[Hot]:
    raw = reader.exact(0, _HEADER.size, 'qcow2 header')
    if raw[:4] != _MAGIC:
        raise BadFile('qcow2 header', 'does not begin with QFI', 0)
    fields = _HEADER.unpack(raw)
    header = _header(reader, fields)
    yield Hot(0, header.cluster)
    yield Hot(fields[8], fields[7] * 8)
    for entry in header.l1:
        if entry & _OFFSET:
            reader.check(entry & _OFFSET, header.cluster, 'qcow2 L2 table')
            yield Hot(entry & _OFFSET, header.cluster)
    yield from _counts(reader, fields[9], fields[10] * header.cluster,
                       header.cluster)
    if fields[11]:
        # Entries of a snapshot have names of any length; few fill a cluster.
        reader.check(fields[12], 0, 'qcow2 snapshots')
        yield Hot(fields[12], header.cluster)
    if header.is_plain:
        guest = _Guest(reader, header)
        bounded = Bounded(guest, reader.size)
        if disk.FORMAT.fits(bounded):
            for hot in disk.metadata(bounded):
                yield from guest.places(hot)


def _header(reader: Reader, fields: Tuple[int, ...]) -> _Header:
    version, bits, size = fields[1], fields[4], fields[5]
    if version not in (2, 3) or not 9 <= bits <= 21:
        raise BadFile('qcow2 header', 'has version %d and clusters of 2^%d '
                      'bytes' % (version, bits), 4)
    if fields[7] * 8 > _MAX_L1_BYTES:
        raise BadFile('qcow2 header', 'claims an L1 table of %d entries'
                      % fields[7], 36)
    features = 0
    if version == 3:
        features, = _FEATURES.unpack(reader.exact(72, 8, 'qcow2 header'))
    raw = reader.exact(fields[8], fields[7] * 8, 'qcow2 L1 table')
    l1 = list(struct.unpack('>%dQ' % fields[7], raw))
    is_plain = not (fields[2] or fields[6] or features & (
        _DATA_FILE | _COMPRESSION | _EXTENDED_L2))
    return _Header(1 << bits, size, l1, is_plain)


def _counts(reader: Reader, at: int, length: int,
            cluster: int) -> Iterator[Hot]:
    raw = reader.exact(at, length, 'qcow2 reference counts')
    yield Hot(at, length)
    for entry, in struct.iter_unpack('>Q', raw):
        if entry & _OFFSET:
            reader.check(entry & _OFFSET, cluster, 'qcow2 reference counts')
            yield Hot(entry & _OFFSET, cluster)


class _Guest(Reader):
    """The disk in an image; it has zeros where the image has nothing."""

    def __init__(self, reader: Reader, header: _Header) -> None:
        super().__init__(header.size)
        self._reader = reader
        self._header = header
        self._entries = header.cluster // 8
        self._tables: OrderedDict[int, bytes] = OrderedDict()
        self._clusters_left = _MAX_CLUSTERS

    def read(self, offset: int, length: int) -> bytes:
        """See :class:`Reader`.

        :raises BadFile: the image is damaged
        """
        parts: List[bytes] = []
        for number, start, size in self._cut(offset, length):
            parts.append(self._cluster(number)[start:start + size])
        return b''.join(parts)

    def places(self, hot: Hot) -> Iterator[Hot]:
        """The places of a range of the disk in the image."""
        for number, start, size in self._cut(hot.offset, hot.length):
            self._clusters_left -= 1
            if self._clusters_left < 0:
                raise BadFile('qcow2 disk', 'has more metadata than %d '
                              'clusters' % _MAX_CLUSTERS, hot.offset)
            entry = self._entry(number)
            if entry & _COMPRESSED:
                yield Hot(*self._compressed(entry), hot.is_needed)
            elif entry & _OFFSET:
                yield Hot((entry & _OFFSET) + start, size, hot.is_needed)

    def _cut(self, offset: int,
             length: int) -> Iterator[Tuple[int, int, int]]:
        """(cluster, offset in it, bytes) of a range."""
        end = min(self.size, offset + length)
        at = max(0, offset)
        while at < end:
            number, start = divmod(at, self._header.cluster)
            size = min(end - at, self._header.cluster - start)
            yield number, start, size
            at += size

    def _entry(self, number: int) -> int:
        index, place = divmod(number, self._entries)
        table = self._header.l1[index] & _OFFSET \
            if index < len(self._header.l1) else 0
        if not table:
            return 0
        raw = self._tables.pop(table, None)
        if raw is None:
            raw = self._reader.exact(table, self._header.cluster,
                                     'qcow2 L2 table')
        self._tables[table] = raw
        if len(self._tables) > _KEPT_TABLES:
            self._tables.popitem(last=False)
        entry: int = struct.unpack_from('>Q', raw, place * 8)[0]
        return entry

    def _cluster(self, number: int) -> bytes:
        entry, size = self._entry(number), self._header.cluster
        if entry & _COMPRESSED:
            where, length = self._compressed(entry)
            raw = self._reader.read(where, length)
            try:
                return zlib.decompressobj(-12).decompress(
                    raw, size).ljust(size, b'\0')
            except zlib.error as err:
                raise BadFile('qcow2 compressed cluster', str(err),
                              where) from err
        if not entry & _OFFSET or entry & _ZERO:
            return bytes(size)
        return self._reader.read(entry & _OFFSET, size).ljust(size, b'\0')

    def _compressed(self, entry: int) -> Tuple[int, int]:
        """(offset, bytes) of a compressed cluster."""
        bits = 62 - (self._header.cluster.bit_length() - 1 - 8)
        where = entry & ((1 << bits) - 1)
        sectors = (entry >> bits) & ((1 << (62 - bits)) - 1)
        return where, (sectors + 1) * _SECTOR - where % _SECTOR


FORMAT = Format('qcow2', _fits, _hot)
