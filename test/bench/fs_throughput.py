"""Throughput of ``dss://`` and of s3fs to the same cluster, A B A B.

An all-in-one cluster of this script's own. Both libraries write and read the
same bytes, each in a process of its own a round, in turn: a large file that is
written piece by piece and read whole, and many small files in one call, in a
container that has no segments (``dss://`` asks for those of the object before
the write elsewhere, a HEAD more). The median of each, and of the ratios of
the rounds, with the quarter of them below and above; above 1 ``dss://`` is
faster. Both begin a round in turn. Where 1 lies between the quarters, neither
way is shown.

s3fs wants another botocore than the product's, so it has an interpreter of its
own::

    python -m venv /tmp/s3fs && /tmp/s3fs/bin/pip install s3fs
    python test/bench/fs_throughput.py --s3fs /tmp/s3fs/bin/python
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Dict, List

_PIECE = 1 << 20
WORK = ('write', 'read', 'write small', 'read small')


def child(kind: str, url: str, box: str, size: int, files: int) -> None:
    """Print MB/s of each of :data:`WORK`, as JSON. It needs fsspec and one of
    both libraries, and nothing else of ours."""
    import fsspec
    if kind == 'dss':
        fs = fsspec.filesystem('dss', auth_url=url + '/auth/v1.0',
                               user='test:tester', key='testing')
    else:
        fs = fsspec.filesystem(
            's3', key='test:tester', secret='testing',
            client_kwargs={'endpoint_url': url, 'region_name': 'us-east-1'},
            config_kwargs={'s3': {'addressing_style': 'path'}})
    data = memoryview(bytes(range(256)) * (_PIECE // 256))
    small = bytes(data[:65536])
    fs.pipe_file(box + '/first', b'x')  # it logs in
    took: List[float] = [time.perf_counter()]
    with fs.open(box + '/large', 'wb') as out:
        for _piece in range(size // _PIECE):
            out.write(data)
    took.append(time.perf_counter())
    assert len(fs.cat_file(box + '/large')) == size
    took.append(time.perf_counter())
    paths = ['%s-small/%d' % (box, number) for number in range(files)]
    fs.pipe(dict.fromkeys(paths, small))
    took.append(time.perf_counter())
    read = fs.cat(paths)
    took.append(time.perf_counter())
    assert set(read.values()) == {small}
    total = [size, size, files * len(small), files * len(small)]
    print(json.dumps({work: total[number] / 1e6 / (
        took[number + 1] - took[number]) for number, work
        in enumerate(WORK)}))


def turn(python: str, kind: str, url: str, box: str, size: int,
         files: int) -> Dict[str, float]:
    """What one process of a library saw."""
    told = subprocess.run(
        [python, os.path.abspath(__file__), '--child', kind, '--url', url,
         '--box', box, '--bytes', str(size), '--files', str(files)],
        check=True, stdout=subprocess.PIPE, timeout=600).stdout
    seen: Dict[str, float] = json.loads(told)
    return seen


def ratios(rates: List[List[float]]) -> str:
    """The middle ratio of the rounds, and its quarters."""
    each = sorted(one / other for one, other in zip(*rates))
    low, middle, high = statistics.quantiles(
        each, method='inclusive') if len(each) > 1 else each * 3
    return ': %.2f (%.2f to %.2f)' % (middle, low, high)


def compare(url: str, pythons: Dict[str, str], rounds: int, size: int,
            files: int) -> None:
    """Print a line a round, and a line a work with its ratio."""
    seen: Dict[str, List[Dict[str, float]]] = {kind: [] for kind in pythons}
    for number in range(rounds):
        for kind in list(pythons)[::-1 if number % 2 else 1]:
            seen[kind].append(turn(pythons[kind], kind, url, 'box-' + kind,
                                   size, files))
        print('round %d: %s' % (number, '; '.join(
            '%s %s' % (work, ' '.join('%s %.1f' % (
                kind, seen[kind][-1][work]) for kind in pythons))
            for work in WORK)), flush=True)
    for work in WORK:
        medians = [statistics.median(each[work] for each in seen[kind])
                   for kind in pythons]
        print('%-12s %s' % (work, ', '.join(
            '%s %.1f MB/s' % pair for pair in zip(pythons, medians)))
            + (ratios([[each[work] for each in seen[kind]]
                       for kind in pythons]) if len(medians) > 1 else ''))


def main() -> int:
    """Run it on a cluster that is made, and removed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--s3fs', metavar='PYTHON', help='an interpreter '
                        'that has s3fs; without it dss:// alone')
    parser.add_argument('--rounds', type=int, default=11)
    parser.add_argument('--bytes', type=int, default=256 << 20)
    parser.add_argument('--files', type=int, default=200)
    parser.add_argument('--child', help=argparse.SUPPRESS)
    parser.add_argument('--url', help=argparse.SUPPRESS)
    parser.add_argument('--box', help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.url, args.box, args.bytes, args.files)
        return 0
    sys.path.insert(0, os.path.join(os.path.dirname(
        os.path.abspath(__file__)), os.pardir))
    from support.nodes import bench_cluster
    pythons = {'dss': sys.executable}
    if args.s3fs:
        pythons['s3fs'] = args.s3fs
    with bench_cluster.started() as cluster:
        for kind in pythons:
            for end in '', '-small':
                cluster.connection().put_container('box-%s%s' % (kind, end))
        compare(cluster.conf.s3_url, pythons, args.rounds, args.bytes,
                args.files)
        print('load %.1f' % os.getloadavg()[0])
    return 0


if __name__ == '__main__':
    sys.exit(main())
