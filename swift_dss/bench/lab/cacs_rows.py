"""The rows of evidence of ``swift-dss bench cacs``, and their seeds.

``A``
    the publication's bed: 1,000 objects of real sizes, each storage node on
    1 Gbit/s, its SSD
``B``
    no link, a SSD of today: what is lost here the disks lose
``C``
    other caches of Linux under the same Swift, with the same bytes of SSD
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Sequence

from swift_dss.bench import figures
from swift_dss.bench.lab.cacs_lab import PHASES
from swift_dss.bench.lab.cacs_lab_text import bound_text

_TODAY = {'objects': 240, 'reads': 480, 'scale': 0.25, 'link_mbit': 0,
          'watermarks': (90, 80), 'stage': 60, 'cached': True, 'workers': 4}

#: Options of each row, which those of the command line change.
ROWS: Dict[str, Dict[str, Any]] = {
    # Chunks in proportion to the objects, as the manual has them.
    'A': dict(_TODAY, objects=1000, reads=2000, scale=1.0, link_mbit=1000,
              chunk_bytes=65536, ssd='intel-710', timeout=7200,
              setups=('lru', 'classes', 'warm', 'file', 'ssd')),
    'B': dict(_TODAY, setups=('hdd', 'classes', 'warm', 'ssd')),
    'C': dict(_TODAY, setups=('bcache', 'dm-cache', 'dm-writecache', 'lru',
                              'classes', 'warm')),
}

#: Spread over the seeds: head of the column, field, and digits.
_FIELDS = (('MB/s', 'mb_per_second', 1), ('mean ms', 'mean_ms', 1),
           ('p50 ms', 'p50_ms', 1), ('p99 ms', 'p99_ms', 0))
#: The disks below a cache and those of a set-up without one.
_HDDS = ('slow', 'ssd')


#: Options of the command line that are fields of the plan.
_OPTIONS = ('objects', 'reads', 'scale', 'share', 'clients', 'crowds',
            'watermarks', 'stage', 'cached', 'workers', 'seed', 'setups',
            'hdd', 'ssd', 'jobs', 'timeout')


def changes(row: str, options: Any) -> Dict[str, Any]:
    """Fields of the plan, None for those that stay: by the options, and
    where these say nothing, by the row.

    :param row: '' or None: no row
    """
    asked = {name: getattr(options, name) for name in _OPTIONS}
    asked['link_mbit'] = options.link
    asked['chunk_bytes'] = options.chunk and 1024 * options.chunk
    return {name: ROWS.get(row, {}).get(name) if value is None else value
            for name, value in asked.items()}


def spread(reports: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """For each phase and set-up, the values of each seed."""
    spreads = []
    for phase in PHASES:
        by_setup: Dict[str, List[Mapping[str, Any]]] = {}
        for report in reports:
            for row in report['setups']:
                by_setup.setdefault(row['setup'], []).append(
                    row['phases'][phase])
        for setup, rows in by_setup.items():
            values = {field: [row[field] for row in rows]
                      for _name, field, _digits in _FIELDS}
            values['small'] = [_small(row['disks']) for row in rows]
            for other in ('ssd', 'lru'):
                if other in by_setup and other != setup:
                    values['of_' + other] = [figures.ratio(
                        ours['mb_per_second'], theirs['mb_per_second'])
                        for ours, theirs in zip(rows, by_setup[other])]
            spreads.append({'phase': phase, 'setup': setup, 'values': values})
    return spreads


def _small(disks: Mapping[str, Any]) -> float:
    """The share of the HDDs' time that operations of 64 KiB or less take."""
    disk = next(disks[name] for name in _HDDS if name in disks)
    return figures.ratio(disk['small_ms'], disk['medium_ms'])


def text(reports: Sequence[Mapping[str, Any]]) -> str:
    """Medians of the seeds, with the least and the most."""
    rows = []
    for row in spread(reports):
        values = row['values']
        rows.append((row['phase'], row['setup'], *(
            _range(values[field], digits) for _name, field, digits in
            _FIELDS), *(_range([100 * value for value in values.get(
                field, ())], 0) for field in ('small', 'of_ssd', 'of_lru'))))
    parts = ['%d seeds: median (least - most)' % len(reports), figures.table(
        ('', 'set-up', *(name for name, _field, _digits in _FIELDS),
         '% of HDD <= 64 KiB', '% of SSD only', '% of LRU'), rows)]
    for phase in PHASES:
        parts += ['seed %d: %s' % (report['plan']['seed'], bound_text(
            phase, report['bounds'][phase])) for report in reports]
    return '\n'.join(parts)


def _range(values: Sequence[float], digits: int) -> str:
    if not values or any(map(math.isnan, values)):
        return '-'
    middle, least, most = (figures.number(value, digits) for value in (
        figures.median(values), min(values), max(values)))
    return '%s (%s - %s)' % (middle, least, most)
