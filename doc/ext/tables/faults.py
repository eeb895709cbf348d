"""Tables of what is broken on purpose."""

from __future__ import annotations

import json
import re
from typing import Any, Dict

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


_BED_LARGE = (
    '%(settings)d settings, %(segments)d segments, %(faults)d faults, '
    '%(cut_short)d POSTs that were under way then, %(wrong)d segments or '
    'manifests with another class than is shown, in %(seconds).0f s')
_BED_LIFECYCLE = ('%(settings)d settings, %(objects)d objects, %(wrong)d '
                  'wrong, in %(seconds).0f s')
_SIM = ('%(seeds)d seeds, %(faults)d faults, %(failed)d broken promises, '
        '%(bytes_lost)d bytes lost, in %(seconds).0f s')
_LONGER = (
    ('python test/fault/campaign.py --only R35 --full --json', ''),
    ('python test/fault/bed_large.py --loss kill --seed 21', _BED_LARGE),
    ('python test/fault/bed_large.py --segments 1000 --trouble kill '
     '--loss kill --seed 22', _BED_LARGE),
    ('python test/fault/bed_lifecycle.py --seed 23', _BED_LIFECYCLE),
    ('python test/fault/mutants.py --listed --jobs 1 --json -',
     '%(killed)d of %(of)d killed'),
    ('swift-dss sim --campaign --from 2004900 --seconds 2400 --jobs 1 '
     '--json', _SIM))


def _count(value: Any) -> Any:
    """Of a list, and of what has a count for each kind."""
    if isinstance(value, dict):
        return sum(value.values())
    return len(value) if isinstance(value, list) else value


def _longer(reports: Reports) -> Rows:
    return [['command', 'printed'], *(
        ['``%s``' % command, '; '.join(
            ', '.join([*map(_said, line['printed']), *(
                ['wrong twin caught'] if line['caught'] else [])])
            if not form else form % {
                name: _count(value) for name, value in line.items()}
            for line in lines)]
        for (command, form), lines in zip(_LONGER, reports))]


TABLES: Dict[str, Table] = {
    'campaigns-longer': Table(
        [command for command, _form in _LONGER],
        'printed caught settings segments faults cut_short wrong seconds '
        'objects killed of seeds failed bytes_lost', _longer),
    'campaigns': Table(
        ['python test/fault/campaign.py --json'],
        'id what fired lost caught seconds printed', _campaigns),
}
