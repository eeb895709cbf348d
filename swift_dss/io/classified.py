"""Classified reads and writes: span after span through a carrier.

Everything here blocks and runs in pool threads. Dirty pages take the class
of the thread that syncs them, so a writer that changes class first starts the
write-back of its bytes: ``sync_file_range`` hands the pages to the block layer
under the present class without waiting for the disk. Only whole pages are
started; a page that two spans share goes out once, with the class of the span
that completes it.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from typing import Iterable, List, NamedTuple, Optional, Sequence

from swift_dss.core.spans import Span
from swift_dss.io.carriers import Carrier

_SYNC_FILE_RANGE_WRITE = 2
_IOV_MAX = 1024
#: Bytes that Linux reads ahead by itself.
_AHEAD_OF_LINUX_BYTES = 128 * 1024
_PAGE = mmap.PAGESIZE
#: The kernel cuts each request to what one command of the disk may have,
#: and drops the rest: no controller of today has less than this.
_BRING_BYTES = 256 * 1024

_libc = ctypes.CDLL(None, use_errno=True)
_sync_file_range = getattr(_libc, 'sync_file_range', None)
if _sync_file_range is not None:
    _sync_file_range.argtypes = (
        ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


class Piece(NamedTuple):
    """Buffers that go to one place with one class."""

    offset: int
    length: int
    class_id: int
    buffers: Sequence[memoryview]


def write_pieces(carrier: Carrier, fd: int, pieces: Iterable[Piece],
                 mixed: bool = True, synced_next: bool = False,
                 at_once: bool = False) -> None:
    """Write pieces in order, each under its class.

    When it returns, every full page is on its way to the disk under its
    piece's class, or will be whenever it is written (a carrier that
    remembers). Nothing is durable. Class 0 is left to the kernel, as
    stock Swift does, unless the file has other classes too.

    :param mixed: the file has more than one class
    :param synced_next: the caller syncs the file next, under the class of
        the last piece: what that piece wrote need not be started before
    :param at_once: more comes and all will be synced, so let the disk begin
        with this whatever its class
    :raises OSError: as ``pwritev``; ENOSPC among them
    """
    todo = list(pieces)
    for index, piece in enumerate(todo):
        write_all(carrier, fd, piece.buffers, piece.offset, piece.class_id)
        if synced_next and index == len(todo) - 1:
            return
        if at_once or carrier.carries and not carrier.remembers and (
                mixed or piece.class_id):
            start_writeback(fd, piece.offset, piece.length)


def write_all(carrier: Carrier, fd: int, buffers: Sequence[memoryview],
              offset: int, class_id: int) -> None:
    """Write all of the buffers from ``offset`` on, with one class."""
    todo = list(buffers)
    while todo:
        batch = todo[:_IOV_MAX]
        written = carrier.pwritev(fd, batch, offset, class_id)
        offset += written
        todo = _after(batch, written) + todo[_IOV_MAX:]


def start_writeback(fd: int, offset: int, length: int) -> None:
    """Hand the full pages that end in a range to the block layer."""
    first = offset - offset % _PAGE
    last = (offset + length) - (offset + length) % _PAGE
    if _sync_file_range is not None and last > first:
        # Best effort by design: fsync reports every error that matters.
        _sync_file_range(fd, first, last - first, _SYNC_FILE_RANGE_WRITE)


def read_exact(carrier: Carrier, fd: int, length: int, offset: int,
               class_id: int) -> bytes:
    """``length`` bytes from ``offset``; fewer only at end of file."""
    return _read(carrier, fd, length, offset, class_id, None)


def read_readable(carrier: Carrier, fd: int, length: int, offset: int,
                  class_id: int) -> bytes:
    """The same up to the first byte that the disk cannot give (EIO)."""
    return _read(carrier, fd, length, offset, class_id, errno.EIO)


def read_coming(carrier: Carrier, fd: int, length: int, offset: int,
                class_id: int, coming: int) -> bytes:
    """:func:`read_readable`, where reads of ``coming`` bytes begin: more than
    Linux reads ahead are asked for at once."""
    if coming > _AHEAD_OF_LINUX_BYTES:
        bring(carrier, fd, [Span(offset, coming, class_id)])
    return read_readable(carrier, fd, length, offset, class_id)


def _read(carrier: Carrier, fd: int, length: int, offset: int, class_id: int,
          ends_at: Optional[int]) -> bytes:
    parts: List[bytes] = []
    while length:
        try:
            data = carrier.pread(fd, length, offset, class_id)
        except OSError as err:
            if err.errno != ends_at:
                raise
            break
        if not parts and len(data) == length:
            return data
        if not data:
            break
        parts.append(data)
        offset, length = offset + len(data), length - len(data)
    return b''.join(parts)


def bring(carrier: Carrier, fd: int, spans: Iterable[Span]) -> None:
    """Ask the disk for ranges of a file at once, each under its class.

    Waits for no byte, at most for room in the disk's queue. The bytes come
    to the page cache, where a read finds them or waits for them.
    """
    for span in spans:
        for offset in range(span.offset, span.end, _BRING_BYTES):
            carrier.expect(fd, min(_BRING_BYTES, span.end - offset), offset,
                           span.class_id)


def expect_random(fd: int) -> None:
    """Read ahead nothing: the next bytes may be of another class."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)


def forget(fd: int, offset: int, length: int) -> None:
    """Drop cached pages that are unlikely to be read again."""
    os.posix_fadvise(fd, offset, length, os.POSIX_FADV_DONTNEED)


def _after(buffers: List[memoryview], written: int) -> List[memoryview]:
    for index, buffer in enumerate(buffers):
        if written < len(buffer):
            return [buffer[written:]] + buffers[index + 1:]
        written -= len(buffer)
    return []
