"""The status of a dm-dss device as plain values: for people, JSON, metrics."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Tuple

from swift_dss.block import control
from swift_dss.block.table import (
    BYPASS_NAMES, EVICT_NAMES, Counters, Latency, Status)
from swift_dss.core.classes import ClassTable

PERCENTILES = (50.0, 99.0, 99.9)

#: One metric: name, labels, value.
Sample = Tuple[str, Dict[str, str], float]


def gather(name: str, classes: Optional[ClassTable] = None
           ) -> Dict[str, Any]:
    """Ask the kernel all there is about one device.

    :param classes: to name the classes with
    """
    return describe(name, control.status(name), control.stats(name),
                    control.latency(name), classes)


def describe(name: str, status: Status, counters: Counters,
             latencies: Iterable[Latency],
             classes: Optional[ClassTable] = None) -> Dict[str, Any]:
    """The answers of one moment, put together."""
    # long: one entry for each thing there is to say.
    chunk_bytes = status.chunk_sectors * 512
    rows: Dict[int, Dict[str, Any]] = {}
    for class_id, values in sorted(counters.classes.items()):
        rows[class_id] = _class(class_id, values, chunk_bytes, classes)
    for latency in latencies:
        row = rows.setdefault(latency.class_id, _class(
            latency.class_id, {}, chunk_bytes, classes))
        row['latency'][latency.op] = dict(
            {'p%g_us' % percent: latency.percentile_us(percent)
             for percent in PERCENTILES}, count=latency.count,
            mean_us=latency.mean_us, max_us=float(latency.max_us),
            buckets=list(latency.buckets))
    return {
        'name': name, 'health': status.health, 'mode': status.mode,
        'strategy': status.strategy, 'chunk_bytes': chunk_bytes,
        'grain_bytes': status.grain_sectors * 512,
        'ssd_bytes': status.slots * chunk_bytes,
        'used_bytes': status.used * chunk_bytes,
        'slots': status.slots, 'used_slots': status.used,
        'dirty_slots': status.dirty, 'dirty_bytes': status.dirty_bytes,
        'read_hits': status.read_hits, 'write_hits': status.write_hits,
        'misses': status.misses, 'promotions': status.promotions,
        'bypasses': status.bypasses, 'evictions': status.evictions,
        'cleaned': status.cleaned, 'ssd_errors': status.ssd_errors,
        'hdd_errors': status.hdd_errors, 'classes': rows,
        'device': dict(counters.device)}


def _class(class_id: int, values: Any, chunk_bytes: int,
           classes: Optional[ClassTable]) -> Dict[str, Any]:
    def count(name: str) -> int:
        return int(values.get(name, 0))

    hits = count('read_hits') + count('write_hits')
    return {
        'name': classes.kernel_name_of(class_id) if classes else str(class_id),
        'slots': count('resident'), 'dirty_slots': count('dirty'),
        'bytes': count('resident') * chunk_bytes,
        'read_hits': count('read_hits'), 'write_hits': count('write_hits'),
        'hits': hits, 'misses': count('misses'),
        'grain_misses': count('grain_misses'),
        'promoted': count('promoted'),
        'promoted_bytes': count('promoted_sectors') * 512,
        'cleaned_bytes': count('cleaned_sectors') * 512,
        'read_bytes': count('read_sectors') * 512,
        'written_bytes': count('write_sectors') * 512,
        'refused': count('refused'),
        'bypasses': {reason: count('bypass_' + reason)
                     for reason in BYPASS_NAMES},
        'evictions': {reason: count('evicted_' + reason)
                      for reason in EVICT_NAMES},
        'latency': {}}


def samples(status: Dict[str, Any], labels: Dict[str, str]) -> List[Sample]:
    """The same as metrics, named ``block.*``."""
    made: List[Sample] = []

    def put(name: str, value: float, **more: str) -> None:
        made.append(('block.' + name, dict(labels, **more), float(value)))

    put('healthy', status['health'] == 'ok')
    for name in ('ssd_bytes', 'used_bytes', 'dirty_bytes', 'ssd_errors',
                 'hdd_errors'):
        put(name, status[name])
    for row in status['classes'].values():
        label = {'class': row['name']}
        for name in ('bytes', 'read_hits', 'write_hits', 'misses',
                     'promoted_bytes', 'cleaned_bytes', 'read_bytes',
                     'written_bytes', 'refused'):
            put('class_' + name, row[name], **label)
        put('class_dirty_bytes', row['dirty_slots'] * status['chunk_bytes'],
            **label)
        for kind in ('bypasses', 'evictions'):
            for reason, value in row[kind].items():
                put('class_' + kind, value, reason=reason, **label)
        for op, latency in row['latency'].items():
            put('class_requests', latency['count'], op=op, **label)
            for percent in PERCENTILES:
                put('class_latency_seconds',
                    latency['p%g_us' % percent] / 1e6, op=op,
                    quantile='%g' % (percent / 100), **label)
            made += _histogram(latency, dict(labels, op=op, **label))
    return made


def _histogram(latency: Dict[str, Any],
               labels: Dict[str, str]) -> List[Sample]:
    """A histogram as Prometheus has them: each bucket counts all that is
    not longer, the last one everything."""
    made: List[Sample] = []
    total = 0
    for number, count in enumerate(latency['buckets']):
        total += count
        last = number == len(latency['buckets']) - 1
        made.append((
            'block.class_latency_histogram_seconds_bucket', dict(
                labels, le='+Inf' if last else '%g' % ((1 << number) / 1e6)),
            float(total)))
    made.append(('block.class_latency_histogram_seconds_sum', labels,
                 latency['mean_us'] * latency['count'] / 1e6))
    made.append(('block.class_latency_histogram_seconds_count', labels,
                 float(total)))
    return made
