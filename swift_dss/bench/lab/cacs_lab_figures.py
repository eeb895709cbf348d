"""The figures of one set-up of :mod:`~swift_dss.bench.lab.cacs_lab`.

From the requests of its guest, and what its disks and caches counted before,
after, and once all was written back.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Sequence

from swift_dss.bench import figures


def summary(phase: Mapping[str, Any],
            crowds: bool = False) -> Dict[str, Any]:
    """One phase of one set-up: in all, by class, by kind of disk.

    :param crowds: kinds are judged each by its own time
    """
    rows: List[Dict[str, Any]] = phase['requests']
    shown = group(rows, phase['seconds'])
    for at, name in enumerate(('kinds', 'classes')):
        groups: Dict[str, List[Dict[str, Any]]] = {}
        for row in rows:
            groups.setdefault(row['label'].split()[at], []).append(row)
        shown[name] = {label: group(groups[label], phase['seconds'])
                       for label in sorted(groups)}
    if crowds:
        shown['kinds'] = by_own_time(rows)
        shown['mb_per_second'] = sum(
            kind['mb_per_second'] for kind in shown['kinds'].values())
    shown['disks'] = disks(phase)
    shown['cache'] = cache(phase)
    return shown


def by_own_time(rows: Sequence[Mapping[str, Any]]
                ) -> Dict[str, Dict[str, Any]]:
    """The rate of each kind's clients over their *own* time of work, because
    each kind ends at another time.
    """
    kinds: Dict[str, List[Mapping[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(row['label'].split()[0], []).append(row)
    return {name: group(kinds[name], max(
        row['at'] + row['seconds'] for row in kinds[name]))
        for name in sorted(kinds)}


def group(rows: Sequence[Mapping[str, Any]],
          seconds: float) -> Dict[str, Any]:
    """Requests together: counts, rates and waits.

    :param seconds: that their rate is over
    """
    good = [row for row in rows if row['status'] // 100 == 2]
    count = sum(row['bytes'] for row in good)
    waits = [row['seconds'] for row in good]
    return {
        'seconds': seconds, 'requests': len(good),
        'failures': len(rows) - len(good), 'bytes': count,
        'mb_per_second': figures.ratio(count / 1e6, seconds),
        'request_mb_per_second': figures.ratio(count / 1e6, sum(waits)),
        'mean_ms': figures.ratio(1e3 * sum(waits), len(waits)),
        'p50_ms': 1e3 * figures.median(waits),
        'p99_ms': 1e3 * figures.percentile(waits, 99),
        'max_ms': 1e3 * max(waits, default=math.nan)}


def disks(phase: Mapping[str, Any]) -> Dict[str, Any]:
    """The work of the disks in the run, summed by role; ``later``: their
    writes after the last answer.
    """
    by_role: Dict[str, Dict[str, float]] = {}
    for name, after in phase['after']['disks'].items():
        before = phase['before']['disks'][name]
        settled = phase['settled']['disks'][name]
        row = by_role.setdefault(name.split('-')[0], dict.fromkeys(
            ('disks', 'reads', 'writes', 'read_bytes', 'write_bytes',
             'busy_ms', 'later_write_bytes', 'seeks', 'flushes',
             'medium_ms', 'small_ms'), 0))
        row['disks'] += 1
        for field in ('reads', 'writes', 'read_bytes', 'write_bytes',
                      'busy_ms'):
            row[field] += after[field] - before[field]
        row['later_write_bytes'] += \
            settled['write_bytes'] - after['write_bytes']
        was, now = (phase[when].get('models', {}).get(name, {})
                    for when in ('before', 'after'))
        for field, told, unit in (('seeks', 'seeks', 1),
                                  ('flushes', 'flushes', 1),
                                  ('medium_ms', 'busy_ns', 1e6),
                                  ('small_ms', 'small_ns', 1e6)):
            row[field] += (now.get(told, 0) - was.get(told, 0)) / unit
    for row in by_role.values():
        row['busy'] = figures.ratio(
            row['busy_ms'] / 1e3, phase['seconds'] * row['disks'])
    return by_role


def cache(phase: Mapping[str, Any]) -> Dict[str, Any]:
    """The counts of the caches in the run, summed by class id."""
    by_class: Dict[str, Dict[str, int]] = {}
    for name, after in phase['after'].get('caches', {}).items():
        before = phase['before']['caches'][name]['classes']
        for class_id, row in after['classes'].items():
            into = by_class.setdefault(class_id, {})
            for field, value in row.items():
                if isinstance(value, (int, float)):
                    into[field] = into.get(field, 0) + value - \
                        before.get(class_id, {}).get(field, 0)
    return by_class
