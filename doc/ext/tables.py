"""Tables of the manual's evidence, as functions of what benches write.

``TABLES`` names each file of ``doc/source/evidence``: the commands that it is
of, the fields of their ``--json`` that it keeps, and what makes a table of
them. :mod:`evidence` runs the commands and writes the file.
"""

from __future__ import annotations

from typing import (
    Any, Callable, Dict, List, Mapping, NamedTuple, Sequence)

#: Head first. Between two ``` `` ``` a cell is a literal.
Rows = List[List[str]]
Reports = Sequence[Mapping[str, Any]]

GIB = 1 << 30


class Table(NamedTuple):
    """One file of figures, and the table of it.

    :param commands: those of ``swift-dss`` take ``--json``, scripts print
        lines of JSON; ``FOLDER`` is that of published traces
    :param kept: names of the fields that the table needs: a string of names,
        or for each name those below it; a list is looked through, ``*`` is
        any other name
    :param rows: of what the commands wrote, in their order
    :param exact: in virtual time and seeded: the same on every machine
    """

    commands: List[str]
    kept: Any
    rows: Callable[[Reports], Rows]
    exact: bool = False


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


_REPLAYED = {'runs': 'prefetch cache_share hit_ratio p50_ms p90_ms p99_ms '
                     'dollars ssd_written_bytes wasted_bytes'}
_CLOSED = ' --cache 1.7%,5% --strategy lru --prefetch none,amp,combined ' \
    '--cloud s3-2016'
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
        _class_order, exact=True),
    'prefetching-think': Table(
        ['swift-dss replay gen:chains,requests=200000,chain_count=40,'
         'think_ms=%d --strategy lru --prefetch all --cache 1.7%%,5%% '
         '--cloud s3-2016' % ms for ms in (20, 200, 2000)],
        _REPLAYED, _prefetched('Think', ('20 ms', '200 ms', '2 s')),
        exact=True),
    'prefetching-loop': Table(
        [_CHAINS + ',think_ms=200' + _CLOSED,
         _CHAINS + ' --loop closed --think 0.2' + _CLOSED,
         _CHAINS + ' --loop closed --think 0.2 --link 1m' + _CLOSED],
        _REPLAYED, _prefetched('Loop', (
            'open', 'closed', 'closed, 1 MiB/s')), exact=True),
    'prefetching-published': Table(
        ['swift-dss replay FOLDER/%s --strategy lru --cache 10%% '
         '--prefetch all' % name for name in (
             'cloudphysics.csv.gz', 'oltp.lis.zst', 'p6.lis.zst')],
        _REPLAYED, _prefetched('Trace', ('CloudPhysics', 'OLTP', 'P6')),
        exact=True),
}
