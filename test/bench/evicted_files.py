"""Files of every format, opened when only the bytes that open them are on SSD.

A cluster of this script's own, one replica. Each file is uploaded with the
class section of ``swift-dss classify``; its cold bytes are on the HDD alone
first, then in S3 alone, and its own library opens it through ``dss://`` each
time. A line a format: its size, the share that is hot, bytes of reads that
were not from the SSD alone with either, bytes that came from S3, and how long
both openings took.

    python test/bench/evicted_files.py --mib 1024
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import time
from typing import Any, List

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


def row(made: Any, fs: Any, folder: pathlib.Path, name: str,
        size: int) -> bool:
    """Print the line of one; is it as it should be?"""
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
        with fs.open('%s/%s' % (BOX, path.name)) as opened:
            assert opening.look(opened, said['size'], hot_ranges(said))
        took.append(time.perf_counter() - began)
        after = made.counts()
        slow.append(after.slow_bytes - before.slow_bytes)
        from_s3 = after.s3_bytes - before.s3_bytes
    fs.rm('%s/%s' % (BOX, path.name))
    share = said['hot_bytes'] / said['size']
    print((_ROW % (name, said['format'], said['size'] / MIB, 100 * share,
                   *slow, from_s3, *took))
          + (opening.why_more and '  ' + opening.why_more), flush=True)
    return not any(slow) and from_s3 < _ANSWERS_BYTES and (
        share <= 0.02 or bool(opening.why_more))


def main() -> int:
    """Run it on a cluster that is made, and removed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--mib', type=int, default=1024)
    parser.add_argument('--formats', default=','.join(OPENINGS),
                        help='(default: %(default)s)')
    parser.add_argument('--on', metavar='FOLDER', default='/var/tmp',
                        help='of the disks (default: %(default)s)')
    options: Any = parser.parse_args()
    print(_HEAD % ('file', 'format', 'MiB', 'hot', 'slow: HDD', 'slow: S3',
                   'of S3', 'HDD', 'S3'), flush=True)
    with evicting.started(options.on) as made, \
            tempfile.TemporaryDirectory(dir=options.on) as folder:
        fs = fsspec.filesystem(
            'dss', auth_url=made.conf.auth_url, user='test:tester',
            key='testing')
        well = [row(made, fs, pathlib.Path(folder), name, options.mib * MIB)
                for name in options.formats.split(',')
                if not OPENINGS[name].lacking()]
    print('%d of %d as they should be' % (sum(well), len(well)))
    return 0 if all(well) else 1


if __name__ == '__main__':
    sys.exit(main())
