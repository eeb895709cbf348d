"""In a guest: devices that can grow and break, and I/O with a class."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from typing import Any, Dict, List, Tuple

from swift_dss.io import carriers

MIB = 1 << 20
TABLE = '/run/dss-classes.conf'
CLASSES = '''
[class:0]
name = unclassified
rank = 0
allocate = room
[class:1]
name = metadata
rank = 1000
[class:11]
name = user1
rank = 700
floor = 0.1
[class:17]
name = user7
rank = %d
[class:20]
name = scan
rank = 5
weight = 7
cutoff_kib = 256
no_allocate = true
'''


def call(*words: str) -> Tuple[int, str, str]:
    """Run a program: exit code, output, errors."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def need(*words: str) -> str:
    """Run a program that must not fail; its output."""
    code, out, err = call(*words)
    if code:
        raise SystemExit('%s: %d: %s%s' % (' '.join(words), code, out, err))
    return out


def block(*words: str) -> Tuple[int, str, str]:
    """``swift-dss block ...``."""
    return call(sys.executable, '-m', 'swift_dss.cli.main', 'block', *words)


def dmsetup(*words: str) -> str:
    """dmsetup where there is no udev."""
    return need('dmsetup', '--noudevsync', '--noudevrules', *words)


class Disk:
    """A device of a chosen size on a modelled disk, which can vanish."""

    def __init__(self, name: str, below: str, mib: int) -> None:
        self.name, self.below = name, '/dev/mapper/' + below
        self.path = '/dev/mapper/' + name
        self.mib = mib
        dmsetup('create', name, '--table', self._table())

    def _table(self) -> str:
        return '0 %d linear %s 0' % (self.mib * 2048, self.below)

    def _switch(self, table: str) -> None:
        dmsetup('load', self.name, '--table', table)
        dmsetup('suspend', '--noflush', '--nolockfs', self.name)
        dmsetup('resume', self.name)

    def grow(self, mib: int) -> None:
        """Another size."""
        self.mib = mib
        self._switch(self._table())

    def vanish(self) -> None:
        """Every request fails from here on: what a power cut leaves is
        what is on it now."""
        self._switch('0 %d error' % (self.mib * 2048))

    def come_back(self) -> None:
        """As it was when it vanished."""
        self._switch(self._table())


class Writer:
    """Writes with a class, and knows what must be read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.carrier = carriers.choose('ioprio').carrier
        assert self.carrier.name == 'ioprio'
        self.wanted: Dict[int, bytes] = {}
        self._buffer = mmap.mmap(-1, MIB)

    def write(self, at: int, length: int, class_id: int, seed: int) -> None:
        """``length`` bytes that no other place has."""
        data = pattern(at, length, seed)
        fd = os.open(self.path, os.O_WRONLY | os.O_DIRECT)
        try:
            self.carrier.enter(class_id)
            self._buffer[:length] = data
            done = os.pwritev(fd, [memoryview(self._buffer)[:length]], at)
            assert done == length
        finally:
            self.carrier.leave()
            os.close(fd)
        for offset in range(0, length, 4096):
            self.wanted[at + offset] = data[offset:offset + 4096]

    def read(self, at: int, length: int, class_id: int) -> bytes:
        """Read with a class."""
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        try:
            self.carrier.enter(class_id)
            assert os.preadv(
                fd, [memoryview(self._buffer)[:length]], at) == length
            return self._buffer[:length]
        finally:
            self.carrier.leave()
            os.close(fd)

    def sync(self) -> None:
        """Everything written is durable after it."""
        fd = os.open(self.path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    def differences(self, path: str = '') -> List[int]:
        """Offsets whose bytes are not those that were written last."""
        sectors = []
        fd = os.open(path or self.path, os.O_RDONLY | os.O_DIRECT)
        try:
            for at, data in sorted(self.wanted.items()):
                os.preadv(fd, [memoryview(self._buffer)[:4096]], at)
                if self._buffer[:4096] != data:
                    sectors.append(at)
        finally:
            os.close(fd)
        return sectors


def pattern(at: int, length: int, seed: int) -> bytes:
    """Bytes that tell where and when they were written."""
    return b''.join(b'%015d %015d\n' % (at + offset, seed)
                    for offset in range(0, length, 32))


def save_classes(rank: int = 100) -> None:
    """Write the class table's file."""
    with open(TABLE, 'w') as out:
        out.write(CLASSES % rank)


def counters(rows: Any, name: str, class_id: int) -> Any:
    """The class's row of a status in JSON."""
    return [row for row in rows if row['name'] == name][0][
        'classes'].get(str(class_id), {})
