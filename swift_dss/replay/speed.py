"""The cost of each strategy: processor time and memory for a million items.

Eviction: objects of a cache that is full, on a Zipf trace. Prefetch: the worst
trace for memory: accounts, clients and objects without end, each read with its
own place and length, so that ranges split one another and nothing repeats. On
it a strategy fills its bound; the real memory is measured beside it.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import time
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Sequence

from swift_dss.bench import figures
from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.replay import compiled, plan
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces import generators
from swift_dss.replay.traces.model import Trace, numpy
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.prefetch import STRATEGIES as PREFETCHERS
from swift_dss.strategy.prefetch.base import ITEM_BYTES, Access, Settings

_CLASSES = 3
#: Of the hostile trace.
_UNIT_BYTES = 64 * 1024
_OBJECT_BYTES = 1024 * _UNIT_BYTES
_ROOM_BYTES = 64 * _UNIT_BYTES
_BATCH = 256


def measure(names: List[str], count: int, seed: int = 1,
            prefetchers: Sequence[str] = ()) -> Dict[str, Any]:
    """Each strategy in a process of its own, one after the other.

    :param count: objects that the cache tracks, and items that the bound
        of a prefetcher leaves room for
    """
    def alone(function: Callable[..., Any], *about: Any) -> Any:
        # The garbage of one strategy must not count for the next.
        with multiprocessing.get_context('fork').Pool(1) as pool:
            return pool.apply(function, about)
    speeds = {'count': count,
              'rows': [alone(_one, name, count, seed) for name in names]}
    ahead = [alone(_ahead, name, count, seed) for name in prefetchers
             if name != 'none']
    if ahead:
        speeds['prefetchers'] = ahead
    return speeds


def _one(name: str, count: int, seed: int) -> Dict[str, Any]:
    trace = generators.zipf(2 * count, 4 * count, 0.7, seed=seed)
    keys = trace.objects.tolist()
    class_ids = (trace.objects % _CLASSES + 1).tolist()
    ones = [1] * len(keys)
    fill = list(range(8 * count, 9 * count))
    table = ClassTable.of(
        ClassSpec(at, 'c%d' % at, 10 * at) for at in range(1, 1 + _CLASSES))
    cache = orders.make(name, count, table)
    gc.collect()
    before = _resident_bytes()
    # 1, 2, 3, 1, ...: as many of each class.
    results = bytes(map(cache.access, fill, ones, (
        [1, 2, 3] * (count // 3 + 1))[:count]))
    assert len(cache) == count or name not in orders.ORDERS
    tracked = len(cache)
    memory = _resident_bytes() - before
    began = time.process_time()
    results = bytes(map(cache.access, keys, ones, class_ids))
    seconds = time.process_time() - began
    return {'strategy': name, 'tracked': tracked,
            'bytes_each': memory / max(1, tracked),
            'accesses_a_second': len(keys) / seconds,
            'compiled_a_second': _compiled(trace, Setup(name, count, table)),
            'seconds_a_million': seconds / len(keys) * 1e6,
            'hit_ratio': results.count(1) / len(keys)}


def _compiled(trace: Trace, setup: Setup) -> float:
    """Accesses a second of the form in C, from an empty cache; not a number
    if there is none."""
    np = numpy()
    ready = plan.plan(replace(
        trace, sizes=np.ones(len(trace), dtype='int64'),
        class_ids=(trace.objects % _CLASSES + 1).astype('uint8')))
    began = time.process_time()
    cache = compiled.cache(setup, ready)
    if cache is None:
        return float('nan')
    for _ in compiled.play(ready, setup, cache, len(trace)):
        pass
    return len(trace) / (time.process_time() - began)


def _ahead(name: str, count: int, seed: int) -> Dict[str, Any]:
    """A prefetcher on the hostile trace."""
    bound = max(count, 4) * ITEM_BYTES
    made = PREFETCHERS[name](Settings(_UNIT_BYTES, state_bytes=bound))
    gc.collect()
    before = _resident_bytes()
    most = reads = 0
    seconds = 0.0
    for accesses in _hostile(2 * count, seed):
        began = time.process_time()
        for access in accesses:
            made.on_request(access, _ROOM_BYTES)
        seconds += time.process_time() - began
        reads += len(accesses)
        most = max(most, made.state_bytes())
    memory = _resident_bytes() - before
    return {'prefetch': name, 'reads': reads, 'bound_bytes': bound,
            'most_bytes': most, 'resident_bytes': memory,
            'bytes_each': memory / count, 'nodes': made.counts().get(
                'nodes', 0), 'reads_a_second': reads / seconds,
            'seconds_a_million': seconds / reads * 1e6}


def _hostile(count: int, seed: int) -> Iterator[List[Access]]:
    """Reads in batches: every second begins where its object was split
    before or ends there, and every eighth goes on as a stream."""
    dice = random.Random(seed)
    ends: Dict[int, int] = {}
    batch: List[Access] = []
    for number in range(count):
        which = dice.randrange(1 + number // 20)
        length = dice.randint(1, 8 * _UNIT_BYTES)
        offset = ends.get(which, 0) if number % 8 == 0 else \
            dice.randrange(_OBJECT_BYTES - length)
        if offset + length > _OBJECT_BYTES:
            offset = 0
        ends[which] = offset + length
        batch.append(Access(
            'a%d' % (which % 97), number % 1009, which, offset, length,
            _OBJECT_BYTES, number % 3 == 0, number * 1e-3))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    yield batch


def _resident_bytes() -> int:
    with open('/proc/self/statm', encoding='ascii') as source:
        pages = int(source.read().split()[1])
    return pages * os.sysconf('SC_PAGE_SIZE')


def text(report: Dict[str, Any]) -> str:
    """For people."""
    lines = [figures.table(
        ('strategy', 'tracked', 'bytes each', 'MiB a million',
         's a million', 'accesses/s', 'in C', 'hits'), [
            (row['strategy'], '%d' % row['tracked'],
             '%.0f' % row['bytes_each'],
             '%.0f' % _mib(row['bytes_each'] * 1e6),
             '%.2f' % row['seconds_a_million'],
             '%d' % row['accesses_a_second'],
             figures.number(row['compiled_a_second'], 0),
             figures.number(row['hit_ratio'], 4))
            for row in report['rows']])] if report['rows'] else []
    if report.get('prefetchers'):
        lines += ['Prefetchers on a hostile trace, with a bound of %d bytes '
                  'an item:' % ITEM_BYTES, figures.table(
                      ('prefetch', 'reads', 'bound MiB', 'said at most',
                       'resident', 'MiB a million', 'nodes', 's a million',
                       'reads/s'), [
                          (row['prefetch'], '%d' % row['reads'],
                           '%.1f' % _mib(row['bound_bytes']),
                           '%.1f' % _mib(row['most_bytes']),
                           '%.1f' % _mib(row['resident_bytes']),
                           '%.0f' % _mib(row['bytes_each'] * 1e6),
                           '%d' % row['nodes'],
                           '%.2f' % row['seconds_a_million'],
                           '%d' % row['reads_a_second'])
                          for row in report['prefetchers']])]
    return '\n'.join(lines)


def _mib(length: float) -> float:
    return length / (1 << 20)
