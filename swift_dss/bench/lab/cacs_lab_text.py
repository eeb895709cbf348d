"""The tables of ``swift-dss bench cacs``."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from swift_dss.bench import figures
from swift_dss.bench.lab.cacs_lab import METADATA_BYTES, PHASES, REPLICAS


def text(outcome: Mapping[str, Any]) -> str:
    """For people."""
    parts = ['%s of data; SSD of the caches: %s (%.1f %% of the copies, '
             '%s of it for metadata)' % (
        figures.size_text(outcome['data_bytes']),
        figures.size_text(outcome['cache_bytes']),
        100 * figures.ratio(outcome['cache_bytes'],
                            REPLICAS * outcome['data_bytes']),
        figures.size_text(METADATA_BYTES * outcome['plan']['devices']))]
    for phase in PHASES:
        parts += ['', _phase_table(outcome, phase),
                  bound_text(phase, outcome['bounds'][phase])]
    parts += ['', _disk_table(outcome)]
    if outcome['goals']:
        parts += ['', figures.table(
            ('figure', 'goal', 'ours', ''),
            [(row['name'], '%.2f' % row['published'],
              figures.number(row['ours']), 'met' if row['met'] else 'missed')
             for row in outcome['goals']])]
    return '\n'.join(parts)


def _phase_table(outcome: Mapping[str, Any], phase: str) -> str:
    rows: List[Sequence[str]] = []
    of = 'kinds' if outcome['plan']['crowds'] else 'classes'
    for row in outcome['setups']:
        mine = row['phases'][phase]
        rows.append(_cells(row['setup'], 'all', 1.0, mine))
        for name, group in mine[of].items():
            rows.append(_cells('', name, figures.ratio(
                group['bytes'], mine['bytes']), group))
    return figures.table(
        (phase, of, 'of bytes', 'requests', 'MB/s', 'MB/s a request',
         'mean ms', 'p50 ms', 'p99 ms', 'failed'), rows)


def bound_text(phase: str, bound: Mapping[str, Any]) -> str:
    """The bound, in one line."""
    return ('bound of the HDDs in %s: %s MB/s streaming, %s with one seek a '
            'copy (%d copies, %.1f MB)' % (
                phase, figures.number(bound['streaming'], 0),
                figures.number(bound['seeking'], 0), bound['copies'],
                bound['hdd_bytes'] / 1e6))


def _cells(setup: str, name: str, share: float,
           group: Mapping[str, Any]) -> Sequence[str]:
    return (setup, name, '%.0f %%' % (100 * share), str(group['requests']),
            figures.number(group['mb_per_second']),
            figures.number(group['request_mb_per_second']),
            figures.number(group['mean_ms'], 1),
            figures.number(group['p50_ms'], 1),
            figures.number(group['p99_ms'], 1), str(group['failures']))


def _disk_table(outcome: Mapping[str, Any]) -> str:
    rows = []
    for row in outcome['setups']:
        for phase, mine in row['phases'].items():
            for name, disk in mine['disks'].items():
                rows.append((
                    row['setup'], phase,
                    {'fast': 'ssd', 'slow': 'hdd'}.get(name, row['setup']),
                    '%d' % disk['reads'], '%.1f' % (
                        disk['read_bytes'] / 1e6),
                    '%d' % disk['writes'], '%.1f' % (
                        disk['write_bytes'] / 1e6),
                    '%.0f %%' % (100 * disk['busy']),
                    '%.0f %%' % (100 * figures.ratio(
                        disk['small_ms'], disk['medium_ms'])),
                    '%d' % disk['seeks'], '%d' % disk['flushes'],
                    '%.1f' % (disk['later_write_bytes'] / 1e6)))
    return figures.table(
        ('disks', 'phase', '', 'reads', 'MB', 'writes', 'MB', 'busy',
         '<= 64 KiB', 'seeks', 'flushes', 'MB written later'), rows)
