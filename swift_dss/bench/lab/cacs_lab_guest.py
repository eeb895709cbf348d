"""Runs in a guest: a Swift on modelled disks or caches, and its clients.

The one argument is the path of a JSON file, the job of
:mod:`swift_dss.bench.lab.cacs_lab`; the answer is JSON on the standard output,
progress goes to the standard error.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from typing import Any, Dict, Iterator, List, Sequence

from swift_dss.aio import configs, layout, storage
from swift_dss.aio.cluster import STORES, printer
from swift_dss.bench import cacs
from swift_dss.bench.block import targets
from swift_dss.bench.cluster import bed, client
from swift_dss.bench.cluster.bed import BenchCluster
from swift_dss.bench.lab import guest_cluster
from swift_dss.block import control, control_classes
from swift_dss.block.table import TargetTable
from swift_dss.core.classes import Allocate
from swift_dss.core.errors import DssError
from swift_dss.io.carriers.ioprio import IoprioCarrier
from swift_dss.strategy.eviction.chunks import ChunkRow, Flag

ROOT = '/tmp/cacs-lab'
CONTAINER = 'cacs'

#: Without unmeasured modules, because loading them costs real time.
PIPELINE = 'catch_errors gatekeeper %stempauth %sproxy-server'

#: A journal in proportion to the small disks, which mkfs.xfs only makes with
#: the switch for unsupported sizes.
MKFS = ('mkfs.xfs', '-q', '-f', '--unsupported', '-m', 'rmapbt=0,reflink=0',
        '-i', 'size=1024,nrext64=0')
_JOURNAL_BYTES = 4 << 20

#: Account and container databases are metadata of the application.
METADATA_CLASS = 1

#: Of a link's bits that are payload, with frames of 1500 bytes.
TCP_PERCENT = 94

#: The cleaner's quiet second, its work, and bytes that wait in memory.
SETTLE_SECONDS = 30.0
_SECTOR = 512
_TELL_EVERY = 10
_SLOWEST = {'node_timeout': '300', 'recoverable_node_timeout': '300',
            'container_update_timeout': '300', 'conn_timeout': '60'}


class GuestCluster(BenchCluster):
    """Swift's four servers over file systems that this job asks for."""

    def __init__(self, conf: layout.AioConf, job: Dict[str, Any]) -> None:
        super().__init__(conf, printer(sys.stderr), {
            # Without dm-dss it is a plain Swift on plain disks.
            'tier': {'engine': 'block' if job['strategy'] else 'file',
                     'ssd_bytes': str(job.get('ssd_bytes', 0))},
            'gateway': {'enabled': 'false'},
            # Else files begin and are read as Swift has it.
            'io': {
                'stage_cold_copies': str(job.get('stage_cold_copies', False)),
                **({} if job.get('placement', True) else {
                    'placement': 'false', 'whole_read_bytes': '0'})}})
        self._job = job

    def _make(self, keep: bool) -> None:
        for name in self.conf.device_names:
            self._mount(make_device(self._job, name),
                        self.conf.path('devices', name))
            if self._job.get('ssd_bytes'):
                self._limit(self.conf.path('devices', name))
                self._mount('/dev/mapper/slow-' + name,
                            self.conf.path('hdd', name))
        super()._make(keep)

    def _mount(self, path: str, target: str) -> None:
        os.makedirs(target, exist_ok=True)
        storage.run(*MKFS, '-l', 'size=%d' % self._job.get(
            'journal_bytes', _JOURNAL_BYTES), path)
        storage.run('mount', '-t', 'xfs', '-o', 'noatime', path, target)

    def _limit(self, path: str) -> None:
        """Leave no more room than a cache has beside its journal: XFS
        cannot be on a few MiB."""
        stat = os.statvfs(path)
        ballast = os.path.join(path, '.ballast')
        with open(ballast, 'wb') as out:
            os.posix_fallocate(
                out.fileno(), 0, stat.f_bavail * stat.f_frsize
                - self._job['cache_bytes'] + self._job['journal_bytes'])

    def _leave_metadata_room(self) -> None:
        """What is not for objects is for databases and inodes."""
        rest = self._job['cache_bytes'] - self._job['ssd_bytes'] \
            - self._job['journal_bytes']
        for name, reserve in (('account', 0), ('container', 0),
                              ('object', rest)):
            bed.change(os.path.join(self.conf.etc, name + '-server.conf'), {
                'DEFAULT': {'fallocate_reserve': str(reserve)}})

    def _configure(self) -> None:
        super()._configure()
        etc = self.conf.etc
        ours = 'dss ' if configs.has(self.conf, 'proxy') else ''
        cached = 'memory ' if self._job.get('cached') else ''
        bed.change(os.path.join(etc, 'proxy-server.conf'), {
            'pipeline:main': {'pipeline': PIPELINE % (cached, ours)},
            'filter:memory': bed.MEMORY,
            'app:proxy-server': _SLOWEST})
        link = self._job.get('link_mbit', 0)
        bed.change(os.path.join(etc, 'object-server.conf'), {
            'pipeline:main': {'pipeline': '%sobject-server' % (
                'link ' if link else '')},
            'filter:link': {
                'paste.filter_factory':
                    'swift_dss.bench.lab.cacs_link:filter_factory',
                'folder': self.conf.path('run', 'links'),
                # The payload that TCP leaves of such a link.
                'bytes_per_second': '%d' % (
                    link * 1000000 // 8 * TCP_PERCENT // 100)},
            'app:object-server': _SLOWEST})
        if self._job.get('ssd_bytes'):
            self._leave_metadata_room()
        if self._job['strategy'] == 'strict':
            rows = directed(self._job['ssd_classes']) \
                if 'ssd_classes' in self._job \
                else control_classes.read_rows(
                    os.path.join(etc, 'dss-classes.conf'))
            for name in self.conf.device_names:
                control.send_classes('ssd-' + name, rows)

    def _start_all(self) -> None:
        awaited = {}
        carrier = IoprioCarrier()
        for name, offset in STORES:
            # A child inherits the priority, and so the class.
            if name in ('account-server', 'container-server'):
                carrier.enter(METADATA_CLASS)
            self.spawn(name, [])
            carrier.leave()
            awaited[name] = self.conf.base_port + offset
        self._await_ports(awaited)
        if self._job.get('ssd_bytes'):
            self.spawn('tierd', [])
            self._await_tierd()


def directed(ssd_classes: Sequence[int]) -> Dict[int, ChunkRow]:
    """These classes and metadata to the SSD, all others to the HDD."""
    away = ChunkRow(allocate=Allocate.NEVER, flags=Flag.DIRECT_HDD)
    return {class_id: ChunkRow(rank=10)
            if class_id in ssd_classes or class_id == METADATA_CLASS
            else away for class_id in range(32)}


def has_cache(job: Dict[str, Any]) -> bool:
    """Whether a Swift device is an SSD before an HDD."""
    return bool(job['strategy'] or job.get('target')
                or job.get('ssd_bytes'))


def make_device(job: Dict[str, Any], name: str) -> str:
    """The block device of a Swift device: a disk, or a cache on two."""
    path = '/dev/mapper/ssd-' + name
    if not has_cache(job):
        return path
    ssd, hdd = ('/dev/mapper/%s-%s' % (kind, name)
                for kind in ('fast', 'slow'))
    if job.get('ssd_bytes'):
        return ssd
    room = job.get('room_bytes', job['cache_bytes'])
    targets.command(
        'dmsetup', 'create', 'room-' + name, '--table',
        '0 %d linear %s 0' % (room // _SECTOR, ssd))
    if job.get('target'):
        return targets.TARGETS[job['target']]({
            'hdd': hdd, 'ssd': '/dev/mapper/room-' + name, 'mode': 'back',
            'tag': '-' + name, 'cache_bytes': room,
            'chunk_bytes': max(job['chunk_bytes'],
                               targets.DM_CACHE_LEAST_BYTES)}).start()
    control.create('ssd-' + name, TargetTable(
        _sectors(hdd), '/dev/mapper/room-' + name, hdd,
        job['chunk_bytes'] // _SECTOR, strategy=job['strategy'],
        meta_class=METADATA_CLASS,
        stage=job.get('stage', 0),
        **dict(zip(('high', 'low'), job.get('watermarks', ())))))
    return path


def _sectors(path: str) -> int:
    with open(path, 'rb') as device:
        return device.seek(0, os.SEEK_END) // _SECTOR


class Crowd:
    """Clients at once, as threads: here computing costs no time, so no
    client waits for another."""

    def __init__(self, target: client.Target, count: int,
                 requests: Iterator[client.Request]) -> None:
        self._requests = requests
        self._lock = threading.Lock()
        self._begin = time.monotonic()
        self.rows: List[Dict[str, Any]] = []
        self._threads = [threading.Thread(
            target=self._work, args=(target,)) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def finish(self) -> List[Dict[str, Any]]:
        """Wait for the last request; the result of each."""
        for thread in self._threads:
            thread.join()
        return self.rows

    def _work(self, target: client.Target) -> None:
        connection = client.Client(target)
        while True:
            with self._lock:
                request = next(self._requests, None)
            if request is None:
                break
            sample = connection.do(request)
            with self._lock:
                self.rows.append({
                    'label': sample.label, 'status': sample.status,
                    'at': sample.at - self._begin,
                    'seconds': sample.seconds, 'bytes': sample.length})
                count = len(self.rows)
            if count % _TELL_EVERY == 0:
                print('%d requests in %.3f s' % (
                    count, time.monotonic() - self._begin),
                    file=sys.stderr, flush=True)
        connection.close()


def _put(obj: cacs.CacsObject) -> client.Request:
    return client.Request(
        'PUT', '%s/%s' % (CONTAINER, obj.name), '%s %s' % (
            obj.kind, obj.class_name), obj.size, cacs.body(obj), {
                'Content-Type': obj.content_type,
                'ETag': cacs.digest(obj),
                'X-DSS-Object-Class': str(obj.class_id)})


def _get(obj: cacs.CacsObject) -> client.Request:
    return client.Request('GET', '%s/%s' % (CONTAINER, obj.name),
                          '%s %s' % (obj.kind, obj.class_name))


def _look(job: Dict[str, Any], names: Sequence[str]) -> Dict[str, Any]:
    kinds = ('fast', 'slow') if has_cache(job) else ('ssd',)
    counters: Dict[str, Any] = {'disks': {
        '%s-%s' % (kind, name): targets.disk(
            '/dev/mapper/%s-%s' % (kind, name))
        for name in names for kind in kinds}, 'models': {
        '%s-%s' % (kind, name): targets.model(
            '%s-%s' % (kind, name)) for name in names for kind in kinds}}
    if job['strategy']:
        counters['caches'] = {name: targets.dss_counters(
            control.message('ssd-' + name, ['stats'])) for name in names}
        counters['status'] = {name: control.run(['status', 'ssd-' + name])
                              for name in names}
    return counters


def _forget() -> None:
    """Drop written pages from the page cache, so that a GET reads the disk."""
    os.sync()
    with open('/proc/sys/vm/drop_caches', 'w') as out:
        out.write('3')


def _phase(name: str, job: Dict[str, Any], names: Sequence[str],
           target: client.Target,
           groups: Sequence[Sequence[client.Request]]) -> Dict[str, Any]:
    """Each group of requests has ``clients`` of its own, all at once."""
    before = _look(job, names)
    begin = time.monotonic()
    crowds = [Crowd(target, job['clients'], iter(requests))
              for requests in groups]
    rows = [row for crowd in crowds for row in crowd.finish()]
    # Disks are looked at once: later moves do not belong to this phase.
    seconds = time.monotonic() - begin
    wanted = sum(map(len, groups))
    if len(rows) != wanted:
        raise DssError('%s: %d of %d requests were made' % (
            name, len(rows), wanted))
    after = _look(job, names)
    print('%s: %d requests in %.3f s' % (name, len(rows), seconds),
          file=sys.stderr, flush=True)
    time.sleep(SETTLE_SECONDS)
    return {'name': name, 'seconds': seconds, 'requests': rows,
            'before': before, 'after': after,
            'settled': _look(job, names)}


def crowds(job: Dict[str, Any], objects: Sequence[cacs.CacsObject]
           ) -> List[List[cacs.CacsObject]]:
    """The work of each crowd of clients: one crowd, or one a kind."""
    by_kind: Dict[str, List[cacs.CacsObject]] = {}
    for obj in objects:
        by_kind.setdefault(obj.kind if job['crowds'] else '', []).append(obj)
    return list(by_kind.values())


def mix(job: Dict[str, Any], target: client.Target,
        names: Sequence[str]) -> List[Dict[str, Any]]:
    """Everything is uploaded, then read in the order of the job."""
    objects = cacs.sample(job['objects'], job['seed'], job['scale'], 1)
    upload = _phase('upload', job, names, target, [
        [_put(obj) for obj in crowd] for crowd in crowds(job, objects)])
    _forget()
    download = _phase('download', job, names, target, [
        [_get(obj) for obj in crowd] for crowd in crowds(
            job, [objects[at] for at in job['reads']])])
    _verify(target, objects)
    return [upload, download]


def traffic(job: Dict[str, Any], target: client.Target,
            names: Sequence[str]) -> List[Dict[str, Any]]:
    """Each kind of object is uploaded by clients of its own."""
    groups = [cacs.of_kind(kind, count, job['seed'], job['scale'])
              for kind, count in job['kinds'].items()]
    upload = _phase('upload', job, names, target, [
        [_put(obj) for obj in objects] for objects in groups])
    _verify(target, [obj for objects in groups for obj in objects])
    return [upload]


def _verify(target: client.Target,
            objects: Sequence[cacs.CacsObject]) -> None:
    """The smallest object of each kind, byte for byte."""
    least: Dict[str, cacs.CacsObject] = {}
    for obj in sorted(objects, key=lambda obj: -obj.size):
        least[obj.kind] = obj
    connection = client.Client(target)
    for obj in least.values():
        got = connection.get_bytes('%s/%s' % (CONTAINER, obj.name))
        digest = hashlib.md5(got).hexdigest()  # nosec: Swift's ETag
        if digest != cacs.digest(obj):
            raise DssError('%s: other bytes than were written' % obj.name)
    connection.close()


def main(path: str) -> None:
    """As the module says."""
    with open(path) as source:
        job = json.load(source)
    conf = layout.AioConf(
        root=ROOT, base_port=8080, devices=job['devices'],
        storage='folders', background=False, hdd_iops=0,
        workers=job.get('workers', 0))
    with guest_cluster.running(GuestCluster(conf, job)):
        target = client.authenticate(
            conf.auth_url, 'test:tester', 'testing')
        first = client.Client(target)
        first.make_container(CONTAINER)
        # The first request pays for the one-time loading.
        first.must(client.Request('PUT', CONTAINER + '/first', size=1,
                                  body=[b'.']))
        first.close()
        case = traffic if 'kinds' in job else mix
        print(json.dumps(case(job, target, conf.device_names)))


if __name__ == '__main__':
    main(sys.argv[1])
