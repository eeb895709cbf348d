"""What each strategy costs: processor time and memory a million objects."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from typing import Any, Dict, List

from swift_dss.bench import figures
from swift_dss.bench.traces import generators
from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.strategy.eviction import objects

_CLASSES = 3


def measure(names: List[str], count: int, seed: int = 1) -> Dict[str, Any]:
    """Each strategy in a process of its own, one after the other.

    :param count: objects that the cache tracks
    """
    rows = []
    for name in names:
        # What one strategy leaves behind must not count for the next.
        with multiprocessing.get_context('fork').Pool(1) as pool:
            rows.append(pool.apply(_one, (name, count, seed)))
    return {'count': count, 'rows': rows}


def _one(name: str, count: int, seed: int) -> Dict[str, Any]:
    trace = generators.zipf(2 * count, 4 * count, 0.7, seed=seed)
    keys = trace.objects.tolist()
    class_ids = (trace.objects % _CLASSES + 1).tolist()
    ones = [1] * len(keys)
    fill = list(range(8 * count, 9 * count))
    cache = objects.make(name, count, ClassTable.of(
        ClassSpec(at, 'c%d' % at, 10 * at) for at in range(1, 1 + _CLASSES)))
    gc.collect()
    before = _resident_bytes()
    # 1, 2, 3, 1, ...: as many of each class.
    found = bytes(map(cache.access, fill, ones, (
        [1, 2, 3] * (count // 3 + 1))[:count]))
    assert len(cache) == count or name not in objects.ORDERS
    tracked = len(cache)
    memory = _resident_bytes() - before
    began = time.process_time()
    found = bytes(map(cache.access, keys, ones, class_ids))
    seconds = time.process_time() - began
    return {'strategy': name, 'tracked': tracked,
            'bytes_each': memory / max(1, tracked),
            'accesses_a_second': len(keys) / seconds,
            'seconds_a_million': seconds / len(keys) * 1e6,
            'hit_ratio': found.count(1) / len(keys)}


def _resident_bytes() -> int:
    with open('/proc/self/statm', encoding='ascii') as source:
        pages = int(source.read().split()[1])
    return pages * os.sysconf('SC_PAGE_SIZE')


def text(report: Dict[str, Any]) -> str:
    """For people."""
    return figures.table(
        ('strategy', 'tracked', 'bytes each', 'MiB a million',
         's a million', 'accesses/s', 'hits'), [
            (row['strategy'], '%d' % row['tracked'],
             '%.0f' % row['bytes_each'],
             '%.0f' % (row['bytes_each'] * 1e6 / (1 << 20)),
             '%.2f' % row['seconds_a_million'],
             '%d' % row['accesses_a_second'],
             figures.number(row['hit_ratio'], 4))
            for row in report['rows']])
