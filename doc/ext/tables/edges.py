"""Tables of an edge that takes writes for S3."""

from __future__ import annotations

from typing import Dict

from .cells import Reports, Rows, Table, percent, size


def _table_iv(reports: Reports) -> Rows:
    return [['cache', 'client', 'cache, bytes', 'most on a quorum',
             'most on one device', 'sent back', 'failed', 'wrong'], *(
        [percent(row['share'], 1), row['client'],
         *('{:,}'.format(row[of]) for of in (
             'budget', 'most_on_a_quorum', 'most_waiting')),
         *('%d' % row[of] for of in ('told_to_retry', 'failed', 'wrong'))]
        for lines in reports for row in lines)]


def _checkpoint(reports: Reports) -> Rows:
    """A column for each report's diskfile and for Swift's own."""
    lines = [line for report in reports for line in report]
    columns = [(line, line[side], name) for line in lines for side, name in (
        ('written_back', 'this diskfile'), ('vanilla', "Swift's own"))]
    servers = [name for name in columns[0][1]['cpu_seconds_per_gib']
               if name != 'machine']
    return [['%d writers' % lines[0]['writers'], *(
        '%s, %s' % (size(line['object']), name)
        for line, _told, name in columns)],
            ['into the edge, s', *(
                '%.1f' % told['seconds'] for _line, told, _name in columns)],
            ['MB/s', *('%.0f' % (told['per_second'] / 1e6)
                       for _line, told, _name in columns)],
            ['straight to S3, s', *('%.1f' % line['sync_seconds']
                                    for line, _told, _name in columns)],
            ['times less', *('%.1f' % (line['sync_seconds'] / told['seconds'])
                             for line, told, _name in columns)],
            *(['%s, seconds a GiB' % server, *(
                '%.2f' % told['cpu_seconds_per_gib'][server]
                for _line, told, _name in columns)] for server in servers),
            ['the whole machine', *(
                '%.2f' % told['cpu_seconds_per_gib']['machine']
                for _line, told, _name in columns)]]


def _chunks(reports: Reports) -> Rows:
    servers = ('object-server', 'proxy-server')
    return [['chunk', *servers], *(
        [size(1024 * line['chunk_kib']), *(
            '%.2f' % line['written_back']['cpu_seconds_per_gib'][server]
            for server in servers)] for report in reports for line in report)]


#: Name of a row, field, and form.
_PEERS = (
    ('4 KiB, writes a second', 'small: 4k writes/s', '%.1f'),
    ('4 KiB, seconds until in S3', 'small: 4k s until in S3', '%.1f'),
    ('4 KiB, S3 objects', 'small: 4k S3 objects', '%d'),
    ('256 KiB, writes a second', 'small: 256k writes/s', '%.1f'),
    ('256 KiB, seconds until in S3', 'small: 256k s until in S3', '%.1f'),
    ('256 KiB, S3 objects', 'small: 256k S3 objects', '%d'),
    ('cache: seconds', 'cache: s', '%.1f'),
    ('cache: most held', 'cache: most held, % of the cache', '%d %%'),
    ('checkpoint: stall, seconds', 'checkpoint: stall s', '%.2f'),
    ('checkpoint: seconds until in S3', 'checkpoint: s until in S3',
     '%.1f'),
    ('outage: acknowledged', 'outage: acknowledged', '%d'),
    ('outage: seconds', 'outage: s', '%.1f'))


def _peers(reports: Reports) -> Rows:
    """A column a system; what it gave up has no figure."""
    lines = [line for report in reports for line in report]
    told = [line['figures'] for line in lines]
    return [['figure', *(
        {'dss': 'swift-dss'}.get(line['system'], line['system'])
        for line in lines)],
            *([label, *(form % each[field] if field in each else 'gave up'
                        for each in told)] for label, field, form in _PEERS),
            *([label, *('%d' % sum(
                value for field, value in each.items()
                if field.endswith((' ' + of, ': ' + of)))
                for each in told)] for label, of in (
                    ('writes failed (all workloads)', 'failed'),
                    ('lost (all workloads)', 'lost')))]


_CHECKPOINT = 'python test/fault/edge_writes.py checkpoint '

TABLES: Dict[str, Table] = {
    'edge-table-iv': Table(
        ['python test/fault/edge_writes.py table-iv --objects 200 '
         '--object 256k --rate 2000000'],
        'share client budget most_on_a_quorum most_waiting told_to_retry '
        'failed wrong', _table_iv),
    'edge-checkpoint': Table(
        [_CHECKPOINT + '--vanilla', _CHECKPOINT + '--vanilla --object 64m'],
        {'writers': '', 'object': '', 'sync_seconds': '', **dict.fromkeys(
            ('written_back', 'vanilla'),
            {'seconds': '', 'per_second': '', 'cpu_seconds_per_gib': ''})},
        _checkpoint),
    'edge-chunks': Table(
        [_CHECKPOINT + '--object 64m --no-sync --chunk-kib %d' % kib
         for kib in (64, 256, 1024, 4096)],
        {'chunk_kib': '', 'written_back': 'cpu_seconds_per_gib'}, _chunks),
    'edge-peers': Table(
        ['python test/fault/edge_peers.py --scale 0.2 --json'],
        'system figures', _peers),
}
