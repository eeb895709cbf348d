"""Tables of the mix of CACS on Swift in the laboratory."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from .cells import Reports, Rows, Table, between, grouped, percent, spread

#: Of each phase: name of the figure, field, form.
_CACS = (('MB/s', 'mb_per_second', '%.1f'), ('mean ms', 'mean_ms', '%.1f'),
         ('median ms', 'p50_ms', '%.1f'), ('p99 ms', 'p99_ms', '%.0f'))
_CACS_SHARES = (('HDDs, <= 64 KiB, %', 'small'), ('of ``ssd``, %', 'of_ssd'))
_BOUNDS = ('streaming', 'seeking')
_CACS_KEPT = {
    'seeds': {'bounds': {'*': ' '.join(_BOUNDS)}},
    'spread': {'phase': '', 'setup': '',
               'values': 'mb_per_second mean_ms p50_ms p99_ms small of_ssd'}}


def _cacs_values(report: Mapping[str, Any]
                 ) -> Dict[Tuple[str, str], Dict[str, List[float]]]:
    return {(row['phase'], row['setup']): row['values']
            for row in report['spread']}


def _cacs_bound(report: Mapping[str, Any], phase: str, kind: str
                ) -> List[float]:
    return [seed['bounds'][phase][kind] for seed in report['seeds']]


def _cacs_beside_ssd(reports: Reports) -> Rows:
    report, = reports
    values, rows = _cacs_values(report), []
    for phase in ('upload', 'download'):
        ours, ssd = (values[phase, name] for name in ('classes', 'ssd'))
        bounds = [_cacs_bound(report, phase, kind) for kind in _BOUNDS]
        for name, field, form in _CACS:
            rows.append([phase, name, spread(ours[field], form),
                         spread(ssd[field], form),
                         *(between(bound) if field == 'mb_per_second' else ''
                           for bound in bounds)])
        for name, field in _CACS_SHARES:
            rows.append([
                phase, name, spread([100 * of for of in ours[field]], '%.0f'),
                '', *(between([100 * most / reached for most, reached in zip(
                    bound, ssd['mb_per_second'])]) if field == 'of_ssd'
                    else '' for bound in bounds)])
    return [['', '', 'classes', '``ssd``', 'bound, streaming',
             'bound, a seek a copy'], *grouped(rows, 1)]


def _cacs_setups(reports: Reports) -> Rows:
    report, = reports
    values = _cacs_values(report)
    fields = [(phase, field) for phase in ('upload', 'download')
              for field in ('mb_per_second', 'mean_ms')]
    rows = [['``%s``' % setup, *(spread(values[phase, setup][field])
                                for phase, field in fields)]
            for setup in dict.fromkeys(setup for _phase, setup in values)]
    for name, kind in zip(('bound, streaming', 'bound, a seek a copy'),
                          _BOUNDS):
        rows.append([name, *(
            cell for phase in ('upload', 'download')
            for cell in (between(_cacs_bound(report, phase, kind)), ''))])
    return [['set-up', 'upload, MB/s', 'mean ms', 'download, MB/s',
             'mean ms'], *rows]


def _cacs_chunks(sizes: Sequence[int]) -> Callable[[Reports], Rows]:
    """Set-ups with chunks of so many KiB (0: none), a report for each."""
    def rows(reports: Reports) -> Rows:
        ssd = _cacs_values(reports[0])
        made = []
        for size, report in zip(sizes, reports):
            values = _cacs_values(report)
            for setup in dict.fromkeys(setup for _phase, setup in values):
                row = ['``%s``' % setup, '%d' % size
                       if size and setup != 'ssd' else '']
                for phase in ('upload', 'download'):
                    told = values[phase, setup]
                    row += ['%.1f' % told['mb_per_second'][0],
                            '%.0f' % (100 * told['mb_per_second'][0]
                                      / ssd[phase, 'ssd'][
                                          'mb_per_second'][0]),
                            '%.1f' % told['mean_ms'][0],
                            '%.1f' % told['p50_ms'][0]]
                made.append(row)
        bounds = [['bound, ' + name, '', *(
            cell for phase in ('upload', 'download') for cell in (
                between(_cacs_bound(reports[0], phase, kind)), '', '', ''))]
            for name, kind in zip(('streaming', 'a seek a copy'), _BOUNDS)]
        return [['set-up', 'chunk, KiB', *(
            '%s%s' % (phase, name) for phase in ('upload, ', 'download, ')
            for name in ('MB/s', '% of ssd', 'mean ms', 'median ms'))],
                *made, *bounds]
    return rows


def _cacs_traffic(reports: Reports) -> Rows:
    setups = reports[0]['setups']
    base = setups[0]['kinds']
    kinds = {'Files': 'files', 'Pictures': 'pictures', 'Music': 'music',
             'Video': 'video'}
    return [['on the SSD', *('%s, times ``hdd``' % name for name in kinds),
             *('%s, mean ms' % name for name in kinds)], *(
        ['``%s``' % row['setup'], *(
            '%.2f' % (row['kinds'][kind]['mb_per_second']
                      / base[kind]['mb_per_second'])
            for kind in kinds.values()), *(
            '%.0f' % row['kinds'][kind]['mean_ms']
            for kind in kinds.values())] for row in setups)]


def _cacs_plain(reports: Reports) -> Rows:
    report, = reports
    values = _cacs_values(report)
    return [['MB/s', '``scattered``', '``hdd``', 'times'], *(
        [phase, *(spread(values[phase, setup]['mb_per_second'])
                  for setup in ('scattered', 'hdd')),
         spread([ours / stock for stock, ours in zip(*(
             values[phase, setup]['mb_per_second']
             for setup in ('scattered', 'hdd')))], '%.2f')]
        for phase in ('upload', 'download'))]


def _cacs_warm(reports: Reports) -> Rows:
    """A column for each set-up of each report."""
    columns = [row for report in reports for row in report[
        'seeds'][0]['setups']]
    rows: Rows = [['', *('%s, ``%s``' % (name, row['setup'])
                         for name, report in zip(('real sizes', 'row B'),
                                                 reports)
                         for row in report['seeds'][0]['setups'])]]
    for phase in ('upload', 'download'):
        told = [row['phases'][phase] for row in columns]
        rows += [[phase + ', MB/s', *('%.1f' % each['mb_per_second']
                                      for each in told)],
                 [phase + ', mean ms', *('%.1f' % each['mean_ms']
                                         for each in told)]]
        rows += [['of %s, mean ms' % name.upper(), *(
            '%.1f' % each['classes'][name]['mean_ms'] for each in told)]
            for name in ('user1', 'user2')]
    rows.append(['USER2, chunks that hit', *(
        percent(each['hits'] / each['lookups'], 0) for each in (
            row['phases']['download']['cache']['12'] for row in columns))])
    return rows


_WARM_PHASE = {'mb_per_second': '', 'mean_ms': '',
               'classes': {'user1': 'mean_ms', 'user2': 'mean_ms'}}


TABLES: Dict[str, Table] = {
    'cacs-row-a': Table(
        ['swift-dss bench cacs --row A --seeds 1 --setups ' + setups
         for setups in ('lru,classes,warm,ssd', 'file',
                        'classes,warm --chunk 256')],
        _CACS_KEPT, _cacs_chunks((64, 0, 256)), 'virtual'),
    'cacs-row-b': Table(
        ['swift-dss bench cacs --row B --setups classes,ssd '
         '--seeds 1,2,3,4,5'], _CACS_KEPT, _cacs_beside_ssd, 'virtual'),
    'cacs-row-c': Table(['swift-dss bench cacs --row C --seeds 1'],
                        _CACS_KEPT, _cacs_setups, 'virtual'),
    'cacs-traffic': Table(
        ['swift-dss bench cacs-traffic --counts 40,24,8,4 --scale 0.25 '
         '--clients 8'],
        {'setups': {'setup': '', 'kinds': {'*': 'mb_per_second mean_ms'}}},
        _cacs_traffic, 'virtual'),
    'cacs-plain': Table(
        ['swift-dss bench cacs --objects 240 --reads 480 --link 0 --cached '
         '--workers 4 --seeds 1,2,3 --setups scattered,hdd'],
        _CACS_KEPT, _cacs_plain, 'virtual'),
    'cacs-warm': Table(
        ['swift-dss bench cacs --row B --scale 1 --stage 15 '
         '--setups warm,classes --seeds 1',
         'swift-dss bench cacs --row B --setups warm,classes --seeds 1'],
        {'seeds': {'setups': {'setup': '', 'phases': {
            'upload': _WARM_PHASE,
            'download': {**_WARM_PHASE, 'cache': {'12': 'hits lookups'}}}}}},
        _cacs_warm, 'virtual'),
}
