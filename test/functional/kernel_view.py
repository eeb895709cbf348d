"""The class of every span, as the block layer saw it.

Mounts tracefs where it is not, follows ``block_rq_issue`` of one disk
(a loop device with XFS), sends a classified PUT and a GET with a cold
cache to a real object server on it, and maps sectors back to offsets of
the data file by FIEMAP. Needs root. Run it for the table::

    python test/functional/kernel_view.py
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import re
import struct
import subprocess
import sys
import tempfile
from typing import Dict, Iterator, List, NamedTuple, Tuple

if __name__ == '__main__':
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir))

from support.nodes.object_node import ObjectNode, running_node

from swift_dss.core.spans import ClassMap, Span
from swift_dss.io.carriers.ioprio import HINT_BASE
from swift_dss.wire import classmap, names

_FS_IOC_FIEMAP = 0xc020660b
_FIEMAP = struct.Struct('=QQLLLL')
_EXTENT = struct.Struct('=QQQQQLLLL')
#: block_rq_issue: 7,0 RA 4096 () 2056 + 8 be,33,4 [thread]
_ISSUE = re.compile(
    r'block_rq_issue: (?P<dev>\d+,\d+) (?P<what>\S+) \d+ \(.*?\) '
    r'(?P<sector>\d+) \+ (?P<count>\d+) (?P<prio>\S+) \[')
MIB = 1 << 20


class Issue(NamedTuple):
    """One request that reached the disk."""

    what: str
    start: int
    length: int
    hint: int


def why_not() -> str:
    """'' if this machine can show the kernel's view, else the reason."""
    if os.geteuid():
        return 'needs root'
    if not os.path.exists('/dev/loop-control'):
        return 'needs loop devices'
    try:
        _tracing()
    except (OSError, subprocess.CalledProcessError) as err:
        return 'needs tracefs: %s' % err
    return ''


def _tracing() -> str:
    path = '/sys/kernel/tracing'
    if not os.path.exists(path + '/events'):
        subprocess.run(['mount', '-t', 'tracefs', 'nodev', path],
                       check=True, capture_output=True)
    return path


def _write(path: str, text: str) -> None:
    with open(path, 'w') as target:
        target.write(text)


@contextlib.contextmanager
def loop_xfs(folder: str) -> Iterator[Tuple[str, str]]:
    """(mount point, device) of a fresh XFS on a loop device."""
    image = os.path.join(folder, 'disk.img')
    with open(image, 'wb') as target:
        target.truncate(512 * MIB)
    subprocess.run(['mkfs.xfs', '-q', image], check=True)
    device = subprocess.run(
        ['losetup', '--find', '--show', '--direct-io=on', image],
        check=True, capture_output=True, text=True).stdout.strip()
    mount = os.path.join(folder, 'mnt')
    os.makedirs(mount)
    try:
        subprocess.run(['mount', device, mount], check=True)
        try:
            yield mount, device
        finally:
            subprocess.run(['umount', mount], check=True)
    finally:
        subprocess.run(['losetup', '-d', device], check=True)


@contextlib.contextmanager
def followed(device: str, issues: List[Issue]) -> Iterator[None]:
    """Collect what reaches ``device`` meanwhile, in an instance of our
    own, so that nobody else's tracing is touched."""
    status = os.stat(device)
    number = (os.major(status.st_rdev) << 20) | os.minor(status.st_rdev)
    instance = os.path.join(_tracing(), 'instances',
                            'dss-%d' % os.getpid())
    os.mkdir(instance)
    event = os.path.join(instance, 'events', 'block', 'block_rq_issue')
    try:
        _write(os.path.join(instance, 'buffer_size_kb'), '8192')
        _write(os.path.join(event, 'filter'), 'dev == %d' % number)
        _write(os.path.join(event, 'enable'), '1')
        yield
        _write(os.path.join(event, 'enable'), '0')
        with open(os.path.join(instance, 'trace')) as source:
            issues.extend(_parse(source.read()))
    finally:
        with contextlib.suppress(OSError):
            _write(os.path.join(event, 'enable'), '0')
        os.rmdir(instance)


def _parse(text: str) -> Iterator[Issue]:
    for match in _ISSUE.finditer(text):
        # "be,33,4": class, hint, level; "none,0,0" without a class.
        hint = int(match.group('prio').split(',')[1])
        yield Issue(match.group('what'), int(match.group('sector')) * 512,
                    int(match.group('count')) * 512, hint)


def extents_of(path: str) -> List[Tuple[int, int, int]]:
    """(offset in the file, offset on the disk, length) of a file."""
    count = 256
    raw = array.array('B', bytes(_FIEMAP.size + count * _EXTENT.size))
    _FIEMAP.pack_into(raw, 0, 0, (1 << 64) - 1, 0, 0, count, 0)
    with open(path, 'rb') as source:
        fcntl.ioctl(source.fileno(), _FS_IOC_FIEMAP, raw, True)
    mapped = _FIEMAP.unpack_from(raw, 0)[3]
    return [_EXTENT.unpack_from(raw, _FIEMAP.size + i * _EXTENT.size)[:3]
            for i in range(mapped)]


def seen_by_span(path: str, class_map: ClassMap, size: int,
                 issues: List[Issue],
                 kind: str) -> List[Tuple[Span, Dict[int, int]]]:
    """For each span, hint to bytes of it that went with that hint."""
    extents = extents_of(path)
    rows = [(span, {}) for span in class_map.split(0, size)]  # type: ...
    for issue in issues:
        if kind not in issue.what:
            continue
        for logical, physical, length in extents:
            first = max(issue.start, physical)
            end = min(issue.start + issue.length, physical + length)
            for span, hints in rows:
                low = max(first - physical + logical, span.offset)
                high = min(end - physical + logical, span.end)
                if low < high:
                    hints[issue.hint] = \
                        hints.get(issue.hint, 0) + high - low
    return rows


CLASS_MAP = ClassMap.from_spans(
    [Span(0, 2 * MIB, 1), Span(2 * MIB, 64 * 1024, 5),
     Span(2 * MIB + 64 * 1024, MIB, 6), Span(3 * MIB + 64 * 1024, 4096, 7)],
    rest=1)
SIZE = 4 * MIB


def observe(node: ObjectNode, device: str, class_map: ClassMap = CLASS_MAP,
            size: int = SIZE) -> Dict[str, List[Tuple[Span, Dict[int, int]]]]:
    """PUT and GET one object; what the disk saw of each span."""
    headers = classmap.to_headers(names.BACKEND_MAP, class_map)
    headers.update(classmap.to_headers(names.SYSMETA_MAP, class_map))
    body = os.urandom(size)
    writes: List[Issue] = []
    with followed(device, writes):
        answer = node.request('PUT', 'o', body, headers)
        assert answer.status == 201, answer
    path = node.data_file('o')
    # Cold: nothing of this file is left in the page cache.
    subprocess.run(['sync'], check=True)
    with open(path, 'rb') as source:
        os.posix_fadvise(source.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    reads: List[Issue] = []
    with followed(device, reads):
        answer = node.request('GET', 'o')
    assert answer.status == 200 and answer.body == body
    return {'PUT': seen_by_span(path, class_map, size, writes, 'W'),
            'GET': seen_by_span(path, class_map, size, reads, 'R')}


def table(seen: Dict[str, List[Tuple[Span, Dict[int, int]]]]) -> str:
    lines = ['%-4s %10s %10s %6s  %s' % (
        'op', 'offset', 'bytes', 'class', 'class at the disk: bytes')]
    for verb, rows in seen.items():
        for span, hints in rows:
            lines.append('%-4s %10d %10d %6d  %s' % (
                verb, span.offset, span.length, span.class_id,
                ', '.join('%s: %d' % (
                    hint - HINT_BASE if hint else 'none', count)
                    for hint, count in sorted(hints.items()))))
    return '\n'.join(lines)


def wrong_rows(seen: Dict[str, List[Tuple[Span, Dict[int, int]]]]) -> int:
    """Spans of which a byte went with another class, or did not show.

    A machine short of memory takes pages back that were read ahead, and
    then the disk reads them again: that may happen to an eighth of a span.
    """
    wrong = 0
    for verb, rows in seen.items():
        for span, hints in rows:
            hint = HINT_BASE + span.class_id if span.class_id else 0
            most = span.length + (span.length // 8 if verb == 'GET' else 0)
            wrong += (set(hints) != {hint}
                      or not span.length <= hints[hint] <= most)
    return wrong


def main() -> int:
    reason = why_not()
    if reason:
        print('kernel view: %s' % reason)
        return 1
    with tempfile.TemporaryDirectory(dir='/var/tmp') as folder:
        with loop_xfs(folder) as (mount, device):
            with running_node(os.path.join(mount, 'node'),
                              carrier='ioprio') as node:
                seen = observe(node, device)
                print(table(seen))
                return int(wrong_rows(seen) > 0)


if __name__ == '__main__':
    sys.exit(main())
