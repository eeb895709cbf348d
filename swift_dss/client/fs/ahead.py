"""Read-ahead that keeps to bytes of one class.

Bytes of a class of their own are those that open a file; the rest of it may be
in S3. A reader of the first has no use for what comes after them, and would
wait for it.
"""

from __future__ import annotations

import bisect
from typing import Any, Optional, Sequence, Tuple

from fsspec.caching import ReadAheadCache


class ClassedReadAhead(ReadAheadCache):  # type: ignore[misc]
    """fsspec's, but no read-ahead leaves a range.

    Read-ahead that begins outside of all ranges crosses them, so that a
    reader of the whole file has no more requests than others.

    :param ranges: (offset, bytes, class id) of other classes than the
        object's, sorted, without overlaps
    """

    def __init__(self, blocksize: int, fetcher: Any, size: int,
                 ranges: Sequence[Tuple[int, int, int]]) -> None:
        super().__init__(blocksize, fetcher, size)
        self._most = blocksize
        self._ranges = ranges
        self._starts = [offset for offset, _, _ in ranges]

    def _fetch(self, start: Optional[int], end: Optional[int]) -> bytes:
        self.blocksize = self._most if end is None else min(
            self._most, self._left(end))
        data: bytes = super()._fetch(start, end)
        return data

    def _left(self, end: int) -> int:
        """Bytes from ``end`` to the end of the range in front of it."""
        at = bisect.bisect_left(self._starts, end) - 1
        if at < 0:
            return self._most
        offset, length, _ = self._ranges[at]
        left = offset + length - end
        return left if left >= 0 else self._most
