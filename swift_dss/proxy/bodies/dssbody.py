"""``.dss`` bodies on their way in and out; streamed, never held whole."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Optional, Tuple

from swift.common.exceptions import ChunkReadError
from swift.common.utils import close_if_possible, md5

from swift_dss.core.errors import BadClassInput, DssError
from swift_dss.core.limits import DEFAULT_MAX_SPANS
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire import names
from swift_dss.wire.dssfile import Decoder

_READ_BYTES = 65536


class CheckedInput:
    """A request body that fails as a whole if its claims are false.

    Swift MUST see an error while it reads, so that it never commits the
    object. It does not know our reasons: ``failure`` keeps the reason for the
    answer to the client.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self.failure: Optional[DssError] = None
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """The next bytes; b'' at the end.

        :raises ChunkReadError: the body is not as it claims
        """
        if size is None or size < 0:
            return b''.join(iter(lambda: self.read(_READ_BYTES), b''))
        if self._ended or not size:
            return b''
        try:
            chunk = self._next(size)
            if not chunk:
                self._ended = True
                self._finish()
        except DssError as err:
            self.failure = err
            raise ChunkReadError(str(err)) from err
        return chunk

    def readline(self, size: int = -1) -> bytes:
        """Swift reads bodies by size only; lines are not ours to cut."""
        raise NotImplementedError('read by size')

    def close(self) -> None:
        """Close what is wrapped."""
        close_if_possible(self._source)

    def _next(self, size: int) -> bytes:
        return bytes(self._source.read(size))

    def _finish(self) -> None:
        """Raise a DssError if the whole was not as it claimed."""


class BoundedRanges(CheckedInput):
    """A chunked upload whose ranges must lie inside it.

    :param ranges: sorted, as given in the header
    """

    def __init__(self, source: Any, ranges: Tuple[Span, ...]) -> None:
        super().__init__(source)
        self._ranges = ranges
        self._received = 0

    def _next(self, size: int) -> bytes:
        chunk: bytes = self._source.read(size)
        self._received += len(chunk)
        return chunk

    def _finish(self) -> None:
        last = self._ranges[-1]
        if last.end > self._received:
            raise BadClassInput(
                names.RANGE_CLASS, '%d-%d-%d ends at byte %d, past the '
                "object's %d bytes" % (last.offset, last.length,
                                       last.class_id, last.end,
                                       self._received), len(self._ranges))


class DssInput(CheckedInput):
    """The data of a ``.dss`` body.

    :param length: bytes of the whole body; None for a chunked upload
    :param digest: MD5 of the whole body that the client promised; None
        if it did not
    """

    def __init__(self, source: Any, length: Optional[int],
                 max_spans: int = DEFAULT_MAX_SPANS,
                 digest: Optional[str] = None) -> None:
        super().__init__(source)
        self._decoder = Decoder(length, max_spans=max_spans)
        self._ready = b''
        self._digest = digest
        self._hasher = md5(usedforsecurity=False) if digest else None

    def read_section(self) -> ClassMap:
        """Read from the body until the classes are known, and no further: a
        client that waits for the answer gets an error at once.

        :raises BadClassInput: with the reason and the byte
        """
        decoder = self._decoder
        while decoder.class_map is None:
            self._ready = decoder.feed(self._raw(
                min(_READ_BYTES, decoder.wanted_bytes)))
        return decoder.class_map

    @property
    def section_bytes(self) -> int:
        """Bytes before the data, once the section was read."""
        return self._decoder.section_bytes or 0

    def _raw(self, size: int) -> bytes:
        chunk: bytes = self._source.read(size)
        if not chunk:
            self._decoder.finish()
            raise self._decoder.error('is cut off', 0)
        if self._hasher:
            self._hasher.update(chunk)
        return chunk

    def _next(self, size: int) -> bytes:
        if self._ready:
            chunk, self._ready = self._ready[:size], self._ready[size:]
            return chunk
        raw = self._source.read(size)
        if raw and self._hasher:
            self._hasher.update(raw)
        return self._decoder.feed(raw) if raw else b''

    def _finish(self) -> None:
        self._decoder.finish()
        if self._hasher and self._hasher.hexdigest() != self._digest:
            raise BadDigest('Content-MD5', 'is not the MD5 of the body')


class BadDigest(BadClassInput):
    """The body is not the one whose MD5 was promised."""

    http_status = 422
    counter = 'bad_digest'


class Prefixed:
    """A response body with a class section in front of it."""

    def __init__(self, section: bytes, body: Iterable[bytes]) -> None:
        self._section = section
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._section
        yield from self._body

    def close(self) -> None:
        """Close what is wrapped."""
        close_if_possible(self._body)

