"""Plots of the block benchmarks."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from swift_dss.bench.block import chunks as block_chunks
from swift_dss.bench.plots import COLOURS, plain_ticks, pyplot, save

_COLOURS = {'hdd': '#999999', 'ssd': COLOURS[2], 'dm-cache': COLOURS[1],
            'bcache': COLOURS[3], 'dm-writecache': COLOURS[4],
            'dm-dss': COLOURS[0], 'dm-dss-lru': COLOURS[5],
            'dm-dss-sieve': '#000000'}
_PANELS = (('mb_per_second', 1.0, 'MB/s'),
           ('mean_us', 1e3, 'mean latency, ms'),
           ('p99_us', 1e3, '99th percentile, ms'))


def compare(report: Mapping[str, Any], path: str) -> None:
    """Each workload a column: bandwidth, mean and tail by set-up."""
    plt = pyplot()
    columns = [(row, phase) for row in report['workloads']
               for phase in row['setups'][0]['phases']]
    figure, axes = plt.subplots(
        len(_PANELS), len(columns), squeeze=False, layout='constrained',
        figsize=(2.4 * len(columns) + 1.2, 8))
    for at, (row, phase) in enumerate(columns):
        names = [setup['setup'] for setup in row['setups']]
        for axis, (field, unit, label) in zip(axes[:, at], _PANELS):
            _bars(axis, names, [setup['phases'][phase]['all'][field] / unit
                                for setup in row['setups']])
            axis.set_yticks(range(len(names)), names if not at else [])
            axis.invert_yaxis()
            axis.set_xlabel(label)
        axes[0, at].set_title('%s\n%s' % (row['workload'], phase))
    figure.suptitle('Caches between the same two disks, virtual time',
                    x=0.01, ha='left', fontweight='bold')
    save(figure, path)


def _bars(axis: Any, names: Sequence[str], values: Sequence[float]
          ) -> None:
    """With their values beside them; a bar that would leave the others no
    room is cut off."""
    top = max((value for name, value in zip(names, values)
               if name != 'ssd'), default=max(values))
    edge = 1.6 * top
    lengths = [min(value, edge) for value in values]
    axis.barh(range(len(names)), lengths,
              color=[_COLOURS[name] for name in names])
    axis.set_xlim(0, edge)
    for at, (value, length) in enumerate(zip(values, lengths)):
        cut = value > 1.2 * top
        axis.annotate(
            '%.*g' % (4 if value >= 100 else 3, value),
            (length, at), (-3 if cut else 3, 0),
            textcoords='offset points', va='center', size='small',
            ha='right' if cut else 'left',
            color='white' if cut else 'black')


def chunks(report: Mapping[str, Any], path: str) -> None:
    """Mean and maximum by the size of a chunk, first and second run."""
    plt = pyplot()
    rows: List[Dict[str, Any]] = report['rows']
    figure, axes = plt.subplots(2, 2, figsize=(11, 7.5), sharex=True,
                                layout='constrained')
    for column, phase in enumerate(('first', 'second')):
        for line, (field, label) in enumerate((
                ('mean_us', 'mean latency, ms'),
                ('max_us', 'greatest latency, ms'))):
            _by_chunk(axes[line, column], rows, phase, field)
            axes[line, column].set_ylabel(label)
        axes[0, column].set_title('%s run' % phase, loc='left')
        axes[1, column].set_xlabel('chunk, KiB')
        share = {'first': block_chunks.TARGET_FIRST,
                 'second': block_chunks.TARGET_SECOND}[phase]
        axes[0, column].axhline(
            rows[0]['phases'][phase]['all']['mean_us'] / 1e3 * (1 - share),
            color=COLOURS[5], linestyle='--',
            label='target: -%.0f %%' % (100 * share))
        axes[0, column].legend(framealpha=0.9)
    figure.suptitle('%s (origin: %s)' % (
        report['what'], report['plan']['origin']), x=0.01, ha='left',
        fontweight='bold')
    save(figure, path)


def _by_chunk(axis: Any, rows: Sequence[Mapping[str, Any]], phase: str,
              field: str) -> None:
    axis.axhline(rows[0]['phases'][phase]['all'][field] / 1e3,
                 color='black', linestyle=':', label='no cache')
    cells = list(dict.fromkeys(
        (row['setup'], row['mode']) for row in rows[1:]))
    for setup, mode in cells:
        mine = [row for row in rows[1:]
                if (row['setup'], row['mode']) == (setup, mode)]
        axis.plot([row['chunk_kib'] for row in mine],
                  [row['phases'][phase]['all'][field] / 1e3
                   for row in mine], '-o' if mode == 'back' else '--s',
                  markersize=4, color=_COLOURS[setup],
                  label='%s, write-%s' % (setup, mode))
    axis.set_xscale('log', base=2)
    axis.set_yscale('log')
    plain_ticks(axis.yaxis)
    axis.set_xticks(sorted({row['chunk_kib'] for row in rows[1:]}))
    axis.xaxis.set_major_formatter('{x:g}')
