"""R34: every partition of an 8-byte object, every range, both ways."""

from __future__ import annotations

import itertools
import os
from typing import Any, Iterator, List, Tuple

import pytest
from support.rigs import dss_disk
from support.rigs.dss_disk import Disk, Full

from swift_dss.core.spans import ClassMap, Span
from swift_dss.io import probe
from swift_dss.io.probe import PageCache
from swift_dss.objserver import extents, writer

#: One "byte" of the eight: odd, so that no border is a page's.
UNIT = 67
SIZE = 8 * UNIT
#: Windows and inline reads cut in strange places too.
WINDOW, CHUNK, TRIP = 211, 73, 171
DATA = os.urandom(SIZE)
CLASSES = (1, 2, 3, 5, 0, 2, 6, 1)


def partitions() -> Iterator[ClassMap]:
    for cuts in itertools.product((False, True), repeat=7):
        borders = [0] + [i + 1 for i, cut in enumerate(cuts) if cut] + [8]
        yield ClassMap.from_spans([
            Span(first * UNIT, (end - first) * UNIT, CLASSES[number])
            for number, (first, end) in enumerate(
                zip(borders, borders[1:]))], rest=9)


RANGES: List[Tuple[int, int]] = [
    (first, end) for first in range(8) for end in range(first + 1, 9)]


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: Any) -> None:
    monkeypatch.setattr(extents, 'IO_WINDOW_BYTES', WINDOW)
    monkeypatch.setattr(writer, 'IO_WINDOW_BYTES', WINDOW)
    monkeypatch.setattr(writer, 'WIDE_WINDOW_BYTES', WINDOW)
    monkeypatch.setattr(extents, 'CHUNK_BYTES', CHUNK)
    monkeypatch.setattr(extents, 'AHEAD_BYTES', 2 * CHUNK)
    monkeypatch.setattr(dss_disk, 'CHUNK_BYTES', CHUNK)
    monkeypatch.setattr(probe, 'CHUNK_BYTES', CHUNK)
    monkeypatch.setattr(extents, 'TRIP_BYTES', TRIP)


def test_every_range_of_every_partition_both_ways(disk: Disk) -> None:
    # Else whole blocks are read.
    disk.without_sums()
    cases = wrong = 0
    for class_map in partitions():
        for first, end in RANGES:
            cases += 1
            wrong += not _write_is_right(
                disk, class_map, first * UNIT, end * UNIT)
        for way in WAYS:
            disk.node.page_cache = way()
            for first, end in RANGES:
                cases += 1
                wrong += not _read_is_right(
                    disk, class_map, first * UNIT, end * UNIT)
    print('R34: %d cases, %d wrong' % (cases, wrong))
    assert (cases, wrong) == (18432, 0)
    assert not disk.quarantined()


def _write_is_right(disk: Disk, class_map: ClassMap, start: int,
                    stop: int) -> bool:
    """A body that arrives cut at a range's ends is written right: each
    byte once per tier, under its class."""
    del disk.carrier.moved[:]
    disk.put('o', [piece for piece in (
        DATA[:start], DATA[start:stop], DATA[stop:]) if piece], class_map)
    written = {'ssd': {}, 'hdd': {}}  # type: Any
    for moved in disk.carrier.moved:
        tier = 'hdd' if '/hdd/' in moved.path else 'ssd'
        for offset in range(moved.offset, moved.offset + moved.length):
            if offset in written[tier]:
                return False
            written[tier][offset] = moved.class_id
    for offset in range(SIZE):
        class_id = class_map.class_at(offset)
        expected = {2: ('hdd',), 3: ('ssd', 'hdd')}.get(
            class_id, ('ssd',))
        for tier in ('ssd', 'hdd'):
            wanted = class_id if tier in expected else None
            if written[tier].get(offset) != wanted:
                return False
    return True


class NoCache(PageCache):
    """A file system that does not say what it has: all goes through
    pools."""

    def look(self, *_args: Any) -> int:
        return 0


class Forgetful(Full):
    """Misses each third chunk, and has less than all of others."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = 0

    def look(self, carrier: Any, fd: int, length: int, offset: int,
             class_id: int) -> int:
        self._asked += 1
        if self._asked % 3 == 0:
            return 0
        return super().look(
            carrier, fd, length - (self._asked % 2 and length // 2), offset,
            class_id)


#: The page cache is not asked, has some, or has everything.
WAYS = (NoCache, Forgetful, Full)


def _read_is_right(disk: Disk, class_map: ClassMap, start: int,
                   stop: int) -> bool:
    """The bytes are right, and what went through a carrier had the class
    of its bytes; through pools alone, that is every byte once."""
    del disk.carrier.moved[:]
    if disk.read('o', start, stop) != DATA[start:stop]:
        return False
    offset = start
    for moved in disk.carrier.moved:
        classes = {class_map.class_at(at) for at in (
            moved.offset, moved.offset + moved.length - 1)}
        if classes != {moved.class_id}:
            return False
        if isinstance(disk.node.page_cache, NoCache):
            if moved.offset != offset:
                return False
            offset += moved.length
    return not isinstance(disk.node.page_cache, NoCache) or offset == stop


def test_a_wrong_twin_is_seen(disk: Disk, monkeypatch: Any) -> None:
    """A splitter that is off by one byte does not pass."""
    class_map = ClassMap.from_spans([Span(0, UNIT, 1)], rest=2)
    disk.put('o', DATA, class_map)
    disk.node.page_cache = NoCache()
    good = ClassMap.split

    def shifted(self: ClassMap, offset: int, length: int) -> Any:
        return good(self, offset + 1, length - 1)

    monkeypatch.setattr(ClassMap, 'split', shifted)
    assert not _read_is_right(disk, class_map, 0, SIZE)
