"""Aligned tables and a line of progress, for every command."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import List, Optional, Sequence, TextIO, Type

from swift_dss.cli.progress import bytes_text

#: Seconds between two drawings of the same line.
_EVERY_SECONDS = 0.2
#: Before this a pace is a guess.
_PACE_SECONDS = 1.0


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns under their heads; numbers to the right, text to the left.

    A cell of None is empty; a head that ends in ``>`` sets its column to
    the right whatever is in it.
    """
    texts = [['' if cell is None else str(cell) for cell in row]
             for row in rows]
    right = [head.endswith('>') or (bool(rows) and all(
        isinstance(row[column], (int, float)) or row[column] is None
        for row in rows)) for column, head in enumerate(heads)]
    lines = [[head.rstrip('>') for head in heads]] + texts
    widths = [max(len(line[column]) for line in lines)
              for column in range(len(heads))]
    return '\n'.join(_line(line, widths, right) for line in lines)


def _line(cells: List[str], widths: List[int], right: List[bool]) -> str:
    return '  '.join(
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right)).rstrip()


def size(count: Optional[float]) -> str:
    """Bytes for people; a dash for none at all."""
    return bytes_text(count) if count else '-'


def share(part: float, whole: float) -> str:
    """``12.3 %``; a dash where there is no whole."""
    return '%.1f %%' % (100.0 * part / whole) if whole else '-'


def seconds(count: Optional[float]) -> str:
    """``1h05m``, ``3m20s``, ``8.1s``; a dash for None."""
    if count is None:
        return '-'
    if count < 60:
        return '%.1fs' % count
    minutes, rest = divmod(int(count), 60)
    if minutes < 60:
        return '%dm%02ds' % (minutes, rest)
    return '%dh%02dm' % divmod(minutes, 60)


def _pace(done: int, total: int, passed_seconds: float) -> str:
    """How fast, and how long it will still take."""
    if not 0 < done < total or passed_seconds < _PACE_SECONDS:
        return ''
    rate = done / passed_seconds
    return ', %.3g a second, %s left,' % (rate, seconds((total - done) / rate))


class Progress:
    """One line on stderr that is drawn over; a context manager.

    Without a terminal it is quiet: the output of scripts stays clean.

    :param lines_seconds: without a terminal, write a whole line this often
        instead: for commands that run for hours with output to a file
    """

    def __init__(self, label: str, quiet: bool = False,
                 stream: Optional[TextIO] = None,
                 lines_seconds: Optional[float] = None) -> None:
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._in_place = self._stream.isatty()
        self._wanted = not quiet and (
            self._in_place or lines_seconds is not None)
        self._every_seconds = _EVERY_SECONDS if self._in_place else \
            lines_seconds or 0.0
        self._began = time.monotonic()
        self._next = 0.0 if self._in_place else \
            self._began + self._every_seconds
        self._drawn = False

    def show(self, done: int, total: Optional[int] = None,
             where: str = '') -> None:
        """The work has done ``done`` (of ``total``) things."""
        now = time.monotonic()
        if not self._wanted or (now < self._next and done != total):
            return
        self._next = now + self._every_seconds
        of = '' if total is None else ' of %d%s' % (
            total, _pace(done, total, now - self._began))
        self._stream.write(('\r%s %d%s %s\x1b[K' if self._in_place else
                            '%s %d%s %s\n')
                           % (self._label, done, of, where))
        self._stream.flush()
        self._drawn = self._in_place

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self._drawn:
            self._stream.write('\r\x1b[K')
            self._stream.flush()
