"""A large object is asked of a device that may be an HDD at once, in its
class."""

from __future__ import annotations

from typing import Any, List, Tuple

import pytest
from support import pattern
from support.rigs.dss_disk import Disk

from swift_dss.core.limits import DEFAULT_WHOLE_READ_BYTES
from swift_dss.core.spans import ClassMap

_KIB = 1024


@pytest.fixture(name='disk')
def _disk(scratch_folder: str) -> Disk:
    """A device with no HDD beside it."""
    return Disk(scratch_folder, hdd=False)


@pytest.fixture(name='expected')
def _expected(disk: Disk, monkeypatch: Any) -> List[Tuple[int, int, int]]:
    """(offset, length, class) that the carrier was told to expect."""
    calls: List[Tuple[int, int, int]] = []
    inner = disk.carrier.expect

    def expect(fd: int, length: int, offset: int, class_id: int) -> None:
        calls.append((offset, length, class_id))
        inner(fd, length, offset, class_id)
    monkeypatch.setattr(disk.carrier, 'expect', expect)
    return calls


@pytest.mark.parametrize('size', [700 * _KIB, 12 << 20])
def test_what_comes_is_asked_for_once_in_its_class(
        disk: Disk, expected: List[Tuple[int, int, int]],
        size: int) -> None:
    body = pattern(size, 'o')
    disk.put('o', [body], ClassMap.uniform(5))
    with disk.open_file('o').open() as disk_file:
        chunks = iter(disk_file.reader())
        read = [next(chunks)]
        # With the first bytes all others were asked for.
        end = sum(length for _, length, _ in expected)
        assert min(size, DEFAULT_WHOLE_READ_BYTES) <= end
        read += chunks
    assert b''.join(read) == body
    at = 0
    for offset, length, class_id in expected:
        assert (offset, class_id) == (at, 5)
        at += length
    assert at == size


def test_one_read_of_a_small_object_is_enough(
        disk: Disk, expected: List[Tuple[int, int, int]]) -> None:
    body = pattern(128 * _KIB, 'o')
    disk.put('o', [body])
    assert disk.read('o') == body
    assert expected == []
