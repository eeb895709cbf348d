"""A GET asks the HDD for its bytes at once, when it opens their file."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Iterator, List, Tuple

import pytest
from support.rigs.dss_disk import Disk

from swift_dss.core.limits import IO_WINDOW_BYTES
from swift_dss.core.spans import ClassMap, Span
from swift_dss.io import classified
from swift_dss.objserver.extents import AUDIT, CLIENT, REPLICATE
from swift_dss.wire.records.blocks import BLOCK_BYTES

#: Not whole blocks, and more than two windows.
SIZE = 2 * IO_WINDOW_BYTES + 5 * BLOCK_BYTES + 100
#: Class 2 is never on the SSD.
COLD = ClassMap.uniform(2)
REQUEST_BYTES = 256 * 1024


@pytest.fixture
def asked(disk: Disk, monkeypatch: Any) -> List[Tuple[int, int, int]]:
    """(offset, length, class id) of each request to bring bytes."""
    requests: List[Tuple[int, int, int]] = []
    entered = [0]
    advise = os.posix_fadvise

    def watched(fd: int, offset: int, length: int, advice: int) -> None:
        if advice == os.POSIX_FADV_WILLNEED:
            assert disk.capacity_path in os.readlink('/proc/self/fd/%d' % fd)
            requests.append((offset, length, entered[0]))
        advise(fd, offset, length, advice)

    def enter(class_id: int) -> None:
        entered[0] = class_id

    monkeypatch.setattr(classified.os, 'posix_fadvise', watched)
    monkeypatch.setattr(disk.carrier, 'enter', enter)
    return requests


def set_limit(disk: Disk, whole_read_bytes: int) -> None:
    disk.node.conf = dataclasses.replace(
        disk.node.conf, io=dataclasses.replace(
            disk.node.conf.io, whole_read_bytes=whole_read_bytes))


def get(disk: Disk, name: str, ranges: Any,
        purpose: str = CLIENT) -> Iterator[bytes]:
    """What a GET of ranges reads, once its answer could be made."""
    disk_file = disk.open_file(name)
    disk_file.dss_purpose = purpose
    with disk_file.open():
        reader = disk_file.reader()
    assert not reader.dss_bytes.needs_remote(ranges)
    reader.dss_prepare(ranges)
    try:
        for start, stop in ranges:
            yield b''.join(reader.dss_bytes.read(start, stop, None))
    finally:
        reader.close()


def joined(requests: List[Tuple[int, int, int]]
           ) -> List[Tuple[int, int, int]]:
    """Neighbours of one class as one, from offset to end."""
    runs: List[Tuple[int, int, int]] = []
    for offset, length, class_id in requests:
        assert 0 < length <= REQUEST_BYTES
        if runs and runs[-1][1:] == (offset, class_id):
            runs[-1] = runs[-1][0], offset + length, class_id
        else:
            runs.append((offset, offset + length, class_id))
    return runs


def test_a_whole_object_is_asked_for_before_its_first_byte_is_read(
        disk: Disk, asked: Any) -> None:
    body = os.urandom(SIZE)
    disk.put('o', body, COLD)
    reading = get(disk, 'o', [(0, SIZE)])
    moved = len(disk.carrier.moved)
    assert next(reading) == body
    assert joined(asked) == [(0, SIZE, 2)]
    # In windows as ever: what the client gets need not be held whole.
    assert [move.length for move in disk.carrier.moved[moved:]][:16] == \
        [64 * 1024] * 16


def test_a_range_is_asked_for_in_whole_blocks(disk: Disk,
                                               asked: Any) -> None:
    body = os.urandom(SIZE)
    disk.put('o', body, COLD)
    assert list(get(disk, 'o', [(BLOCK_BYTES + 5, 3 * BLOCK_BYTES + 7),
                                (SIZE - 9, SIZE)])) == \
        [body[BLOCK_BYTES + 5:3 * BLOCK_BYTES + 7], body[-9:]]
    assert joined(asked) == [(BLOCK_BYTES, 4 * BLOCK_BYTES, 2),
                             (SIZE - 100, SIZE, 2)]


def test_without_checksums_nothing_more_is_asked_for(disk: Disk,
                                                     asked: Any) -> None:
    disk.without_sums()
    body = os.urandom(SIZE)
    disk.put('o', body, COLD)
    assert list(get(disk, 'o', [(5, 70000)])) == [body[5:70000]]
    assert joined(asked) == [(5, 70000, 2)]


def test_no_more_than_the_limit_is_asked_for_at_once(
        disk: Disk, asked: Any) -> None:
    body = os.urandom(SIZE)
    disk.put('o', body, COLD)
    set_limit(disk, IO_WINDOW_BYTES)
    assert list(get(disk, 'o', [(0, 100), (BLOCK_BYTES, SIZE)])) == \
        [body[:100], body[BLOCK_BYTES:]]
    assert joined(asked) == [(0, IO_WINDOW_BYTES, 2)]


def test_each_range_of_bytes_is_asked_for_under_its_class(
        disk: Disk, asked: Any) -> None:
    """Class 1 is on the SSD, which is not asked."""
    body = os.urandom(SIZE)
    disk.put('o', body, ClassMap.from_spans(
        [Span(0, 1000, 2), Span(1000, 500, 1)], rest=2))
    assert list(get(disk, 'o', [(0, SIZE)])) == [body]
    assert [run[2] for run in joined(asked)] == [2, 2]
    assert joined(asked)[0][1] <= 1000 < 1500 <= joined(asked)[1][0]


@pytest.mark.parametrize('purpose', [AUDIT, REPLICATE])
def test_audits_and_replication_read_a_window_at_a_time(
        disk: Disk, asked: Any, purpose: str) -> None:
    body = os.urandom(SIZE)
    disk.put('o', body, COLD)
    assert list(get(disk, 'o', [(0, SIZE)], purpose)) == [body]
    assert not asked


def test_the_option_turns_it_off(disk: Disk, asked: Any) -> None:
    body = os.urandom(SIZE)
    disk.put('o', body, COLD)
    set_limit(disk, 0)
    assert list(get(disk, 'o', [(0, SIZE)])) == [body]
    assert not asked


@pytest.mark.parametrize('engine, hdd, asks', [
    ('file', True, False), ('file', False, True), ('block', True, True)])
def test_a_device_is_asked_at_once_where_it_may_have_an_arm(
        tmp_path: Any, monkeypatch: Any, engine: str, hdd: bool,
        asks: bool) -> None:
    """Beside an HDD of its own it is an SSD: each page that a hint brings
    would cost more than one that Linux reads ahead."""
    disk = Disk(str(tmp_path), hdd)
    disk.node.conf = dataclasses.replace(
        disk.node.conf, engines={'sda': engine})
    body = os.urandom(SIZE)
    disk.put('o', body, ClassMap.uniform(1))
    hints: List[int] = []
    monkeypatch.setattr(disk.carrier, 'expect',
                        lambda *asked: hints.append(asked[1]))
    assert list(get(disk, 'o', [(0, SIZE)])) == [body]
    assert sum(hints) == (SIZE if asks else 0)
