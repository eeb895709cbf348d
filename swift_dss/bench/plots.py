"""Plots of the benchmarks as PNG, without a display."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from swift_dss.bench import figures
from swift_dss.core.errors import BadConfig

#: Colours that differ in print and for the colour-blind (Okabe, Ito).
COLOURS = ('#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9',
           '#d55e00', '#666666')


def pyplot() -> Any:
    """matplotlib's pyplot on its Agg back end.

    :raises BadConfig: it is not installed
    """
    try:
        import matplotlib
    except ImportError as err:
        raise BadConfig('plots need matplotlib: pip install '
                        '"swift-dss[bench]"') from err
    matplotlib.use('Agg')
    from matplotlib import pyplot as found
    found.rcParams.update({
        'axes.grid': True, 'grid.alpha': 0.3, 'axes.axisbelow': True,
        'axes.spines.top': False, 'axes.spines.right': False,
        'figure.dpi': 110, 'font.size': 9})
    return found


def save(figure: Any, path: str) -> None:
    """Write it; the suffix says the format."""
    figure.savefig(path)
    pyplot().close(figure)


def overhead(report: Mapping[str, Any], path: str) -> None:
    """Ratios to vanilla: the median and the reach of the rounds."""
    plt = pyplot()
    rows: List[Dict[str, Any]] = report['cells']
    cells = list(dict.fromkeys(
        (row['operation'], row['size_bytes'], row['concurrency'])
        for row in rows))
    with_cpu = any(row['cpu_ms'] for row in rows)
    figure, axes = plt.subplots(
        2 if with_cpu else 1, 1, figsize=(11, 7 if with_cpu else 4),
        sharex=True, squeeze=False, layout='constrained')
    for axis, (field, title, target) in zip(axes[:, 0], (
            ('throughput', 'Requests a second, as a ratio to vanilla '
             '(higher is better)', 0.97),
            ('cpu', 'CPU time a request, as a ratio to vanilla '
             '(lower is better)', 1.05))):
        _ratios(axis, rows, field, target)
        axis.set_title(title, loc='left')
    axes[0, 0].legend(ncol=5, loc='upper left', framealpha=0.9)
    axes[-1, 0].set_xticks(range(len(cells)), [
        '%s\n%s\n×%d' % (operation, figures.size_text(size), concurrency)
        for operation, size, concurrency in cells])
    axes[-1, 0].set_xlabel('operation, object size, clients at once')
    figure.suptitle('What classes cost against stock Swift: median, least '
                    'and greatest of the rounds', x=0.01,
                    ha='left', fontweight='bold')
    save(figure, path)


def _ratios(axis: Any, rows: Sequence[Mapping[str, Any]], field: str,
            target: float) -> None:
    variants = [name for name in dict.fromkeys(
        row['variant'] for row in rows) if name != 'vanilla']
    for at, variant in enumerate(variants):
        mine = [row for row in rows if row['variant'] == variant]
        again = variant == 'vanilla 2'
        axis.errorbar(
            [x + (at - (len(variants) - 1) / 2) * 0.22
             for x in range(len(mine))], [row[field] for row in mine],
            [[row[field] - row[field + '_low'] for row in mine],
             [row[field + '_high'] - row[field] for row in mine]],
            fmt='o', label='vanilla again (noise)' if again else variant,
            color=COLOURS[6] if again else COLOURS[at - 1], capsize=2.5,
            elinewidth=1.0)
    axis.axhline(1.0, color='black', linewidth=0.8)
    axis.axhline(target, color=COLOURS[5], linewidth=1.0,
                 linestyle='--', label='target %.2f' % target)
    axis.set_ylabel('ratio')
    shown = [row[field + end] for row in rows
             for end in ('_low', '_high')] + [target, 1.0]
    axis.set_ylim(max(0.0, min(shown) - 0.05), max(shown) + 0.1)


def tail(axis: Any, name: str, values_ms: Sequence[float], colour: str,
         style: str = '-') -> None:
    """One curve: the share of requests that took longer than so long."""
    ordered = sorted(values_ms)
    count = len(ordered)
    if not count:
        return
    axis.step(ordered, [1 - at / count for at in range(count)],
              where='post', label=name, color=colour, linestyle=style)


def flood(report: Mapping[str, Any], path: str) -> None:
    """Tail of the latency of hot reads, idle and flooded."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6),
                                layout='constrained',
                                width_ratios=(2, 1))
    systems = report['systems']
    for at, row in enumerate(systems):
        for key, style in (('idle', '--'), ('flooded', '-')):
            tail(axes[0], '%s, HDDs %s' % (row['system'], key),
                 row[key]['latencies_ms'], COLOURS[at * 5], style)
    axes[0].set_xscale('log')
    axes[0].set_yscale('log')
    plain_ticks(axes[0].xaxis)
    axes[0].set_xlabel('latency of a hot read, ms')
    axes[0].set_ylabel('share of reads that took longer')
    axes[0].axhline(0.01, color='black', linewidth=0.8, linestyle=':',
                    label='p99')
    axes[0].legend(loc='best', framealpha=0.9)
    axes[0].set_title('Tail of the latency', loc='left')
    _slowdown(axes[1], systems)
    figure.suptitle('Top-class reads from SSD while the HDDs are flooded',
                    x=0.01, ha='left', fontweight='bold')
    save(figure, path)


def _slowdown(axis: Any, systems: Sequence[Mapping[str, Any]]) -> None:
    for percent, shape, colour in ((50, 's', COLOURS[4]),
                                   (99, 'o', COLOURS[0])):
        values = [row['p%d_ratio' % percent] for row in systems]
        axis.plot(range(len(systems)), values, shape, markersize=9,
                  color=colour, label='p%d' % percent)
        for at, value in enumerate(values):
            axis.annotate('×%.2f' % value, (at, value), (9, -3),
                          textcoords='offset points')
    axis.axhline(2.0, color=COLOURS[5], linestyle='--',
                 label='target of p99: ×2')
    axis.axhline(1.0, color='black', linewidth=0.8)
    axis.set_yscale('log')
    plain_ticks(axis.yaxis)
    axis.set_xlim(-0.5, len(systems) - 0.3)
    axis.set_xticks(range(len(systems)),
                    [row['system'] for row in systems])
    axis.set_ylabel('latency flooded / idle')
    axis.set_title('How much slower the flood makes it', loc='left')
    axis.legend(loc='best')


def plain_ticks(axis: Any) -> None:
    """1, 2, 5, 10, 20 ... instead of powers, on a logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator
    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter('{x:g}')
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def tiers(report: Mapping[str, Any], path: str) -> None:
    """Hit ratio, bandwidth and latency by class and set-up."""
    plt = pyplot()
    setups: List[Dict[str, Any]] = report['setups']
    names = sorted({name for setup in setups for name in setup['classes']})
    panels = (
        ('hit_ratio', 100.0, 'reads served from SSD alone, %', ''),
        ('mb_per_second', 1.0, 'MB/s', ''),
        ('p50_ms', 1.0, 'median latency, ms', 'log'),
        ('p99_ms', 1.0, '99th percentile of latency, ms', 'log'))
    figure, axes = plt.subplots(2, 2, figsize=(11, 7.5),
                                layout='constrained')
    for axis, (field, factor, label, scale) in zip(axes.flat, panels):
        for at, setup in enumerate(setups):
            rows = [setup['classes'].get(name, {}) for name in names]
            _setup(axis, setup['setup'], [
                factor * row[field] if row.get(field) is not None
                else float('nan') for row in [*rows, setup['all']]],
                at - (len(setups) - 1) / 2, 0.8 / len(setups), bool(scale))
        axis.set_ylabel(label)
        axis.set_xticks(range(len(names) + 1), [*names, 'all'])
        axis.axvline(len(names) - 0.5, color='black', linewidth=0.6)
        if scale:
            axis.set_yscale(scale)
            plain_ticks(axis.yaxis)
    axes.flat[0].set_ylim(0, 105)
    axes.flat[0].legend(loc='upper right', framealpha=0.9)
    figure.suptitle('CACS mix, class by class (user1 is the top class), '
                    'over an SSD for %.0f %% of the data'
                    % (100 * report.get('share', 0.14)), x=0.01,
                    ha='left', fontweight='bold')
    save(figure, path)


def _setup(axis: Any, setup: str, values: Sequence[float], shift: float,
           width: float, dots: bool) -> None:
    style = {'label': _SETUP_TITLES[setup], 'color': _SETUP_COLOURS[setup]}
    if dots:  # A bar has no honest foot on a logarithmic axis.
        axis.plot([x + 0.15 * shift for x in range(len(values))],
                  values, 'o', markersize=7, **style)
    else:
        axis.bar([x + shift * width for x in range(len(values))],
                 values, width, **style)


_SETUP_TITLES = {'hdd': 'HDD only', 'lru': 'LRU cache',
                 'classes': 'class-ordered cache',
                 'warm': 'one warm copy', 'ssd': 'SSD only'}
_SETUP_COLOURS = {'hdd': '#999999', 'lru': COLOURS[1],
                  'classes': COLOURS[0], 'warm': COLOURS[3],
                  'ssd': COLOURS[2]}
