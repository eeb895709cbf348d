"""The class of each page at the disk. Runs in a laboratory guest.

``patched_view.py DEVICE KIND...`` makes a file system of each kind on the
device, does I/O of all sorts, follows ``block_rq_issue`` meanwhile, and
prints a line of JSON for each statement: file system, name, and '' or what
was found instead.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import subprocess
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir))
sys.path.insert(0, os.path.join(
    os.path.dirname(__file__), os.pardir, 'functional'))
import uring
from kernel_view import Issue, extents_of, followed

from swift_dss.io.carriers.classified import RWF_CLASSIFIED
from swift_dss.io.carriers.ioprio import (
    HINT_BASE, IoprioCarrier, priority_of)

PAGE = 4096
MIB = 1 << 20
KINDS = {
    'xfs': ['mkfs.xfs', '-q', '-f'],
    'xfs-1k': ['mkfs.xfs', '-q', '-f', '-b', 'size=1024'],
    'ext4': ['mkfs.ext4', '-q', '-F', '-b', '4096'],
    'ext4-1k': ['mkfs.ext4', '-q', '-F', '-b', '1024'],
    'ext4-nodelalloc': ['mkfs.ext4', '-q', '-F', '-b', '4096'],
}
OPTIONS = {'ext4-nodelalloc': ['-o', 'nodelalloc']}

_thread = IoprioCarrier()


class Sight:
    """Writes and reads one file and sees what reaches the disk."""

    def __init__(self, device: str, path: str) -> None:
        self.device, self.path = device, path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.direct = os.open(path, os.O_RDWR | os.O_DIRECT)
        self.random = random.Random(path)

    def close(self) -> None:
        """Let go of the file and remove it."""
        os.close(self.direct)
        os.close(self.fd)
        os.unlink(self.path)

    def write(self, page: int, pages: int, class_id: int) -> None:
        """A classified vector."""
        data = self.random.randbytes(pages * PAGE)
        done = os.pwritev(self.fd, [bytes((class_id,)), data], page * PAGE,
                          RWF_CLASSIFIED)
        assert done == len(data), done

    def plain(self, page: int, pages: int) -> None:
        """A write of whoever knows no class."""
        data = self.random.randbytes(pages * PAGE)
        assert os.pwrite(self.fd, data, page * PAGE) == len(data)

    @contextlib.contextmanager
    def seen(self, kind: str, hints: Dict[int, List[int]]) -> Iterator[None]:
        """Of each page, the classes that it goes to the disk with."""
        issues: List[Issue] = []
        with followed(self.device, issues):
            yield
        for logical, physical, length in extents_of(self.path):
            for issue in issues:
                begin = max(issue.start, physical)
                end = min(issue.start + issue.length, physical + length)
                if kind not in issue.what or begin >= end:
                    continue
                class_id = issue.hint - HINT_BASE if issue.hint else 0
                first = (begin - physical + logical) // PAGE
                last = (end - 1 - physical + logical) // PAGE
                for page in range(first, last + 1):
                    known = hints.setdefault(page, [])
                    if class_id not in known:
                        known.append(class_id)

    def written(self, action: Callable[[], Any]) -> Dict[int, List[int]]:
        """What an action, and then the flusher alone, writes."""
        hints: Dict[int, List[int]] = {}
        with self.seen('W', hints):
            action()
            drain()
        return hints

    def read(self, action: Callable[[], Any]) -> Dict[int, List[int]]:
        """What an action reads with a cold cache."""
        os.fsync(self.fd)
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)
        hints: Dict[int, List[int]] = {}
        with self.seen('R', hints):
            action()
        return hints


def drain() -> None:
    """Wait until the flusher, by itself, has written everything."""
    for _ in range(600):
        with open('/proc/meminfo') as source:
            rows = dict(line.split(':') for line in source)
        if not any(int(rows[name].split()[0])
                   for name in ('Dirty', 'Writeback')):
            return
        time.sleep(0.2)
    raise TimeoutError('the flusher leaves %s dirty' % rows['Dirty'])


def differs(hints: Dict[int, List[int]], wanted: Sequence[int]) -> str:
    """Pages that went with another class than theirs, or not at all."""
    wrong = ['%d: %r, not %d' % (page, hints.get(page), class_id)
             for page, class_id in enumerate(wanted)
             if hints.get(page) != [class_id]]
    return '%d of %d pages: %s' % (
        len(wrong), len(wanted), '; '.join(wrong[:6])) if wrong else ''


def mixed(sight: Sight, pages: int, longest: int) -> List[int]:
    """Write spans of random classes in random order; the classes."""
    spans, page = [], 0
    while page < pages:
        length = min(sight.random.randint(1, longest), pages - page)
        spans.append((page, length, sight.random.randrange(32)))
        page += length
    sight.random.shuffle(spans)
    wanted = [0] * pages
    for page, length, class_id in spans:
        sight.write(page, length, class_id)
        wanted[page:page + length] = [class_id] * length
    return wanted


def the_flusher_keeps_the_classes_of_a_mixed_file(sight: Sight) -> str:
    wanted: List[int] = []
    return differs(sight.written(
        lambda: wanted.extend(mixed(sight, 512, 40))), wanted)


def an_fsync_of_another_class_keeps_them(sight: Sight) -> str:
    wanted: List[int] = []

    def act() -> None:
        wanted.extend(mixed(sight, 256, 8))
        _thread.enter(7)
        os.fsync(sight.fd)
        _thread.leave()
    return differs(sight.written(act), wanted)


def sync_keeps_them(sight: Sight) -> str:
    wanted: List[int] = []

    def act() -> None:
        wanted.extend(mixed(sight, 256, 3))
        os.sync()
    return differs(sight.written(act), wanted)


def the_pages_of_one_large_write_are_told_apart(sight: Sight) -> str:
    wanted = [1] * 512

    def act() -> None:
        sight.write(0, 512, 1)
        for page in range(0, 512, 3):
            wanted[page] = 2 + page % 30
            sight.write(page, 1, wanted[page])
    return differs(sight.written(act), wanted)


def more_than_may_be_dirty_keeps_its_class(sight: Sight) -> str:
    wanted: List[int] = []

    def act() -> None:
        limit('dirty_bytes', 4 * MIB)
        wanted.extend(mixed(sight, 4096, 100))
    try:
        return differs(sight.written(act), wanted)
    finally:
        limit('dirty_ratio', 20)


def the_later_class_of_a_page_counts(sight: Sight) -> str:
    def act() -> None:
        for class_id in (4, 5):
            sight.write(0, 8, class_id)
        assert os.pwritev(sight.fd, [b'\6', b'part'], PAGE + 9,
                          RWF_CLASSIFIED) == 4
    return differs(sight.written(act), [5, 6] + [5] * 6)


def a_write_of_no_class_leaves_the_class_alone(sight: Sight) -> str:
    def act() -> None:
        sight.write(0, 8, 5)
        sight.plain(2, 3)
    return differs(sight.written(act), [5] * 8)


def class_0_makes_a_page_unclassified(sight: Sight) -> str:
    def act() -> None:
        sight.write(0, 8, 5)
        sight.write(2, 3, 0)
        _thread.enter(9)
        os.fsync(sight.fd)
        _thread.leave()
    return differs(sight.written(act), [5, 5, 0, 0, 0, 5, 5, 5])


def the_flusher_keeps_the_class_of_a_thread(sight: Sight) -> str:
    def act() -> None:
        for first, class_id in ((0, 9), (16, 31), (32, 0)):
            _thread.enter(class_id)
            sight.plain(first, 16)
        _thread.leave()
    return differs(sight.written(act), [9] * 16 + [31] * 16 + [0] * 16)


def a_clean_page_has_no_class(sight: Sight) -> str:
    sight.written(lambda: sight.write(0, 64, 5))
    return differs(sight.written(lambda: sight.plain(0, 64)), [0] * 64)


def a_page_cleaned_by_fsync_has_no_class(sight: Sight) -> str:
    sight.write(0, 64, 5)
    os.fsync(sight.fd)
    return differs(sight.written(lambda: sight.plain(0, 64)), [0] * 64)


def a_truncated_page_has_no_class(sight: Sight) -> str:
    sight.write(0, 64, 5)
    os.ftruncate(sight.fd, 0)
    return differs(sight.written(lambda: sight.plain(0, 64)), [0] * 64)


def a_punched_page_has_no_class(sight: Sight) -> str:
    sight.write(0, 64, 5)
    subprocess.run(['fallocate', '-p', '-o', '0', '-l', str(32 * PAGE),
                    sight.path], check=True)
    return differs(sight.written(lambda: sight.plain(0, 64)), [0] * 64)


def a_store_to_a_mapping_is_of_who_syncs(sight: Sight) -> str:
    sight.plain(0, 8)
    os.fsync(sight.fd)

    def act() -> None:
        with mmap.mmap(sight.fd, 8 * PAGE) as mapped:
            for page in range(8):
                mapped[page * PAGE] = 1
            _thread.enter(3)
            os.fsync(sight.fd)
            _thread.leave()
    return differs(sight.written(act), [3] * 8)


def a_synchronous_write_has_its_class(sight: Sight) -> str:
    def act() -> None:
        for page in range(8):
            os.pwritev(sight.fd, [bytes((page + 1,)), bytes(PAGE)],
                       page * PAGE, RWF_CLASSIFIED | os.RWF_DSYNC)
    return differs(sight.written(act), list(range(1, 9)))


def direct_io_has_its_class(sight: Sight) -> str:
    buffer = mmap.mmap(-1, PAGE)

    def write() -> None:
        for page in range(32):
            os.pwritev(sight.direct, [bytes((page,)), buffer], page * PAGE,
                       RWF_CLASSIFIED)

    def read() -> None:
        for page in range(32):
            os.preadv(sight.direct, [bytearray((31 - page,)), buffer],
                      page * PAGE, RWF_CLASSIFIED)
    return differs(sight.written(write), range(32)) or \
        differs(sight.read(read), range(31, -1, -1))


def a_cold_read_has_its_class(sight: Sight) -> str:
    sight.plain(0, 64)
    os.posix_fadvise(sight.fd, 0, 0, os.POSIX_FADV_RANDOM)

    def act() -> None:
        for page in range(64):
            os.preadv(sight.fd, [bytearray((page // 2,)), bytearray(PAGE)],
                      page * PAGE, RWF_CLASSIFIED)
    return differs(sight.read(act), [page // 2 for page in range(64)])


def readahead_has_the_class_of_the_reader(sight: Sight) -> str:
    sight.plain(0, 1024)

    def act() -> None:
        for page in range(0, 1024, 4):
            os.preadv(sight.fd, [bytearray((21,)), bytearray(4 * PAGE)],
                      page * PAGE, RWF_CLASSIFIED)
    return differs(sight.read(act), [21] * 1024)


def a_plain_read_has_no_class(sight: Sight) -> str:
    sight.plain(0, 64)

    def act() -> None:
        os.preadv(sight.fd, [bytearray((21,)), bytearray(PAGE)],
                  63 * PAGE, RWF_CLASSIFIED)
        os.posix_fadvise(sight.fd, 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(sight.fd, 32 * PAGE, 0)
    return differs(sight.read(act), [0] * 32)


def a_request_of_io_uring_has_its_own(sight: Sight) -> str:
    sight.plain(0, 8)
    buffer: Any = mmap.mmap(-1, PAGE)

    def act() -> None:
        with uring.Ring() as ring:
            for page in range(8):
                assert ring.buffer(uring.READ, sight.direct, buffer,
                                   page * PAGE, priority_of(page + 1)) == PAGE
    return differs(sight.read(act), range(1, 9))


STATEMENTS: Tuple[Callable[[Sight], str], ...] = (
    the_flusher_keeps_the_classes_of_a_mixed_file,
    an_fsync_of_another_class_keeps_them, sync_keeps_them,
    the_pages_of_one_large_write_are_told_apart,
    more_than_may_be_dirty_keeps_its_class,
    the_later_class_of_a_page_counts,
    a_write_of_no_class_leaves_the_class_alone,
    class_0_makes_a_page_unclassified,
    the_flusher_keeps_the_class_of_a_thread, a_clean_page_has_no_class,
    a_page_cleaned_by_fsync_has_no_class, a_truncated_page_has_no_class,
    a_punched_page_has_no_class, a_store_to_a_mapping_is_of_who_syncs,
    a_synchronous_write_has_its_class, direct_io_has_its_class,
    a_cold_read_has_its_class, readahead_has_the_class_of_the_reader,
    a_plain_read_has_no_class, a_request_of_io_uring_has_its_own)


def limit(name: str, value: int) -> None:
    with open('/proc/sys/vm/' + name, 'w') as target:
        target.write('%d' % value)


@contextlib.contextmanager
def mounted(device: str, kind: str) -> Iterator[str]:
    """A fresh file system of a kind."""
    folder = '/mnt/' + kind
    os.makedirs(folder, exist_ok=True)
    subprocess.run(KINDS[kind] + [device], check=True,
                   stdin=subprocess.DEVNULL)
    subprocess.run(['mount'] + OPTIONS.get(kind, []) + [device, folder],
                   check=True)
    try:
        yield folder
    finally:
        subprocess.run(['umount', folder], check=True)


def main(device: str, kinds: Sequence[str]) -> int:
    limit('dirty_expire_centisecs', 100)
    limit('dirty_writeback_centisecs', 50)
    for kind in kinds:
        with mounted(device, kind) as folder:
            for statement in STATEMENTS:
                sight = Sight(device, os.path.join(
                    folder, statement.__name__))
                try:
                    wrong = statement(sight)
                except Exception as err:
                    wrong = '%s: %s' % (type(err).__name__, err)
                sight.close()
                print(json.dumps([kind, statement.__name__, wrong]),
                      flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2:]))
