"""Writes that are faster than the link: Table IV and checkpoints.

    python test/fault/edge_writes.py table-iv [--objects 200] [--object 1m]
        [--rate 12500000] [--shares 0.25,0.5,0.985,2.48]
        [--client swift|rclone]
    python test/fault/edge_writes.py checkpoint [--writers 8]
        [--object 512m] [--rate 12500000] [--replicas 1] [--chunk-kib 1024]
        [--vanilla] [--no-sync] [--client dss]
        [--segment 16m]

``table-iv``: a data set is written with the ``swift`` command line client
(or rclone), as it is, into data caches of shares of its size, over a link
that takes longer than the writes do. In the paper the first three failed.
Here every upload must end well: what does not fit yet is refused with a time
to come again, and the client does. What waits for S3 must never be more than
the cache may hold; the wrong twin is a proxy that admits everything, and must
be caught at that.

``checkpoint``: writers put a checkpoint each, side by side; the stall is
until the last is acknowledged. Once into the cluster, which sends it on
later, once straight into S3 over the same link. ``--client dss``: each writer
is a Python program that has ``dss://`` write it, and all of it is read again.

The judge is the bucket and what a reader gets.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from fault.outage import (
    BUCKET, KIB, MIB, Campaign, Wrong, require, size)
from support import tier, wait_until

from swift_dss.aio import layout, processes
from swift_dss.bench import cpu
from swift_dss.bench.cluster import client as bench_client
from swift_dss.bench.cluster.client import Target


_DSS_WRITER = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           'dss_writer.py')
#: Objects that a client of ours writes at a time.
_UNDER_WAY = 4


class Edge(Campaign):
    """A cluster behind a link that is slower than it."""

    def __init__(self, budget: int, rate: float,
                 admission: bool = True, **cluster: Any) -> None:
        super().__init__(budget, rate, MIB, admission, **cluster)
        self.link.set_rate(rate)
        self.link.delay_seconds = 0.02

    def set_budget(self, budget: int) -> None:
        """Another data cache, without a restart."""
        path = self.conf.path('etc', 'dss.conf')
        with open(path) as source:
            lines = source.read().splitlines()
        with open(path + '.new', 'w') as out:
            out.write('\n'.join(
                'dirty_bytes = %d' % budget
                if line.startswith('dirty_bytes') else line
                for line in lines) + '\n')
        os.rename(path + '.new', path)
        processes.send(self.conf.root, ['tierd'], signal.SIGHUP)
        wait_until(lambda: all(
            device['pressure']['backlog']['budget_bytes'] == budget
            for device in tier(self.cluster, 'status')['devices']), 60,
            'the budget is %d' % budget)

    def waiting(self) -> List[int]:
        """Bytes that wait on each device, the fullest last."""
        return sorted(device['pressure']['backlog']['pending_bytes']
                      for device in tier(self.cluster, 'status')['devices'])

    def empty(self) -> bool:
        """Nothing waits for S3."""
        return self.settled() and self.pending() == 0

    def refusals(self) -> int:
        """Writes that proxies sent back, as the daemon was told."""
        return sum(counts.get('retry', 0) + counts.get('full', 0)
                   for counts in tier(self.cluster, 'status')
                   ['admissions'].values())


class Most:
    """The most that a cache held while the block lasted.

    :param held: asked again and again, from a thread
    """

    def __init__(self, held: Callable[[], int]) -> None:
        self._held = held
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.bytes = 0

    def __enter__(self) -> Most:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.25):
            self.bytes = max(self.bytes, self._held())


def upload(edge: Edge, client: str, container: str,
           folder: str) -> subprocess.CompletedProcess[str]:
    """The data set, by a client as anybody has it."""
    if client == 'rclone':
        command = ['rclone', 'copy', folder, 'edge:%s/data' % container,
                   '--transfers', str(_UNDER_WAY), '--low-level-retries',
                   '100', '--retries', '5', '--config', '/dev/null']
    else:
        command = [
            sys.executable, '-m', 'swiftclient.shell', '-A',
            edge.conf.auth_url, '-U', 'test:tester', '-K', 'testing', '-R',
            '12', 'upload', '--object-threads', str(_UNDER_WAY),
            '--object-name', 'data', container, folder]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env=dict(os.environ, RCLONE_CONFIG_EDGE_TYPE='swift',
                 RCLONE_CONFIG_EDGE_AUTH=edge.conf.auth_url,
                 RCLONE_CONFIG_EDGE_USER='test:tester',
                 RCLONE_CONFIG_EDGE_KEY='testing'))


def table_iv(edge: Edge, folder: str, share: float,
             client: str) -> Dict[str, Any]:
    """One row: the data set into a cache of that share of it."""
    names = sorted(os.listdir(folder))
    total = sum(os.path.getsize(os.path.join(folder, name))
                for name in names)
    budget = int(total * share)
    edge.set_budget(budget)
    container = 'cache-%d' % int(share * 1000)
    before, began = edge.refusals(), time.monotonic()
    agreed = 0

    def held() -> int:
        nonlocal agreed
        waiting = edge.waiting()
        # On a quorum of devices there is no more than this.
        agreed = max(agreed, waiting[(len(waiting) - 1) // 2])
        return waiting[-1]

    with Most(held) as most:
        done = upload(edge, client, container, folder)
    seconds = time.monotonic() - began
    require(done.returncode == 0, 'cache of %.1f %%: %s', 100 * share,
            (done.stderr or done.stdout)[-500:])
    # A write comes in if a quorum of its devices has room: the last one may
    # be ahead by what clients have under way.
    beyond = _UNDER_WAY * max(os.path.getsize(os.path.join(folder, name))
                              for name in names)
    require(agreed <= budget and most.bytes <= budget + beyond,
            'cache of %.1f %%: %d bytes waited on a quorum and %d on one '
            'device where there was room for %d', 100 * share, agreed,
            most.bytes, budget)
    # What the proxies count reaches the daemon a moment later.
    time.sleep(2.5)
    refused = edge.refusals() - before
    require(share > 0.5 or refused, 'the link was no slower than the writes')
    swift = edge.cluster.connection()
    wrong = 0
    for name in names:
        with open(os.path.join(folder, name), 'rb') as source:
            right = hashlib.md5(source.read()).hexdigest()
        body = swift.get_object(container, 'data/' + name)[1]
        wrong += hashlib.md5(body).hexdigest() != right
    swift.close()
    wait_until(edge.empty, 600, 'all of it is in S3')
    require(not wrong, '%d objects read back wrong', wrong)
    return {'share': share, 'budget': budget, 'data': total,
            'objects': len(names), 'failed': 0, 'wrong': wrong,
            'told_to_retry': refused, 'most_waiting': most.bytes,
            'most_on_a_quorum': agreed,
            'client': client, 'seconds': round(seconds, 1)}


def run_table_iv(args: argparse.Namespace) -> None:
    """All rows."""
    with tempfile.TemporaryDirectory(prefix='dss-iv-') as folder:
        for number in range(args.objects):
            with open(os.path.join(folder, 'o%04d' % number), 'wb') as out:
                out.write(os.urandom(args.object))
        edge = Edge(args.objects * args.object, args.rate)
        try:
            for share in map(float, args.shares.split(',')):
                print(json.dumps(table_iv(edge, folder, share, args.client),
                                 sort_keys=True), flush=True)
        finally:
            edge.close()
        edge = Edge(args.objects * args.object, args.rate, admission=False)
        try:
            table_iv(edge, folder, 0.25, args.client)
        except Wrong as caught:
            print('wrong twin, caught: %s' % caught, flush=True)
        else:
            raise Wrong('the wrong twin was not caught')
        finally:
            edge.close()


class Checkpoint:
    """What the writers send: of each the same length, no two alike.

    In memory, as a program has it that writes a checkpoint.

    :param writers: how many
    :param length: bytes of each
    """

    def __init__(self, writers: int, length: int) -> None:
        self.writers = writers
        self.length = length
        self._file_fd = os.memfd_create('checkpoint')
        block = os.urandom(MIB)
        for at in range(0, length, MIB):
            os.write(self._file_fd, hashlib.sha256(block).digest()
                     + block[32:min(MIB, length - at)])
            block = block[1:] + block[:1]
        #: The first bytes of each.
        self._heads = [os.urandom(min(4 * KIB, length))
                       for _ in range(writers)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.etags = list(pool.map(self._etag, range(writers)))

    def close(self) -> None:
        """Free the memory."""
        os.close(self._file_fd)

    def open_source(self, number: int) -> Any:
        """One checkpoint, for clients that read it."""
        return _Source(self._heads[number], self._file_fd, self.length)

    @contextlib.contextmanager
    def dss_writers(self, edge: Edge, container: str, segment: int
                    ) -> Iterator[Callable[[int], float]]:
        """Programs that are ready to write by ``dss://``, one of a number.

        :returns: has one write; seconds of processor time
        """
        with tempfile.TemporaryDirectory() as folder, \
                contextlib.ExitStack() as ends:
            writers = []
            for number, head in enumerate(self._heads):
                path = os.path.join(folder, str(number))
                with open(path, 'wb') as out:
                    out.write(head)
                writers.append(ends.enter_context(subprocess.Popen(
                    [sys.executable, _DSS_WRITER,
                     'dss://%s/checkpoint-%d' % (container, number), path,
                     '/proc/%d/fd/%d' % (os.getpid(), self._file_fd),
                     str(self.length), str(segment)], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True, env=dict(
                        os.environ, ST_AUTH=edge.conf.auth_url,
                        ST_USER='test:tester', ST_KEY='testing'))))
            for writer in writers:
                require(_line(writer) == 'ready', 'a writer did not start')

            def write(number: int) -> float:
                writer = writers[number]
                assert writer.stdin is not None
                writer.stdin.write('go\n')
                writer.stdin.flush()
                return float(_line(writer) or 'nan')
            yield write
            for writer in writers:
                require(writer.wait(60) == 0, 'a writer failed')

    def put(self, target: Target, path: str, number: int) -> float:
        """One writer's PUT, as programs do it that have much to send: the
        kernel takes the body from where it lies.

        :returns: seconds of processor time
        """
        before = time.thread_time()
        connection = http.client.HTTPConnection(
            target.host, target.port, timeout=3600)
        connection.putrequest('PUT', '%s/%s' % (target.prefix, path))
        connection.putheader('X-Auth-Token', target.token)
        connection.putheader('Content-Length', str(self.length))
        connection.endheaders()
        connection.send(self._heads[number])
        at = len(self._heads[number])
        while at < self.length:
            # Blocks: the socket's time-out would have Python make it one
            # that does not, and sendfile() ask for patience.
            at += os.sendfile(self._blocking(connection), self._file_fd, at,
                              self.length - at)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        require(answer.status == 201, '%s: status %d', path, answer.status)
        require(answer.getheader('Etag') == self.etags[number],
                '%s: %s is not its MD5', path, answer.getheader('Etag'))
        return time.thread_time() - before

    @staticmethod
    def _blocking(connection: http.client.HTTPConnection) -> int:
        sock = connection.sock
        sock.settimeout(None)
        return int(sock.fileno())

    def _etag(self, number: int) -> str:
        with self.open_source(number) as source:
            digest = hashlib.md5()
            for block in iter(lambda: source.read(MIB), b''):
                digest.update(block)
        return digest.hexdigest()


def _line(writer: subprocess.Popen[str]) -> str:
    assert writer.stdout is not None
    return writer.stdout.readline().strip()


class _Source(io.RawIOBase):
    """A head, and the rest from a file that many read."""

    def __init__(self, head: bytes, file_fd: int, length: int) -> None:
        super().__init__()
        self._head, self._file_fd, self._length = head, file_fd, length
        self._at = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        left = self._length - self._at
        size = left if size < 0 else min(size, left)
        data = self._head[self._at:self._at + size]
        self._at += len(data)
        if len(data) < size:
            more = os.pread(self._file_fd, size - len(data), self._at)
            self._at += len(more)
            data += more
        return data


def stall(put: Callable[[int], Any], writers: int) -> Tuple[float, List[Any]]:
    """Seconds until the last of the writers may go on, and their results."""
    began = time.monotonic()
    with ThreadPoolExecutor(writers) as pool:
        results = list(pool.map(put, range(writers)))
    return time.monotonic() - began, results


def busy_seconds() -> float:
    """What all processors of the machine did so far, of anybody's."""
    with open('/proc/stat') as source:
        ticks = [int(word) for word in source.readline().split()[1:]]
    # All but idle and waiting for disks; what was stolen counts: it is not
    # there for anybody.
    return (sum(ticks[:8]) - ticks[3] - ticks[4]) / cpu.TICKS


@contextlib.contextmanager
def writers_of(edge: Edge, data: Checkpoint, container: str,
               segment: int) -> Iterator[Callable[[int], float]]:
    """What has one of them write; they are ready.

    :param segment: bytes; 0: not by ``dss://``
    """
    if segment:
        with data.dss_writers(edge, container, segment) as write:
            yield write
        return
    target = bench_client.authenticate(
        edge.conf.auth_url, 'test:tester', 'testing')
    yield lambda number: data.put(
        target, '%s/checkpoint-%d' % (container, number), number)


def written_back(edge: Edge, data: Checkpoint, container: str,
                 segment: int = 0) -> Dict[str, Any]:
    """A checkpoint into the cluster, and what it took of processors."""
    pids = processes.find(edge.conf.root)
    with writers_of(edge, data, container, segment) as write:
        before, all_before = cpu.by_name(pids), busy_seconds()
        seconds, clients = stall(write, data.writers)
    everything = busy_seconds() - all_before
    after = cpu.by_name(pids)
    gib = data.writers * data.length / (1 << 30)
    per_gib = {name: round((after[name] - before[name]) / gib, 2)
               for name in after}
    per_gib['client'] = round(sum(clients) / gib, 2)
    per_gib['machine'] = round(everything / gib, 2)
    return {'seconds': round(seconds, 2), 'cpu_seconds_per_gib': per_gib,
            'per_second': int(data.writers * data.length / seconds)}


def read_again(edge: Edge, data: Checkpoint) -> None:
    """Each checkpoint has its bytes, whatever it is stored as.

    :raises Wrong: it has others
    """
    swift = edge.cluster.connection()
    for number, etag in enumerate(data.etags):
        digest = hashlib.md5()
        for block in swift.get_object(
                BUCKET, 'checkpoint-%d' % number, resp_chunk_size=MIB)[1]:
            digest.update(block)
        require(digest.hexdigest() == etag, 'checkpoint %d has other bytes',
                number)
    swift.close()


def straight_through(edge: Edge, data: Checkpoint) -> float:
    """Seconds of the same over the link, into S3."""
    import boto3
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config

    def put(number: int) -> None:
        client = boto3.client(
            's3', endpoint_url=edge.link.url, region_name='us-east-1',
            aws_access_key_id=edge.link.access_key,
            aws_secret_access_key=edge.link.secret_key,
            config=Config(s3={'addressing_style': 'path'},
                          read_timeout=3600))
        # In parts, as every S3 client does: servers give up on one PUT of
        # so many bytes over such a link.
        with data.open_source(number) as source:
            client.upload_fileobj(
                source, layout.CLOUD_BUCKET, 'sync-%d' % number,
                Config=TransferConfig(multipart_chunksize=8 * MIB,
                                      max_concurrency=1))

    return stall(put, data.writers)[0]


def run_checkpoint(args: argparse.Namespace) -> None:
    """Written back, and straight to S3."""
    data = Checkpoint(args.writers, args.object)
    edge = Edge(2 * args.writers * args.object, args.rate,
                replicas=args.replicas, chunk_bytes=args.chunk_kib * KIB)
    report = {'writers': args.writers, 'object': args.object,
              'replicas': args.replicas, 'chunk_kib': args.chunk_kib,
              'rate': args.rate, 'client': args.client}
    try:
        swift = edge.cluster.connection()
        if args.vanilla:
            # The bound: the same servers with Swift's own diskfile.
            swift.put_container('vanilla', {'X-Storage-Policy': 'vanilla'})
            report['vanilla'] = written_back(edge, data, 'vanilla')
            for number in range(args.writers):
                swift.delete_object('vanilla', 'checkpoint-%d' % number)
        swift.close()
        report['written_back'] = written_back(
            edge, data, BUCKET, args.segment if args.client == 'dss' else 0)
        read_again(edge, data)
        if args.sync:
            wait_until(edge.empty, 3600, 'all of it is in S3')
            through = straight_through(edge, data)
            report['sync_seconds'] = round(through, 2)
            report['times'] = round(
                through / report['written_back']['seconds'], 1)
        print(json.dumps(report, sort_keys=True))
    finally:
        edge.close()
        data.close()


def main(argv: Optional[List[str]] = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    verbs = parser.add_subparsers(dest='verb', required=True)
    rows = verbs.add_parser('table-iv')
    rows.add_argument('--objects', type=int, default=200)
    rows.add_argument('--object', type=size, default=MIB)
    rows.add_argument('--shares', default='0.25,0.5,0.985,2.48')
    rows.add_argument('--client', choices=('swift', 'rclone'),
                      default='swift')
    rows.set_defaults(run=run_table_iv)
    writes = verbs.add_parser('checkpoint')
    writes.add_argument('--writers', type=int, default=8)
    writes.add_argument('--object', type=size, default=512 * MIB)
    writes.add_argument('--replicas', type=int, default=1,
                        help='on the edge; S3 has one more (1)')
    writes.add_argument('--chunk-kib', type=int, default=1024,
                        help='that the edge moves at a time (1024)')
    writes.add_argument('--vanilla', action='store_true',
                        help="Swift's own diskfile on the same path before")
    writes.add_argument('--no-sync', dest='sync', action='store_false',
                        help='leave out what goes straight to S3')
    writes.add_argument('--client', choices=('http', 'dss'), default='http',
                        help='what writes into the edge (http)')
    writes.add_argument('--segment', type=size, default=16 * MIB,
                        help='of dss://: bytes of a segment (16m)')
    writes.set_defaults(run=run_checkpoint)
    for verb in (rows, writes):
        verb.add_argument('--rate', type=float, default=12.5e6)
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    args.run(args)
    return 0


if __name__ == '__main__':
    sys.exit(main())
