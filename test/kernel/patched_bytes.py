"""Classes change no byte. Runs in a laboratory guest.

``patched_bytes.py DEVICE KIND SEED OPERATIONS`` does random reads, writes,
truncations, holes, syncs and drops of the cache on one file, with random
classes by random ways, and compares each read with a copy in memory. Then
it mounts the file system again and compares the whole file.
"""

from __future__ import annotations

import mmap
import os
import random
import subprocess
import sys
from typing import Tuple

from patched_view import MIB, mounted

from swift_dss.io.carriers.classified import O_CLASSIFIED, RWF_CLASSIFIED
from swift_dss.io.carriers.ioprio import IoprioCarrier

_LARGEST = 3 * MIB


class File:
    """A file and what must be in it."""

    def __init__(self, path: str, seed: int) -> None:
        self.path = path
        self.random = random.Random(seed)
        self.wanted = bytearray()
        self.plain = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.marked = os.open(path, os.O_RDWR | O_CLASSIFIED)
        self.direct = os.open(path, os.O_RDWR | os.O_DIRECT | O_CLASSIFIED)
        self.thread = IoprioCarrier()

    def range(self) -> Tuple[int, int]:
        offset = self.random.randrange(_LARGEST)
        length = self.random.choice((1, 700, 4096, 70000, 600000))
        return offset, min(self.random.randint(1, length),
                           _LARGEST - offset)

    def extend(self, size: int) -> None:
        self.wanted.extend(bytes(max(0, size - len(self.wanted))))

    def write(self) -> None:
        offset, length = self.range()
        data = self.random.randbytes(length)
        class_id = bytes((self.random.randrange(32),))
        cut = self.random.randint(0, length)
        way = self.random.randrange(4)
        if way == 0:
            done = os.pwritev(self.plain, [class_id, data[:cut], data[cut:]],
                              offset, RWF_CLASSIFIED)
        elif way == 1:
            done = os.pwritev(self.marked, [class_id, data[:cut],
                                            data[cut:]], offset)
        elif way == 2:
            self.thread.enter(class_id[0])
            done = os.pwrite(self.marked, data, offset)
            self.thread.leave()
        else:
            offset, length = offset & ~4095, (length + 4095) & ~4095
            with mmap.mmap(-1, length) as buffer:
                data = self.random.randbytes(length)
                buffer[:] = data
                done = os.pwritev(self.direct, [class_id, buffer], offset)
        assert done == length, (way, done, length)
        self.extend(offset + length)
        self.wanted[offset:offset + length] = data

    def read(self) -> None:
        offset, length = self.range()
        data = bytearray(length)
        class_id = bytearray((self.random.randrange(32),))
        fd, flags = self.random.choice((
            (self.plain, RWF_CLASSIFIED), (self.marked, 0),
            (self.marked, RWF_CLASSIFIED)))
        done = os.preadv(fd, [class_id, data], offset, flags)
        self.compare(offset, bytes(data[:done]), length)

    def compare(self, offset: int, data: bytes, length: int) -> None:
        assert data == self.wanted[offset:offset + length], (
            'read of %d at %d differs' % (length, offset))

    def truncate(self) -> None:
        size = self.random.randrange(_LARGEST)
        os.ftruncate(self.plain, size)
        del self.wanted[size:]
        self.extend(size)

    def punch(self) -> None:
        offset, length = self.range()
        subprocess.run(['fallocate', '-p', '-o', str(offset), '-l',
                        str(length), self.path], check=True)
        end = min(offset + length, len(self.wanted))
        if end > offset:
            self.wanted[offset:end] = bytes(end - offset)

    def store(self) -> None:
        """Through a mapping, while the page may be of any class."""
        if len(self.wanted) < 8192:
            return
        with mmap.mmap(self.plain, len(self.wanted)) as mapped:
            for _ in range(5):
                at = self.random.randrange(len(self.wanted))
                mapped[at] = self.wanted[at] = self.random.randrange(256)

    def sync(self) -> None:
        self.random.choice((os.fsync, os.fdatasync))(self.marked)

    def drop(self) -> None:
        with open('/proc/sys/vm/drop_caches', 'w') as target:
            target.write('3')

    def step(self) -> None:
        self.random.choice(
            (self.write,) * 8 + (self.read,) * 6 + (
                self.truncate, self.punch, self.store, self.sync,
                self.drop))()


def main(device: str, kind: str, seed: int, operations: int) -> int:
    with mounted(device, kind) as folder:
        path = os.path.join(folder, 'file')
        file = File(path, seed)
        for number in range(operations):
            try:
                file.step()
            except Exception:
                print('%s, seed %d, operation %d' % (kind, seed, number))
                raise
        for fd in (file.plain, file.marked, file.direct):
            os.close(fd)
        subprocess.run(['umount', folder], check=True)
        subprocess.run(['mount', device, folder], check=True)
        with open(path, 'rb') as source:
            file.compare(0, source.read(), _LARGEST)
    print('%s, seed %d: %d operations, %d bytes the same' % (
        kind, seed, operations, len(file.wanted)))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]),
                  int(sys.argv[4])))
