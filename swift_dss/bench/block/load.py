"""Requests for block devices: the workloads of a comparison.

Everything follows from the arguments: the same call gives the same list,
on any machine. A workload has *phases*, replayed one after the other; the
figures are those of the phases that are measured.
"""

from __future__ import annotations

import csv
import gzip
import pathlib
import random
import shutil
import subprocess
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import (
    Callable, Dict, Iterable, Iterator, List, Sequence, Tuple)

from swift_dss.bench import cacs
from swift_dss.bench.block.driver import (
    BLOCK_BYTES, CHAINED, FLUSH, MAX_BYTES, WRITE, Request)
from swift_dss.core.errors import DssError

MIB = 1 << 20


class NoTrace(DssError):
    """A trace is missing or damaged."""


#: The longest request of those that make up an object.
_OBJECT_BYTES = 256 * 1024
#: Share of the CACS objects' bytes that the SSD holds, as in the publication.
CACS_SHARE = 0.14

#: Of traces: regions, and the class of the first.
_REGIONS = 4
_FIRST_CLASS = 11
_READ_10, _WRITE_10 = 0x28, 0x2a

#: Requests of the workloads that can be of any length.
REQUESTS = 60000


@dataclass(frozen=True)
class Phase:
    """One list of requests.

    :param threads: clients; each has one request under way
    :param seconds: on the guest's clock, after which no request begins;
        0 is no limit
    """

    name: str
    requests: List[Request]
    threads: int
    measured: bool = True
    seconds: float = 0.0


@dataclass(frozen=True)
class Workload:
    """A workload and the sizes of its disks.

    :param origin_bytes: of the slow disk, at least
    :param cache_bytes: of the SSD
    :param ranks: class id to rank; empty if nothing is classified
    :param names: class id to its name
    :param what: a description for the tables
    """

    name: str
    what: str
    phases: List[Phase]
    origin_bytes: int
    cache_bytes: int
    ranks: Dict[int, int] = field(default_factory=dict)
    names: Dict[int, str] = field(default_factory=dict)


def _mib_up(size: int) -> int:
    return -(-size // MIB) * MIB


def _blocks_up(size: int) -> int:
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


def _object(place: Tuple[int, int, int], write: bool) -> List[Request]:
    """One object, whole, by one client, synced at the end of a write."""
    begin, length, class_id = place
    parts = []
    for at in range(0, length, _OBJECT_BYTES):
        flags = (WRITE if write else 0) | (CHAINED if at else 0)
        size = min(_OBJECT_BYTES, length - at)
        if write and at + size == length:
            flags |= FLUSH
        parts.append(Request(begin + at, size, class_id, flags))
    return parts


def cacs_mix(count: int = 600, scale: float = 0.5, seed: int = 1,
             reads: int = 1500, threads: int = 8) -> Workload:
    """Case 1 of CACS on a bare device: objects side by side, written once,
    then read whole, each as likely as any other.

    :param reads: objects read to warm up, and again to measure
    """
    places = []
    at = 0
    ranks, names = {}, {}
    for obj in cacs.sample(count, seed, scale):
        length = _blocks_up(obj.size)
        places.append((at, length, obj.class_id))
        at += length
        # USER1 first.
        ranks[obj.class_id] = 1000 - 10 * obj.class_id
        names[obj.class_id] = obj.class_name
    dice = random.Random('block cacs %d' % seed)

    def downloads() -> List[Request]:
        return [part for _ in range(reads)
                for part in _object(dice.choice(places), False)]

    return Workload(
        'cacs', '%d objects of the CACS mix, %.0f MB; the SSD holds %.0f %%'
        % (count, at / 1e6, 100 * CACS_SHARE),
        [Phase('upload', [part for place in places
                          for part in _object(place, True)], threads),
         Phase('warm', downloads(), threads, measured=False),
         Phase('download', downloads(), threads)],
        _mib_up(at) + 2 * MIB, _mib_up(int(at * CACS_SHARE)), ranks, names)


def _arc(path: pathlib.Path, count: int,
         unit_bytes: int) -> Iterator[Tuple[int, int, bool]]:
    """``start_block n_blocks ignored request_number``; all are reads."""
    if not shutil.which('zstd'):
        raise NoTrace('%s: reading it takes the program zstd' % path)
    with subprocess.Popen(['zstd', '-dcq', str(path)],
                          stdout=subprocess.PIPE) as unpacked:
        assert unpacked.stdout is not None
        for number, line in enumerate(islice(unpacked.stdout, count), 1):
            try:
                start, blocks = (int(part) for part in line.split()[:2])
            except ValueError:
                raise NoTrace('%s: line %d: %r is not two numbers'
                              % (path, number, line)) from None
            yield start * unit_bytes, blocks * unit_bytes, False
        unpacked.kill()


def _cloudphysics(path: pathlib.Path,
                  count: int) -> Iterator[Tuple[int, int, bool]]:
    """``version,time,op,size,lbn``: SCSI operations on sectors."""
    with gzip.open(str(path), 'rt') as lines:
        for row in islice(csv.DictReader(lines), count):
            try:
                operation = int(row['op'], 16)
                length, start = int(row['size']), int(row['lbn']) * 512
            except (KeyError, TypeError, ValueError):
                raise NoTrace('%s: %r is not a request' % (path, row)) \
                    from None
            if operation in (_READ_10, _WRITE_10):
                yield start, max(512, length), operation == _WRITE_10


#: Name: file and reader. The OLTP system's blocks are its pages, 4 KiB
#: here; the workstation's are sectors.
_TRACES: Dict[str, Tuple[str, Callable[
    [pathlib.Path, int], Iterator[Tuple[int, int, bool]]]]] = {
        'oltp': ('oltp.lis.zst',
                 lambda path, count: _arc(path, count, BLOCK_BYTES)),
        'p6': ('p6.lis.zst', lambda path, count: _arc(path, count, 512)),
        'cloudphysics': ('cloudphysics.csv.gz', _cloudphysics)}


def _classed(raw: Iterable[Tuple[int, int, bool]]) -> Tuple[
        List[Request], Dict[int, int], int]:
    """Requests with classes by region, on an origin without gaps.

    The blocks that occur are cut, in the order of their addresses, into
    four regions of equal size; the region with most requests ranks highest, as
    an operator who knows the volumes would rank it.

    :returns: requests, class id to rank, bytes of the origin
    """
    spans = [(start // BLOCK_BYTES, (start + length - 1) // BLOCK_BYTES,
              write) for start, length, write in raw]
    place = {block: at for at, block in enumerate(sorted(
        {block for first, last, _write in spans
         for block in range(first, last + 1)}))}
    region = max(1, -(-len(place) // _REGIONS))
    counts = Counter(place[first] // region for first, _l, _w in spans)
    rising = sorted(range(_REGIONS), key=lambda number: counts[number])
    ranks = {_FIRST_CLASS + number: 10 + 10 * rank
             for rank, number in enumerate(rising)}
    requests = []
    for first, last, write in spans:
        class_id = _FIRST_CLASS + place[first] // region
        flags = WRITE if write else 0
        for at in range(first, last + 1, MAX_BYTES // BLOCK_BYTES):
            requests.append(Request(
                place[at] * BLOCK_BYTES,
                min(last + 1 - at, MAX_BYTES // BLOCK_BYTES) * BLOCK_BYTES,
                class_id, flags | (CHAINED if at != first else 0)))
    return requests, ranks, len(place) * BLOCK_BYTES


def _halves(requests: List[Request], threads: int) -> List[Phase]:
    half = len(requests) // 2
    return [Phase('warm', requests[:half], threads, measured=False),
            Phase('run', requests[half:], threads)]


def published(name: str, folder: pathlib.Path, count: int = REQUESTS,
              threads: int = 4) -> Workload:
    """The first requests of a published trace, with classes by region.

    :raises NoTrace: the file is not there, or is damaged
    """
    file_name, reader = _TRACES[name]
    path = folder / file_name
    if not path.exists():
        raise NoTrace('%s: no such trace' % path)
    requests, ranks, size = _classed(reader(path, count))
    return Workload(
        name, '%d requests of the trace %s to %.0f MB; the SSD holds an '
        'eighth' % (len(requests), name, size / 1e6),
        _halves(requests, threads), _mib_up(size) + 2 * MIB,
        max(8 * MIB, _mib_up(size // 8)), ranks,
        {class_id: 'region %d' % number
         for number, class_id in enumerate(sorted(ranks))})


class _Skewed:
    """Numbers 0..count-1, the n-th most frequent as often as 1/n**skew,
    scattered in groups of neighbours."""

    def __init__(self, count: int, skew: float, group: int,
                 dice: random.Random) -> None:
        self._sums = list(accumulate(
            1.0 / (rank ** skew) for rank in range(1, count // group + 1)))
        self._places = list(range(count // group))
        dice.shuffle(self._places)
        self._group = group
        self._dice = dice

    def draw(self) -> int:
        rank = bisect_left(self._sums, self._dice.random() * self._sums[-1])
        return self._places[rank] * self._group \
            + self._dice.randrange(self._group)


def plain(count: int = REQUESTS, seed: int = 1, threads: int = 4,
          range_bytes: int = 512 * MIB) -> Workload:
    """Unclassified: 70 % reads of 4 to 16 KiB, Zipf (1.0) over neighbours
    of 64 KiB, and one request in fifty a sequential MiB."""
    dice = random.Random('block plain %d' % seed)
    blocks = range_bytes // BLOCK_BYTES
    skewed = _Skewed(blocks, 1.0, 16, dice)
    requests: List[Request] = []
    while len(requests) < count:
        flags = WRITE if dice.random() < 0.3 else 0
        if dice.random() < 0.02:
            at = dice.randrange(range_bytes // MIB) * MIB
            requests += [
                Request(at + part, 128 * 1024, 0,
                        flags | (CHAINED if part else 0))
                for part in range(0, MIB, 128 * 1024)]
            continue
        length = BLOCK_BYTES * dice.choice((1, 1, 2, 4))
        offset = min(skewed.draw() * BLOCK_BYTES, range_bytes - length)
        requests.append(Request(offset, length, 0, flags))
    return Workload(
        'plain', '%d unclassified requests, Zipf over %.0f MB; the SSD '
        'holds an eighth' % (count, range_bytes / 1e6),
        _halves(requests, threads), range_bytes + 2 * MIB, range_bytes // 8)


def checks(workload: Workload) -> Phase:
    """Everything that was ever written, read once more."""
    touched = sorted({request.offset // MAX_BYTES
                      for phase in workload.phases
                      for request in phase.requests if request.flags & WRITE})
    return Phase('check', [
        Request(number * MAX_BYTES, MAX_BYTES) for number in touched], 1,
        measured=False)


WORKLOADS: Sequence[str] = (
    'cacs', 'oltp', 'p6', 'cloudphysics', 'plain')


def make(name: str, folder: pathlib.Path, count: int,
         seed: int) -> Workload:
    """A workload by its name, about so many requests long.

    :raises NoTrace: it is a trace whose file is not there
    """
    makers: Dict[str, Callable[[], Workload]] = {
        'cacs': lambda: cacs_mix(
            seed=seed, reads=max(20, count // 40),
            count=min(600, max(150, count // 100))),
        'plain': lambda: plain(count, seed)}
    if name in makers:
        return makers[name]()
    return published(name, folder, count)
