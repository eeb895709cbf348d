"""Have a child read a file, and believe nothing that it says.

The child is a fresh interpreter: it shares no memory, lock or open file with
the daemon but the files that it is to read. Its answer goes to a file whose
length the kernel bounds. It is killed when its time is over.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, BinaryIO, Dict, List, NamedTuple, Sequence, Tuple

from swift_dss.core.limits import DEFAULT_MAX_SPANS

#: The program, in a process of its own: nothing of it is imported here.
PROGRAM = 'swift_dss.client.formats.child.main'
#: Longest answer that is looked at.
_ANSWER_BYTES = 1 << 20
#: Between two looks whether the daemon ends.
_LOOK_SECONDS = 0.2
#: What a child may say of a file.
KINDS = frozenset(('no_walls', 'unknown', 'bad', 'missing', 'failed'))

#: (offset, bytes, number of an open file)
Piece = Tuple[int, int, int]


class Bounds(NamedTuple):
    """Limits of one child.

    :param seconds: until it is killed; the same of CPU time
    :param spans: changes of class that the server takes
    """

    seconds: float
    memory_bytes: int
    spans: int = DEFAULT_MAX_SPANS


class Verdict(NamedTuple):
    """What became of one file.

    :param kind: ``classified``; one of :data:`KINDS`; ``timeout``;
        ``crashed``: it was killed, or said something that is no answer;
        ``stopped``: the daemon ends
    :param ranges: (offset, bytes), sorted, in the file
    """

    kind: str
    reason: str = ''
    ranges: Tuple[Tuple[int, int], ...] = ()

    @property
    def is_final(self) -> bool:
        """Whether another try, or another node, would find the same."""
        return self.kind in ('classified', 'unknown', 'bad', 'failed',
                             'timeout', 'crashed')


def read(size: int, pieces: Sequence[Piece], bounds: Bounds,
         stopping: threading.Event) -> Verdict:
    """Run a child over a file; blocks until it ends.

    :param size: bytes of the file
    :param pieces: where they are, in order, with none missing
    :raises OSError: no child can be made
    """
    job = {'parent': os.getpid(), 'size': size, 'pieces': list(pieces),
           'spans': bounds.spans, 'memory': bounds.memory_bytes,
           'cpu': max(1, int(bounds.seconds))}
    with tempfile.TemporaryFile() as asked, \
            tempfile.TemporaryFile() as said:
        asked.write(json.dumps(job).encode('ascii'))
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, '-m', PROGRAM], stdin=asked, stdout=said,
            stderr=subprocess.DEVNULL, cwd='/', env=_environment(),
            pass_fds=sorted({handle for _, _, handle in pieces}))
        try:
            ended = _wait(process, bounds.seconds, stopping)
        finally:
            process.kill()
            process.wait()
        if not ended:
            return Verdict('stopped' if stopping.is_set() else 'timeout',
                           'more than %g seconds' % bounds.seconds)
        return judged(process.returncode, said, size, bounds)


def _wait(process: Any, seconds: float, stopping: threading.Event) -> bool:
    deadline = time.monotonic() + seconds
    while not stopping.is_set():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        try:
            process.wait(min(left, _LOOK_SECONDS))
            return True
        except subprocess.TimeoutExpired:
            pass
    return False


def judged(status: int, said: BinaryIO, size: int,
           bounds: Bounds) -> Verdict:
    """The verdict of a child that has ended.

    :param status: its exit status
    :param said: its answer, which may be anything
    """
    if status:
        return Verdict('crashed', 'ended with status %d' % status)
    said.seek(0)
    raw = said.read(_ANSWER_BYTES + 1)
    try:
        answer: Dict[str, Any] = json.loads(raw.decode('ascii'))
        if 'error' in answer:
            kind = answer['error']
            return Verdict(kind if kind in KINDS else 'crashed',
                           ascii(answer.get('reason', ''))[:300])
        return Verdict('classified', str(answer['format'])[:32],
                       _checked(answer['ranges'], size, bounds.spans))
    except (ValueError, TypeError, LookupError, AttributeError,
            RecursionError) as err:
        return Verdict('crashed', 'no answer: %s' % ascii(str(err))[:200])


def _checked(ranges: List[Any], size: int,
             spans: int) -> Tuple[Tuple[int, int], ...]:
    """:raises ValueError: not ranges that a file can have"""
    end, checked = -1, []
    for offset, length in ranges:
        if type(offset) is not int or type(length) is not int or \
                offset <= end or length <= 0 or offset + length > size:
            raise ValueError('ranges are not sorted, or not in the file')
        end = offset + length
        checked.append((offset, length))
    if 2 * len(checked) > spans:
        raise ValueError('%d ranges are too many' % len(checked))
    return tuple(checked)


def _environment() -> Dict[str, str]:
    """No secret of the daemon's; libraries with one thread each."""
    return {'PATH': os.defpath, 'LANG': 'C.UTF-8',
            'PYTHONPATH': os.pathsep.join(filter(None, sys.path)),
            'PYTHONDONTWRITEBYTECODE': '1', 'OMP_NUM_THREADS': '1',
            'OPENBLAS_NUM_THREADS': '1', 'ARROW_DEFAULT_MEMORY_POOL':
            'system'}
