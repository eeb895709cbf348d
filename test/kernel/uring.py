"""As much of io_uring as it takes to send one request and see its result."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from typing import Any, List, Sequence

READV, WRITEV, READ, WRITE = 1, 2, 22, 23

_SETUP, _ENTER = 425, 426
_GETEVENTS = 1
_SUBMISSION, _ENTRIES = 0, 0x10000000
_ENTRY = struct.Struct('=BBHiQQIIQHHiQQ')
_PARAMS = struct.Struct('=7I3I10I10I')

_libc = ctypes.CDLL(None, use_errno=True)


class Ring:
    """A ring of eight, one request at a time."""

    def __init__(self) -> None:
        params = ctypes.create_string_buffer(_PARAMS.size)
        self._fd = _libc.syscall(_SETUP, 8, params)
        if self._fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, 'io_uring_setup: ' + os.strerror(number))
        numbers = _PARAMS.unpack(params.raw)
        self._sq, self._cq = numbers[10:20], numbers[20:30]
        # One mapping has both rings (IORING_FEAT_SINGLE_MMAP).
        size = max(self._sq[6] + numbers[0] * 4, self._cq[5] + numbers[1] * 16)
        self._rings = mmap.mmap(self._fd, size, offset=_SUBMISSION)
        self._entries = mmap.mmap(self._fd, numbers[0] * 64, offset=_ENTRIES)
        self._mask = numbers[0] - 1, numbers[1] - 1

    def __enter__(self) -> Ring:
        return self

    def __exit__(self, *_error: Any) -> None:
        self._entries.close()
        self._rings.close()
        os.close(self._fd)

    def vector(self, code: int, fd: int, buffers: Sequence[bytearray],
               offset: int, flags: int = 0, ioprio: int = 0) -> int:
        """A readv or writev; the result, negative if it is an errno."""
        arrays = [(ctypes.c_char * len(each)).from_buffer(each)
                  for each in buffers]
        raw = ctypes.create_string_buffer(b''.join(
            struct.pack('=QQ', ctypes.addressof(each), len(each))
            for each in arrays))
        return self._run(code, fd, ctypes.addressof(raw), len(arrays),
                         offset, flags, ioprio)

    def buffer(self, code: int, fd: int, data: bytearray, offset: int,
               ioprio: int = 0) -> int:
        """A read or write of one buffer; its result likewise."""
        array = (ctypes.c_char * len(data)).from_buffer(data)
        return self._run(code, fd, ctypes.addressof(array), len(data),
                         offset, 0, ioprio)

    def _run(self, *request: int) -> int:
        code, fd, place, length, offset, flags, ioprio = request
        tail = self._get(self._sq[1])
        slot = tail & self._mask[0]
        _ENTRY.pack_into(self._entries, slot * 64, code, 0, ioprio, fd,
                         offset, place, length, flags, 0, 0, 0, 0, 0, 0)
        self._put(self._sq[6] + slot * 4, slot)
        self._put(self._sq[1], tail + 1)
        done = _libc.syscall(_ENTER, self._fd, 1, 1, _GETEVENTS, None, 0)
        if done != 1:
            raise OSError(ctypes.get_errno(), 'io_uring_enter')
        head = self._get(self._cq[0])
        at = self._cq[5] + (head & self._mask[1]) * 16
        result: List[int] = list(struct.unpack_from(
            '=Qi', self._rings, at))
        self._put(self._cq[0], head + 1)
        return result[1]

    def _get(self, at: int) -> int:
        return int(struct.unpack_from('=I', self._rings, at)[0])

    def _put(self, at: int, value: int) -> None:
        struct.pack_into('=I', self._rings, at, value)
