"""Copy bytes of a version from file to file, and prove them on the way.

Whole blocks are checked against the version's checksums. A version of an
earlier release, or one that came as a stub, has none; they are made here: of
blocks from S3, which were proven already, and of all blocks if all were copied
in order and their MD5 is the version's ETag.

Bytes that a disk cannot read count as wrong: the caller gets ``RottenBytes``
for both, and nothing has changed.
"""

from __future__ import annotations

import errno
import hashlib
from typing import Dict, Optional

from swift_dss.core.errors import RottenBytes
from swift_dss.core.limits import IO_WINDOW_BYTES
from swift_dss.core.spans import ClassMap
from swift_dss.io import classified
from swift_dss.io.carriers import Carrier
from swift_dss.io.sums import blocks
from swift_dss.io.sums.blocks import Passing

#: Errors of a disk, or its file system, that cannot read a place.
_UNREADABLE = frozenset((errno.EIO, errno.ENODATA, errno.EREMOTEIO,
                         errno.EILSEQ))


class Copier:
    """Copies ranges of one version, in one move.

    :param fd: of its data file, which has the checksums; stays the caller's
    :param etag: MD5 of all its bytes; '' makes no checksums
    """

    def __init__(self, io: Carrier, class_map: ClassMap, fd: int,
                 content_length: int, etag: str = '') -> None:
        self._io = io
        self._class_map = class_map
        self._content_length = content_length
        self._etag = etag
        self._sums = blocks.load(fd, content_length)
        self._passing: Optional[Passing] = None
        self._is_from_s3 = False
        #: Of blocks that had none: those of S3, and of other tiers.
        self._proven: Dict[int, int] = {}
        self._unproven: Dict[int, int] = {}
        self._whole = hashlib.md5(usedforsecurity=False) \
            if etag and self._sums is None else None
        self._whole_bytes = 0

    def copy(self, source: int, target: int, offset: int, length: int,
             is_from_s3: bool = False) -> None:
        """Copy a range, at the same offsets.

        :param is_from_s3: its bytes have been proven
        :raises RottenBytes: a block of it is wrong or cannot be read
        """
        for span in self._class_map.split(offset, length):
            for at in range(span.offset, span.end, IO_WINDOW_BYTES):
                data = self._read(source, at, min(
                    IO_WINDOW_BYTES, span.end - at), span.class_id)
                self._check(at, data, is_from_s3)
                write(self._io, target, data, at, span.class_id)
        # The next I/O of this thread has no class.
        self._io.leave()

    def store(self, fd: int) -> None:
        """Put checksums that were made on the version's data file, as far
        as there is room for them; no fsync.

        :param fd: of the file that the version has from now on
        """
        made = dict(self._proven)
        if self._whole is not None and \
                self._whole_bytes == self._content_length and \
                self._whole.hexdigest() == self._etag:
            made.update(self._unproven)
        if self._etag and made:
            blocks.add(fd, self._content_length, made)

    def _read(self, source: int, at: int, length: int,
              class_id: int) -> bytes:
        try:
            data = classified.read_exact(self._io, source, length, at,
                                         class_id)
        except OSError as err:
            if err.errno not in _UNREADABLE:
                raise
            raise RottenBytes('bytes %d to %d cannot be read: %s' % (
                at, at + length - 1, err)) from err
        if len(data) != length:
            raise RottenBytes('a source file ends at byte %d'
                              % (at + len(data)))
        return data

    def _check(self, offset: int, data: bytes, is_from_s3: bool) -> None:
        passing = self._passing
        if passing is None or passing.end != offset or \
                self._is_from_s3 != is_from_s3:
            # A block from two sources cannot be proven by either.
            passing = self._passing = Passing(
                self._sums, self._content_length, offset,
                self._proven if is_from_s3 else self._unproven)
            self._is_from_s3 = is_from_s3
        passing.check(data)
        if self._whole is not None and self._whole_bytes == offset:
            self._whole.update(data)
            self._whole_bytes += len(data)


def write(io: Carrier, fd: int, data: bytes, offset: int,
          class_id: int) -> None:
    """Write all of ``data`` under its class; nothing is durable yet."""
    classified.write_pieces(io, fd, [classified.Piece(
        offset, len(data), class_id, [memoryview(data)])])
