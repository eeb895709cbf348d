"""Tables of what is broken on purpose."""

from __future__ import annotations

import json
import re
from typing import Dict

from .cells import Reports, Rows, Table


def _said(line: str) -> str:
    """A line of figures, without what stands in the other cells."""
    if line.startswith('{'):
        return (
            '%(cycles)d cycles, in %(cycles_with_fault)d the fault was '
            'met, %(kills)d kills, %(acknowledged)d objects acknowledged, '
            '%(lost)d lost' % json.loads(line))
    return re.sub(r' \(must be .*\)$', '', re.sub(
        r'^R\d\d\S* *(bundles)?:? *', '', ' '.join(line.split())))


def _campaigns(reports: Reports) -> Rows:
    lines, = reports
    return [['id', 'what breaks', 'fired', 'lost', 'twin', 's', 'printed'], *(
        [row['id'], row['what'], '%d' % row['fired'], '%d' % row['lost'],
         'caught' if row['caught'] else '', '%.0f' % row['seconds'],
         '; '.join(map(_said, row['printed']))] for row in lines),
        ['all', '', '%d' % sum(row['fired'] for row in lines),
         '%d' % sum(row['lost'] for row in lines),
         '%d' % sum(row['caught'] for row in lines),
         '%.0f' % sum(row['seconds'] for row in lines), '']]


TABLES: Dict[str, Table] = {
    'campaigns': Table(
        ['python test/fault/campaign.py --json'],
        'id what fired lost caught seconds printed', _campaigns),
}
