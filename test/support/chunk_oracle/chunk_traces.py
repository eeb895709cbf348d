"""Classed requests for chunks: a seeded generator, and published traces.

The generator makes the first workload of class-ordered caching: a hot high
class that fits, a middle one that nearly does, and a low one that scans and
never comes back. All arithmetic is on products of IEEE doubles of Python's own
generator, so it is the same everywhere.
"""

from __future__ import annotations

import csv
import gzip
import pathlib
import random
import shutil
import subprocess
from array import array
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, Tuple

from swift_dss.core.errors import DssError
from swift_dss.strategy.eviction.chunks import ChunkRow

LOW, MIDDLE, HIGH = 1, 2, 3
SEED = 1
LENGTH = 1000000

#: Chunks of the SSD, and of the classes on the origin.
SLOTS = 28672
_HIGH_CHUNKS, _MIDDLE_CHUNKS, _LOW_CHUNKS = 6000, 28500, 196608
_MIDDLE_START, _LOW_START = 65536, 131072

#: Where published traces name addresses: equal shares of their blocks.
_REGIONS = 4
_FIRST_CLASS = 11
_READ_10, _WRITE_10 = 0x28, 0x2a


class NoTrace(DssError):
    """A published trace is missing or damaged."""


@dataclass
class ChunkTrace:
    """Requests, one a row of the three arrays.

    :param slots: of the SSD that it is meant for
    :param rows: the classes in it, ranked
    """

    name: str
    slots: int
    rows: Dict[int, ChunkRow]
    class_ids: array[int] = field(default_factory=lambda: array('B'))
    oblocks: array[int] = field(default_factory=lambda: array('Q'))
    writes: array[int] = field(default_factory=lambda: array('B'))

    def add(self, class_id: int, oblock: int, write: bool) -> None:
        """One request more."""
        self.class_ids.append(class_id)
        self.oblocks.append(oblock)
        self.writes.append(write)

    def __len__(self) -> int:
        return len(self.oblocks)

    def __iter__(self) -> Iterator[Tuple[int, int, int]]:
        return zip(self.class_ids, self.oblocks, self.writes)

    def origin_chunks(self) -> int:
        """Chunks that the origin must have."""
        return max(self.oblocks) + 1


def generated(length: int = LENGTH, seed: int = SEED) -> ChunkTrace:
    """35 % high, uniform; 35 % middle, skewed; 30 % low, a scan that comes
    round after all its chunks; a fifth of all are writes."""
    draw = random.Random(seed).random
    trace = ChunkTrace('generated', SLOTS, {
        LOW: ChunkRow(rank=10), MIDDLE: ChunkRow(rank=20),
        HIGH: ChunkRow(rank=30)})
    scanned = 0
    for _ in range(length):
        turn, at, write = draw(), draw(), draw() < 0.2
        if turn < 0.35:
            trace.add(HIGH, int(_HIGH_CHUNKS * at), write)
        elif turn < 0.7:
            trace.add(MIDDLE, _MIDDLE_START + int(
                _MIDDLE_CHUNKS * (at * at * at * at * at)), write)
        else:
            trace.add(LOW, _LOW_START + scanned % _LOW_CHUNKS, write)
            scanned += 1
    return trace


def _zstd_lines(path: pathlib.Path) -> List[str]:
    if not shutil.which('zstd'):
        raise NoTrace('%s: reading it takes the program zstd' % path)
    done = subprocess.run(['zstd', '-dcq', str(path)], check=True,
                          stdout=subprocess.PIPE)
    return done.stdout.decode('ascii').splitlines()


def _arc(path: pathlib.Path,
         blocks: int = 1) -> Iterator[Tuple[int, bool]]:
    """``start_block n_blocks ignored request_number``. All are reads.

    :param blocks: of 512 bytes, in a chunk
    """
    for number, line in enumerate(_zstd_lines(path), 1):
        try:
            start, count = (int(part) for part in line.split()[:2])
        except ValueError:
            raise NoTrace('%s: line %d: %r is not two numbers'
                          % (path, number, line)) from None
        last = start + max(1, count) - 1
        for chunk in range(start // blocks, last // blocks + 1):
            yield chunk, False


def _arc_pages(path: pathlib.Path) -> Iterator[Tuple[int, bool]]:
    """The same, in chunks of 4 KiB."""
    return _arc(path, 8)


def _cloudphysics(path: pathlib.Path) -> Iterator[Tuple[int, bool]]:
    """``version,time,op,size,lbn``: SCSI operations on 512-byte sectors; a
    chunk is 4 KiB."""
    with gzip.open(str(path), 'rt') as lines:
        for row in csv.DictReader(lines):
            try:
                operation, size = int(row['op'], 16), int(row['size'])
                first = int(row['lbn'])
            except (KeyError, TypeError, ValueError):
                raise NoTrace('%s: %r is not a request' % (path, row)) \
                    from None
            if operation not in (_READ_10, _WRITE_10):
                continue
            last = first + max(1, size // 512) - 1
            for chunk in range(first // 8, last // 8 + 1):
                yield chunk, operation == _WRITE_10


#: Name: file, reader, slots. Requests of ``oltp`` have one block each, and
#: a block is a chunk, as in publications that use it.
PUBLISHED: Dict[str, Tuple[
    str, Callable[[pathlib.Path], Iterator[Tuple[int, bool]]], int]] = {
        'oltp': ('oltp.lis.zst', _arc, 20000),
        'p6': ('p6.lis.zst', _arc_pages, 20000),
        'cloudphysics': ('cloudphysics.csv.gz', _cloudphysics, 4096)}


def published(name: str, folder: pathlib.Path) -> ChunkTrace:
    """A published trace with classes by region.

    The blocks that occur are cut, in the order of their addresses, into
    four regions of equal size; the region with most requests ranks highest, as
    an operator who knows the volumes would rank it. Chunks are renumbered
    without gaps, so that a small origin can hold them.

    :raises NoTrace: the file is not in ``folder``, or is damaged
    """
    file_name, reader, slots = PUBLISHED[name]
    path = folder / file_name
    if not path.exists():
        raise NoTrace('%s: no such trace' % path)
    requests = list(reader(path))
    blocks = sorted({block for block, _write in requests})
    place = {block: at for at, block in enumerate(blocks)}
    borders = [len(blocks) * part // _REGIONS
               for part in range(1, _REGIONS)]
    counts = Counter(bisect_right(borders, place[block])
                     for block, _write in requests)
    coldest_first = sorted(range(_REGIONS),
                           key=lambda region_number: counts[region_number])
    trace = ChunkTrace(name, slots, {
        _FIRST_CLASS + region: ChunkRow(rank=10 + 10 * rank)
        for rank, region in enumerate(coldest_first)})
    for block, write in requests:
        at = place[block]
        trace.add(_FIRST_CLASS + bisect_right(borders, at), at, write)
    return trace
