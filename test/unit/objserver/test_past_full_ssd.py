"""A full SSD whose HDD has room: the object goes there.

The daemon looks at intervals, and may be away. Until it has said how full the
SSD is, uploads must not fail for a disk that is not the only one.
"""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest
from support.rigs.dss_disk import Disk
from swift.common.exceptions import DiskFileNoSpace

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.io import residency_store
from swift_dss.objserver import writer

BODY = os.urandom(3000001)
#: 1 goes to the SSD, 2 to the HDD, 3 to both.
GOLD, THROUGH = ClassMap.uniform(1), ClassMap.uniform(3)


@pytest.fixture
def full(disk: Disk, monkeypatch: Any) -> Disk:
    """Its SSD has no block left but for inodes and attributes."""
    def fallocate(*_args: Any) -> None:
        raise OSError(errno.ENOSPC, 'full')

    monkeypatch.setattr(writer, 'fallocate', fallocate)
    monkeypatch.setattr(writer, 'fs_has_free_space', lambda *_args: False)
    return disk


def tiers(disk: Disk, name: str) -> Any:
    with open(disk.data_path(name), 'rb') as source:
        residency = residency_store.load(source.fileno())
    return [int(extent.tiers) for extent in residency.extents]


@pytest.mark.parametrize('class_map', [GOLD, THROUGH])
@pytest.mark.parametrize('size', [-1, None])
def test_the_hdd_takes_it(full: Disk, class_map: ClassMap,
                          size: Any) -> None:
    full.put('o', BODY, class_map, size=size)
    assert full.read('o') == BODY
    assert tiers(full, 'o') == [int(Tier.HDD)]
    assert full.logger.counts['dss.uploads.past_full_ssd'] == 1


def test_of_a_mixed_object_all_bytes_go(full: Disk) -> None:
    """Its first capacity file had room for a part of them alone."""
    before = len(os.listdir('/proc/self/fd'))
    full.put('o', BODY, ClassMap.from_spans([Span(0, 1000000, 1)], 2))
    assert full.read('o') == BODY
    assert tiers(full, 'o') == [int(Tier.HDD)]
    assert len(os.listdir('/proc/self/fd')) == before


def test_fragments_too(full: Disk) -> None:
    full.put('o', BODY, GOLD, policy=1, frag_index=2)
    with open(full.data_path('o', policy=1), 'rb') as source:
        assert residency_store.load(source.fileno()).tiers == Tier.HDD


def test_without_an_hdd_it_is_refused(scratch_folder: str,
                                      monkeypatch: Any) -> None:
    disk = Disk(scratch_folder, hdd=False)
    monkeypatch.setattr(writer, 'fs_has_free_space', lambda *_args: False)
    with pytest.raises(DiskFileNoSpace):
        disk.put('o', BODY, GOLD, size=None)


def test_an_hdd_that_is_away_takes_nothing(full: Disk) -> None:
    os.rename(full.capacity_path, full.capacity_path + '.away')
    with pytest.raises(DiskFileNoSpace):
        full.put('o', BODY, GOLD)


def test_a_full_hdd_takes_nothing(full: Disk, monkeypatch: Any) -> None:
    def no_room(*_args: Any) -> None:
        raise OSError(errno.ENOSPC, 'full')

    monkeypatch.setattr(os, 'posix_fallocate', no_room)
    with pytest.raises(DiskFileNoSpace):
        full.put('o', BODY, GOLD)


def test_another_failure_of_the_ssd_is_no_full_one(
        disk: Disk, monkeypatch: Any) -> None:
    def broken(*_args: Any) -> None:
        raise OSError(errno.EIO, 'broken')

    monkeypatch.setattr(writer, 'fallocate', broken)
    with pytest.raises(OSError, match='broken'):
        disk.put('o', BODY, GOLD)


def test_pinned_bytes_are_not_put_elsewhere(
        full: Disk, monkeypatch: Any) -> None:
    table = ClassTable.of([ClassSpec(1, 'kept', 90, pin=True)])
    monkeypatch.setattr(type(full.node), 'class_table', table)
    with pytest.raises(DiskFileNoSpace):
        full.put('o', BODY, GOLD)
