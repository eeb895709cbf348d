"""Assemble and check blocks before they are sent.

Reads come in pieces of one tier and one class each, and two pieces may meet
within a block. A block within one piece was already checked by its read.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, List, NamedTuple, Tuple

from swift_dss.io.sums.blocks import BlockSums
from swift_dss.wire.records.blocks import BLOCK_BYTES


class BytesRotten(Exception):
    """A block has other bytes than were written, and no other tier that may
    be asked has them.

    :param is_in_s3: S3 has them, but is not asked for such a reader
    """

    def __init__(self, reason: str, is_in_s3: bool) -> None:
        super().__init__(reason)
        self.is_in_s3 = is_in_s3


class BadBlock(Exception):
    """The bytes read of a block are not those that were written."""

    def __init__(self, block: int) -> None:
        super().__init__(block)
        self.block = block


class Piece(NamedTuple):
    """Bytes of one tier.

    :param is_proven: all blocks that end in it, and begin there, are right
    """

    offset: int
    data: bytes
    is_proven: bool


def in_blocks(sums: BlockSums, pieces: Iterable[Piece],
              stop: int) -> Iterator[Tuple[int, bytes]]:
    """(offset, bytes) of pieces, in order, with whole blocks checked.

    Bytes of a block that is not here as a whole cannot be checked.

    :param stop: where the last piece ends
    :raises BadBlock: the next bytes belong to a wrong block
    """
    held: List[bytes] = []
    at = 0
    for offset, data, is_proven in pieces:
        if held and offset != at:
            # An audit leaves bytes out that are not here.
            yield _joined(held, at)
        at = offset
        if is_proven and not held:
            end = at + len(data)
            whole = len(data) if end == stop else \
                len(data) - end % BLOCK_BYTES
            if whole > 0:
                yield at, data[:whole]
                at, data = at + whole, data[whole:]
        while data:
            taken = data[:BLOCK_BYTES - at % BLOCK_BYTES]
            held.append(taken)
            at, data = at + len(taken), data[len(taken):]
            if at == stop or not at % BLOCK_BYTES:
                first, block = _joined(held, at)
                if not first % BLOCK_BYTES and (
                        not at % BLOCK_BYTES
                        or at == sums.content_length) and \
                        not sums.is_right(first // BLOCK_BYTES, block):
                    raise BadBlock(first // BLOCK_BYTES)
                yield first, block
    if held:
        yield _joined(held, at)


def _joined(held: List[bytes], end: int) -> Tuple[int, bytes]:
    data = b''.join(held)
    held.clear()
    return end - len(data), data


def trimmed(blocks: Iterable[Tuple[int, bytes]], start: int, stop: int,
            digest: Any) -> Iterator[bytes]:
    """The part of blocks that lies in a range.

    :param digest: updated with it, or None
    """
    for offset, data in blocks:
        if offset < start or offset + len(data) > stop:
            data = data[max(start - offset, 0):max(stop - offset, 0)]
        if data:
            if digest is not None:
                digest.update(data)
            yield data
