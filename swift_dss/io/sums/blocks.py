"""Checksums of a version's blocks, kept with its data file.

They are extended attributes of the data file, beside the residency record, and
belong to the version: they hold for its bytes on any tier. Copy them when a
version gets another inode. A file without them is not checked.

All calls block on the file system of the data file.
"""

from __future__ import annotations

import contextlib
import errno
import os
from array import array
from typing import Any, Dict, List, Mapping, Optional, Sequence

import xxhash

from swift_dss.core.errors import (
    FULL_ERRNOS, DamagedRecord, RottenBytes)
from swift_dss.wire import names
from swift_dss.wire.records import blocks
from swift_dss.wire.records.blocks import BLOCK_BYTES

#: Errors of file systems for an attribute that is too large.
_NO_ROOM = FULL_ERRNOS | {errno.E2BIG, errno.ERANGE, errno.EOPNOTSUPP}
_NO_SUMS: array[int] = array('I')
_xxh3 = xxhash.xxh3_64_intdigest


def sum_of(block: Any) -> int:
    """The sum of a whole block; 1 to 2**32 - 1.

    :param block: bytes, or a view of them
    """
    return _xxh3(block) & 0xffffffff or 1


class Summer:
    """Sums of the blocks of a stream, from its first byte on."""

    def __init__(self) -> None:
        #: Of the blocks that are complete.
        self.sums = array('I')
        self._part: Any = None
        self._part_bytes = 0

    def update(self, chunk: bytes) -> None:
        """Go on with these bytes."""
        if self._part is None and len(chunk) == BLOCK_BYTES:
            self.sums.append(_xxh3(chunk) & 0xffffffff or 1)
            return
        view = memoryview(chunk)
        while view:
            if self._part is None:
                self._part = xxhash.xxh3_64()
            taken = view[:BLOCK_BYTES - self._part_bytes]
            self._part.update(taken)
            self._part_bytes += len(taken)
            view = view[len(taken):]
            if self._part_bytes == BLOCK_BYTES:
                self._end()

    def finish(self) -> array[int]:
        """The sums of all blocks; nothing may come after."""
        if self._part is not None:
            self._end()
        return self.sums

    def _end(self) -> None:
        self.sums.append(self._part.intdigest() & 0xffffffff or 1)
        self._part = None
        self._part_bytes = 0


class BlockSums:
    """The sums of one open data file, read page by page as needed.

    Not thread-safe.

    :param fd: stays the caller's
    :param first: the first page
    """

    def __init__(self, fd: int, content_length: int,
                 first: array[int]) -> None:
        self._fd = fd
        self.content_length = content_length
        self._first = first
        self._pages: Dict[int, array[int]] = {0: first}

    def expected(self, block: int) -> int:
        """The sum of a block; 0 if it is not known.

        Blocks on the SSD where a page is needed that was not read yet.
        """
        page, index = divmod(block, blocks.PAGE_BLOCKS)
        sums = self._pages.get(page)
        if sums is None:
            sums = self._pages[page] = _load_page(
                self._fd, page, self.content_length)
        return sums[index] if index < len(sums) else 0

    def is_right(self, block: int, data: Any) -> bool:
        """True if a whole block has the bytes that were written, or has no
        checksum.

        :param data: bytes, or a view of them
        """
        expected = self.expected(block)
        return not expected or sum_of(data) == expected

    def right_bytes(self, offset: int, data: Sequence[Any],
                    length: int) -> int:
        """How many bytes are of whole blocks that are right, up to the
        first that is not.

        :param offset: where a block begins
        :param data: bytes from there on, or views, each of a block; the
            last may have more than ``length`` says
        """
        at, block = 0, offset // BLOCK_BYTES
        first, whole = self._first, length // BLOCK_BYTES
        for part in data[:whole]:
            expected = first[block] if block < len(first) \
                else self.expected(block)
            # Once a block of each read: every call less counts.
            if expected and (_xxh3(part) & 0xffffffff or 1) != expected:
                break
            at, block = at + BLOCK_BYTES, block + 1
        else:
            # The version's last block is shorter than others.
            if at < length and offset + length == self.content_length and \
                    self.is_right(block, memoryview(
                        data[whole])[:length - at]):
                at = length
        return at


class Passing:
    """Checks the whole blocks of a range while its bytes pass.

    :param sums: None if there are none
    :param offset: where the range begins
    :param made: gets the sums of whole blocks of which none is known
    """

    def __init__(self, sums: Optional[BlockSums], content_length: int,
                 offset: int, made: Dict[int, int]) -> None:
        self._sums = sums
        self._content_length = content_length
        self._made = made
        self._skip = -offset % BLOCK_BYTES
        self._block = (offset + self._skip) // BLOCK_BYTES
        #: Up to here the range has passed.
        self.end = offset
        self._summer = Summer()

    def check(self, data: bytes) -> None:
        """The next bytes.

        :raises RottenBytes: a block that ends in them is wrong
        """
        self.end += len(data)
        if self._skip:
            data, self._skip = data[self._skip:], max(
                0, self._skip - len(data))
        self._summer.update(data)
        if self.end == self._content_length and not self._skip:
            self._summer.finish()
        sums = self._summer.sums
        for made in sums:
            expected = self._sums.expected(self._block) \
                if self._sums is not None else 0
            if not expected:
                self._made[self._block] = made
            elif made != expected:
                raise RottenBytes(
                    'the block at byte %d has other bytes than were written'
                    % (self._block * BLOCK_BYTES))
            self._block += 1
        del sums[:]


def load(fd: int, content_length: int) -> Optional[BlockSums]:
    """The sums of an open data file; None if it has none that can be used.
    """
    first = _load_page(fd, 0, content_length)
    return BlockSums(fd, content_length, first) if first else None


def store(fd: int, content_length: int, sums: Sequence[int]) -> bool:
    """Put sums on an open data file; no fsync.

    :param sums: of all blocks of the version
    :returns: False if there was no room for all of them; those there is
        room for are there then, from the first on
    """
    known = sums if isinstance(sums, array) else array('I', sums)
    for page in range(-(-len(known) // blocks.PAGE_BLOCKS)):
        at = page * blocks.PAGE_BLOCKS
        if not _store_page(fd, content_length, page,
                           known[at:at + blocks.PAGE_BLOCKS]):
            return False
    return True


def _store_page(fd: int, content_length: int, page: int,
                sums: array[int]) -> bool:
    try:
        os.setxattr(fd, _name(page), blocks.encode_page(
            content_length, sums))
    except OSError as err:
        if err.errno in _NO_ROOM:
            return False
        raise
    return True


def add(fd: int, content_length: int, made: Mapping[int, int]) -> bool:
    """Put sums of some blocks on an open data file; no fsync. Those that
    are known stay.

    :param made: by number of the block
    :returns: False if there was no room for all of them
    """
    # Readers ignore the other pages without the first one.
    pages = {0} | {block // blocks.PAGE_BLOCKS for block in made}
    for page in sorted(pages):
        first = page * blocks.PAGE_BLOCKS
        sums = _load_page(fd, page, content_length)[:] or array(
            'I', bytes(4 * blocks.sums_on(page, content_length)))
        for index, known in enumerate(sums):
            if not known:
                sums[index] = made.get(first + index, 0)
        if not _store_page(fd, content_length, page, sums):
            return False
    return True


def remove(fd: int) -> bool:
    """Take all sums off an open data file; True if there were any."""
    names = attributes(os.listxattr(fd))
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.removexattr(fd, name)
    return bool(names)


def attributes(listed: Sequence[str]) -> List[str]:
    """Those of a file's attributes that hold sums."""
    return [name for name in listed
            if name.startswith(names.XATTR_BLOCKS)]


def _name(page: int) -> str:
    return '%s.%d' % (names.XATTR_BLOCKS, page) if page \
        else names.XATTR_BLOCKS


def _load_page(fd: int, page: int, content_length: int) -> array[int]:
    try:
        raw = os.getxattr(
            fd, _name(page) if page else names.XATTR_BLOCKS)
        return blocks.decode_page(raw, page, content_length)
    except (OSError, DamagedRecord):
        # The bytes are served as a file's that never had sums.
        return _NO_SUMS
