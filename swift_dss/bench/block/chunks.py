"""The size of a chunk, and the cost of the first run: the experiment of the
hybrid cloud cache.

Its publication put dm-cache on a cloud instance's SSD in front of an array
in a data centre, and measured 8 KiB at random, 90 % reads, over 5 GB for
6 minutes, with chunks of 32, 128 and 160 KiB: a second run had a mean
latency 79 % lower than without the cache, a first one only 26 %, because a
miss fetched a whole chunk; and large chunks made single requests slower
than without any cache.

Here everything is a ``scale``-th: range, time, and the disks' own caches.
The cache has room for the whole range, as there.
"""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from swift_dss.bench import figures
from swift_dss.bench.block import compare
from swift_dss.bench.block.driver import WRITE, Request
from swift_dss.bench.block.load import MIB, Phase, Workload

Say = Callable[[str], None]

KIB = 1024
_REQUEST_BYTES = 8 * KIB
_RANGE_BYTES = 5 << 30
_SECONDS = 360.0
_READ_SHARE = 0.9
#: Twice the requests of an SSD that answers in 80 us.
_PER_SECOND = 20000

#: The volume behind the cache. The array is a flash array over a network of
#: 10 Gbit/s: 0.6 ms for the way there and back.
ORIGINS = {
    'array': 'nvme,overhead_ns=600000,interface_rate=1250000000',
    'hdd': 'hdd,cache_bytes=2097152,ahead_bytes=262144'}

#: Where the cache is: a cloud instance's own SSD is an NVMe one.
_SSDS = {'array': 'nvme', 'hdd': 'sata-ssd'}

#: How a chunk's rest is fetched: with the miss, if positioning is the cost;
#: later and without a waiting reader, if the origin serves many at a time.
_FETCH = {'array': 'after_bytes', 'hdd': 'ahead_bytes'}
#: Least bytes fetched with a miss, over several chunks if they are smaller.
#: The miss itself only fetches within its chunk.
_WINDOW_KIB = {'array': 128, 'hdd': 0}

PHASES = ('first', 'second')

#: The goals of dm-dss.
TARGET_FIRST, TARGET_SECOND = 0.60, 0.79


@dataclass(frozen=True)
class Plan:
    """How much to measure.

    :param scale: divisor of range and time
    :param chunks: in KiB; a set-up leaves out sizes that it cannot do
    :param fetch: dm-dss also fetches a chunk's rest, and on an array the
        neighbours of a small chunk; else only the requested bytes
    :param threads: requests under way at a time
    :param ssd: the cache's preset of the laboratory; empty: the origin's
        own (``_SSDS``)
    """

    chunks: Sequence[int] = (4, 16, 32, 64, 128, 256, 512, 1024)
    modes: Sequence[str] = ('through', 'back')
    setups: Sequence[str] = ('dm-dss', 'dm-cache')
    origin: str = 'array'
    scale: int = 32
    fetch: bool = True
    threads: int = 1
    ssd: str = ''
    seed: int = 1
    timeout: float = 1200.0


QUICK = Plan(chunks=(32, 128), modes=('through',), scale=128)


def workload(plan: Plan) -> Workload:
    """Two runs over the same range; other requests, the same shares."""
    span = -(-_RANGE_BYTES // plan.scale // MIB) * MIB
    seconds = _SECONDS / plan.scale

    def requests(run: int) -> List[Request]:
        dice = random.Random('block chunks %d %d' % (plan.seed, run))
        return [Request(
            dice.randrange(span // _REQUEST_BYTES) * _REQUEST_BYTES,
            _REQUEST_BYTES, 0,
            0 if dice.random() < _READ_SHARE else WRITE)
            for _ in range(int(seconds * _PER_SECOND * plan.threads))]

    return Workload(
        'chunks', '8 KiB at random over %d MiB, 90 %% reads, %.1f s a run'
        % (span // MIB, seconds),
        [Phase(name, requests(number), plan.threads, seconds=seconds)
         for number, name in enumerate(PHASES)],
        span + 2 * MIB, span + span // 8)


def measure(plan: Plan, say: Say) -> Dict[str, Any]:
    """No cache, then every set-up, mode and chunk: the report."""
    work = workload(plan)
    rows = []
    for setup, mode, chunk in [('hdd', 'back', 0)] + _cells(plan):
        base = dataclasses.replace(
            compare.Plan(), mode=mode, hdd=ORIGINS[plan.origin],
            ssd=plan.ssd or _SSDS[plan.origin],
            timeout=plan.timeout, ahead_bytes=0, after_bytes=0)
        if plan.fetch:
            base = dataclasses.replace(base, **{  # type: ignore[arg-type]
                _FETCH[plan.origin]: KIB * max(
                    chunk, _WINDOW_KIB[plan.origin])})
        say('%s, write-%s, chunks of %d KiB' % (setup, mode, chunk)
            if chunk else 'no cache')
        run = compare.measure(work, setup, base, lambda line: None,
                            chunk * KIB)
        rows.append({'setup': setup if chunk else 'no cache', 'mode': mode,
                     'chunk_kib': chunk, 'phases': run.phases,
                     'real_seconds': run.real_seconds})
    return {'bench': 'block-chunks', 'plan': dataclasses.asdict(plan),
            'what': work.what, 'rows': rows}


def _cells(plan: Plan) -> List[Tuple[str, str, int]]:
    return [(setup, mode, chunk) for setup in plan.setups
            for mode in plan.modes for chunk in plan.chunks
            if not (setup == 'dm-cache' and chunk % 32)
            and not (setup.startswith('dm-dss') and chunk & (chunk - 1))]


def saved(row: Mapping[str, Any], none: Mapping[str, Any], phase: str,
          group: str = 'all') -> float:
    """How much lower the mean latency is than without the cache; 1 is
    all of it."""
    return 1.0 - figures.ratio(row['phases'][phase][group]['mean_us'],
                               none['phases'][phase][group]['mean_us'])


def text(outcome: Mapping[str, Any]) -> str:
    """The table: of all requests, of reads alone, and the maxima."""
    none = outcome['rows'][0]
    lines = []
    for row in outcome['rows']:
        cells = ['%s%s' % (row['setup'], ' %d KiB, %s' % (
            row['chunk_kib'], row['mode']) if row['chunk_kib'] else '')]
        for phase in PHASES:
            told = row['phases'][phase]
            cells += [
                figures.number(told['all']['mean_us'] / 1e3, 3),
                figures.number(100 * saved(row, none, phase), 1),
                figures.number(100 * saved(row, none, phase, 'read'), 1),
                figures.number(told['write']['mean_us'] / 1e3, 3),
                figures.number(told['read']['max_us'] / 1e3, 2),
                figures.number(told['write']['max_us'] / 1e3, 2)]
        lines.append(cells)
    head = ['set-up, chunk, mode']
    for phase in ('1st', '2nd'):
        head += [phase + ' mean ms', 'saved %', 'of reads', 'write ms',
                 'max read', 'max write']
    return '%s\norigin: %s\n%s\n%s' % (
        outcome['what'], outcome['plan']['origin'], figures.table(head, lines),
        verdict(outcome))


def verdict(outcome: Mapping[str, Any]) -> str:
    """Which cells of dm-dss reach the goals: of reads, of all requests, and
    with no request slower than the slowest without a cache.
    """
    none = outcome['rows'][0]
    mine = [row for row in outcome['rows'] if row['setup'] == 'dm-dss']
    said = []
    for name, group in (('reads', 'read'), ('all requests', 'all')):
        good = [row for row in mine
                if saved(row, none, 'first', group) >= TARGET_FIRST
                and saved(row, none, 'second', group) >= TARGET_SECOND]
        said.append('%s: first run -%.0f %%, second -%.0f %%: %s' % (
            name, 100 * TARGET_FIRST, 100 * TARGET_SECOND,
            _cells_text(good, mine)))
    said.append('no maximum higher: %s' % _cells_text([
        row for row in mine
        if all(row['phases'][phase]['all']['max_us']
               <= none['phases'][phase]['all']['max_us']
               for phase in PHASES)], mine))
    return '\n'.join(said)


def _cells_text(good: Sequence[Mapping[str, Any]],
                mine: Sequence[Mapping[str, Any]]) -> str:
    return '%d of %d cells of dm-dss%s' % (
        len(good), len(mine), ': ' + ', '.join(
            '%d KiB %s' % (row['chunk_kib'], row['mode'])
            for row in good) if good else '')


def names() -> Sequence[str]:
    """Set-ups that may be asked for."""
    return [name for name in compare.SETUPS
            if name not in ('hdd', 'ssd', 'dm-writecache')]
