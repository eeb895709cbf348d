"""The caches that are compared, as they are set up in a guest.

Each stands between the same two modelled disks, and keeps its own defaults
except for the subject of the comparison: write-back or write-through, and the
size of a chunk. Hit ratios are each target's own.
"""

from __future__ import annotations

import glob
import os
import subprocess
import time
from typing import Any, Callable, Dict, List, Mapping

from swift_dss.bench.block import bcache

_SECTOR = 512
_MIB = 1 << 20
_PARTS = 65536

#: dm-cache keeps its metadata on a device of its own: this much of the SSD
#: beside the room for data. That of the others is within their room.
SLACK_BYTES = 16 * _MIB
#: The least that dm-cache takes as its chunk.
DM_CACHE_LEAST_BYTES = 32 * 1024

_BCACHE = '/sys/fs/bcache'
_BCACHE_BUCKETS = 1024
_WAIT_SECONDS = 30.0

Counters = Dict[str, Any]


class TargetFailed(Exception):
    """A cache could not be set up, or its status could not be read."""


def command(*words: str) -> str:
    """Run a program.

    :raises TargetFailed: with its output
    """
    done = subprocess.run(words, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          # No udev there: dmsetup makes the nodes itself.
                          env=dict(os.environ, DM_DISABLE_UDEV='1'),
                          text=True)
    if done.returncode:
        raise TargetFailed('%s: %s' % (' '.join(words), done.stdout))
    return done.stdout


def _create(name: str, sectors: int, rest: str) -> str:
    command('dmsetup', 'create', name, '--table',
            '0 %d %s' % (sectors, rest))
    return '/dev/mapper/' + name


def _sectors(path: str) -> int:
    with open(path, 'rb') as device:
        return device.seek(0, os.SEEK_END) // _SECTOR


def _put(path: str, text: str) -> None:
    with open(path, 'w') as out:
        out.write(text)


def _get(path: str) -> str:
    with open(path) as source:
        return source.read().strip()


def disk(path: str) -> Dict[str, int]:
    """A disk's counters since it was made."""
    number = os.stat(path).st_rdev
    fields = [int(word) for word in _get('/sys/dev/block/%d:%d/stat' % (
        os.major(number), os.minor(number))).split()]
    return {'reads': fields[0], 'read_bytes': fields[2] * _SECTOR,
            'writes': fields[4], 'write_bytes': fields[6] * _SECTOR,
            'busy_ms': fields[9]}


def model(name: str) -> Dict[str, int]:
    """A modelled disk's own counters: seeks, flushes, its cache.

    :param name: of the device-mapper device
    """
    words = command('dmsetup', 'status', name).split()
    return {key: int(value) for key, _, value in (
        word.partition('=') for word in words[3:])}


class Target:
    """One set-up over two disks.

    :param job: ``cache_bytes``, ``chunk_bytes``, ``mode`` (``back`` or
        ``through``), ``classes`` (id to rank); ``hdd`` and ``ssd``, if they
        are not ``/dev/mapper/hdd`` and ``.../ssd``; ``tag``, which ends
        the names of its devices where a guest has several caches
    """

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.job = job
        self.hdd: str = job.get('hdd', '/dev/mapper/hdd')
        self.ssd: str = job.get('ssd', '/dev/mapper/ssd')
        self.tag: str = job.get('tag', '')

    def make(self, name: str, sectors: int, rest: str) -> str:
        """A device-mapper device of this cache; its path."""
        return _create(name + self.tag, sectors, rest)

    def start(self) -> str:
        """Set it up; the device that the requests go to."""
        raise NotImplementedError

    def counters(self) -> Counters:
        """Hits and lookups by its own status, since it was set up."""
        return {}

    def detail(self) -> str:
        """Its own status, as it says it."""
        return ''

    def disks(self) -> List[str]:
        """The disks that are there."""
        return [path for path in (self.hdd, self.ssd)
                if os.path.exists(path)]


class Plain(Target):
    """One disk, nothing between."""

    def __init__(self, job: Mapping[str, Any], name: str) -> None:
        super().__init__(job)
        self._path = {'hdd': self.hdd, 'ssd': self.ssd}[name]

    def start(self) -> str:
        return self._path


class DmCache(Target):
    """dm-cache with the strategy smq, metadata format 2."""

    def start(self) -> str:
        slack = SLACK_BYTES // _SECTOR
        meta = self.make('ssd-meta', slack, 'linear %s 0' % self.ssd)
        data = self.make('ssd-data', _sectors(self.ssd) - slack,
                         'linear %s %d' % (self.ssd, slack))
        return self.make('cached', _sectors(self.hdd),
                         'cache %s %s %s %d 2 metadata2 %s smq 0' % (
                             meta, data, self.hdd,
                             self.job['chunk_bytes'] // _SECTOR,
                             {'back': 'writeback',
                              'through': 'writethrough'}[self.job['mode']]))

    def counters(self) -> Counters:
        return dm_cache_counters(self.detail())

    def detail(self) -> str:
        return command('dmsetup', 'status', 'cached' + self.tag).strip()


def dm_cache_counters(status: str) -> Counters:
    """Read a status line of dm-cache."""
    words = status.split()
    if len(words) < 14 or words[2] != 'cache':
        raise TargetFailed('not a status of dm-cache: %r' % status)
    read_hits, read_misses, write_hits, write_misses, demotions, \
        promotions, dirty = (int(word) for word in words[7:14])
    return {'hits': read_hits + write_hits,
            'lookups': read_hits + read_misses + write_hits + write_misses,
            'read_hits': read_hits, 'reads': read_hits + read_misses,
            'promotions': promotions, 'demotions': demotions,
            'dirty': dirty}


class DmWritecache(Target):
    """dm-writecache on an SSD: writes only."""

    def start(self) -> str:
        data = self.make('ssd-data', self.job['cache_bytes'] // _SECTOR,
                         'linear %s 0' % self.ssd)
        return self.make('cached', _sectors(self.hdd),
                         'writecache s %s %s 4096 0' % (self.hdd, data))

    def counters(self) -> Counters:
        return dm_writecache_counters(self.detail())

    def detail(self) -> str:
        return command('dmsetup', 'status', 'cached' + self.tag).strip()


def dm_writecache_counters(status: str) -> Counters:
    """Read a status line of dm-writecache; it counts blocks of 4 KiB."""
    words = status.split()
    if len(words) < 17 or words[2] != 'writecache':
        raise TargetFailed('not a status of dm-writecache: %r' % status)
    reads, read_hits, writes, uncommitted, committed, around, allocated = (
        int(word) for word in words[7:14])
    return {'hits': read_hits + writes - around, 'lookups': reads + writes,
            'read_hits': read_hits, 'reads': reads,
            'overwritten': uncommitted + committed, 'around': around,
            'allocated': allocated}


class Bcache(Target):
    """bcache; its superblocks are written by us."""

    _name = 'bcache0'

    def start(self) -> str:
        size = self.job['cache_bytes']
        ssd = self.make('ssd-data', size // _SECTOR, 'linear %s 0' % self.ssd)
        bucket = 1 << max(13, (size // _BCACHE_BUCKETS).bit_length() - 1)
        pair = bcache.superblocks(
            size, min(bucket, 1 << 19),
            (b'dss-bench-bcache' + self.tag.encode('ascii'))[-16:])
        # They are numbered in the order of their coming.
        self._name = 'bcache%d' % len(glob.glob('/sys/block/bcache*'))
        folder = '/sys/block/%s/bcache' % self._name
        for path, content in zip((ssd, self.hdd), pair):
            with open(path, 'r+b') as device:
                device.seek(bcache.SUPER_BYTES)
                device.write(content)
                device.flush()
                os.fsync(device.fileno())
            _put(_BCACHE + '/register', path)
        _wait(lambda: os.path.isdir(folder + '/cache'),
              'bcache did not attach its cache')
        _put(folder + '/cache_mode', {
            'back': 'writeback', 'through': 'writethrough'}[
                self.job['mode']])
        node = '/dev/' + self._name
        _wait(lambda: os.path.exists(node), 'no ' + node)
        return node

    def counters(self) -> Counters:
        folder = '/sys/block/%s/bcache/stats_total/' % self._name
        values = {name: int(_get(folder + name)) for name in (
            'cache_hits', 'cache_misses', 'cache_bypass_hits',
            'cache_bypass_misses')}
        hits = values['cache_hits'] + values['cache_bypass_hits']
        lookups = sum(values.values())
        return {'hits': hits, 'lookups': lookups, 'read_hits': hits,
                'reads': lookups, **values}

    def detail(self) -> str:
        return ' '.join('%s=%s' % (name, _get(
            '/sys/block/%s/bcache/%s' % (self._name, name))) for name in (
                'state', 'cache_mode', 'dirty_data'))


def _wait(done: Callable[[], bool], reason: str) -> None:
    limit = time.monotonic() + _WAIT_SECONDS
    while not done():
        if time.monotonic() > limit:
            raise TargetFailed(reason)
        time.sleep(0.01)


class Dss(Target):
    """dm-dss, with classes by rank or blind to them.

    :param inner: order inside each class
    """

    def __init__(self, job: Mapping[str, Any], strategy: str,
                 inner: str = 'lru') -> None:
        super().__init__(job)
        self._strategy = strategy
        self._inner = inner

    def start(self) -> str:
        ssd = _create('ssd-data', self.job['cache_bytes'] // _SECTOR,
                      'linear %s 0' % self.ssd)
        path = _create('cached', _sectors(self.hdd), 'dss %s %s %d 2 %s %s'
                       % (ssd, self.hdd, self.job['chunk_bytes'] // _SECTOR,
                          {'back': 'writeback', 'through': 'writethrough'}[
                              self.job['mode']], self._strategy))
        _message('stage', str(self.job.get('stage', 0)))
        for name in ('ahead', 'after'):
            _message(name, '%d' % (self.job[name + '_bytes'] // _SECTOR))
        rows = dss_rows(self.job['classes'], self._inner)
        if rows:
            _message('classes', *rows)
        return path

    def counters(self) -> Counters:
        return dss_counters(_message('stats'))

    def detail(self) -> str:
        return command('dmsetup', 'status', 'cached' + self.tag).strip()


def _message(*words: str) -> str:
    return command('dmsetup', 'message', 'cached', '0', *words)


def dss_rows(ranks: Mapping[str, int], inner: str = 'lru') -> List[str]:
    """Rows of the class table: always allocate, by rank, nothing else.

    With an order that is not the default the unclassified get a row, too.
    """
    rows = dict(ranks) if inner == 'lru' else {'0': 0, **ranks}
    return ['%s,%d,always,back,0,%d,1,0,-,%d,%s' % (
        class_id, rank, _PARTS, _PARTS, inner)
        for class_id, rank in rows.items()]


def dss_counters(stats: str) -> Counters:
    """Read the answer to the message ``stats``.

    A chunk may be there and the bytes that are asked for not: dm-dss
    counts that as a hit of the chunk and as a miss of a grain. Here only
    requests that the SSD really served are hits.
    """
    classes: Dict[str, Dict[str, int]] = {}
    totals: Dict[str, int] = {}
    for line in stats.splitlines():
        row = dict(word.split('=', 1) for word in line.split())
        numbers = {name: int(value) for name, value in row.items()}
        if 'class' in numbers:
            classes[str(numbers.pop('class'))] = numbers
        else:
            totals.update(numbers)
    if not totals:
        raise TargetFailed('not statistics of dm-dss: %r' % stats)
    told: Counters = dict(totals, hits=0, lookups=0, classes={})
    for class_id, row_of in classes.items():
        hits = row_of['read_hits'] + row_of['write_hits'] \
            - row_of['grain_misses']
        lookups = row_of['read_hits'] + row_of['write_hits'] \
            + row_of['misses']
        told['hits'] += hits
        told['lookups'] += lookups
        told['classes'][class_id] = {
            'hits': hits, 'lookups': lookups, **row_of}
    return told


#: By the name of the set-up.
TARGETS: Dict[str, Callable[[Mapping[str, Any]], Target]] = {
    'hdd': lambda job: Plain(job, 'hdd'),
    'ssd': lambda job: Plain(job, 'ssd'),
    'dm-cache': DmCache,
    'bcache': Bcache,
    'dm-writecache': DmWritecache,
    'dm-dss': lambda job: Dss(job, 'strict'),
    'dm-dss-sieve': lambda job: Dss(job, 'strict', 'sieve'),
    'dm-dss-lru': lambda job: Dss(job, 'lru'),
}
