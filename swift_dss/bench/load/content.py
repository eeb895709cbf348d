"""Bytes of objects that can be told from their name.

An object begins with 16 bytes of a hash of the seed, its name and its
generation; the rest are bytes of one pool, from a place that the hash gives.
The pool has a prime number of bytes, so that a block at another multiple of
any block size is other bytes. Reads of other objects, generations or places
are seen with all but one chance in a million.
"""

from __future__ import annotations

import hashlib
from typing import Iterator, NamedTuple

_POOL_BYTES = 1_048_583
_STAMP_BYTES = 16
#: Bytes that are sent or compared at once.
STEP_BYTES = 256 * 1024


class Contents:
    """The bytes of all objects of a run."""

    def __init__(self, seed: str) -> None:
        self._seed = seed.encode('utf-8', 'surrogateescape')
        pool = hashlib.shake_128(self._seed).digest(_POOL_BYTES)
        self._pool = pool + pool[:STEP_BYTES]

    def body(self, name: str, generation: int, size: int) -> Body:
        """The bytes of one version.

        :param name: ``container/object``
        :param generation: how often it was written before
        """
        stamp = hashlib.blake2b(
            b'%d/%s' % (generation, name.encode('utf-8')),
            key=hashlib.sha256(self._seed).digest(),
            digest_size=_STAMP_BYTES + 8).digest()
        return Body(self._pool, stamp, size, generation)


class Body:
    """The bytes of one version of an object."""

    def __init__(self, pool: bytes, stamp: bytes, size: int,
                 generation: int) -> None:
        self.generation = generation
        self._pool = pool
        self._stamp = stamp[:_STAMP_BYTES]
        self._start = int.from_bytes(stamp[_STAMP_BYTES:], 'big')
        self.size = size

    def piece(self, offset: int, count: int) -> bytes:
        """Bytes from ``offset`` on.

        :param count: :data:`STEP_BYTES` at most; the end of the object cuts
            it
        """
        count = min(count, self.size - offset)
        if offset >= _STAMP_BYTES:
            at = (self._start + offset) % _POOL_BYTES
            return self._pool[at:at + count]
        head = self._stamp[offset:offset + count]
        rest = count - len(head)
        return head + self.piece(_STAMP_BYTES, rest) if rest else head

    def part(self, offset: int, size: int) -> Part:
        """A segment of it."""
        return Part(self, offset, size)

    def pieces(self) -> Iterator[bytes]:
        """All bytes, in order."""
        return self.part(0, self.size).pieces()

    def has(self, offset: int, data: bytes) -> bool:
        """Are these its bytes at ``offset``?

        :param data: :data:`STEP_BYTES` at most
        """
        return offset + len(data) <= self.size and \
            self.piece(offset, len(data)) == data


class Part(NamedTuple):
    """Bytes of a :class:`Body` from ``offset`` on."""

    body: Body
    offset: int
    size: int

    def pieces(self) -> Iterator[bytes]:
        """All bytes, in order."""
        for at in range(0, self.size, STEP_BYTES):
            yield self.body.piece(self.offset + at,
                                  min(STEP_BYTES, self.size - at))


class Text:
    """The body of a request that says something."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode('utf-8')
        self.size = len(self._bytes)

    def pieces(self) -> Iterator[bytes]:
        """All bytes."""
        yield self._bytes
