"""For programs that run in a guest: modelled devices, dm-dss, direct I/O.

Devices are null_blk's in memory. One with a cache loses, when its power
goes, what was not flushed: what a disk's volatile cache does.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import struct
import sys
import threading
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from dm_ioctl import dm_path, dmsetup

NULLB = '/sys/kernel/config/nullb'
SECTOR = 512
_LIBC = ctypes.CDLL(None, use_errno=True)
_IOPRIO_SET = 251


def put(path: str, text: str) -> None:
    """Write one attribute."""
    with open(path, 'w') as file:
        file.write(text)


class Disk:
    """A null_blk.

    :param microseconds: for each request
    :param depth: requests at once
    :param cache_mib: size of its volatile cache; 0 is none
    """

    def __init__(self, name: str, mib: int, microseconds: int,
                 depth: int = 64, cache_mib: int = 0) -> None:
        self.name = name
        self.mib = mib
        folder = self._folder = os.path.join(NULLB, name)
        os.mkdir(folder)
        for key, value in (
                ('size', mib), ('memory_backed', 1), ('irqmode', 2),
                ('queue_mode', 2), ('completion_nsec', microseconds * 1000),
                ('hw_queue_depth', depth), ('max_sectors', 4096),
                ('discard', 1), ('cache_size', cache_mib), ('power', 1)):
            if key != 'cache_size' or value:
                put(os.path.join(folder, key), str(value))

    @property
    def path(self) -> str:
        return '/dev/' + self.name

    @property
    def sectors(self) -> int:
        return self.mib * 2048

    def power(self, on: bool) -> None:
        """Off: what is in the volatile cache is lost."""
        put(os.path.join(self._folder, 'power'), str(int(on)))


class Dss:
    """A dm-dss device of two block devices."""

    def __init__(self, ssd: str, hdd: str, sectors: int, chunk: int,
                 features: str = 'idle_ms 0', name: str = 'dss') -> None:
        self.name = name
        self.sectors = sectors
        self.table = '0 %d dss %s %s %d %d %s' % (
            sectors, ssd, hdd, chunk, len(features.split()), features)
        dmsetup('create', name, '--table', self.table)
        self.path = dm_path(name)

    def message(self, *words: str) -> str:
        return dmsetup('message', self.name, '0', *words)

    def status(self) -> Dict[str, Any]:
        """The status line by its names."""
        words = dmsetup('status', self.name).split()[3:]
        used, slots = words[6].split('/')
        names = ('read_hits', 'write_hits', 'misses', 'promotions',
                 'bypasses', 'evictions', 'cleaned', 'ssd_errors',
                 'hdd_errors')
        status: Dict[str, Any] = {
            'health': words[1], 'mode': words[2], 'strategy': words[3],
            'used': int(used), 'slots': int(slots),
            'dirty': int(words[7]), 'dirty_grains': int(words[8])}
        status.update(zip(names, map(int, words[9:18])))
        status['classes'] = {
            int(word.split(':')[0]): tuple(map(int, word.split(':')[1:]))
            for word in words[18:]}
        return status

    def stats(self) -> Dict[int, Dict[str, int]]:
        """Counters by class; those of the device at -1."""
        rows = {}
        for line in self.message('stats').splitlines():
            row = {key: int(value) for key, value in
                   (word.split('=') for word in line.split())}
            rows[row.pop('class', -1)] = row
        return rows

    def reload(self, table: str) -> None:
        dmsetup('suspend', self.name)
        dmsetup('load', self.name, '--table', table)
        dmsetup('resume', self.name)

    def remove(self) -> None:
        dmsetup('remove', self.name)


def set_class(class_id: int) -> None:
    """The class of what this thread reads and writes from now on."""
    priority = 2 << 13 | (32 + class_id) << 3 | 4 if class_id else 0
    if _LIBC.syscall(_IOPRIO_SET, 1, 0, priority) < 0:
        raise OSError(ctypes.get_errno(), 'ioprio_set')


class Direct:
    """Direct I/O on a device, with an aligned buffer of its own."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        self._buffer = mmap.mmap(-1, 1 << 20)

    def read(self, offset: int, length: int) -> bytes:
        view = memoryview(self._buffer)[:length]
        if os.preadv(self.fd, [view], offset) != length:
            raise OSError('short read at %d' % offset)
        return bytes(view)

    def write(self, offset: int, data: bytes) -> None:
        view = memoryview(self._buffer)[:len(data)]
        view[:] = data
        if os.pwritev(self.fd, [view], offset) != len(data):
            raise OSError('short write at %d' % offset)

    def flush(self) -> None:
        os.fsync(self.fd)

    def close(self) -> None:
        os.close(self.fd)


class Machine:
    """Both disks behind linear devices that can be cut off."""

    def __init__(self, chunk: int, grain: int, ssd_mib: int = 6,
                 hdd_mib: int = 24) -> None:
        self.disks = {'ssd': Disk('ssd', ssd_mib, 80, 64, cache_mib=1),
                      'hdd': Disk('hdd', hdd_mib, 1000, 4, cache_mib=1)}
        self.chunk = chunk
        self.grain = grain

    def start(self, mode: str) -> Dss:
        for name, disk in self.disks.items():
            dmsetup('create', 'l' + name, '--table',
                    '0 %d linear %s 0' % (disk.sectors, disk.path))
        return Dss(dm_path('lssd'), dm_path('lhdd'),
                   self.disks['hdd'].sectors, self.chunk,
                   'idle_ms 50 grain %d high 30 low 10 %s'
                   % (self.grain, mode))

    def cut(self) -> None:
        """From some moment on, nothing reaches the media."""
        for name in sorted(self.disks):
            dmsetup('suspend', '--noflush', '--nolockfs', 'l' + name)
        for name, disk in self.disks.items():
            # Not the target "error": that acknowledges flushes.
            dmsetup('load', 'l' + name, '--table',
                    '0 %d flakey %s 0 0 1000000 2 error_reads error_writes'
                    % (disk.sectors, disk.path))
            dmsetup('resume', 'l' + name)

    def lose_power(self, dss: Optional[Dss]) -> None:
        """Call it when all that used the device has ended."""
        if dss:
            dss.remove()
        for name, disk in self.disks.items():
            dmsetup('remove', 'l' + name)
            disk.power(False)
            disk.power(True)


class WrongBytes(AssertionError):
    """A reader got what it must not get."""


class Shadow:
    """What each sector of a device may hold.

    A sector's bytes name its number and its version. ``done`` is the last
    version that was acknowledged, ``issued`` the last that was begun,
    ``kept`` the last that a flush made durable.
    """

    def __init__(self, sectors: int) -> None:
        self.done = [0] * sectors
        self.issued = [0] * sectors
        self.kept = [0] * sectors
        self._since: List[Tuple[int, int]] = []
        self._lock = threading.Lock()

    def bytes_of(self, sector: int, version: int) -> bytes:
        if not version:
            return bytes(SECTOR)
        return struct.pack('<QQ', version, sector) * (SECTOR // 16)

    def version_of(self, sector: int, data: bytes) -> int:
        version, number = struct.unpack_from('<QQ', data)
        if data != self.bytes_of(sector, version) or (
                version and number != sector):
            raise WrongBytes('sector %d holds %r...' % (sector, data[:32]))
        return int(version)

    def write(self, device: Direct, sector: int, count: int) -> None:
        """Write the next versions."""
        span = range(sector, sector + count)
        for number in span:
            self.issued[number] += 1
        device.write(sector * SECTOR, b''.join(
            self.bytes_of(number, self.issued[number]) for number in span))
        with self._lock:
            for number in span:
                self.done[number] = self.issued[number]
                self._since.append((number, self.issued[number]))

    def flush(self, device: Direct) -> None:
        with self._lock:
            begun, self._since = self._since, []
        try:
            device.flush()
        except OSError:
            with self._lock:
                self._since += begun
            raise
        for sector, version in begun:
            self.kept[sector] = max(self.kept[sector], version)

    def check(self, device: Direct, sector: int, count: int) -> None:
        """Read, and compare with what may be there at that time."""
        span = range(sector, sector + count)
        least = [self.done[number] for number in span]
        data = device.read(sector * SECTOR, count * SECTOR)
        for index, number in enumerate(span):
            version = self.version_of(
                number, data[index * SECTOR:(index + 1) * SECTOR])
            if not least[index] <= version <= self.issued[number]:
                raise WrongBytes('sector %d: version %d, not %d..%d' % (
                    number, version, least[index], self.issued[number]))

    def check_all(self, device: Direct, step: int = 512) -> None:
        for sector in range(0, len(self.done), step):
            self.check(device, sector, min(step, len(self.done) - sector))

    def after_crash(self, device: Direct, step: int = 512) -> int:
        """What is there now is what stays; it must be one that may be.

        :returns: sectors that lost an acknowledged, unflushed write
        """
        lost = 0
        for begin in range(0, len(self.done), step):
            count = min(step, len(self.done) - begin)
            data = device.read(begin * SECTOR, count * SECTOR)
            for index in range(count):
                number = begin + index
                version = self.version_of(
                    number, data[index * SECTOR:(index + 1) * SECTOR])
                if not self.kept[number] <= version <= self.issued[number]:
                    raise WrongBytes(
                        'after a crash, sector %d: version %d, not %d..%d'
                        % (number, version, self.kept[number],
                           self.issued[number]))
                lost += version < self.done[number]
                self.done[number] = self.issued[number] = version
                self.kept[number] = version
        self._since = []
        return lost


class Load:
    """Threads that write, read and check, each in stripes of its own.

    :param reads: False: they only write and flush
    """

    STRIPE = 64

    def __init__(self, shadow: Shadow, path: str, seed: int,
                 threads: int = 6, classes: Sequence[int] = (0, 11, 12, 25),
                 flush_every: int = 40, misaligned: bool = True,
                 reads: bool = True) -> None:
        self.shadow = shadow
        self._reads = reads
        self.path = path
        self.requests = 0
        self.errors: List[BaseException] = []
        self.io_errors = 0
        self._classes = classes
        self._flush_every = flush_every
        self._misaligned = misaligned
        self._stop = False
        self._threads = [
            threading.Thread(target=self._guard, args=(seed, index, threads))
            for index in range(threads)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends all; raises what any of them found."""
        self._stop = True
        for thread in self._threads:
            thread.join()
        for error in self.errors:
            raise error

    def run(self, requests: int) -> None:
        """At least that many requests, then the end."""
        self.start()
        self.wait(requests)
        self.stop()

    def wait(self, requests: int) -> None:
        """Until that many more were made, or a thread ended by an error."""
        goal = self.requests + requests
        while self.requests < goal and not self.errors \
                and any(thread.is_alive() for thread in self._threads):
            time.sleep(0.005)

    def _guard(self, seed: int, index: int, threads: int) -> None:
        device = Direct(self.path)
        try:
            self._work(random.Random(seed * 1000 + index), device, index,
                       threads)
        except WrongBytes as error:
            self.errors.append(error)
        except OSError:
            self.io_errors += 1
        finally:
            device.close()

    def _work(self, chance: random.Random, device: Direct, index: int,
              threads: int) -> None:
        stripes = len(self.shadow.done) // self.STRIPE
        while not self._stop:
            self.requests += 1
            set_class(chance.choice(self._classes))
            # Some stripes are hot.
            which = int(stripes * chance.random() ** 3)
            which = which - which % threads + index
            if which >= stripes:
                continue
            first = chance.randrange(self.STRIPE)
            count = min(chance.choice((1, 2, 8, 8, 16, 16, 32, 64)),
                        self.STRIPE - first)
            if not self._misaligned:
                first -= first % 8
                count = max(8, count - count % 8)
            sector = which * self.STRIPE + first
            if chance.random() < 0.5 or not self._reads:
                self.shadow.write(device, sector, count)
            else:
                self.shadow.check(device, sector, count)
            if chance.randrange(self._flush_every) == 0:
                self.shadow.flush(device)
            if chance.randrange(100) == 0 and self._reads:
                span = min(512, len(self.shadow.done))
                self.shadow.check(device, chance.randrange(
                    len(self.shadow.done) - span + 1), span)


def seed_from(arguments: Sequence[str]) -> int:
    """The first argument, or a new seed; printed, to run it again."""
    seed = int(arguments[0]) if arguments else random.randrange(1 << 30)
    print('seed %d' % seed)
    sys.stdout.flush()
    return seed
