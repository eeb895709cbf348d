"""Runs in a guest: time requests to a modelled disk, in nanoseconds.

``lab_disk.py DEVICE loads`` prints every latency of some loads;
``lab_disk.py DEVICE script STEP...`` does steps and prints a line for each:
``at:NS`` waits until the clock is at a multiple of NS,
``read:SECTOR:COUNT`` and ``write:SECTOR:COUNT`` time one request, ``sync`` a
flush, ``pause:NS`` sleeps. Requests with ``+`` between are under way together,
each begun a microsecond after the one before it.
``lab_disk.py DEVICE counts STEP...`` prints the disk's counters in the end,
too.
"""

from __future__ import annotations

import mmap
import os
import random
import subprocess
import sys
import threading
import time
from typing import Callable, List

MEMORY = memoryview(mmap.mmap(-1, 4 << 20))


def timed(act: Callable[..., object], *args: int) -> int:
    """How long ``act(*args)`` took."""
    begin = time.monotonic_ns()
    act(*args)
    return time.monotonic_ns() - begin


def read(fd: int, offset: int, count: int) -> None:
    """Read all of it past the page cache."""
    assert os.preadv(fd, [MEMORY[:count]], offset) == count


def write(fd: int, offset: int, count: int) -> None:
    """Write all of it past the page cache."""
    assert os.pwritev(fd, [MEMORY[:count]], offset) == count


def loads(fd: int) -> None:
    """Random reads, a mixed load and a queue of eight, by a fixed seed."""
    size = os.lseek(fd, 0, os.SEEK_END)
    dice = random.Random(17)

    def place() -> int:
        return dice.randrange(size // 4096) * 4096

    print('reads', [timed(read, fd, place(), 4096)
                    for _ in range(100)])
    mixed: List[int] = []
    for _ in range(200):
        kind = dice.random()
        count = dice.choice((4096, 65536, 1 << 20))
        offset = dice.randrange((size - count) // 4096) * 4096
        if kind < 0.6:
            mixed.append(timed(read, fd, offset, count))
        elif kind < 0.95:
            mixed.append(timed(write, fd, offset, count))
        else:
            mixed.append(timed(os.fsync, fd))
    print('mixed', mixed)
    places = [[place() for _ in range(20)] for _ in range(8)]
    taken: List[List[int]] = [[] for _ in range(8)]

    def reader(number: int) -> None:
        for offset in places[number]:
            taken[number].append(timed(read, fd, offset, 4096))
    threads = [threading.Thread(target=reader, args=(number,))
               for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print('queue', taken)


def request(fd: int, step: str) -> int:
    """How long a request took."""
    verb, *numbers = step.split(':')
    if verb == 'sync':
        return timed(os.fsync, fd)
    offset, count = (int(number) * 512 for number in numbers)
    return timed({'read': read, 'write': write}[verb], fd, offset, count)


def together(fd: int, steps: List[str]) -> List[int]:
    """How long each took."""
    taken = [0] * len(steps)

    def serve(number: int) -> None:
        taken[number] = request(fd, steps[number])
    threads = [threading.Thread(target=serve, args=(number,))
               for number in range(len(steps))]
    for thread in threads:
        thread.start()
        time.sleep(1e-6)
    for thread in threads:
        thread.join()
    return taken


def script(fd: int, steps: List[str]) -> None:
    """Do the steps of the command line."""
    for step in steps:
        verb, *numbers = step.split(':')
        if verb == 'at':
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            time.sleep((int(numbers[0]) - now % int(numbers[0])) / 1e9)
        elif verb == 'pause':
            time.sleep(int(numbers[0]) / 1e9)
        else:
            for taken in together(fd, step.split('+')) \
                    if '+' in step else [request(fd, step)]:
                print(taken)


def main() -> None:
    """As the module says."""
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
    if sys.argv[2] == 'loads':
        loads(fd)
    else:
        script(fd, sys.argv[3:])
    if sys.argv[2] == 'counts':
        sys.stdout.flush()
        subprocess.run(['dmsetup', 'status', sys.argv[1]], check=True)


if __name__ == '__main__':
    main()
