"""Tables of a whole Swift on one machine."""

from __future__ import annotations

import functools
from typing import Dict, Mapping, Sequence, Tuple

from .cells import Reports, Rows, Table, grouped, percent, size

_OF_OBJECTS = ('without checksums', 'with', 'classified')
_OF_PROXIES = ('unclassified', 'classified')


def _request(case: str) -> str:
    """``GET of 4 KiB`` for ``GET 4096``."""
    method, length, *span = case.split()
    if not span:
        return '%s of %s' % (method, size(int(length)))
    first, last = map(int, span[0].split('-'))
    return '%s of %s' % (size(last - first + 1), size(int(length)))


def _instructions(sides: Sequence[str], reports: Reports) -> Rows:
    lines, = reports
    return [['request', 'stock, thousand', *sides], *(
        [_request(row['case']), '{:,.0f}'.format(row['stock'] / 1e3),
         *('%.3f' % (row[side] / row['stock']) for side in sides)]
        for row in lines)]


def _tiers(reports: Reports) -> Rows:
    setups = reports[0]['setups']
    return [['', *('``%s``' % row['setup'] for row in setups)],
            ['hits of all reads', *(
                percent(row['all']['hit_ratio']) for row in setups)],
            ['hits by bytes', *(
                percent(row['all']['byte_hit_ratio']) for row in setups)],
            *(['hits of ``%s``' % name, *(
                percent(row['classes'][name]['hit_ratio'])
                for row in setups)] for name in setups[0]['classes']),
            ['objects on the SSDs, MB', *(
                '%.1f' % (row['distinct_bytes'] / 1e6) for row in setups)],
            ['reads', *('%d' % row['all']['reads'] for row in setups)],
            ['reads that failed', *(
                '%d' % row['failures'] for row in setups)]]


def _overhead(reports: Reports) -> Rows:
    report, = reports
    variants = {'vanilla 2': 'noise', 'unclassified': 'unclassified',
                'classified': 'classified'}
    cells: Dict[Tuple[str, int, int], Dict[str, Mapping[str, float]]] = {}
    for cell in report['cells']:
        cells.setdefault((cell['operation'], cell['size_bytes'],
                          cell['concurrency']), {})[cell['variant']] = cell
    made = [(('%s of %s' % (operation, size(length)), '%d' % clients), told)
            for (operation, length, clients), told in cells.items()]
    made.append((('median', ''), report['overall']))
    return [['request', 'clients', *(
        '%s, %s' % (name, of) for name in variants.values()
        for of in ('rate', 'CPU'))], *(
        [*names, *('%.2f' % told[variant][of] for variant in variants
                   for of in ('throughput', 'cpu'))]
        for names, told in made)]


def _flood(reports: Reports) -> Rows:
    return [['side', 'p99 idle, ms', 'flooded, ms', 'ratio', 'of each round',
             'worker idle, ms', 'flooded, ms', 'flood, MB/s', 'failed'], *(
        [row['system'], *('%.1f' % row[at]['p99_ms']
                          for at in ('idle', 'flooded')),
         '%.2f' % row['p99_ratio'],
         ', '.join('%.2f' % each['p99_ratio'] for each in row['rounds']),
         *('%.1f' % row[at]['worker_p99_ms'] for at in ('idle', 'flooded')),
         '%.1f' % row['flooded']['cold_mb_per_second'],
         '%d' % sum(row[at]['failures'] for at in ('idle', 'flooded'))]
        for row in reports[0]['systems'])]


def _prefetched(reports: Reports) -> Rows:
    cells = reports[0]['cells']
    workloads = dict.fromkeys(row['workload'] for row in cells)
    return [['Reads', 'Prefetch', 'p50, ms', 'p90, ms', 'p99, ms',
             'Above local', 'Useful', 'Late', 'Wasted'], *grouped([
                 [row['workload'], '``%s``' % row['strategy'],
                  *('%.1f' % row[of] for of in (
                      'p50_ms', 'p90_ms', 'p99_ms', 'waited_ms')),
                  *('%d' % row[of] for of in (
                      'useful_pieces', 'late_pieces', 'wasted_pieces'))]
                 for workload in workloads for row in cells
                 if row['workload'] == workload], 1)]


TABLES: Dict[str, Table] = {
    'overhead': Table(
        ['swift-dss bench overhead --rounds 4'],
        {'cells': 'operation size_bytes concurrency variant throughput cpu',
         'overall': {'*': 'throughput cpu'}}, _overhead),
    'flood': Table(
        ['swift-dss bench flood'],
        {'systems': {
            'system': '', 'p99_ratio': '', 'rounds': 'p99_ratio',
            'idle': 'p99_ms worker_p99_ms failures',
            'flooded': 'p99_ms worker_p99_ms failures cold_mb_per_second'}},
        _flood),
    'prefetching-cluster': Table(
        ['swift-dss bench prefetch'],
        {'cells': 'workload strategy p50_ms p90_ms p99_ms waited_ms '
                  'useful_pieces late_pieces wasted_pieces'}, _prefetched),
    'instructions': Table(
        ['python test/bench/instructions.py --devices FOLDER --json'],
        '', functools.partial(_instructions, _OF_OBJECTS), 'counts'),
    'proxy-instructions': Table(
        ['python test/bench/proxy_instructions.py --json'],
        '', functools.partial(_instructions, _OF_PROXIES), 'counts'),
    'tiers': Table(
        ['swift-dss bench tiers'],
        {'setups': {'setup': '', 'failures': '', 'distinct_bytes': '',
                    'all': 'reads hit_ratio byte_hit_ratio',
                    'classes': {'*': 'hit_ratio'}}}, _tiers),
}
