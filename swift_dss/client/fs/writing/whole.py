"""A file that is there whole before it is sent: its format says its classes
first, and every segment goes up with its own."""

from __future__ import annotations

import asyncio
from typing import (
    Any, BinaryIO, Callable, Iterable, Iterator, NamedTuple, Optional,
    Sequence, Tuple)

from swift_dss.client.formats.contract import Reader
from swift_dss.client.formats.readers import FileReader
from swift_dss.client.fs.writing.auto import InMemory
from swift_dss.client.fs.writing.segments import Cutter
from swift_dss.client.fs.writing.upload import Upload
from swift_dss.core.spans import Span

_PIECE_BYTES = 1 << 20


class Whole(NamedTuple):
    """What is sent.

    :param pieces: its bytes, in order
    :param reader: of the same bytes; None if they come once only
    """

    pieces: Iterable[memoryview]
    reader: Optional[Reader]


def of_bytes(value: Any) -> Whole:
    """Bytes, or another object that shows its memory."""
    view = memoryview(value).cast('B')
    return Whole([view], InMemory(view))


def of_file(source: BinaryIO) -> Whole:
    """A file that was just opened; a pipe is read once."""
    reader = FileReader(source) if source.seekable() else None
    if reader is not None:
        source.seek(0)
    return Whole(iter(lambda: memoryview(source.read(_PIECE_BYTES)), b''),
                 reader)


async def send(upload: Upload, cutter: Cutter, whole: Whole,
               noted: Callable[[int], Any]) -> None:
    """Write an object.

    :param noted: is told how many bytes went on their way
    :raises OSError: nothing is stored
    """
    loop = asyncio.get_running_loop()
    try:
        spans = [] if whole.reader is None \
            else await upload.look(whole.reader)
        segments = cutter.cut(classed(whole.pieces, spans), noted)
        # Reading and hashing would keep the loop from sending.
        while True:
            segment = await loop.run_in_executor(None, next, segments, None)
            if segment is None:
                break
            await upload.add(segment)
        await upload.finish(cutter.take_last())
    except BaseException:
        await upload.abort()
        raise


def classed(pieces: Iterable[memoryview], spans: Sequence[Span]
            ) -> Iterator[Tuple[memoryview, Optional[int]]]:
    """Pieces of one class each.

    :param spans: sorted; bytes in none of them have the object's class
    """
    at, left = 0, list(reversed(spans))
    for piece in pieces:
        while len(piece):
            while left and left[-1].end <= at:
                left.pop()
            is_hot = bool(left) and left[-1].offset <= at
            border = at + len(piece) if not left else \
                left[-1].end if is_hot else left[-1].offset
            part = piece[:border - at]
            yield part, left[-1].class_id if is_hot else None
            at += len(part)
            piece = piece[len(part):]
