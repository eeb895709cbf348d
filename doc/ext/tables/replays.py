"""Tables of replayed traces: virtual time, one process."""

from __future__ import annotations

from typing import Callable, Dict, Sequence

from .cells import GIB, MIB, Reports, Rows, Table, grouped, percent


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
}
