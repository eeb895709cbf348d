#!/usr/bin/env python
"""The gateway beside others of its kind, on four workloads in one run.

    python test/fault/edge_peers.py [--systems dss,rclone,s3fs]
        [--rate 2500000] [--scale 1] [--json]

All of them write to one S3 server over a link of 20 ms and ``--rate`` bytes
a second each way:

``dss``     this project, by its S3 API, small objects in bundles
``rclone``  ``rclone serve s3`` with VFS write-back, by the same client
``s3fs``    s3fs-fuse: a file system on the bucket, no write-back

Workloads: *small* (4 KiB and 256 KiB objects: how fast they are acknowledged
and how fast they are in S3, in how many S3 objects), *cache* (a data set into
a quarter of its size: writes that failed, and the most that the cache held),
*outage* (S3 is cut off, the gateway's process is killed with -9 before S3 is
back: writes acknowledged, and lost), *checkpoint* (writers side by side: how
long they stall). The judge reads S3, or through the gateway where S3 has
bundles. A write is an S3 PUT with eight tries, or a file until its close.
"""

# long: three systems, four workloads and the table of one comparison.
from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterator, List, Optional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from fault.edge_writes import Edge, Most
from fault.outage import KIB, MIB, processes, require
from support import tier, wait_until
from support.edges.wan_link import WanLink

from swift_dss.aio import configs, layout
from swift_dss.bench import figures

BUCKET = 'peers'
_SETTLED_SECONDS = 60.0
_HEARD_SECONDS = 2.5
#: A write that has no answer after this was not acknowledged.
_HURRY_SECONDS = 15.0


def client_of(url: str, access_key: str, secret_key: str,
              tries: int = 8, seconds: float = 60.0) -> Any:
    """What writes, and what the judge looks with.

    :param seconds: without an answer, until a try has failed
    """
    return boto3.client(
        's3', endpoint_url=url, region_name='us-east-1',
        aws_access_key_id=access_key, aws_secret_access_key=secret_key,
        config=Config(
            s3={'addressing_style': 'path'}, max_pool_connections=16,
            retries={'max_attempts': tries - 1, 'mode': 'legacy'},
            connect_timeout=5, read_timeout=seconds,
            request_checksum_calculation='when_required',
            response_checksum_validation='when_required'))


class System:
    """A gateway under test."""

    name = ''

    def put(self, name: str, body: bytes) -> None:
        """One write, acknowledged when it returns.

        :raises OSError, BotoCoreError, ClientError: it failed for good
        """
        raise NotImplementedError

    def limit(self, length: int) -> None:
        """The cache may have so many bytes."""

    def hurry(self) -> None:
        """From now on a write is tried once, and for some seconds."""

    def held(self) -> int:
        """Bytes that the cache has for the sake of writes."""
        return 0

    def cut(self) -> None:
        """S3 is away."""
        raise NotImplementedError

    def mend(self) -> None:
        """S3 is there again."""
        raise NotImplementedError

    def kill(self) -> None:
        """kill -9, and a start."""
        raise NotImplementedError

    def missing(self, wanted: Dict[str, str]) -> List[str]:
        """Of these names (and their MD5s), those S3 has not, or wrong."""
        raise NotImplementedError

    def objects(self) -> int:
        """S3 objects that there are."""
        raise NotImplementedError

    def said(self) -> str:
        """What it says of what it did not send."""
        return ''

    def close(self) -> None:
        """Leave nothing."""


class Dss(System):
    """This project's cluster."""

    name = 'dss'

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        configs.write(edge.conf, {'etc/dss-classes.conf': (
            '[class:0]\nname = bulk\nrank = 0\nremote = through\n'
            'bundle = true\n')})
        path = edge.conf.path('etc', 'dss.conf')
        with open(path) as source:
            text_ = source.read()
        configs.write(edge.conf, {'etc/dss.conf': text_.replace(
            '[gateway]\n', '[gateway]\nbundle_age_seconds = 2\n')})
        self._restart()
        # What asks the daemon takes the process's standard output.
        self._asking = threading.Lock()
        self._empty_since = math.inf
        edge.set_budget(1 << 30)
        self._client = client_of(edge.conf.s3_url, 'test:tester', 'testing')
        self._client.create_bucket(Bucket=BUCKET)

    def hurry(self) -> None:
        self._client = client_of(self._edge.conf.s3_url, 'test:tester',
                                 'testing', 1, _HURRY_SECONDS)

    def put(self, name: str, body: bytes) -> None:
        try:
            self._client.put_object(Bucket=BUCKET, Key=name, Body=body)
        finally:
            # What was empty before says nothing of this one.
            self._empty_since = math.inf

    def limit(self, length: int) -> None:
        self._edge.set_budget(length)
        # Proxies ask once a second.
        time.sleep(_HEARD_SECONDS)

    def held(self) -> int:
        with self._asking:
            return self._edge.pending()

    def cut(self) -> None:
        self._edge.link.cut()

    def mend(self) -> None:
        self._edge.link.mend()

    def kill(self) -> None:
        processes.kill(self._edge.conf.root, ['tierd'])
        self._restart()

    def _restart(self) -> None:
        def answers() -> bool:
            try:
                return bool(tier(self._edge.cluster, 'status'))
            except (AssertionError, OSError):
                return False
        self._edge.cluster.restart('tierd')
        wait_until(answers, 60, 'the daemon answers')

    def missing(self, wanted: Dict[str, str]) -> List[str]:
        with self._asking:
            now = time.monotonic()
            if not self._edge.empty():
                self._empty_since = math.inf
            else:
                self._empty_since = min(self._empty_since, now)
            # The daemon hears of the last write a moment after it.
            if now - self._empty_since < _HEARD_SECONDS:
                return list(wanted)
        # What the record calls remote the kill campaigns have proven.
        return [name for name, digest in wanted.items() if hashlib.md5(
            self._client.get_object(Bucket=BUCKET, Key=name)['Body'].read()
            ).hexdigest() != digest]

    def objects(self) -> int:
        return len(_listing(self._edge.faulty, layout.CLOUD_BUCKET))

    def said(self) -> str:
        with self._asking:
            status = tier(self._edge.cluster, 'status')
        return json.dumps([status['gateway'], [
            device['pressure']['backlog'] for device in status['devices']]])


class _Far(System):
    """One that leaves an S3 object for each that was written."""

    def __init__(self, edge: Edge) -> None:
        self._server = edge.faulty
        self._bucket = BUCKET + '-' + self.name
        self._judge = client_of(self._server.url, self._server.access_key,
                                self._server.secret_key)
        self._judge.create_bucket(Bucket=self._bucket)
        self._link = WanLink(self._server, edge.link.up_gate.bytes_per_second,
                             edge.link.delay_seconds)
        self._root = tempfile.mkdtemp(prefix='dss-peer-', dir='/var/tmp')
        self._process: Optional[subprocess.Popen[bytes]] = None

    def _spawn(self) -> None:
        """Begin; it need not answer yet."""
        raise NotImplementedError

    def _answers(self) -> bool:
        raise NotImplementedError

    def _start(self) -> None:
        self._spawn()
        wait_until(self._answers, 60, self.name + ' answers')

    def cut(self) -> None:
        self._link.cut()

    def mend(self) -> None:
        """One that was started while S3 was away may have waited for it,
        or have given up."""
        self._link.mend()
        if self._process is not None:
            self._rise()

    def _rise(self) -> None:
        def answers() -> bool:
            if self._process is not None and \
                    self._process.poll() is not None:
                self._spawn()
            return self._answers()
        wait_until(answers, 120, self.name + ' answers with S3 there')

    def missing(self, wanted: Dict[str, str]) -> List[str]:
        there = _listing(self._server, self._bucket)
        etags = {key.rpartition('/')[2]: etag for key, etag
                 in there.items()}
        # An ETag of one PUT is an MD5; of several parts it says nothing.
        return [name for name, digest in wanted.items()
                if etags.get(name) != digest and (
                    '-' not in etags.get(name, '')
                    or self._digest(name) != digest)]

    def _digest(self, name: str) -> str:
        key = next(key for key in _listing(self._server, self._bucket)
                   if key.rpartition('/')[2] == name)
        return hashlib.md5(self._judge.get_object(
            Bucket=self._bucket, Key=key)['Body'].read()).hexdigest()

    def objects(self) -> int:
        return len(_listing(self._server, self._bucket))

    def _end(self, signum: int) -> None:
        if self._process is not None:
            self._process.send_signal(signum)
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        self._end(signal.SIGTERM)
        self._link.stop()
        shutil.rmtree(self._root, ignore_errors=True)


class Rclone(_Far):
    """``rclone serve s3`` over its own S3 back end."""

    name = 'rclone'

    def __init__(self, edge: Edge) -> None:
        super().__init__(edge)
        self._port = processes.free_base_port(1, first=26080)
        self._bytes = 1 << 30
        self._start()
        self._client = client_of('http://127.0.0.1:%d' % self._port,
                                 'key', 'secret')
        try:
            self._client.create_bucket(Bucket='writes')
        except BaseException:
            self.close()
            raise

    def _answers(self) -> bool:
        return _listens(self._port)

    def _spawn(self) -> None:
        env = dict(os.environ, **{
            'RCLONE_CONFIG_EDGE_' + name: value for name, value in (
                ('TYPE', 's3'), ('PROVIDER', 'Other'),
                ('ENDPOINT', self._link.url), ('REGION', 'us-east-1'),
                ('ACCESS_KEY_ID', self._server.access_key),
                ('SECRET_ACCESS_KEY', self._server.secret_key),
                ('FORCE_PATH_STYLE', 'true'))})
        with open(os.path.join(self._root, 'log'), 'ab') as log:
            self._process = subprocess.Popen(
                ['rclone', 'serve', 's3', 'edge:' + self._bucket, '--config',
                 '/dev/null', '--addr', '127.0.0.1:%d' % self._port,
                 '--auth-key', 'key,secret', '--vfs-cache-mode', 'writes',
                 '--vfs-write-back', '1s', '--vfs-cache-poll-interval', '1s',
                 '--vfs-cache-max-size', '%dB' % self._bytes, '--cache-dir',
                 os.path.join(self._root, 'cache'), '--transfers', '4'],
                env=env, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT)

    def put(self, name: str, body: bytes) -> None:
        self._client.put_object(Bucket='writes', Key=name, Body=body)

    def hurry(self) -> None:
        self._client = client_of('http://127.0.0.1:%d' % self._port,
                                 'key', 'secret', 1, _HURRY_SECONDS)

    def limit(self, length: int) -> None:
        self._end(signal.SIGTERM)
        self._bytes = length
        self._start()

    def held(self) -> int:
        return _tree_bytes(os.path.join(self._root, 'cache', 'vfs'))

    def kill(self) -> None:
        self._end(signal.SIGKILL)
        # Without S3 it does not come to listen.
        self._spawn()


class S3fs(_Far):
    """s3fs-fuse, as Debian has it."""

    name = 's3fs'

    def __init__(self, edge: Edge) -> None:
        super().__init__(edge)
        self._mount = os.path.join(self._root, 'mount')
        os.mkdir(self._mount)
        self._start()

    def _answers(self) -> bool:
        return os.path.ismount(self._mount)

    def _spawn(self) -> None:
        self._unmount()
        with open(os.path.join(self._root, 'log'), 'ab') as log:
            self._process = subprocess.Popen(
                ['s3fs', self._bucket, self._mount, '-f', '-o',
                 'url=%s,use_path_request_style,retries=3,'
                 'connect_timeout=5' % self._link.url],
                # Its file has a colon between the two; ours has one inside.
                env=dict(os.environ,
                         AWSACCESSKEYID=self._server.access_key,
                         AWSSECRETACCESSKEY=self._server.secret_key),
                stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT)

    def put(self, name: str, body: bytes) -> None:
        with open(os.path.join(self._mount, name), 'wb') as target:
            target.write(body)

    def kill(self) -> None:
        self._end(signal.SIGKILL)
        self._spawn()

    def _unmount(self) -> None:
        subprocess.run(['fusermount', '-u', '-z', self._mount],
                       stdin=subprocess.DEVNULL, check=False,
                       capture_output=True)

    def close(self) -> None:
        self._unmount()
        super().close()


SYSTEMS = {system.name: system for system in (Dss, Rclone, S3fs)}


def _listing(server: Any, bucket: str) -> Dict[str, str]:
    client = client_of(server.url, server.access_key, server.secret_key)
    return {item['Key']: item['ETag'].strip('"') for page
            in client.get_paginator('list_objects_v2').paginate(
                Bucket=bucket) for item in page.get('Contents', ())
            if item['Size']}


def _listens(port: int) -> bool:
    import socket
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', port)) == 0


def _tree_bytes(folder: str) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


class Writes:
    """What a system was told, and what it answered."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._lock = threading.Lock()
        self.acknowledged: Dict[str, str] = {}
        self.failed = 0

    def run(self, label: str, sizes: Iterator[int], threads: int) -> float:
        """Write objects of these sizes; seconds."""
        def put(numbered: Any) -> None:
            number, length = numbered
            name, body = '%s-%05d' % (label, number), os.urandom(length)
            try:
                self._system.put(name, body)
            except (OSError, BotoCoreError, ClientError):
                with self._lock:
                    self.failed += 1
                return
            with self._lock:
                self.acknowledged[name] = hashlib.md5(body).hexdigest()
        began = time.monotonic()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(put, enumerate(sizes)))
        return time.monotonic() - began

    def settle(self) -> int:
        """Wait until S3 has all; how many it has not in the end."""
        deadline = time.monotonic() + _SETTLED_SECONDS
        while True:
            missing = self._system.missing(self.acknowledged)
            if not missing:
                return 0
            if time.monotonic() > deadline:
                print('%s: %d are missing, %s' % (
                    self._system.name, len(missing), self._system.said()),
                    file=sys.stderr, flush=True)
                return len(missing)
            time.sleep(0.5)


def small(system: System, scale: float) -> Dict[str, Any]:
    """Workload 1."""
    values: Dict[str, Any] = {}
    for label, size, count in (('4k', 4 * KIB, 400), ('256k', 256 * KIB,
                                                      40)):
        writes = Writes(system)
        count = max(4, int(count * scale))
        before, began = system.objects(), time.monotonic()
        seconds = writes.run('small-' + label, iter([size] * count), 4)
        lost = writes.settle()
        whole = time.monotonic() - began
        values.update({
            label + ' writes/s': round(count / seconds, 1),
            label + ' s until in S3': round(whole, 1),
            label + ' S3 objects': system.objects() - before,
            label + ' failed': writes.failed, label + ' lost': lost})
    return values


def cache(system: System, scale: float) -> Dict[str, Any]:
    """Workload 2."""
    count, size = max(8, int(60 * scale)), 256 * KIB
    limit = count * size // 4
    system.limit(limit)
    writes = Writes(system)
    with Most(system.held) as most:
        seconds = writes.run('cache', iter([size] * count), 4)
        lost = writes.settle()
    system.limit(1 << 30)
    return {'failed': writes.failed, 'lost': lost,
            's': round(seconds, 1),
            'most held, % of the cache': round(100 * most.bytes / limit)}


def outage(system: System, scale: float) -> Dict[str, Any]:
    """Workload 3."""
    writes = Writes(system)
    system.hurry()
    system.cut()
    seconds = writes.run('outage', iter(
        [64 * KIB] * max(4, int(12 * scale))), 4)
    system.kill()
    system.mend()
    lost = writes.settle()
    return {'acknowledged': len(writes.acknowledged),
            'failed': writes.failed, 'lost': lost, 's': round(seconds, 1)}


def checkpoint(system: System, scale: float) -> Dict[str, Any]:
    """Workload 4."""
    writes = Writes(system)
    length = max(MIB, int(16 * MIB * scale))
    began = time.monotonic()
    seconds = writes.run('checkpoint', iter([length] * 4), 4)
    lost = writes.settle()
    return {'MiB': 4 * length // MIB, 'stall s': round(seconds, 2),
            's until in S3': round(time.monotonic() - began, 1),
            'failed': writes.failed, 'lost': lost}


#: The outage last: from there on writes are not tried again.
WORKLOADS = {workload.__name__: workload
             for workload in (small, cache, checkpoint,
                              outage)}


def compare(names: List[str], rate: float, scale: float,
            say: Callable[[str], None]) -> Dict[str, Dict[str, Any]]:
    """All workloads of all systems, by system and figure."""
    values: Dict[str, Dict[str, Any]] = {}
    edge = Edge(1 << 30, rate)
    try:
        for name in names:
            system = SYSTEMS[name](edge)
            values[name] = {}
            try:
                for label, workload in WORKLOADS.items():
                    began = time.monotonic()
                    try:
                        figure = workload(system, scale)
                    except (AssertionError, OSError) as err:
                        # The others are compared all the same.
                        figure = {'gave up': str(err)[:60]}
                    values[name].update({
                        '%s: %s' % (label, key): value
                        for key, value in figure.items()})
                    say('%s %s: %.0f s, %s' % (
                        name, label, time.monotonic() - began, figure))
            finally:
                system.close()
    finally:
        edge.close()
    return values


def text(values: Dict[str, Dict[str, Any]]) -> str:
    """A row for each figure, a column for each system."""
    labels = list(dict.fromkeys(
        label for figures_ in values.values() for label in figures_))
    return figures.table(
        ['figure', *values], [[label] + [
            str(values[name].get(label, '')) for name in values]
            for label in labels])


def main() -> int:
    """The command; 1 if this project lost or failed a write."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--systems', default='dss,rclone,s3fs')
    parser.add_argument('--rate', type=float, default=2.5e6)
    parser.add_argument('--scale', type=float, default=1.0)
    parser.add_argument('--json', action='store_true',
                        help='a line for each system instead of the table')
    args = parser.parse_args()
    names = args.systems.split(',')
    for name in names:
        require(name in SYSTEMS, '%r is none of %s', name, list(SYSTEMS))
        require(name == 'dss' or shutil.which(name),
                '%s is not installed', name)
    # What was started is ended, however this ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    values = compare(names, args.rate, args.scale,
                     lambda line: print(line, file=sys.stderr, flush=True))
    if args.json:
        for name, figures_of in values.items():
            print(json.dumps({'system': name, 'figures': figures_of}))
    else:
        print(text(values))
    ours = values.get('dss', {})
    return int(any(value for key, value in ours.items()
                   if key.endswith((' lost', ' failed', ': lost',
                                    ': failed', ': gave up'))))


if __name__ == '__main__':
    sys.exit(main())
