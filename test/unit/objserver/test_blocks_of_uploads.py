"""When an upload takes its blocks, and what it does if they lie apart."""

from __future__ import annotations

import os
from typing import Any, List

import pytest
from support import pattern
from support.rigs.dss_disk import Disk

from swift_dss.objserver import writer

_BODY = pattern(300000, 'o')


class FakePlacement:
    """Says of the first ``apart`` files that they lie in another group."""

    def __init__(self, folder: str, apart: int) -> None:
        self._folder = folder
        self.apart = apart
        self.blocks: List[int] = []

    def open(self, writers: int) -> int:
        del writers
        return os.open(self._folder, os.O_TMPFILE | os.O_RDWR, 0o600)

    def landed(self, fd: int) -> bool:
        self.blocks.append(os.fstat(fd).st_blocks)
        self.apart -= 1
        return self.apart < 0


@pytest.fixture(name='reserved')
def _reserved(monkeypatch: Any) -> List[int]:
    """Blocks of the file at each reservation."""
    blocks: List[int] = []
    inner = writer.fallocate

    def fallocate(fd: int, size: int, offset: int = 0) -> None:
        blocks.append(os.fstat(fd).st_blocks)
        inner(fd, size, offset)
    monkeypatch.setattr(writer, 'fallocate', fallocate)
    return blocks


def _placed(disk: Disk, monkeypatch: Any, apart: int) -> FakePlacement:
    fake = FakePlacement(os.path.join(disk.root, 'devices', 'sda'), apart)
    monkeypatch.setattr(disk.node, 'placement', lambda _device: fake)
    return fake


def test_blocks_come_before_folders(disk: Disk, monkeypatch: Any) -> None:
    fake = _placed(disk, monkeypatch, 0)
    inner, order = writer.makedirs_count, []

    def makedirs_count(path: str) -> int:
        order.append(list(fake.blocks))
        count: int = inner(path)
        return count
    monkeypatch.setattr(writer, 'makedirs_count', makedirs_count)
    disk.put('o', [_BODY])
    assert len(order) == 1 and order[0][0] * 512 >= len(_BODY)
    assert disk.read('o') == _BODY


@pytest.mark.parametrize('apart, count', [(0, 1), (1, 2), (9, 2)])
def test_blocks_in_another_group_are_given_back_once(
        disk: Disk, monkeypatch: Any, reserved: List[int],
        apart: int, count: int) -> None:
    _placed(disk, monkeypatch, apart)
    disk.put('o', [_BODY])
    assert reserved == [0] * count
    assert disk.read('o') == _BODY
