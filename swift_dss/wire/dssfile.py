"""The ``.dss`` object: classes and data in one self-describing stream.

All numbers are big endian; ``doc/source/reference/dss-format.rst`` has the
format byte by byte, with examples. Both forms start with 16 bytes::

    offset  bytes  block form (VER_ID 1)    range form (VER_ID 2)
    0       2      MAGIC_SIG  'DS'          MAGIC_SIG  'DS'
    2       1      VER_ID     1             VER_ID     2
    3       1      CLS_BYTES  1, 2 or 4     CLS_BYTES  1, 2 or 4
    4       4      BLK_SECTORS (512 B)      RESERVED   0
    8       4      NUM_BLKS                 RESERVED   0
    12      4      RESERVED   0             RESERVED   0

then, in block form, ``NUM_BLKS`` classes of ``CLS_BYTES`` bytes; in range
form ``NUM_RANGES`` (4), ``REST_CLASS`` (``CLS_BYTES``) and per range
offset (8), length (8), class (``CLS_BYTES``), sorted, without overlaps.
The rest of the stream is the data, as it is.

A block table must cover the data exactly: NUM_BLKS is the size divided by
the block size, rounded up. No range may pass the end of the data.
"""

from __future__ import annotations

from typing import List, Optional

from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.limits import (
    CLASS_ID_MAX, DEFAULT_MAX_DSS_SECTION_BYTES, DEFAULT_MAX_SPANS,
    MAX_OBJECT_BYTES, UNCLASSIFIED)
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire.dsssection import (
    BODY_FIELD, CLASS_WIDTHS, COUNT, HEADER, HEADER_BYTES, MAGIC, RANGE,
    SECTOR_BYTES, Form, Header, best_block_bytes, encode_section,
    section_length)

__all__ = ['BODY_FIELD', 'Decoder', 'Form', 'Header', 'best_block_bytes',
           'encode_section', 'section_length']

#: Entries of a block table that are looked at together.
_WINDOW_ENTRIES = 4096


class Decoder:
    """A ``.dss`` stream taken apart as it arrives.

    Feed it the body in chunks of any size; it hands back the data bytes.
    The class section is never held: it is checked against the limits from
    its claimed counts, before any of it is read, and each entry is turned
    into spans at once. Memory is bounded by ``max_spans``.

    Not thread-safe. Do not use a decoder again after it raised.

    :param content_length: bytes of the whole stream where they are known;
        a table that does not fit is then refused before the first data
        byte instead of at :meth:`finish`
    :param object_bytes: set if the stream is only the class section of an
        object of this size; data bytes are then refused
    :param max_section_bytes: bytes the class section may have
    :param max_spans: spans the map may have
    :param field: name of the stream in errors
    """

    def __init__(self, content_length: Optional[int] = None,
                 object_bytes: Optional[int] = None,
                 max_section_bytes: int = DEFAULT_MAX_DSS_SECTION_BYTES,
                 max_spans: int = DEFAULT_MAX_SPANS,
                 field: str = BODY_FIELD) -> None:
        self.header: Optional[Header] = None
        self.class_map: Optional[ClassMap] = None
        self.data_bytes = 0
        self._content_length = content_length
        self._object_bytes = object_bytes
        self._max_section_bytes = max_section_bytes
        self._max_spans = max_spans
        self._field = field
        self._pending = b''
        self._position = 0
        self._entries_read = 0
        self._runs = _Runs(self, max_spans)
        self._rest: Optional[int] = None
        if content_length is not None and content_length < HEADER_BYTES:
            raise self.error('%d bytes are less than the header of %d'
                             % (content_length, HEADER_BYTES), 0)

    @property
    def section_bytes(self) -> Optional[int]:
        """Bytes before the data; None until the header was read."""
        return self.header.section_bytes if self.header else None

    @property
    def data_length(self) -> Optional[int]:
        """Bytes of data to come; None while that is not known."""
        if self._content_length is None or self.header is None:
            return None
        return self._content_length - self.header.section_bytes

    @property
    def wanted_bytes(self) -> int:
        """Bytes after which more of the section can be judged; 0 when all
        of it has been."""
        if self.class_map is not None:
            return 0
        header, held = self.header, len(self._pending)
        if header is None:
            return (len(MAGIC) if held < len(MAGIC) else HEADER_BYTES) - held
        if header.form is Form.RANGE and self._rest is None:
            return COUNT.size + header.class_bytes - held
        return header.section_bytes - self._position - held

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes of the stream.

        :returns: the data bytes among them; empty while the class section
            is not complete
        :raises BadClassInput: with the byte position in the stream
        :raises TooManySpans: the section or its map passes a limit
        """
        if self.class_map is None:
            chunk = self._read_section(self._pending + chunk)
            if self.class_map is None:
                self._pending = chunk
                return b''
            self._pending = b''
        if chunk:
            self._count_data(len(chunk))
        return chunk

    def finish(self) -> None:
        """The stream has ended: check that it was whole.

        :raises BadClassInput: cut off, or the table does not fit
        """
        if self.class_map is None:
            raise self.error('is cut off inside the class section',
                             self._position + len(self._pending))
        if self._object_bytes is None:
            self.check_size(self.data_bytes)
        if self.data_length is not None and \
                self.data_bytes != self.data_length:
            raise self.error(
                'has %d bytes of data where Content-Length promised %d'
                % (self.data_bytes, self.data_length),
                self._position + self.data_bytes)

    def check_size(self, size: int) -> None:
        """Check that the table fits an object of ``size`` bytes.

        :raises BadClassInput: it does not, or it is not yet complete
        """
        if self.header is None or self.class_map is None:
            raise self.error('has no whole class section', self._position)
        if self.header.form is Form.BLOCK:
            wanted = -(-size // self.header.block_bytes)
            if wanted != self.header.entries:
                raise self.error(
                    'NUM_BLKS is %d, but %d bytes are %d blocks of %d'
                    % (self.header.entries, size, wanted,
                       self.header.block_bytes), 8)
        elif self._runs.last_range_end > size:
            raise self.error('the last range ends at byte %d of %d'
                             % (self._runs.last_range_end, size),
                             self.header.section_bytes
                             - RANGE.size - self.header.class_bytes)

    def error(self, reason: str, position: int) -> BadClassInput:
        """An error about this stream, for the caller to raise."""
        return BadClassInput(self._field, reason, position)

    def too_many(self, reason: str, position: int) -> TooManySpans:
        """A passed limit of this stream, for the caller to raise."""
        return TooManySpans(self._field, reason, position)

    def _count_data(self, length: int) -> None:
        self.data_bytes += length
        header = self.header
        assert header is not None
        if self._object_bytes is not None:
            raise self.error('has data after the class section',
                             self._position)
        if header.form is Form.BLOCK and \
                self.data_bytes > header.entries * header.block_bytes:
            raise self.error(
                'has more data than its %d blocks of %d bytes' % (
                    header.entries, header.block_bytes),
                self._position + header.entries * header.block_bytes)

    def _read_section(self, raw: bytes) -> bytes:
        """Consume the complete part of the section; return the rest."""
        if self.header is None:
            if len(raw) < HEADER_BYTES:
                self._check_prefix(raw)
                return raw
            self.header = self._parse_header(raw[:HEADER_BYTES])
            raw = self._used(raw, HEADER_BYTES)
        header = self.header
        if header.form is Form.RANGE and self._rest is None:
            head_bytes = COUNT.size + header.class_bytes
            if len(raw) < head_bytes:
                return raw
            header = self.header = self._parse_range_head(raw[:head_bytes])
            raw = self._used(raw, head_bytes)
        width = header.class_bytes
        if header.form is Form.RANGE:
            width += RANGE.size
        count = min(len(raw) // width, header.entries - self._entries_read)
        if header.form is Form.BLOCK:
            self._read_blocks(header, raw, count)
        else:
            self._read_ranges(header, raw, count)
        self._entries_read += count
        raw = self._used(raw, count * width)
        if self._entries_read == header.entries:
            self._complete()
        return raw

    def _used(self, raw: bytes, length: int) -> bytes:
        self._position += length
        return raw[length:]

    def _check_prefix(self, raw: bytes) -> None:
        if raw[:2] != MAGIC[:len(raw)]:
            raise self.error('MAGIC_SIG is %s, not 4453 ("DS")'
                             % raw[:2].hex(), 0)

    def _parse_header(self, raw: bytes) -> Header:
        self._check_prefix(raw)
        _, version, class_bytes, sectors, blocks, tail = HEADER.unpack(raw)
        if version not in (Form.BLOCK.value, Form.RANGE.value):
            raise self.error('VER_ID %d is neither 1 (blocks) nor 2 '
                             '(ranges)' % version, 2)
        if class_bytes not in CLASS_WIDTHS:
            raise self.error('CLS_BYTES %d is not 1, 2 or 4'
                             % class_bytes, 3)
        if Form(version) is Form.RANGE:
            for at in range(4, HEADER_BYTES):
                if raw[at]:
                    raise self.error('RESERVED is not zero', at)
            return self._limited(Header(
                Form.RANGE, class_bytes, 0, 0,
                HEADER_BYTES + COUNT.size + class_bytes), 3)
        if tail:
            raise self.error('RESERVED is not zero', 12)
        if not sectors:
            raise self.error('BLK_SECTORS is 0', 4)
        block_bytes = sectors * SECTOR_BYTES
        if blocks and (blocks - 1) * block_bytes >= MAX_OBJECT_BYTES:
            raise self.error('%d blocks of %d bytes pass 2^63 - 1'
                             % (blocks, block_bytes), 8)
        return self._limited(Header(
            Form.BLOCK, class_bytes, block_bytes, blocks,
            HEADER_BYTES + blocks * class_bytes), 8)

    def _parse_range_head(self, raw: bytes) -> Header:
        assert self.header is not None
        count, = COUNT.unpack_from(raw)
        if count > self._max_spans:
            raise self.too_many('NUM_RANGES %d is more than %d'
                                % (count, self._max_spans), HEADER_BYTES)
        class_bytes = self.header.class_bytes
        self._rest = self.class_of(raw[COUNT.size:], self._position
                                   + COUNT.size)
        return self._limited(Header(
            Form.RANGE, class_bytes, 0, count,
            HEADER_BYTES + len(raw) + count * (RANGE.size + class_bytes)),
            HEADER_BYTES)

    def _limited(self, header: Header, position: int) -> Header:
        """Return ``header``; raise if its claims are too large."""
        if header.section_bytes > self._max_section_bytes:
            raise self.too_many(
                'the class section would be %d bytes, more than %d'
                % (header.section_bytes, self._max_section_bytes), position)
        total = self._content_length
        if total is not None and header.section_bytes > total:
            raise self.error(
                'the class section would be %d bytes, but there are %d'
                % (header.section_bytes, total), position)
        return header

    def _read_blocks(self, header: Header, raw: bytes, count: int) -> None:
        width = header.class_bytes
        for start in range(0, count, _WINDOW_ENTRIES):
            window = raw[start * width:min(count, start + _WINDOW_ENTRIES)
                         * width]
            lows = window[width - 1::width]
            # Runs of equal blocks are skipped at the speed of C; classes
            # that do not fit their low byte are looked at one by one.
            wide = any(window[at::width].strip(b'\0')
                       for at in range(width - 1))
            at = 0
            while at < len(lows):
                entry = self._position + (start + at) * width
                class_id = self.class_of(
                    window[at * width:(at + 1) * width], entry)
                run = 1
                if not wide:
                    left = lows[at:]
                    run = len(left) - len(left.lstrip(left[:1]))
                self._runs.add(run * header.block_bytes, class_id, entry)
                at += run

    def _read_ranges(self, header: Header, raw: bytes, count: int) -> None:
        width = RANGE.size + header.class_bytes
        assert self._rest is not None
        for index in range(count):
            at = index * width
            position = self._position + at
            offset, length = RANGE.unpack_from(raw, at)
            if not length:
                raise self.error('range %d is empty'
                                 % (self._entries_read + index), position + 8)
            if offset + length > MAX_OBJECT_BYTES:
                raise self.error('range %d ends past 2^63 - 1'
                                 % (self._entries_read + index), position)
            if offset < self._runs.last_range_end:
                raise self.error(
                    'range %d starts at byte %d, before the end (%d) of '
                    'the one before it' % (self._entries_read + index,
                                           offset,
                                           self._runs.last_range_end),
                    position)
            class_id = self.class_of(raw[at + RANGE.size:at + width],
                                     position + RANGE.size)
            self._runs.add(offset - self._runs.last_range_end, self._rest,
                           position)
            self._runs.add(length, class_id, position)

    def class_of(self, raw: bytes, position: int) -> int:
        """The class id of one table entry, checked."""
        class_id = int.from_bytes(raw, 'big')
        if class_id > CLASS_ID_MAX:
            raise self.error('class %d is not in 0..%d'
                             % (class_id, CLASS_ID_MAX), position)
        return class_id

    def _complete(self) -> None:
        rest = self._rest
        if rest is None:
            # No byte comes after the last block: its class is the
            # shortest way to say the rest.
            rest = self._runs.last_class
        class_map = ClassMap.from_spans(self._runs.spans(), rest)
        if len(class_map.spans) > self._max_spans:
            raise self.too_many('%d spans are more than %d' % (
                len(class_map.spans), self._max_spans), self._position)
        self.class_map = class_map
        if self._object_bytes is not None:
            self.check_size(self._object_bytes)
        elif self.data_length is not None:
            self.check_size(self.data_length)


class _Runs:
    """Runs of one class, joined as they come and bounded in number."""

    def __init__(self, decoder: Decoder, max_spans: int) -> None:
        self._decoder = decoder
        # The last run may turn out to be the rest, which is no span.
        self._limit = max_spans + 1
        self._lengths: List[int] = []
        self._classes: List[int] = []
        self.last_range_end = 0

    @property
    def last_class(self) -> int:
        """Class of the last run; unclassified if there is none."""
        return self._classes[-1] if self._classes else UNCLASSIFIED

    def add(self, length: int, class_id: int, position: int) -> None:
        """Append a run; ``position`` is where the stream says so."""
        if not length:
            return
        self.last_range_end += length
        if self._classes and self._classes[-1] == class_id:
            self._lengths[-1] += length
            return
        if len(self._classes) >= self._limit:
            raise self._decoder.too_many(
                'more than %d spans' % (self._limit - 1), position)
        self._lengths.append(length)
        self._classes.append(class_id)

    def spans(self) -> List[Span]:
        """The runs as spans."""
        spans: List[Span] = []
        offset = 0
        for length, class_id in zip(self._lengths, self._classes):
            spans.append(Span(offset, length, class_id))
            offset += length
        return spans
