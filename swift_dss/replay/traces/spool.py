"""Columns of a trace that lie in a file, and not in memory.

A long trace is larger than all that a replay of it keeps. Its columns are
files without names in ``TMPDIR``, which are mapped into memory: what was read
there is dropped when it was used, and the files end with the process.
"""

from __future__ import annotations

import mmap
import tempfile
import weakref
from array import array
from typing import IO, Any, Callable, Iterator, Optional

from swift_dss.core.errors import BadConfig

#: Rows that are in memory before a column is written to its file.
MEMORY_ROWS = 1 << 18
_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


def numpy() -> Any:
    """The numpy module.

    :raises BadConfig: it is not installed
    """
    try:
        import numpy as found
    except ImportError as err:
        raise BadConfig('traces need numpy: pip install '
                        '"swift-dss[bench]"') from err
    return found


class Column:
    """One column, from its first row to its last.

    :param kind: type code of :mod:`array`
    """

    def __init__(self, kind: str) -> None:
        #: Those that are not in the file yet; the same array all the time.
        self.rows = array(kind)
        self._file: Optional[IO[bytes]] = None

    def append(self, value: Any) -> None:
        """One row more."""
        self.rows.append(value)
        if len(self.rows) >= MEMORY_ROWS:
            self.spill()

    def spill(self) -> None:
        """Write all rows to the file.

        :raises BadConfig: it has no room, or there can be none
        """
        try:
            if self._file is None:
                # It is open until it is mapped.
                self._file = tempfile.TemporaryFile(  # noqa: SIM115
                    prefix='swift-dss-')
            self._file.write(self.rows)
        except OSError as err:
            raise BadConfig(
                '%s: %s: a long trace takes some 40 bytes a request there: '
                'set TMPDIR to a directory on a disk with room' % (
                    tempfile.gettempdir(), err.strerror)) from err
        del self.rows[:]

    def whole(self) -> Any:
        """All rows, as an array of numpy; no row may come after it."""
        if self._file is None:
            return numpy().frombuffer(self.rows, dtype=self.rows.typecode)
        self.spill()
        with self._file as file:
            try:
                file.flush()
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except OSError as err:
                raise BadConfig('%s: %s' % (
                    tempfile.gettempdir(), err.strerror)) from err
        _mapped.add(mapped)
        return numpy().frombuffer(mapped, dtype=self.rows.typecode)

    def extend(self, rows: Any) -> None:
        """An array of numpy more, of few rows."""
        self.rows.frombytes(numpy().ascontiguousarray(
            rows, dtype=self.rows.typecode).tobytes())
        if len(self.rows) >= MEMORY_ROWS:
            self.spill()


def drop() -> None:
    """Take mapped columns out of memory: the next to read them has them
    mapped again."""
    advice = getattr(mmap, 'MADV_DONTNEED', None)
    if advice is None:
        return
    for mapped in list(_mapped):
        mapped.madvise(advice)


def slices(count: int) -> Iterator[slice]:
    """Of rows, so many that arrays of them take little memory. Pages
    of mapped columns that were read are dropped before the next."""
    for begin in range(0, count, MEMORY_ROWS):
        yield slice(begin, min(begin + MEMORY_ROWS, count))
        drop()


def made(kind: str, count: int, make: Callable[[slice], Any]) -> Any:
    """A column of ``count`` rows that are made some at a time.

    :param make: an array of the rows of a slice
    """
    column = Column(kind)
    for rows in slices(count):
        column.extend(make(rows))
    return column.whole()
