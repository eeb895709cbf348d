"""Tables of the manual's evidence, as functions of what benches write.

``TABLES`` names each file of ``doc/source/evidence``: the commands that it is
of, the fields of their ``--json`` that it keeps, and what makes a table of
them. :mod:`evidence` runs the commands and writes the file.
"""

from __future__ import annotations

import statistics
from typing import (
    Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple)

#: Head first. Between two ``` `` ``` a cell is a literal.
Rows = List[List[str]]
Reports = Sequence[Mapping[str, Any]]

GIB, MIB = 1 << 30, 1 << 20


class Table(NamedTuple):
    """One file of figures, and the table of it.

    :param commands: those of ``swift-dss`` take ``--json``, scripts print
        lines of JSON; ``FOLDER`` is that of published traces, or of disks
    :param kept: names of the fields that the table needs: a string of names,
        or for each name those below it; a list is looked through, ``*`` is
        any other name
    :param rows: of what the commands wrote, in their order
    :param clock: ``exact``: virtual time, one process: the same on every
        machine; ``virtual``: several processes share such a clock, so runs
        differ; ``real``: other work on the machine slows it
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


def _class_order(reports: Reports) -> Rows:
    names = {'user1': '11', 'user2': '12', 'user3': '13', 'user4': '14',
             'user7': '17'}
    rows = [(run['cache_share'], 'with floors' if at else run['strategy'],
             *('%.3f' % ratio for ratio in (
                 run['hit_ratio'], run['byte_hit_ratio'],
                 *(run['classes'][class_id]['hit_ratio']
                   for class_id in names.values()))))
            for at, report in enumerate(reports) for run in report['runs']]
    return [['cache', 'strategy', 'all', 'bytes', *names],
            *grouped([['%d %%' % round(100 * row[0]), *row[1:]] for row in
                      sorted(rows, key=lambda row: row[0])], 1)]


def _prefetched(title: str, names: Sequence[str]
                ) -> Callable[[Reports], Rows]:
    def rows(reports: Reports) -> Rows:
        made = []
        for name, report in zip(names, reports):
            for run in report['runs']:
                none, = (other['dollars'] for other in report['runs']
                         if other['prefetch'] == 'none' and
                         other['cache_share'] == run['cache_share'])
                made.append([
                    name, '%.2g %%' % (100 * run['cache_share']),
                    '``%s``' % run['prefetch'], percent(1 - run['hit_ratio']),
                    *('%.1f' % run[of] for of in (
                        'p50_ms', 'p90_ms', 'p99_ms')),
                    '%.3f' % run['dollars'],
                    '%.2f' % (run['dollars'] / none),
                    '%.1f' % (run['ssd_written_bytes'] / GIB),
                    '%.2f' % (run.get('wasted_bytes', 0) / GIB)])
        return [[title, 'Cache', 'Prefetch', 'Misses', 'p50, ms', 'p90, ms',
                 'p99, ms', 'Dollars', 'To none', 'SSD, GiB', 'Wasted, GiB'],
                *grouped(made, 2)]
    return rows


def _prefetch_state(reports: Reports) -> Rows:
    return [['Prefetch', 'Said, MiB', 'Resident, MiB', 'Ranges',
             'Seconds a million'], *(
        ['``%s``' % row['prefetch'], '%.1f' % (row['most_bytes'] / MIB),
         '%.1f' % (row['resident_bytes'] / MIB),
         '%d' % row['nodes'] if row['nodes'] else '-',
         '%.1f' % row['seconds_a_million']]
        for row in reports[0]['prefetchers'])]


def spread(values: Sequence[float], form: str = '%.1f') -> str:
    """The median, with the least and the most if there are others."""
    middle, least, most = (form % value for value in (
        statistics.median(values), min(values), max(values)))
    return middle if least == most else '%s (%s - %s)' % (
        middle, least, most)


def _between(values: Sequence[float]) -> str:
    least, most = ('%.0f' % value for value in (min(values), max(values)))
    return least if least == most else '%s - %s' % (least, most)


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
                         *(_between(bound) if field == 'mb_per_second' else ''
                           for bound in bounds)])
        for name, field in _CACS_SHARES:
            rows.append([
                phase, name, spread([100 * of for of in ours[field]], '%.0f'),
                '', *(_between([100 * most / reached for most, reached in zip(
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
            for cell in (_between(_cacs_bound(report, phase, kind)), ''))])
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
                _between(_cacs_bound(reports[0], phase, kind)), '', '', ''))]
            for name, kind in zip(('streaming', 'a seek a copy'), _BOUNDS)]
        return [['set-up', 'chunk, KiB', *(
            '%s%s' % (phase, name) for phase in ('upload, ', 'download, ')
            for name in ('MB/s', '% of ssd', 'mean ms', 'median ms'))],
                *made, *bounds]
    return rows


def _block_chunks(reports: Reports) -> Rows:
    rows = reports[0]['rows']
    none, made = rows[0]['phases'], []
    for row in rows:
        cells = ['%s, %s' % (row['setup'], row['mode']), '%d' % row[
            'chunk_kib']] if row['chunk_kib'] else [row['setup'], '']
        for phase in ('first', 'second'):
            told = row['phases'][phase]
            cells += [
                '%.3f' % (told['all']['mean_us'] / 1e3),
                *('%.1f' % (100 - 100 * told[group]['mean_us'] / none[phase][
                    group]['mean_us']) if row['chunk_kib'] else '-'
                    for group in ('all', 'read')),
                '%.2f' % (told['all']['max_us'] / 1e3)]
        made.append(cells)
    return [['set-up, mode', 'KiB', *(
        '%s run: %s' % (at, name) for at in ('1st', '2nd') for name in (
            'mean ms', 'saved %', 'of reads %', 'max ms'))],
            *grouped(made, 1)]


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


def _block(reports: Reports) -> Rows:
    made = []
    for work in reports[0]['workloads']:
        for phase in work['setups'][0]['phases']:
            for setup in work['setups']:
                told = setup['phases'][phase]
                hits = told['hits'].get('all')
                made.append([
                    work['workload'] + (
                        ', ' + phase if len(setup['phases']) > 1 else ''),
                    '``%s``' % setup['setup'],
                    '-' if hits is None else '%.1f' % (100 * hits),
                    '%.2f' % told['all']['mb_per_second'],
                    *('%.2f' % (told['all'][name] / 1e3) for name in (
                        'mean_us', 'p50_us', 'p99_us', 'p999_us'))])
    return [['workload', 'set-up', 'hit %', 'MB/s', 'mean ms', 'p50 ms',
             'p99 ms', 'p99.9 ms'], *grouped(made, 1)]


def _block_stage(reports: Reports) -> Rows:
    made = []
    for none, stage in zip(*(report['workloads'] for report in reports)):
        for phase in none['setups'][0]['phases']:
            told = [work['setups'][0]['phases'][phase]
                    for work in (none, stage)]
            made.append([
                none['workload'] + ('' if phase == 'run' else ', ' + phase),
                *('%.2f' % each['all']['mb_per_second'] for each in told),
                *('%.1f' % (each['all']['p99_us'] / 1e3) for each in told),
                *('%.1f' % (100 * each['hits']['all']) for each in told)])
    return [['workload', 'MB/s, no stage', 'stage 10', 'p99 ms, no stage',
             'stage 10', 'hit %, no stage', 'stage 10'], *made]


_BLOCK_KEPT = {'workloads': {'workload': '', 'setups': {
    'setup': '', 'phases': {'*': {
        'hits': 'all', 'all': 'mb_per_second mean_us p50_us p99_us p999_us',
    }}}}}


def _limits(names: Sequence[str]) -> Callable[[Reports], Rows]:
    def rows(reports: Reports) -> Rows:
        return [['Trace', 'Cache', 'Cheapest', 'Dollars', 'At least',
                 'Offline', 'Tight to', 'To save', 'Most hits', 'Hits',
                 'At most', 'Offline'], *grouped([[
                     name, '%.2g %%' % (100 * row['cache_share']),
                     '``%s``' % row['cheapest'], *('%.4f' % row[of] for of in (
                         'dollars', 'dollars_at_least', 'dollars_offline')),
                     percent(row['dollars_offline']
                             / row['dollars_at_least'] - 1),
                     percent(row['to_save_share']),
                     '``%s``' % row['most_hits'], *('%.3f' % row[of]
                                                    for of in (
                         'hit_ratio', 'hit_ratio_at_most',
                         'hit_ratio_offline'))]
                     for name, report in zip(names, reports)
                     for row in report['limits']], 1)]
    return rows


_REPLAYED = {'runs': 'prefetch cache_share hit_ratio p50_ms p90_ms p99_ms '
                     'dollars ssd_written_bytes wasted_bytes'}
_CLOSED = ' --cache 1.7%,5% --strategy lru --prefetch none,amp,combined ' \
    '--cloud s3-2016'
_PUBLISHED = {
    'AdaptSize': 'FOLDER/adaptsize.trace.xz',
    'CloudPhysics': 'FOLDER/cloudphysics.csv.gz',
    'OLTP': 'FOLDER/oltp.lis.zst', 'P6': 'FOLDER/p6.lis.zst'}
_GENERATED = {
    'zipf': 'gen:zipf,requests=200000,objects=20000,sigma=1.5',
    'flood': 'gen:flood,requests=200000', 'esi': 'gen:esi,requests=100000',
    'cacs': 'gen:cacs,requests=100000,objects=10000',
    'chains': 'gen:chains,requests=100000',
    'bursty': 'gen:bursty,requests=200000'}
_CHAINS = 'swift-dss replay gen:chains,requests=40000,chain_count=10'


TABLES: Dict[str, Table] = {
    'class-order': Table(
        ['swift-dss replay gen:cacs,requests=100000,objects=10000 '
         '--cloud hdd --cache 5%,10%,20%,50% --strategy ' + strategy
         for strategy in (
             'lru,class', 'class --floors '
             'user2=20%,user3=10%,user4=5%,user7=10%')],
        {'runs': {'strategy': '', 'cache_share': '', 'hit_ratio': '',
                  'byte_hit_ratio': '', 'classes': {'*': 'hit_ratio'}}},
        _class_order, 'exact'),
    'limits': Table(
        ['swift-dss replay %s --strategy lru,sieve,s3fifo,gdsf%s '
         '--bound' % (trace, options) for traces, options in (
             (_PUBLISHED, ' --cost dollars --cache 1%,5%,10%,20% '
              '--write through'),
             (_GENERATED, ',class --cost dollars --cache 1%,5%,10%'))
         for trace in traces.values()],
        {'limits': 'cache_share cheapest dollars dollars_at_least '
                   'dollars_offline to_save_share most_hits hit_ratio '
                   'hit_ratio_at_most hit_ratio_offline'},
        _limits((*_PUBLISHED, *_GENERATED)), 'exact'),
    'prefetching-think': Table(
        ['swift-dss replay gen:chains,requests=200000,chain_count=40,'
         'think_ms=%d --strategy lru --prefetch all --cache 1.7%%,5%% '
         '--cloud s3-2016' % ms for ms in (20, 200, 2000)],
        _REPLAYED, _prefetched('Think', ('20 ms', '200 ms', '2 s')),
        'exact'),
    'prefetching-loop': Table(
        [_CHAINS + ',think_ms=200' + _CLOSED,
         _CHAINS + ' --loop closed --think 0.2' + _CLOSED,
         _CHAINS + ' --loop closed --think 0.2 --link 1m' + _CLOSED],
        _REPLAYED, _prefetched('Loop', (
            'open', 'closed', 'closed, 1 MiB/s')), 'exact'),
    'prefetching-published': Table(
        ['swift-dss replay FOLDER/%s --strategy lru --cache 10%% '
         '--prefetch all' % name for name in (
             'cloudphysics.csv.gz', 'oltp.lis.zst', 'p6.lis.zst')],
        _REPLAYED, _prefetched('Trace', ('CloudPhysics', 'OLTP', 'P6')),
        'exact'),
    'prefetching-state': Table(
        ['swift-dss replay --measure 1000000 --strategy lru --prefetch all'],
        {'prefetchers': 'prefetch most_bytes resident_bytes nodes '
                        'seconds_a_million'}, _prefetch_state),
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
    'block-chunks': Table(
        ['swift-dss bench block-chunks --scale 128 '
         '--chunks 4,32,128,256,1024'],
        {'rows': {'setup': '', 'mode': '', 'chunk_kib': '', 'phases': {
            '*': {'all': 'mean_us max_us', 'read': 'mean_us'}}}},
        _block_chunks, 'exact'),
    'cacs-traffic': Table(
        ['swift-dss bench cacs-traffic --counts 40,24,8,4 --scale 0.25 '
         '--clients 8'],
        {'setups': {'setup': '', 'kinds': {'*': 'mb_per_second mean_ms'}}},
        _cacs_traffic, 'virtual'),
    'cacs-plain': Table(
        ['swift-dss bench cacs --objects 240 --reads 480 --link 0 --cached '
         '--workers 4 --seeds 1,2,3 --setups scattered,hdd'],
        _CACS_KEPT, _cacs_plain, 'virtual'),
    'block': Table(
        ['swift-dss bench block --requests 12000 --traces FOLDER'],
        _BLOCK_KEPT, _block, 'exact'),
    'block-stage': Table(
        ['swift-dss bench block --requests 12000 --traces FOLDER '
         '--setups dm-dss' + stage for stage in ('', ' --stage 10')],
        _BLOCK_KEPT, _block_stage, 'exact'),
}
