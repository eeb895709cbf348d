"""Tables of links to S3 that are slow, shared, or cut."""

from __future__ import annotations

from typing import Dict

from .cells import Reports, Rows, Table, percent, size

_CLASSES = ('bulk', 'normal', 'alarm')


def _outages(reports: Reports) -> Rows:
    lines, = reports
    return [['S3 is', 'rate held', 'ratio', *(
        'first refused: ``%s``, s' % name for name in _CLASSES), 'refused',
             'slowest, s', 'at once', 'out of order', 'drained in, s',
             'lost'], *([
                 row['fault'], '%.2f' % row['rate_held'],
                 '%.3f' % row['refusal_ratio'],
                 *('%.1f' % row['first_refusal_seconds'][name]
                   for name in _CLASSES), '%d' % row['refused'],
                 '%.2f' % row['slowest_refusal_seconds'],
                 '%d' % row['first_requests_at_once'],
                 '%.2f' % row['drain_displacement'],
                 '%.0f' % row['drained_seconds'], '%d' % row['lost']]
                 for row in lines)]


def _shared_link(reports: Reports) -> Rows:
    return [['', 'reads', 'idle p50, s', 'idle p99, s', 'flooded p50, s',
             'flooded p99, s', 'worst, s', 'ratio of p99',
             'of each round', 'flood, MB/s'], *(
        ['one class' if row['plain'] else 'two classes',
         '%d' % row['reads'], *('%.3f' % row[of] for of in (
             'idle_p50', 'idle_p99', 'flood_p50', 'flood_p99',
             'flood_worst')), '%.2f' % row['ratio_p99'],
         ', '.join('%.2f' % ratio for ratio in row['ratios_p99']),
         '%.1f' % (row['flood_bytes_per_second'] / 1e6)]
        for lines in reports for row in lines)]


_BUNDLE_KINDS = {'single': 'singly', 'bundled': 'in bundles'}


def _bundles(reports: Reports) -> Rows:
    made = []
    for row in reports[0]['figures']:
        half = row['data_bytes'] / 2
        made.append([
            '%s, %s' % (size(row['data_bytes'] // row['objects']),
                        _BUNDLE_KINDS[row['variant']]),
            '{:,}'.format(row['objects']),
            *('%.2f' % (half / row[of] / 1e6)
              for of in ('seconds', 'drain_seconds')),
            '{:,.0f}'.format(row['objects'] / 2 / row['drain_seconds']),
            percent(row['link_share'], 0),
            *('%.1f' % row[of] for of in ('wait_p50', 'wait_p99')),
            '{:,.2f}'.format(1000 * row['puts'] / row['objects']),
            '%.2f' % (1e6 * row['price'] / row['objects']),
            *(percent(more / row['data_bytes'] - 1) for more in (
                row['stored_bytes'], row['link_sent_bytes'])),
            percent(row['link_read_bytes'] / row['read_bytes'] - 1)])
    return [['upload', 'objects', 'fresh, MB/s', 'backlog, MB/s',
             'objects a second', 'of the link', 'until durable, p50 s',
             'p99 s', 'PUT for 1,000', 'dollars for a million',
             'stored more', 'sent more', 'read more'], *made]


def _backlog(reports: Reports) -> Rows:
    return [['objects', 'backlog, % of the link', 'fresh, % of the link',
             'PUT', 'daemon, ms an object of the backlog', 'link',
             'server'], *(
        ['{:,}'.format(row['objects']),
         *('%.1f' % (100 * row[of]) for of in ('link_share', 'fresh_share')),
         '%d' % row['puts'], *('%.2f' % (2e3 * row[of] / row['objects'])
                               for of in ('daemon_cpu', 'link_cpu',
                                          'server_cpu'))]
        for report in reports for row in report['figures']
        if row['variant'] == 'bundled')]


_BUNDLES = 'swift-dss bench bundles --url http://127.0.0.1:7070 ' \
    '--secret-file FOLDER/secret --workloads '

TABLES: Dict[str, Table] = {
    'outages': Table(
        ['python test/fault/outage.py --faults '
         'refused,hung,slow,throttled,lying,gone'],
        {'fault': '', 'rate_held': '', 'refusal_ratio': '',
         'first_refusal_seconds': ' '.join(_CLASSES), 'refused': '',
         'slowest_refusal_seconds': '', 'first_requests_at_once': '',
         'drain_displacement': '', 'drained_seconds': '', 'lost': ''},
        _outages),
    'shared-link': Table(
        ['python test/fault/wan_flood.py --rounds 4 --reads 100',
         'python test/fault/wan_flood.py --plain'],
        'reads idle_p50 idle_p99 flood_p50 flood_p99 flood_worst ratio_p99 '
        'ratios_p99 flood_bytes_per_second plain', _shared_link),
    'bundles': Table(
        [_BUNDLES + 'tiny,small'],
        {'figures': 'variant objects data_bytes seconds drain_seconds '
                    'link_share wait_p50 wait_p99 puts price stored_bytes '
                    'link_sent_bytes read_bytes link_read_bytes'}, _bundles),
    'bundles-backlog': Table(
        [_BUNDLES + 'tiny --scale %d' % scale for scale in (3, 8)],
        {'figures': 'variant objects link_share fresh_share puts daemon_cpu '
                    'link_cpu server_cpu'}, _backlog),
}
