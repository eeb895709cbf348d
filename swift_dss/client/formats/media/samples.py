"""Where the samples of one track of an MP4 lie.

A track has its samples in chunks. Tables give the size of each sample
(``stsz``, ``stz2``), how many samples each chunk has (``stsc``), where each
chunk begins (``stco``, ``co64``), and which samples can be decoded without
others (``stss``). Time is bounded by the length of the tables, never by the
numbers in them.
"""

from __future__ import annotations

import struct
import sys
from array import array
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from swift_dss.client.formats.contract import BadFile
from swift_dss.client.formats.media.boxes import Box, Moov

_COUNT = struct.Struct('>I')
_SIZE_COUNT = struct.Struct('>II')


class Tables(NamedTuple):
    """The tables of one track.

    :param size: of all samples; 0: each has its own in ``sizes``
    :param runs: (first chunk, samples a chunk)
    :param sync: numbers of samples; None: all are
    """

    samples: int
    size: int
    sizes: Sequence[int]
    runs: List[Tuple[int, int]]
    chunks: Sequence[int]
    sync: Optional[Sequence[int]]
    box: Box

    def size_of(self, number: int) -> int:
        """Bytes of a sample.

        :param number: from 1
        :raises BadFile: there is none
        """
        if not 0 < number <= self.samples:
            raise BadFile(self.box.name, 'names sample %d of %d'
                          % (number, self.samples), self.box.offset)
        return self.size or self.sizes[number - 1]


def tables_of(moov: Moov, table: Box) -> Optional[Tables]:
    """The tables in a track's ``stbl``; None if it has no samples.

    :raises BadFile: a table is missing, or is not as long as it claims
    """
    boxes = {box.kind: box for box in moov.inside(table)}
    sizes = boxes.get(b'stsz') or boxes.get(b'stz2')
    offsets = boxes.get(b'co64') or boxes.get(b'stco')
    if sizes is None or offsets is None or b'stsc' not in boxes:
        raise BadFile(table.name, 'lacks stsz, stsc or stco', table.offset)
    size, samples, list_of_sizes = _sizes(moov, sizes)
    wide = offsets.kind == b'co64'
    chunks = _entries(moov, offsets, 'Q' if wide else 'I')
    runs = _entries(moov, boxes[b'stsc'], 'I', 3)
    sync = _entries(moov, boxes[b'stss'], 'I') if b'stss' in boxes else None
    if not samples or not chunks:
        return None
    return Tables(samples, size, list_of_sizes,
                  list(zip(runs[::3], runs[1::3])), chunks, sync, table)


def sync_samples(tables: Tables) -> Iterator[Tuple[int, int]]:
    """(offset, bytes) of each sample that ``stss`` names.

    :raises BadFile: the tables contradict each other
    """
    numbers = iter(tables.sync or ())
    wanted = next(numbers, 0)
    first = 1
    for start, count in _chunks(tables):
        # Sizes are added up from sample to sample, each once.
        at, offset = first, start
        while wanted and wanted < first + count:
            if wanted < at:
                raise BadFile('MP4 box stss', 'is not sorted',
                              tables.box.offset)
            if tables.size:
                offset += (wanted - at) * tables.size
            else:
                offset += sum(tables.sizes[at - 1:wanted - 1])
            at = wanted
            yield offset, tables.size_of(wanted)
            previous, wanted = wanted, next(numbers, 0)
            if wanted and wanted <= previous:
                raise BadFile('MP4 box stss', 'is not sorted',
                              tables.box.offset)
        if not wanted:
            return
        first += count


def _chunks(tables: Tables) -> Iterator[Tuple[int, int]]:
    """(offset, samples) of each chunk."""
    runs = iter(tables.runs)
    following = next(runs, None)
    count = 0
    for number, start in enumerate(tables.chunks, 1):
        if following is not None and number >= following[0]:
            count = following[1]
            following = next(runs, None)
        yield start, count


def _sizes(moov: Moov, box: Box) -> Tuple[int, int, Sequence[int]]:
    """(size of all samples or 0, samples, sizes)."""
    size, count = _SIZE_COUNT.unpack(moov.taken(box, 4, 8))
    if box.kind == b'stsz':
        if size:
            return size, count, ()
        return 0, count, _array('I', moov.taken(box, 12, count * 4))
    # The last byte says how many bits a size has.
    bits = size & 0xff
    if bits == 16:
        return 0, count, _array('H', moov.taken(box, 12, count * 2))
    if bits == 8:
        return 0, count, moov.taken(box, 12, count)
    if bits != 4:
        raise BadFile(box.name, 'has sizes of %d bits' % bits, box.offset)
    raw = moov.taken(box, 12, (count + 1) // 2)
    return 0, count, bytes(half for byte in raw
                           for half in (byte >> 4, byte & 15))


def _entries(moov: Moov, box: Box, code: str,
             width: int = 1) -> Sequence[int]:
    """The numbers of a table.

    :param width: of an entry, in numbers
    """
    count, = _COUNT.unpack(moov.taken(box, 4, 4))
    return _array(code, moov.taken(
        box, 8, count * width * array(code).itemsize))


def _array(code: str, raw: bytes) -> Sequence[int]:
    made = array(code, raw)
    if sys.byteorder == 'little':
        made.byteswap()
    return made
