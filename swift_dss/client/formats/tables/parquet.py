"""Parquet: the footer, page indexes and Bloom filters, chosen columns.

Needed: the magic, and the last 64 KiB, which readers ask for first, or the
footer if it is longer. Page indexes and Bloom filters lie between the last
column chunk and the footer; they are optional. Chosen columns are needed: a
name is the column's path (``a.list.element``) or the first names of it. The
footer is read by pyarrow, encrypted footers are taken as a whole.
"""

from __future__ import annotations

import struct
from typing import Any, Iterator, List, Tuple

from swift_dss.client.formats.contract import (
    BadFile, Format, Hot, Reader, Wish, library, reason_of)
from swift_dss.client.formats.readers import AsFile
from swift_dss.core.errors import BadClassInput

_MAGIC = b'PAR1'
_ENCRYPTED = b'PARE'
#: Footer length and magic.
_END_BYTES = 8
#: pyarrow, DuckDB and parquet-mr read so much of the end at once.
_TAIL_BYTES = 64 << 10
#: Each costs some microseconds in Python.
_MAX_CHUNKS = 1 << 20


def _fits(reader: Reader) -> bool:
    return reader.size >= 12 and reader.read(0, 4) in (_MAGIC, _ENCRYPTED) \
        and reader.read(reader.size - 4, 4) in (_MAGIC, _ENCRYPTED)


def _hot(reader: Reader, wish: Wish) -> Iterator[Hot]:
    start, is_encrypted = _footer(reader)
    tail = min(start, max(0, reader.size - _TAIL_BYTES))
    yield Hot(0, len(_MAGIC))
    yield Hot(tail, reader.size - tail)
    if is_encrypted:
        if wish.columns:
            raise BadClassInput('--columns', 'the footer is encrypted')
        return
    chunks = _chunks(_metadata(reader))
    last = max((offset + length for _, offset, length in chunks),
               default=start)
    if last < start:
        yield Hot(last, start - last, False)
    for name in wish.columns:
        chosen = [chunk for chunk in chunks
                  if chunk[0] == name or chunk[0].startswith(name + '.')]
        if not chosen:
            raise BadClassInput('--columns', 'the file has no column %s'
                                % ascii(name[:64]))
        for _, offset, length in chosen:
            reader.check(offset, length, 'column chunk')
            yield Hot(offset, length)


def _footer(reader: Reader) -> Tuple[int, bool]:
    """(offset of the footer, whether it is encrypted)."""
    end = reader.size - _END_BYTES
    raw = reader.exact(end, _END_BYTES, 'Parquet footer length')
    if raw[4:] not in (_MAGIC, _ENCRYPTED):
        raise BadFile('Parquet magic', 'is %s, not PAR1' % ascii(raw[4:]),
                      end + 4)
    length, = struct.unpack('<I', raw[:4])
    if length > end - len(_MAGIC):
        raise BadFile('Parquet footer length', 'is %d in a file of %d bytes'
                      % (length, reader.size), end)
    return end - length, raw[4:] == _ENCRYPTED


def _metadata(reader: Reader) -> Any:
    arrow = library('pyarrow', 'Parquet')
    parquet = library('pyarrow.parquet', 'Parquet')
    try:
        return parquet.read_metadata(AsFile(reader))
    except (arrow.ArrowException, OSError, ValueError) as err:
        raise BadFile('Parquet footer', reason_of(err), reader.size) from err


def _chunks(metadata: Any) -> List[Tuple[str, int, int]]:
    """(path, offset, bytes) of each column chunk."""
    groups, columns = metadata.num_row_groups, metadata.num_columns
    if groups * columns > _MAX_CHUNKS:
        raise BadFile('Parquet footer', 'has %d column chunks, more than %d'
                      % (groups * columns, _MAX_CHUNKS))
    return [_chunk(metadata.row_group(number).column(column))
            for number in range(groups) for column in range(columns)]


def _chunk(column: Any) -> Tuple[str, int, int]:
    offset = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset:
        offset = min(offset, column.dictionary_page_offset)
    return column.path_in_schema, offset, column.total_compressed_size


FORMAT = Format('parquet', _fits, _hot)
