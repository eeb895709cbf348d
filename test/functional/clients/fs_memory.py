"""Memory of a large file that is written in classes, in a process alone.

Usage: ``fs_memory.py AUTH_URL PATH BYTES RANGES``. Prints the peak of its
resident memory while it wrote, how much of that was not there before, in
bytes, how many ranges of the class the object has, and the seconds.
"""

from __future__ import annotations

import os
import re
import sys
import time

import fsspec

_PIECE = 1 << 20


def resident() -> int:
    """Resident bytes, now."""
    with open('/proc/self/statm') as statm:
        return int(statm.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def forget_peak() -> None:
    """Begin to look for the most resident bytes."""
    with open('/proc/self/clear_refs', 'w') as clear:
        clear.write('5')


def peak() -> int:
    """The most since then."""
    with open('/proc/self/status') as status:
        return int(re.findall(r'VmHWM:\s+(\d+)', status.read())[0]) * 1024


def main() -> None:
    """Write, and say what it took."""
    auth_url, path, size, ranges = sys.argv[1:]
    fs = fsspec.filesystem('dss', auth_url=auth_url, user='test:tester',
                           key='testing')
    fs.pipe_file(path, b'warm', dss_class='gold')
    before = resident()
    forget_peak()
    data = memoryview(bytes(range(256)) * (_PIECE // 256))
    began = time.monotonic()
    step = int(size) // int(ranges)
    with fs.open(path, 'wb', dss_class='user1') as out:
        for _ in range(int(ranges)):
            write(out, data, step // 2)
            with out.classed('gold'):
                write(out, data, step - step // 2)
    seconds = time.monotonic() - began
    after = peak()
    gold = sum(1 for span in fs.classes_of(path) if span[2] == 25)
    print(after, after - before, gold, '%.1f' % seconds)


def write(out: object, data: memoryview, count: int) -> None:
    """Write ``count`` bytes in pieces."""
    while count:
        piece = data[:min(count, len(data))]
        out.write(piece)  # type: ignore[attr-defined]
        count -= len(piece)


if __name__ == '__main__':
    main()
