#!/usr/bin/env python
"""What several processes of the tier daemon bring, and cost.

A node with real files on several devices, and a real daemon with as many
shards as each round says, in turn: 1, 2, 1, 2, and so on. For each kind of
work the seconds it takes, and the CPU time of the daemon and its shards:

rebuild   all devices are read into an empty index
sweep     all devices are compared with it
events    new versions are told, as many as the sockets take
single    versions go up to a real S3 (versitygw), each by itself; with
          --lean to a server that leaves the processors to us
bundled   the same in bundles

Printed: medians for each number of shards and their ratios. Of uploads also
who uses the processors, and what S3 comes to without us: a client that costs
little asks for the same with as many connections (``alone``). Where all
processors are in use, or S3 alone is no faster, more shards bring nothing. On
a busy machine only the CPU time of one run can be compared with itself.

    python test/bench/shards.py [--only KIND ...] [--rounds N]
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import shutil
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Union

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support.edges.bare_client import BareClient
from support.edges.lean_s3 import LeanServer
from support.edges.s3_servers import BUCKET, VersityServer
from support.nodes.daemon_node import (
    DaemonProcess, cpu_seconds_of, write, write_node)
from support.nodes.sample_node import SampleNode
from support.ring_names import ring_names

from swift_dss.core.config import GatewayConf
from swift_dss.core.version import VersionId
from swift_dss.gateway import queue
from swift_dss.io.switch import Place
from swift_dss.wire.node import shards
from swift_dss.wire.control import Event, EventKind, encode_event

_BODY = b'x' * 4096
_SHARDS = (1, 2)
_TICKS = os.sysconf('SC_CLK_TCK')
_WALKS = ('rebuild', 'sweep', 'events')
#: Kinds of uploads, and the class of their versions.
_UPLOADS = {'single': '', 'bundled': 'bundle = true\n'}
#: When the versions of uploads were written, seconds before they go up.
_OLD_SECONDS = 3600.0
#: The daemon does nothing for so long, to be subtracted.
_IDLE_SECONDS = 5.0


class Took(NamedTuple):
    """One run.

    :param seconds: from its begin to its end
    :param cpu: seconds of the daemon and its shards
    :param of_s3: seconds of S3
    :param busy: seconds of all processors in which they did anything
    :param keys: new ones in S3; 0 where they leave no files
    """

    seconds: float
    cpu: float
    of_s3: float = 0.0
    busy: float = 0.0
    keys: int = 0


class Bench:
    """A node with files, and its daemon."""

    def __init__(self, root: str, args: argparse.Namespace) -> None:
        self.root = root
        self.devices = ['d%d' % number for number in range(args.devices)]
        self.objects = args.objects
        self.places: List[Place] = []
        for device in self.devices:
            node = SampleNode(root, with_hdd=False, device=device)
            for number in range(args.objects // args.devices):
                self.places.append(node.put(
                    '%s-%d' % (device, number), _BODY, synced=False))
        os.sync()
        self.daemon = DaemonProcess(root)
        self.count = 0

    def start(self, count: int) -> None:
        """A daemon with so many shards, and an empty index.

        It reads all devices at its start: they have nothing until then.
        """
        self.stop()
        self._rename('objects', 'aside')
        self.count = count
        write_node(self.root, {
            'io': {'carrier': 'null'}, 'tier': {
                'shards': count, 'clean_after_seconds': 86400,
                'index_dir': os.path.join(self.root, 'state')}})
        shutil.rmtree(os.path.join(self.root, 'state'), ignore_errors=True)
        self.daemon.start()
        _await(lambda: not self.daemon.ask({'verb': 'status'})[
            'rebuild_needed'])
        self._rename('aside', 'objects')

    def _rename(self, old: str, new: str) -> None:
        for device in self.devices:
            path = os.path.join(self.root, 'devices', device)
            os.rename(os.path.join(path, old), os.path.join(path, new))

    def stop(self) -> None:
        """No daemon."""
        self.daemon.stop()

    def walk(self, verb: str) -> None:
        """``rebuild`` or ``sweep``."""
        walked = self.daemon.ask({'verb': verb})
        assert sum(device['versions'] for device in walked) == len(
            self.places), walked

    def pids(self) -> List[int]:
        """Of the daemon and its shards."""
        status = self.daemon.ask({'verb': 'status'})
        return [status['pid']] + [shard['pid'] for shard
                                  in status.get('shards', ())]

    @contextlib.contextmanager
    def measured(self, into: List[Took]) -> Iterator[None]:
        """Time what is done in here."""
        pids = self.pids()
        began, used = time.monotonic(), cpu_seconds_of(pids)
        yield
        into.append(Took(time.monotonic() - began,
                         cpu_seconds_of(pids) - used))

    def tell(self) -> None:
        """All versions, as object servers would; waits until all of it is
        in the index."""
        layout: Dict[str, int] = {}
        if self.count > 1:
            with open(os.path.join(self.root, 'run', shards.FILE),
                      'rb') as source:
                layout = dict(shards.decode(source.read()).devices)
        ears = {}
        for device in self.devices:
            ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            ear.connect(os.path.join(
                self.root, 'run', 'shard-%d' % layout[device]
                if layout else '.', 'events.sock'))
            ears[device] = ear
        for place in self.places:
            old = place.version
            version = VersionId(old.device, 0, old.object_hash,
                                '1800000000.00000')
            ears[old.device].send(encode_event(Event(
                EventKind.PUT, version, place.partition, len(_BODY), '0',
                at=time.time())))
        for ear in ears.values():
            ear.close()
        while not self.daemon.ask({'verb': 'settle', 'seconds': 60}
                                  )['settled']:
            pass


class Uploads:
    """Fresh nodes whose versions are all old enough at one moment."""

    def __init__(self, root: str, server: Union[VersityServer, LeanServer],
                 args: argparse.Namespace) -> None:
        self._root = root
        self._server = server
        self._lead = args.lead
        self._objects = {'single': args.single, 'bundled': args.bundled}
        self._devices = ['d%d' % number for number in range(args.devices)]
        self._number = 0

    def measure(self, count: int, kind: str) -> Took:
        """Of so many shards."""
        self._number += 1
        root = os.path.join(self._root, 'uploads%d' % self._number)
        os.makedirs(root)
        daemon = DaemonProcess(root)
        try:
            written = time.time() - _OLD_SECONDS
            self._fill(root, self._objects[kind], written)
            begin = time.time() + self._lead
            self._configure(root, count, _UPLOADS[kind], begin - written)
            daemon.start()
            _await(lambda: not daemon.ask({'verb': 'status'})[
                'rebuild_needed'])
            return self._sent(daemon, begin)
        finally:
            daemon.stop()
            shutil.rmtree(root)

    def alone(self, kind: str) -> Took:
        """S3 without us; its client instead of the daemon."""
        self._number += 1
        body, count = _BODY, self._objects[kind]
        if kind == 'bundled':
            body = os.urandom(GatewayConf().bundle_bytes)
            count = max(8, count * len(_BODY) // len(body))
        client = BareClient(self._server)
        client.sign('run%d/' % self._number, count, body)
        before, pids = self._before([os.getpid()]), [os.getpid()]
        rate = client.run(GatewayConf().uploads)
        took = self._since(before, pids)
        return took._replace(seconds=rate.seconds)

    def _configure(self, root: str, count: int, options: str,
                   age: float) -> None:
        secret = os.path.join(root, 's3-secret')
        write(secret, 'access_key = %s\nsecret_key = %s\n' % (
            self._server.access_key, self._server.secret_key))
        os.chmod(secret, 0o600)
        write_node(root, {
            'io': {'carrier': 'null'}, 'tier': {
                'shards': count, 'clean_after_seconds': 86400,
                'interval_seconds': 60,
                'index_dir': os.path.join(root, 'state')},
            'gateway': {
                'enabled': 'true', 'bucket': BUCKET,
                'url': self._server.url, 'addressing_style': 'path',
                'prefix': 'run%d/' % self._number, 'secret_file': secret,
                'bundle_age_seconds': 1, 'remote_after_seconds': age}},
            '[class:0]\nname = plain\nrank = 0\nremote = back\n' + options)

    def _fill(self, root: str, count: int, written: float) -> None:
        nodes = {device: SampleNode(root, False, device)
                 for device in self._devices}
        names = ring_names(root, self._devices)
        for _, named in zip(range(count), names):
            nodes[named.device].put(
                named.name, _BODY, '%016.5f' % written,
                object_hash=named.object_hash, partition=named.partition,
                synced=False)
        os.sync()

    def _sent(self, daemon: DaemonProcess, begin: float) -> Took:
        status: Dict[str, Any] = daemon.ask({'verb': 'status'})
        pids = [status['pid']] + [shard['pid'] for shard
                                  in status.get('shards', ())]
        used = cpu_seconds_of(pids)
        time.sleep(_IDLE_SECONDS)
        idle = (cpu_seconds_of(pids) - used) / _IDLE_SECONDS
        if time.time() > begin:
            raise SystemExit('the node was not ready in time')
        time.sleep(begin - time.time())
        before = self._before(pids)
        _await(lambda: not _queued(daemon.root))
        took = self._since(before, pids)
        return took._replace(cpu=took.cpu - idle * took.seconds)

    def _before(self, pids: List[int]) -> Took:
        return Took(time.monotonic(), cpu_seconds_of(pids),
                    cpu_seconds_of([self._server.pid]), _busy())

    def _since(self, before: Took, pids: List[int]) -> Took:
        now = self._before(pids)
        return Took(*(at - was for at, was in zip(now[:4], before[:4])),
                    keys=sum(len(files) for _, _, files in os.walk(
                        os.path.join(self._server.data, BUCKET,
                                     'run%d' % self._number))))


def _queued(root: str) -> int:
    """Versions that wait for S3. Read from the files: the daemon would
    spend time on an answer."""
    queued = 0
    for path in glob.glob(os.path.join(root, 'state', '**', queue.FILE),
                          recursive=True):
        with contextlib.closing(sqlite3.connect(
                'file:%s?mode=ro' % path, uri=True)) as db:
            queued += db.execute('SELECT count(*) FROM uploads').fetchone()[0]
    return queued


def _busy() -> float:
    """Seconds of all processors so far in which they did anything."""
    with open('/proc/stat', encoding='ascii') as source:
        user, nice, system, _, _, irq, soft, _ = map(
            int, source.readline().split()[1:9])
    return (user + nice + system + irq + soft) / _TICKS


def _walks(bench: Bench, count: int, took: Dict[str, List[Took]]) -> None:
    bench.start(count)
    for name in ('rebuild', 'sweep'):
        with bench.measured(took[name]):
            bench.walk(name)
    with bench.measured(took['events']):
        bench.tell()
    bench.stop()


def _await(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(0.05)


def _median(runs: List[Took]) -> Took:
    return Took(*(statistics.median(values) for values in zip(*runs)))


def _report(took: Dict[int, Dict[str, List[Took]]],
            numbers: Dict[str, int]) -> None:
    print('%-8s %14s %14s %8s %14s %14s %8s %14s' % (
        '', '1 shard', '2 shards', 'times', 'CPU, 1', 'CPU, 2', 'ratio',
        'CPU of S3'))
    for name, number in numbers.items():
        single, double = (_median(took[count][name]) for count in _SHARDS)
        print('%-8s %12.0f/s %12.0f/s %8.2f %11.0f us %11.0f us %8.2f '
              '%11.0f us' % (
                  name, number / single.seconds, number / double.seconds,
                  single.seconds / double.seconds, 1e6 * single.cpu / number,
                  1e6 * double.cpu / number, double.cpu / single.cpu,
                  1e6 * single.of_s3 / number))


def _report_processors(who: str, runs: List[Took]) -> None:
    """Who used how many processors, of an upload."""
    run = _median(runs)
    cpu, of_s3, busy = (part / run.seconds for part in run[1:4])
    print('%-22s %8.2f s %6s keys: processors %.2f of %d: us %.2f, S3 %.2f, '
          'others %.2f' % (who, run.seconds, run.keys or '-', busy,
                           os.cpu_count() or 1, cpu, of_s3,
                           max(0.0, busy - cpu - of_s3)))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', nargs='+', default=[
        'walks', *_UPLOADS], choices=['walks', *_UPLOADS],
        help='kinds of work; walks are rebuild, sweep and events (all)')
    parser.add_argument('--objects', type=int, default=20000,
                        help='on all devices, to walk (20000)')
    parser.add_argument('--single', type=int, default=2000,
                        help='versions of a run that go up singly (2000)')
    parser.add_argument('--bundled', type=int, default=32000,
                        help='the same in bundles: many, as the last bundle '
                        'waits for its age (32000)')
    parser.add_argument('--lead', type=float, default=15.0,
                        metavar='SECONDS', help='for the start until they '
                        'go up; more on a busy machine (15)')
    parser.add_argument('--lean', action='store_true',
                        help='a small S3 in memory instead of versitygw')
    parser.add_argument('--devices', type=int, default=4, help='(4)')
    parser.add_argument('--rounds', type=int, default=3,
                        help='of each number of shards (3)')
    parser.add_argument('--on', default='/var/tmp', metavar='DIR',
                        help='where the node lies (/var/tmp)')
    args = parser.parse_args()
    root = tempfile.mkdtemp(prefix='dss-bench-', dir=args.on)
    try:
        _run(root, args)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _run(root: str, args: argparse.Namespace) -> None:
    kinds = [kind for kind in _UPLOADS if kind in args.only]
    numbers = dict.fromkeys(_WALKS if 'walks' in args.only else (),
                            args.objects // args.devices * args.devices)
    numbers.update({kind: vars(args)[kind] for kind in kinds})
    took: Dict[int, Dict[str, List[Took]]] = {
        count: {name: [] for name in numbers} for count in _SHARDS}
    alone: Dict[str, List[Took]] = {kind: [] for kind in kinds}
    if 'walks' in args.only:
        bench = Bench(root, args)
        try:
            for count in _SHARDS * args.rounds:
                _walks(bench, count, took[count])
        finally:
            bench.stop()
    if kinds:
        server: Union[VersityServer, LeanServer] = \
            LeanServer() if args.lean else VersityServer()
        uploads = Uploads(root, server, args)
        try:
            for _ in range(args.rounds):
                for kind in kinds:
                    for count in _SHARDS:
                        took[count][kind].append(
                            uploads.measure(count, kind))
                    alone[kind].append(uploads.alone(kind))
        finally:
            server.close()
    _report(took, numbers)
    for kind in kinds:
        for count in _SHARDS:
            _report_processors('%s, %d shard(s)' % (kind, count),
                               took[count][kind])
        _report_processors('%s, S3 alone' % kind, alone[kind])


if __name__ == '__main__':
    main()
