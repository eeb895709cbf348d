"""A map of ranges over a large object of many segments, there and back.

``swift upload -S`` sends a file in segments, with a class and with ranges of
another one that lie across the ends of segments. Then each segment must have
its part of the map, and the object's ``.dss`` form must have the map and the
bytes. A cluster of this script's own, one replica.

    python test/bench/large_map.py --gib 5 --segments 20
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any, Iterator, List

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support import pattern
from support.nodes import bench_cluster

from swift_dss.aio.cluster import Cluster
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire.dssfile import Decoder

GOLD, SILVER = 25, 26
#: Of each range, half of it on either side of a segment's end.
_RANGE_BYTES = 1000
_CHUNK_BYTES = 1 << 20


def chunks(total: int) -> Iterator[bytes]:
    """Data of which no two chunks are the same."""
    body = pattern(_CHUNK_BYTES, 'map')
    for start in range(0, total, _CHUNK_BYTES):
        yield (start.to_bytes(8, 'big') + body[8:])[:total - start]


def written(path: pathlib.Path, total: int) -> str:
    """Write the file; the digest of its bytes."""
    digest = hashlib.sha256()
    with path.open('wb') as file:
        for chunk in chunks(total):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def upload(cluster: Cluster, path: pathlib.Path, segment_bytes: int,
           spans: List[Span]) -> None:
    """By the client, in segments."""
    ranges = ','.join('%d-%d-gold' % (span.offset, span.length)
                      for span in spans)
    subprocess.run(
        [sys.executable, '-m', 'swiftclient.shell', '-A',
         cluster.conf.auth_url, '-U', 'test:tester', '-K', 'testing',
         'upload', '-S', str(segment_bytes), '--use-slo',
         '--segment-threads', '2', '-H', 'X-DSS-Object-Class: silver',
         '-H', 'X-DSS-Range-Class: ' + ranges, '--object-name', 'big', 'big',
         str(path)], check=True, capture_output=True)


def check_segments(swift: Any, segment_bytes: int) -> int:
    """Each has the class, and its part of the ranges; how many there are."""
    rows = swift.get_container('big_segments', full_listing=True)[1]
    half = _RANGE_BYTES // 2
    for number, row in enumerate(rows):
        head = swift.head_object('big_segments', row['name'])
        wanted = ['0-%d-%d' % (half, GOLD)] * (number > 0) + [
            '%d-%d-%d' % (segment_bytes - half, half, GOLD)] * (
                number < len(rows) - 1)
        shown = head['x-dss-object-class'], head['x-dss-range-class']
        assert shown == (str(SILVER), ','.join(wanted)), (row, shown)
    return len(rows)


def check_whole(swift: Any, spans: List[Span]) -> str:
    """The ``.dss`` form has the map; the digest of its data."""
    headers, body = swift.get_object(
        'big', 'big', resp_chunk_size=_CHUNK_BYTES,
        headers={'X-DSS-Object-File': 'True'})
    decoder, digest = Decoder(int(headers['content-length'])), \
        hashlib.sha256()
    for chunk in body:
        digest.update(decoder.feed(chunk))
    decoder.finish()
    assert decoder.class_map == ClassMap.from_spans(spans, SILVER)
    return digest.hexdigest()


def show(cluster: Cluster, total: int, segments: int) -> None:
    """All of it; prints the figures."""
    swift = cluster.connection()
    segment_bytes = -(-total // segments)
    spans = [Span(end - _RANGE_BYTES // 2, _RANGE_BYTES, GOLD)
             for end in range(segment_bytes, total, segment_bytes)]
    with tempfile.TemporaryDirectory(dir='/var/tmp') as folder:
        path = pathlib.Path(folder, 'big')
        digest = written(path, total)
        start = time.perf_counter()
        upload(cluster, path, segment_bytes, spans)
    sent = time.perf_counter()
    count = check_segments(swift, segment_bytes)
    began = time.perf_counter()
    assert check_whole(swift, spans) == digest, 'other bytes'
    print('%.2f GiB in %d segments, %d ranges: every segment has its part '
          'of the map, the .dss form has the map and the bytes; up in %.0f '
          's, down in %.0f s, at most %.0f MiB of memory to read it' % (
              total / 2 ** 30, count, len(spans), sent - start,
              time.perf_counter() - began, resource.getrusage(
                  resource.RUSAGE_SELF).ru_maxrss / 1024))


def main() -> int:
    """Run it on a cluster that is made, and removed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--gib', type=float, default=5.0)
    parser.add_argument('--segments', type=int, default=20)
    options = parser.parse_args()
    with bench_cluster.started(replicas=1) as cluster:
        show(cluster, int(options.gib * 2 ** 30), options.segments)
    return 0


if __name__ == '__main__':
    sys.exit(main())
