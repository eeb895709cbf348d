"""Tables of a cluster that runs beside the bench, on the same machine."""

from __future__ import annotations

from typing import Dict

from .cells import MIB, Reports, Rows, Table

_MINE = ('without checksums', 'with', 'classified')


def _size(length: int) -> str:
    return '%d MiB' % (length / MIB) if length >= MIB else \
        '%d KiB' % (length / 1024)


def _request(case: str) -> str:
    """``GET of 4 KiB`` for ``GET 4096``."""
    method, length, *span = case.split()
    if not span:
        return '%s of %s' % (method, _size(int(length)))
    first, last = map(int, span[0].split('-'))
    return '%s of %s' % (_size(last - first + 1), _size(int(length)))


def _instructions(reports: Reports) -> Rows:
    lines, = reports
    return [['request', 'stock, thousand', *_MINE], *(
        [_request(row['case']), '{:,.0f}'.format(row['stock'] / 1e3),
         *('%.3f' % (row[side] / row['stock']) for side in _MINE)]
        for row in lines)]


TABLES: Dict[str, Table] = {
    'instructions': Table(
        ['python test/bench/instructions.py --devices FOLDER --json'],
        '', _instructions, 'counts'),
}
