"""A table of evidence, and what tables make their cells with."""

from __future__ import annotations

import statistics
from typing import Any, Callable, List, Mapping, NamedTuple, Sequence

#: Head first. Between two ``` `` ``` a cell is a literal.
Rows = List[List[str]]
Reports = Sequence[Mapping[str, Any]]

GIB, MIB = 1 << 30, 1 << 20


class Table(NamedTuple):
    """One file of figures, and the table of it.

    :param commands: those of ``swift-dss`` take ``--json``, scripts print
        lines of JSON; ``FOLDER`` is that of published traces, of disks, or
        of a secret
    :param kept: names of the fields that the table needs: a string of names,
        or for each name those below it; a list is looked through, ``*`` is
        any other name
    :param rows: of what the commands wrote, in their order
    :param clock: ``exact``: virtual time, one process: the same on every
        machine; ``virtual``: several processes share such a clock, so runs
        differ; ``counts``: of instructions, by no clock; ``real``: other
        work on the machine slows it
    """

    commands: List[str]
    kept: Any
    rows: Callable[[Reports], Rows]
    clock: str = 'real'


def grouped(rows: Rows, depth: int) -> Rows:
    """Leave out what the first cells of the row above say already."""
    made, above = [], ['']
    for row in rows:
        same = 0
        while same < depth and row[:same + 1] == above[:same + 1]:
            same += 1
        made.append([''] * same + row[same:])
        above = row
    return made


def percent(share: float, digits: int = 1) -> str:
    """``12.5 %`` for 0.125."""
    return '%.*f %%' % (digits, 100 * share)


def spread(values: Sequence[float], form: str = '%.1f') -> str:
    """The median, with the least and the most if there are others."""
    middle, least, most = (form % value for value in (
        statistics.median(values), min(values), max(values)))
    return middle if least == most else '%s (%s - %s)' % (
        middle, least, most)


def between(values: Sequence[float]) -> str:
    """The least and the most, or one figure if they are the same."""
    least, most = ('%.0f' % value for value in (min(values), max(values)))
    return least if least == most else '%s - %s' % (least, most)


def size(length: int) -> str:
    """``64 KiB``, ``16 MiB``."""
    return '%d MiB' % (length / MIB) if length >= MIB else \
        '%d KiB' % (length / 1024)
