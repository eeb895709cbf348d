"""Small blocks of metadata all over a file system.

Directories and trees of extents can lie anywhere. While they are few, they
are needed. Of thousands a server's limit of ranges would make one hot half of
the disk, so then they are optional: those for which there is room are taken.
"""

from __future__ import annotations

from typing import Iterator, List

from swift_dss.client.formats.contract import BadFile, Hot
from swift_dss.client.formats.plan import Range, joined

_FEW = 512
_MAX_BLOCKS = 1 << 20


class Scattered:
    """Blocks while they are collected."""

    def __init__(self) -> None:
        self._ranges: List[Range] = []

    def add(self, offset: int, length: int) -> None:
        """One more range.

        :raises BadFile: they are too many
        """
        if self._ranges and sum(self._ranges[-1]) == offset:
            offset, before = self._ranges.pop()
            length += before
        self._ranges.append((offset, length))
        if len(self._ranges) > _MAX_BLOCKS:
            raise BadFile('file system', 'has its directories in more than '
                          '%d places' % _MAX_BLOCKS, offset)

    def hot(self) -> Iterator[Hot]:
        """All of them."""
        ranges = joined(self._ranges)
        for offset, length in ranges:
            yield Hot(offset, length, len(ranges) <= _FEW)
