"""HDF5 and netCDF-4: everything but the values.

Needed: the blocks that h5py reads to open the file, visit each group and
data set, read their attributes, and walk the index of each data set's chunks.
The format has metadata anywhere, in a dozen of structures; the library that
reads them says best where they are. Values stay cold. A file of very small
chunks has more than 2 % hot, about 100 bytes a chunk.

libhdf5 is C and is not made for hostile files: classify those of strangers
in a process of its own.
"""

from __future__ import annotations

from typing import Any, Iterator

from swift_dss.client.formats.contract import (
    BadFile, Format, Hot, Reader, Wish, library, reason_of)
from swift_dss.client.formats.readers import AsFile

_MAGIC = b'\x89HDF\r\n\x1a\n'
#: Other versions of the library read a little more or less at a time.
_BLOCK_BYTES = 4096
_MAX_OBJECTS = 1 << 18


def _fits(reader: Reader) -> bool:
    # A user block of 512 bytes, 1,024, 2,048 ... may be in front.
    return any(reader.read(at, 8) == _MAGIC for at in (0, 512, 1024, 2048))


def _hot(reader: Reader, _: Wish) -> Iterator[Hot]:
    h5py = library('h5py', 'HDF5')
    source = AsFile(reader)
    try:
        with h5py.File(source, 'r') as opened:
            _look(opened)
    except (OSError, RuntimeError, ValueError, LookupError, TypeError,
            UnicodeError) as err:
        raise BadFile('HDF5 metadata', reason_of(err), source.tell()) from err
    for offset, length in source.ranges:
        start = offset - offset % _BLOCK_BYTES
        end = -(-(offset + length) // _BLOCK_BYTES) * _BLOCK_BYTES
        yield Hot(start, end - start)


def _look(opened: Any) -> None:
    """Read all metadata of a file."""
    seen = 0

    def visit(_: str, thing: Any) -> None:
        nonlocal seen
        seen += 1
        if seen > _MAX_OBJECTS:
            raise ValueError('more than %d groups and data sets'
                             % _MAX_OBJECTS)
        # Attributes of a kind that h5py cannot show are read all the same.
        for name in thing.attrs:
            thing.attrs.get_id(name)
        if hasattr(thing, 'chunks') and thing.chunks:
            thing.id.get_num_chunks()
    visit('/', opened)
    opened.visititems(visit)


FORMAT = Format('hdf5', _fits, _hot)
