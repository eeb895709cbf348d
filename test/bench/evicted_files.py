"""Files of every format, opened when only the bytes that open them are on SSD.

A cluster of this script's own, one replica. Each file is uploaded with the
class section of ``swift-dss classify``; its cold bytes are on the HDD alone
first, then in S3 alone, and its own library opens it through ``dss://`` each
time. A line a format: its size, the share that is hot, bytes of reads that
were not from the SSD alone with either, bytes that came from S3, and how long
both openings took.

    python test/bench/evicted_files.py --mib 1024 [--json] [--on FOLDER]

The folder is to be of an XFS: the class maps of films and Arrow files of 1 GiB
do not fit into the attributes of an ext4, which refuses the upload.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time
from typing import Any, Dict, List

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

import fsspec
from support.format_files import MIB
from support.nodes import evicting
from support.nodes.evicting import BOX, hot_ranges
from support.openings import OPENINGS

_HEAD = '%-8s %-8s %9s %7s %9s %9s %9s %8s %8s'
_ROW = '%-8s %-8s %9.1f %6.2f%% %9d %9d %9d %7.2fs %7.2fs'
#: S3 answers without a byte of an object: to uploads of others.
_ANSWERS_BYTES = 4096


def opened(made: Any, fs: Any, folder: pathlib.Path, name: str,
           size: int) -> Dict[str, Any]:
    """Open one."""
    opening = OPENINGS[name]
    path = folder / ('f.' + name)
    opening.write(path, size)
    said = made.upload(path)
    path.unlink()
    slow: List[int] = []
    took: List[float] = []
    from_s3 = 0
    for where in ('HDD', 'S3'):
        if where == 'S3':
            made.to_s3(path.name, said, 600.0)
        before = made.counts()
        began = time.perf_counter()
        with fs.open('%s/%s' % (BOX, path.name)) as source:
            assert opening.look(source, said['size'], hot_ranges(said))
        took.append(time.perf_counter() - began)
        after = made.counts()
        slow.append(after.slow_bytes - before.slow_bytes)
        from_s3 = after.s3_bytes - before.s3_bytes
    fs.rm('%s/%s' % (BOX, path.name))
    return {'file': name, 'format': said['format'], 'size': said['size'],
            'hot': said['hot_bytes'], 'slow': slow, 'from_s3': from_s3,
            'seconds': [round(seconds, 2) for seconds in took],
            'why_more': opening.why_more}


def is_well(row: Dict[str, Any]) -> bool:
    """Whether an opening was as it should be."""
    return not any(row['slow']) and row['from_s3'] < _ANSWERS_BYTES and (
        row['hot'] <= 0.02 * row['size'] or bool(row['why_more']))


def line(row: Dict[str, Any]) -> str:
    """An opening as a line of text."""
    return (_ROW % (row['file'], row['format'], row['size'] / MIB,
                    100 * row['hot'] / row['size'], *row['slow'],
                    row['from_s3'], *row['seconds'])
            + (row['why_more'] and '  ' + row['why_more']))


def main() -> int:
    """Run it on a cluster that is made, and removed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--mib', type=int, default=1024)
    parser.add_argument('--formats', default=','.join(OPENINGS),
                        help='(default: %(default)s)')
    parser.add_argument('--on', metavar='FOLDER', default='/var/tmp',
                        help='of the disks (default: %(default)s)')
    parser.add_argument('--json', action='store_true',
                        help='a line of JSON for each')
    options: Any = parser.parse_args()
    if not options.json:
        print(_HEAD % ('file', 'format', 'MiB', 'hot', 'slow: HDD',
                       'slow: S3', 'of S3', 'HDD', 'S3'), flush=True)
    well = []
    with evicting.started(options.on) as made, \
            tempfile.TemporaryDirectory(dir=options.on) as folder:
        fs = fsspec.filesystem(
            'dss', auth_url=made.conf.auth_url, user='test:tester',
            key='testing')
        for name in options.formats.split(','):
            if not OPENINGS[name].lacking():
                row = opened(made, fs, pathlib.Path(folder), name,
                             options.mib * MIB)
                well.append(is_well(row))
                print(json.dumps(row) if options.json else line(row),
                      flush=True)
    print('%d of %d as they should be' % (sum(well), len(well)))
    return 0 if all(well) else 1


if __name__ == '__main__':
    sys.exit(main())
