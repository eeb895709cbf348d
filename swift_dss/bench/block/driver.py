"""Input and output of the driver of block benchmarks.

The driver (``driver.c``) replays a list of requests on a block
device from a number of threads and writes down when each began and how
long it took. It is compiled once and kept.
"""

from __future__ import annotations

import json
import os
import struct
from array import array
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence

from swift_dss.bench import figures
from swift_dss.block.lab import cache
from swift_dss.core.errors import DssError
from swift_dss.io.carriers.ioprio import priority_of

BLOCK_BYTES = 4096
MAX_BYTES = 1 << 20
CLASSES = 32

#: Flags of a request, as in ``driver.c``.
WRITE, CHAINED, FLUSH, DUE = 1, 2, 4, 8

_REQUEST = struct.Struct('<QIBBHQ')
_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       'driver.c')
_COMPILE = ('-O2', '-Wall', '-Wextra', '-Werror', '-pthread')


class DriverFailed(DssError):
    """The driver could not do its work, or found wrong bytes."""

    exit_code = 70


class Request(NamedTuple):
    """One request.

    :param offset: bytes, a multiple of :data:`BLOCK_BYTES`
    :param length: the same, at most :data:`MAX_BYTES`
    :param class_id: its label; 0 is unclassified
    :param flags: ``WRITE``; ``CHAINED`` to the request before it: by the
        same client, after it; ``FLUSH`` after the write, within its time;
        ``DUE``: it belongs at ``wait_ns`` after the start, and if it
        comes late, it was waiting since then
    :param wait_ns: think time of the client before it, nanoseconds
    """

    offset: int
    length: int
    class_id: int = 0
    flags: int = 0
    wait_ns: int = 0


def encode(requests: Iterable[Request]) -> bytes:
    """The list as the driver reads it.

    :raises DriverFailed: says which request cannot be, and why
    """
    parts = []
    for number, request in enumerate(requests):
        reason = _reason(request)
        if reason:
            raise DriverFailed('request %d: %s' % (number, reason))
        parts.append(_REQUEST.pack(
            request.offset, request.length, request.class_id, request.flags,
            priority_of(request.class_id), request.wait_ns))
    return b''.join(parts)


def _reason(request: Request) -> str:
    if request.offset < 0 or request.offset % BLOCK_BYTES:
        return 'offset %d is not a multiple of %d' % (
            request.offset, BLOCK_BYTES)
    if not 0 < request.length <= MAX_BYTES or request.length % BLOCK_BYTES:
        return 'length %d is not a multiple of %d up to %d' % (
            request.length, BLOCK_BYTES, MAX_BYTES)
    if not 0 <= request.class_id < CLASSES:
        return 'class %d is not in 0..%d' % (request.class_id, CLASSES - 1)
    if request.flags & ~(WRITE | CHAINED | FLUSH | DUE):
        return 'flags %d are unknown' % request.flags
    if request.flags & FLUSH and not request.flags & WRITE:
        return 'a flush belongs to a write'
    if request.wait_ns < 0:
        return 'it waits %d ns' % request.wait_ns
    return ''


def decode(data: bytes) -> List[Request]:
    """A list that :func:`encode` made."""
    if len(data) % _REQUEST.size:
        raise DriverFailed('a list of %d bytes is cut off: requests have %d'
                           % (len(data), _REQUEST.size))
    return [Request(offset, length, class_id, flags, wait_ns)
            for offset, length, class_id, flags, _priority, wait_ns
            in _REQUEST.iter_unpack(data)]


@dataclass(frozen=True)
class Outcome:
    """The result of a list.

    :param seconds: from the first request to the end of the last, on the
        guest's clock
    :param taken_ns: of each request of the list, 0 if it was not issued
    :param wrong: blocks with wrong bytes
    :param failed: requests that failed
    :param trouble: the first wrong block or failure, in words
    """

    seconds: float
    taken_ns: Sequence[int]
    wrong: int = 0
    failed: int = 0
    trouble: str = ''


def outcome(summary: str, times: bytes, count: int) -> Outcome:
    """Read the driver's answers.

    :param summary: the line that it printed
    :param times: the file that it wrote
    :param count: requests of the list
    :raises DriverFailed: the answers are not of this list
    """
    try:
        told: Dict[str, Any] = json.loads(summary)
        seconds = float(told['seconds'])
        wrong, failed = int(told['wrong']), int(told['failed'])
        trouble = str(told['trouble'])
    except (ValueError, KeyError, TypeError) as err:
        raise DriverFailed('the driver said %r' % summary) from err
    columns = array('Q')
    if len(times) != 2 * columns.itemsize * count:
        raise DriverFailed('%d bytes of times for %d requests'
                           % (len(times), count))
    columns.frombytes(times)
    return Outcome(seconds, columns[1::2], wrong, failed, trouble)


def summary(requests: Sequence[Request], outcome: Outcome) -> Dict[str, Any]:
    """Figures of a list: of all, and by class and direction.

    Latencies are exact: each is one of the list's requests.
    """
    groups: Dict[str, List[int]] = {}
    lengths: Dict[str, int] = {}
    for request, taken in zip(requests, outcome.taken_ns):
        if not taken:
            continue
        direction = 'write' if request.flags & WRITE else 'read'
        for name in ('all', direction, str(request.class_id)):
            groups.setdefault(name, []).append(taken)
            lengths[name] = lengths.get(name, 0) + request.length
    told = {name: _figures(taken, lengths[name], outcome.seconds)
            for name, taken in groups.items()}
    empty = _figures([], 0, outcome.seconds)
    return {
        'seconds': outcome.seconds, 'wrong': outcome.wrong,
        'failed': outcome.failed, 'trouble': outcome.trouble,
        'all': told.get('all', empty), 'read': told.get('read', empty),
        'write': told.get('write', empty),
        'classes': {name: told[name] for name in sorted(
            (name for name in told if name.isdigit()), key=int)}}


def _figures(taken: List[int], length: int,
             seconds: float) -> Dict[str, float]:
    ordered = sorted(taken)
    count = len(ordered)
    return {
        'requests': count, 'bytes': length,
        'mb_per_second': figures.ratio(length / 1e6, seconds),
        'per_second': figures.ratio(count, seconds),
        'mean_us': figures.ratio(sum(ordered), count) / 1e3,
        'p50_us': figures.percentile(ordered, 50) / 1e3,
        'p99_us': figures.percentile(ordered, 99) / 1e3,
        'p999_us': figures.percentile(ordered, 99.9) / 1e3,
        'max_us': figures.percentile(ordered, 100) / 1e3}


def build(say: Callable[[str], None]) -> str:
    """The driver, compiled if this source was not compiled before.

    :returns: its path
    :raises cache.BuildFailed: with the compiler's output
    """
    with open(_SOURCE, 'rb') as source:
        name = cache.digest([source.read(), ' '.join(_COMPILE).encode()])
    folder = os.path.join(cache.root(), 'block-driver-' + name)
    program = os.path.join(folder, 'block_driver')
    with cache.making(folder, say) as ours:
        if ours:
            cache.need(['gcc'], 'compiling the driver')
            cache.call(['gcc', *_COMPILE, '-o', program, _SOURCE], folder,
                       'compiling the driver')
    return program
