"""Files of many formats, and a file that notes what is read of it."""

from __future__ import annotations

import io
import os
import struct
from typing import Any, BinaryIO, Iterable, List, Sequence, Tuple

MIB = 1 << 20


class Recorder(io.RawIOBase):
    """A file for libraries; it knows which bytes they read."""

    def __init__(self, path: Any) -> None:
        super().__init__()
        self._opened: BinaryIO = open(  # noqa: SIM115
            path, 'rb', buffering=0)
        self.reads: List[Tuple[int, int]] = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._opened.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._opened.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        at = self._opened.tell()
        length = self._opened.readinto(buffer)
        self.reads.append((at, length))
        return length

    def close(self) -> None:
        self._opened.close()
        super().close()

    def cold(self, ranges: Sequence[Tuple[int, int]]) -> List[
            Tuple[int, int]]:
        """Parts of what was read that are in no range.

        :param ranges: sorted, without overlaps
        """
        parts = []
        for offset, length in self.reads:
            end = offset + length
            for start, size in ranges:
                if start + size <= offset or start >= end:
                    continue
                if start > offset:
                    parts.append((offset, start - offset))
                offset = start + size
            if offset < end:
                parts.append((offset, end - offset))
        return parts


def sparse(path: Any, size: int, pieces: Iterable[Tuple[int, bytes]]
           ) -> None:
    """A file that is zeros but for some pieces, and costs no disk."""
    with open(path, 'wb') as opened:
        opened.truncate(size)
        for offset, piece in pieces:
            opened.seek(offset)
            opened.write(piece)


def box(kind: bytes, *parts: bytes) -> bytes:
    """A box of MP4."""
    body = b''.join(parts)
    return struct.pack('>I4s', 8 + len(body), kind) + body


def full(kind: bytes, *numbers: int, raw: bytes = b'') -> bytes:
    """A box with version, flags and numbers of 32 bits."""
    return box(kind, struct.pack('>%dI' % (1 + len(numbers)), 0, *numbers),
               raw)


def track(handler: bytes, sizes: Sequence[int], chunks: Sequence[int],
          per_chunk: int, sync: Sequence[int] = (),
          wide: bool = False) -> bytes:
    """A track of MP4 with its tables.

    :param chunks: offset of each chunk in the file
    :param sync: numbers of samples from 1; none: all of them
    """
    offsets = box(b'co64', struct.pack(
        '>II%dQ' % len(chunks), 0, len(chunks), *chunks)) if wide \
        else full(b'stco', len(chunks), *chunks)
    tables = [full(b'stsz', 0, len(sizes), *sizes),
              full(b'stsc', 1, 1, per_chunk, 1), offsets]
    if sync:
        tables.append(full(b'stss', len(sync), *sync))
    return box(b'trak', box(
        b'mdia', full(b'hdlr', 0, raw=handler + bytes(13)),
        box(b'minf', box(b'stbl', *tables))))


def film(path: Any, frames: int = 2400, frame_bytes: int = 10000,
         every: int = 24, moov_first: bool = False) -> List[
             Tuple[int, int]]:
    """A film of one track whose frames are zeros.

    :param every: so many frames a key frame comes
    :returns: (offset, bytes) of each key frame
    """
    ftyp = box(b'ftyp', b'isom', bytes(4), b'isom')
    per_chunk = 12
    sync = list(range(1, frames + 1, every))
    sizes = [frame_bytes] * frames

    def moov_at(start: int) -> bytes:
        chunks = [start + 8 + frame_bytes * at
                  for at in range(0, frames, per_chunk)]
        return box(b'moov', track(b'vide', sizes, chunks, per_chunk, sync))
    head = len(ftyp) + (len(moov_at(0)) if moov_first else 0)
    moov = moov_at(head)
    length = 8 + frames * frame_bytes
    pieces = [(0, ftyp + moov if moov_first else ftyp),
              (head, struct.pack('>I4s', length, b'mdat'))]
    if not moov_first:
        pieces.append((head + length, moov))
    sparse(path, head + length + (0 if moov_first else len(moov)), pieces)
    return [(head + 8 + frame_bytes * (number - 1), frame_bytes)
            for number in sync]
