"""The plot of ``swift-dss bench cacs``."""

from __future__ import annotations

from typing import Any, Mapping

from swift_dss.bench.lab import cacs_traffic
from swift_dss.bench.plots import COLOURS, pyplot, save

_COLOURS = {'scattered': '#cccccc', 'hdd': '#999999', 'lru': COLOURS[1],
            'classes': COLOURS[0], 'warm': COLOURS[3], 'ssd': COLOURS[2],
            'bcache': '#b07aa1',
            'dm-cache': '#9c755f', 'dm-writecache': '#bab0ac'}


def draw(report: Mapping[str, Any], path: str) -> None:
    """Each phase a row: bandwidth, mean latency, latency by class."""
    plt = pyplot()
    rows = report['setups']
    phases = list(rows[0]['phases'])
    figure, axes = plt.subplots(
        len(phases), 3, squeeze=False, layout='constrained',
        figsize=(12, 3.2 * len(phases) + 0.8), width_ratios=(1, 1, 2))
    names = [row['setup'] for row in rows]
    colours = [_COLOURS[name] for name in names]
    for line, phase in enumerate(phases):
        for column, (field, label) in enumerate((
                ('mb_per_second', 'MB/s'), ('mean_ms', 'mean latency, ms'))):
            axis = axes[line, column]
            axis.barh(names, [row['phases'][phase][field] for row in rows],
                      color=colours)
            axis.invert_yaxis()
            axis.set_xlabel(label)
        axes[line, 0].set_title(phase, loc='left')
        _by_class(axes[line, 2], report, phase)
    axes[0, 2].legend(ncol=len(rows), framealpha=0.9)
    figure.suptitle('Client-aware Cloud Storage, case 1, virtual time',
                    x=0.01, ha='left', fontweight='bold')
    save(figure, path)


def draw_first(report: Mapping[str, Any], path: str) -> None:
    """The same for the first of several seeds."""
    draw(report['seeds'][0], path)


def _by_class(axis: Any, report: Mapping[str, Any], phase: str) -> None:
    rows = report['setups']
    classes = list(rows[0]['phases'][phase]['classes'])
    width = 0.8 / len(rows)
    for at, row in enumerate(rows):
        groups = row['phases'][phase]['classes']
        axis.bar([x + (at - (len(rows) - 1) / 2) * width
                  for x in range(len(classes))],
                 [groups[name]['mean_ms'] for name in classes], width=width,
                 color=_COLOURS[row['setup']], label=row['setup'])
    axis.set_yscale('log')
    axis.set_ylabel('mean latency, ms')
    axis.set_xticks(range(len(classes)), classes)


def traffic(report: Mapping[str, Any], path: str) -> None:
    """Case 2: the speed-up of each kind, with the published one beside,
    and the mean latency."""
    plt = pyplot()
    rows = report['setups']
    base = {row['setup']: row['kinds'] for row in rows}.get('hdd')
    figure, axes = plt.subplots(1, 2, layout='constrained', figsize=(12, 4))
    for at, row in enumerate(rows):
        colour = 'C%d' % at
        places = [x + (at - (len(rows) - 1) / 2) * 0.13
                  for x in range(len(row['kinds']))]
        if base:
            axes[0].bar(places, [
                group['mb_per_second'] / base[name]['mb_per_second']
                for name, group in row['kinds'].items()], width=0.13,
                color=colour, label=row['setup'])
            published = cacs_traffic.PUBLISHED.get(row['setup'])
            if published:
                axes[0].plot(places, published, 'k_', markersize=9)
        axes[1].bar(places, [group['mean_ms']
                             for group in row['kinds'].values()],
                    width=0.13, color=colour, label=row['setup'])
    for axis, label in zip(axes, ('times hdd (-: published)',
                                  'mean latency, ms')):
        axis.set_xticks(range(len(rows[0]['kinds'])), list(rows[0]['kinds']))
        axis.set_ylabel(label)
    axes[1].set_yscale('log')
    axes[1].legend(ncol=2, framealpha=0.9)
    figure.suptitle('Client-aware Cloud Storage, case 2, virtual time',
                    x=0.01, ha='left', fontweight='bold')
    save(figure, path)
