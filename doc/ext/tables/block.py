"""Tables of block caches in the laboratory."""

from __future__ import annotations

from typing import Dict

from .cells import Reports, Rows, Table, grouped


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


TABLES: Dict[str, Table] = {
    'block-chunks': Table(
        ['swift-dss bench block-chunks --scale 128 '
         '--chunks 4,32,128,256,1024'],
        {'rows': {'setup': '', 'mode': '', 'chunk_kib': '', 'phases': {
            '*': {'all': 'mean_us max_us', 'read': 'mean_us'}}}},
        _block_chunks, 'exact'),
    'block': Table(
        ['swift-dss bench block --requests 12000 --traces FOLDER'],
        _BLOCK_KEPT, _block, 'exact'),
    'block-stage': Table(
        ['swift-dss bench block --requests 12000 --traces FOLDER '
         '--setups dm-dss' + stage for stage in ('', ' --stage 10')],
        _BLOCK_KEPT, _block_stage, 'exact'),
}
