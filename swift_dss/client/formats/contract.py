"""The contract of a classifier, for those here and those of others.

A classifier is a function of a :class:`Reader` and a :class:`Wish` that
gives the :class:`Hot` ranges of a file, in any order; they may overlap. It
MUST

* read through the reader only, keep nothing between two calls, and end in
  time and memory that the reader's limits bound;
* check a length or an offset that the file claims before it acts on it, and
  raise :class:`BadFile` with the field, its offset and the reason;
* call a range *needed* if programs read it to open the file (its schema, its
  list of members, its first frame), and leave it optional if it only makes
  them faster. Needed ranges are all taken; of the others as many as fit the
  share of the file that a user allows.

A package adds formats by entry points of the group ``swift_dss.classifiers``,
each of which names a :class:`Format`.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, Iterable, NamedTuple, Tuple

from swift_dss.core.errors import BadClassInput, DssError

#: One read of a classifier, bytes: the largest index of a file that is
#: taken. Parquet's footers of 10,000 columns and 1,000 row groups fit.
MAX_READ_BYTES = 64 << 20


class BadFile(BadClassInput):
    """A file does not hold what its format promises."""

    exit_code = 65
    counter = 'bad_files'


class NoSuchFormat(BadClassInput):
    """No classifier knows this format, or the file is of none of theirs."""


class MissingLibrary(DssError):
    """A format is read by a library that is not installed."""

    exit_code = 69
    counter = 'missing_libraries'


class Hot(NamedTuple):
    """A range that makes a file open fast.

    :param offset: of its first byte
    :param length: bytes; what passes the end of the file is cut off
    :param is_needed: whether the file opens by it
    """

    offset: int
    length: int
    is_needed: bool = True


class Wish(NamedTuple):
    """The choices of a user.

    :param columns: of a table, whose values are wanted too
    """

    columns: Tuple[str, ...] = ()


class Reader:
    """A file's bytes at any offset; a base.

    :ivar size: bytes of the file, which do not change
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def read(self, offset: int, length: int) -> bytes:
        """Exactly these bytes; may block.

        The caller guarantees that the range is not negative; bytes past the
        end of the file are left out.

        :raises OSError: they cannot be read
        """
        raise NotImplementedError

    def exact(self, offset: int, length: int, field: str) -> bytes:
        """Bytes that a format needs.

        :param field: the part of the format that they are
        :raises BadFile: they are not all there, or more than
            :data:`MAX_READ_BYTES`
        """
        self.check(offset, length, field)
        if length > MAX_READ_BYTES:
            raise BadFile(field, 'claims %d bytes, more than %d'
                          % (length, MAX_READ_BYTES), offset)
        raw = self.read(offset, length)
        if len(raw) != length:
            raise BadFile(field, 'the file was cut while it was read', offset)
        return raw

    def check(self, offset: int, length: int, field: str) -> None:
        """See that a range lies in the file.

        :raises BadFile: it does not
        """
        if length < 0 or offset < 0 or offset + length > self.size:
            raise BadFile(field, 'claims %d bytes, and the file has %d'
                          % (length, self.size), offset)


#: See the module's docstring.
Classifier = Callable[[Reader, Wish], Iterable[Hot]]


class Format(NamedTuple):
    """One format.

    :param name: as ``--format`` takes it
    :param fits: looks at a few bytes: may the file be one of these? It never
        raises for what the bytes are
    :param hot: its classifier
    """

    name: str
    fits: Callable[[Reader], bool]
    hot: Classifier


def reason_of(err: BaseException) -> str:
    """The text of a library's error, in one line."""
    return ' '.join(str(err).split())[:200] or type(err).__name__


def library(name: str, format_name: str) -> Any:
    """An optional library.

    :param name: of its module
    :raises MissingLibrary: it is not installed
    """
    try:
        return importlib.import_module(name)
    except ImportError as err:
        raise MissingLibrary(
            '%s files are read by %s: pip install "swift-dss[formats]" (%s)'
            % (format_name, name.partition('.')[0], err)) from err
