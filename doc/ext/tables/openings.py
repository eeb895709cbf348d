"""The table of files that are opened while their cold bytes are elsewhere."""

from __future__ import annotations

from typing import Dict

from .cells import MIB, Reports, Rows, Table, percent

#: What opens a file, by the bench's name of it.
_BY = {
    'parquet': 'schema, rows', 'orc': 'schema, rows',
    'arrow': 'schema, batches', 'zip': 'list of members',
    'tar': 'list of members', 'mp4': 'first frame', 'mkv': 'first frame',
    'avi': 'first frame', 'ts': 'first frame',
    'tif': 'pages and tiles of each', 'h5': 'all datasets and attributes',
    'ext4': '``e2fsck -fn``', 'xfs': '``xfs_repair -nf``',
    'ntfs': '``ntfsfix -n``, ``ntfsls``',
    'qcow2': 'of ext4: ``e2fsck -fn``'}


def _openings(reports: Reports) -> Rows:
    return [['file', 'opened for', 'MiB', 'hot', 'bytes of the HDD',
             'bytes of S3'], *(
        [row['file'], _BY[row['file']], '%.0f' % (row['size'] / MIB),
         percent(row['hot'] / row['size'], 2) + (
             ': ' + row['why_more'] if row['why_more'] else ''),
         '%d' % row['slow'][0], '%d' % max(row['slow'][1], row['from_s3'])]
        for lines in reports for row in lines)]


TABLES: Dict[str, Table] = {
    'openings': Table(
        ['python test/bench/evicted_files.py --mib 1024 --json --on FOLDER'],
        'file size hot slow from_s3 why_more', _openings),
}
