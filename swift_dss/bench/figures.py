"""Medians, percentiles, tables, JSON: how a measurement is told."""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
from typing import Any, List, Sequence

from swift_dss.core.errors import BadConfig, DssError


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest-rank percentile; NaN of nothing."""
    if not values:
        return math.nan
    ordered = sorted(values)
    rank = max(1, math.ceil(len(ordered) * percent / 100.0))
    return ordered[rank - 1]


def median(values: Sequence[float]) -> float:
    """The median; NaN of nothing."""
    return statistics.median(values) if values else math.nan


def ratio(upper: float, lower: float) -> float:
    """``upper / lower``; NaN where that is nothing."""
    return upper / lower if lower else math.nan


def size_text(size: int) -> str:
    """``64 KiB`` for 65536."""
    for unit, name in ((1 << 30, 'GiB'), (1 << 20, 'MiB'), (1 << 10, 'KiB')):
        if size >= unit:
            return ('%d %s' if size % unit == 0 else '%.1f %s') % (
                size // unit if size % unit == 0 else size / unit, name)
    return '%d B' % size


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need; all but the first to the right."""
    widths = [max(len(str(row[at])) for row in [head, *rows])
              for at in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        return '  '.join(
            str(cell).ljust(width) if at == 0 else str(cell).rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths))).rstrip()

    parts = [line(head), '  '.join('-' * width for width in widths)]
    return '\n'.join(parts + [line(row) for row in rows])


def number(value: float, digits: int = 2) -> str:
    """A figure of a table; ``-`` where there is none."""
    return '-' if math.isnan(value) else '%.*f' % (digits, value)


def write_json(path: str, report: Any) -> None:
    """Write a report; ``-`` is standard output. NaN becomes null."""
    text = json.dumps(_plain(report), indent=2, sort_keys=True) + '\n'
    if path == '-':
        sys.stdout.write(text)
        return
    try:
        with open(path, 'w') as out:
            out.write(text)
    except OSError as err:
        raise DssError('%s: %s' % (path, err.strerror)) from err


def refuse_unwritable(path: str) -> None:
    """Refuse a file that cannot be written, before the work that fills it.

    :raises BadConfig: names the file and the reason
    """
    try:
        was_there = os.path.exists(path)
        with open(path, 'ab'):
            pass
        if not was_there:
            os.unlink(path)
    except OSError as err:
        raise BadConfig('%s: %s' % (path, err.strerror)) from err


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        items: List[Any] = [_plain(item) for item in value]
        return items
    return value
