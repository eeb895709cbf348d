"""One writer of a checkpoint, by ``dss://``, in a process of its own.

    python test/fault/dss_writer.py URL HEAD FILE LENGTH SEGMENT

FILE has the checkpoint's bytes in memory, but for the first ones, which HEAD
has; it is sent in segments of SEGMENT bytes. The account is that of the
environment. Logs in, prints ``ready``, waits
for a line, writes, and prints the processor time that it took.
"""

from __future__ import annotations

import mmap
import sys
import time

import fsspec

#: That a program gives to write() at a time: its tensors are that large.
_BLOCK = 64 << 20


def main() -> None:
    """The command."""
    url, head_path, path = sys.argv[1:4]
    length, segment = map(int, sys.argv[4:])
    with open(head_path, 'rb') as source:
        head = source.read()
    system, name = fsspec.core.url_to_fs(url, segment_bytes=segment)
    system.info(name.split('/')[0])
    with open(path, 'rb') as source, mmap.mmap(
            source.fileno(), length, prot=mmap.PROT_READ) as rest:
        print('ready', flush=True)
        sys.stdin.readline()
        before = time.process_time()
        with memoryview(rest) as view, system.open(name, 'wb') as out:
            out.write(head)
            for at in range(len(head), length, _BLOCK):
                with view[at:min(length, at + _BLOCK)] as block:
                    out.write(block)
        print(time.process_time() - before, flush=True)


if __name__ == '__main__':
    main()
