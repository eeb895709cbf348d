"""Files, for ``pack``, ``unpack``, ``inspect`` and ``classes``."""

from __future__ import annotations

import argparse
import contextlib
import os
import stat
import sys
from typing import BinaryIO, Iterator, Optional, Tuple

from swift_dss.client.dssio import whole_file
from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadClassInput, DssError
from swift_dss.wire.settings import classtable

STREAM = '-'
#: A list of classes that a user writes is not larger than this.
MAX_LIST_BYTES = 16 * 1024 * 1024


class FileTrouble(DssError):
    """A file that cannot be read or written."""

    exit_code = 74


@contextlib.contextmanager
def told_plainly() -> Iterator[None]:
    """Turn errors of the system into one line and an exit code."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as err:
        raise FileTrouble('%s: %s' % (err.filename or 'I/O',
                                      err.strerror or err)) from err


@contextlib.contextmanager
def source(path: str) -> Iterator[Tuple[BinaryIO, Optional[int]]]:
    """(a file or stdin, its size where it is known)."""
    if path == STREAM:
        yield sys.stdin.buffer, None
        return
    with open(path, 'rb') as opened:
        info = os.fstat(opened.fileno())
        regular = stat.S_ISREG(info.st_mode)
        yield opened, info.st_size if regular else None


@contextlib.contextmanager
def target(path: str, force: bool) -> Iterator[BinaryIO]:
    """A file that appears whole or not at all, or stdout."""
    if path != STREAM:
        with whole_file(path, force) as opened:
            yield opened
        return
    if sys.stdout.isatty():
        raise BadClassInput('-o', 'this is binary and stdout is a terminal')
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def add_class_table(parser: argparse._ActionsContainer) -> None:
    """The option that says where class names are looked up."""
    parser.add_argument(
        '--class-table', metavar='FILE',
        help='class table that names are looked up in (default: %s, if it '
        'is there)' % NodeConf().class_table)


def load_table(path: Optional[str]) -> ClassTable:
    """The table of ``--class-table``; an empty one if there is none.

    :raises BadConfig: it has an error
    """
    if path is None:
        path = NodeConf().class_table
        if not os.path.exists(path):
            return ClassTable()
    return classtable.parse(read_text(path), path)


def read_text(path: str) -> str:
    """A text file of bounded size, or stdin.

    :raises BadClassInput: not UTF-8, or too large
    """
    with source(path) as (opened, _):
        raw = opened.read(MAX_LIST_BYTES + 1)
    if len(raw) > MAX_LIST_BYTES:
        raise BadClassInput(path, 'is larger than %d bytes'
                            % MAX_LIST_BYTES)
    try:
        return raw.decode('utf-8')
    except UnicodeDecodeError as err:
        raise BadClassInput(path, 'is not UTF-8 text', err.start) from None
