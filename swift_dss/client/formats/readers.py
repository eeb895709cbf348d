"""Ways to read a file at any offset: within limits, cached, as a file."""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from typing import Any, BinaryIO, Callable, List, Optional, Tuple

from swift_dss.client.formats.contract import (
    MAX_READ_BYTES, BadFile, Reader)

#: Bytes that a classifier may read of a small file, and more of a large one.
_READ_BYTES = 256 << 20
_READ_SHARE = 0.1
#: Reads of a classifier: a tar of a million members takes so many.
_READS = 1 << 20
#: Blocks of a cached reader, and bytes of them that it keeps.
_BLOCK_BYTES = 256 << 10
_KEPT_BYTES = 64 << 20


class FileReader(Reader):
    """A file that is open.

    :param opened: it stays the caller's
    """

    def __init__(self, opened: BinaryIO) -> None:
        super().__init__(opened.seek(0, os.SEEK_END))
        self._handle = opened.fileno()

    def read(self, offset: int, length: int) -> bytes:
        """See :class:`Reader`."""
        length = max(0, min(length, self.size - offset))
        raw = os.pread(self._handle, length, offset) if length else b''
        while raw and len(raw) < length:
            more = os.pread(self._handle, length - len(raw),
                            offset + len(raw))
            if not more:
                break
            raw += more
        return raw


class Bounded(Reader):
    """A reader that no file can keep busy for ever.

    :param around: what is read
    :param size: that the limit follows; None: the reader's own. A disk in
        an image may be larger than all that exists.
    """

    def __init__(self, around: Reader, size: Optional[int] = None) -> None:
        super().__init__(around.size)
        self._around = around
        self._bytes_left = int(max(_READ_BYTES, _READ_SHARE * (
            around.size if size is None else size)))
        self._reads_left = _READS

    def read(self, offset: int, length: int) -> bytes:
        """See :class:`Reader`.

        :raises BadFile: the limit is reached
        """
        length = max(0, min(length, self.size - offset))
        self._reads_left -= 1
        self._bytes_left -= length
        if length > MAX_READ_BYTES or self._bytes_left < 0 \
                or self._reads_left < 0:
            raise BadFile('index', 'needs more to be read than a file of %d '
                          'bytes may ask for' % self.size, offset)
        return self._around.read(offset, length)


class Cached(Reader):
    """Blocks of a file that is far away; a few of them are kept.

    :param get: bytes from an offset to another, all of them in the file
    :param kept_bytes: of blocks
    """

    def __init__(self, size: int, get: Callable[[int, int], bytes],
                 kept_bytes: int = _KEPT_BYTES) -> None:
        super().__init__(size)
        self._get = get
        self._most_blocks = kept_bytes // _BLOCK_BYTES
        self._blocks: OrderedDict[int, bytes] = OrderedDict()

    def read(self, offset: int, length: int) -> bytes:
        """See :class:`Reader`."""
        end = min(self.size, offset + length)
        if offset >= end:
            return b''
        if length > _BLOCK_BYTES:
            return self._get(offset, end)
        first = offset // _BLOCK_BYTES
        raw = b''.join(self._block(number) for number in range(
            first, (end - 1) // _BLOCK_BYTES + 1))
        start = offset - first * _BLOCK_BYTES
        return raw[start:start + end - offset]

    def _block(self, number: int) -> bytes:
        raw = self._blocks.pop(number, None)
        if raw is None:
            start = number * _BLOCK_BYTES
            raw = self._get(start, min(self.size, start + _BLOCK_BYTES))
        self._blocks[number] = raw
        if len(self._blocks) > self._most_blocks:
            self._blocks.popitem(last=False)
        return raw


class Part(Reader):
    """Part of a file, with offsets of its own.

    :param around: the file
    :param offset: of the part's first byte
    """

    def __init__(self, around: Reader, offset: int, size: int) -> None:
        super().__init__(size)
        self._around = around
        self._offset = offset

    def read(self, offset: int, length: int) -> bytes:
        """See :class:`Reader`."""
        length = max(0, min(length, self.size - offset))
        return self._around.read(self._offset + offset, length)


class AsFile(io.RawIOBase):
    """A reader as a file, for libraries that want one.

    :param most_bytes: of one read
    :ivar ranges: (offset, bytes) of each read, in their order; reads that
        follow one another are one
    """

    def __init__(self, reader: Reader,
                 most_bytes: int = MAX_READ_BYTES) -> None:
        super().__init__()
        self._reader = reader
        self._most_bytes = most_bytes
        self._at = 0
        self.ranges: List[Tuple[int, int]] = []

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The offset of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to an offset.

        :raises ValueError: it is negative
        """
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at,
                os.SEEK_END: self._reader.size}[whence]
        if base + offset < 0:
            raise ValueError('offset %d is negative' % (base + offset))
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """The next bytes.

        :raises BadFile: they are more than one read may have
        """
        if size is None or size < 0:
            size = max(0, self._reader.size - self._at)
        if size > self._most_bytes:
            raise BadFile('index', 'claims %d bytes, more than %d'
                          % (size, self._most_bytes), self._at)
        raw = self._reader.read(self._at, size)
        if self.ranges and sum(self.ranges[-1]) == self._at:
            offset, length = self.ranges.pop()
            self.ranges.append((offset, length + len(raw)))
        elif raw:
            self.ranges.append((self._at, len(raw)))
        self._at += len(raw)
        return raw

    def readinto(self, buffer: Any) -> int:
        """The next bytes, into a buffer; how many."""
        view = memoryview(buffer).cast('B')
        raw = self.read(len(view))
        view[:len(raw)] = raw
        return len(raw)
