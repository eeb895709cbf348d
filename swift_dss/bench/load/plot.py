"""The tails of a run's latencies, as a picture."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from swift_dss.bench import plots
from swift_dss.bench.load.objects import OPERATIONS
from swift_dss.bench.load.records import NONE, decoded

#: Milliseconds, and the share of requests that took longer.
Curve = Tuple[List[float], List[float]]
_STYLES = ('-', '--')


def tails(report: Mapping[str, Any], before: Optional[Mapping[str, Any]],
          path: str) -> None:
    """Draw a panel for each operation, with a curve for each class and tier.

    :param report: as :func:`~swift_dss.bench.load.report.report` makes it
    :param before: of another run, in broken lines
    :param path: of the picture; the suffix says the format
    :raises BadConfig: matplotlib is not installed
    """
    plt = plots.pyplot()
    runs = [report] + ([] if before is None else [before])
    names = [name for name in OPERATIONS
             if any(name == row['operation'] and row.get('hdr')
                    for run in runs for row in run['rows'])]
    figure, axes = plt.subplots(
        1, max(1, len(names)), figsize=(2 + 4.2 * max(1, len(names)), 4.4),
        sharey=True, squeeze=False, layout='constrained')
    labels = list(dict.fromkeys(
        _label(row) for run in runs for row in run['rows']))
    for axis, name in zip(axes[0], names):
        for run, style in zip(runs, _STYLES):
            _panel(axis, [row for row in run['rows']
                          if row['operation'] == name and row.get('hdr')],
                   labels, style)
        _dress(axis, name)
    axes[0, 0].set_ylabel('share of requests that took longer')
    figure.suptitle(
        'Latencies of %s%s' % (report['setup']['scenario'],
                               '' if before is None else
                               '; broken lines: the run before'),
        x=0.01, ha='left', fontweight='bold')
    plots.save(figure, path)


def curve(encoded: str) -> Curve:
    """The tail of an encoded histogram: each value that was recorded, and
    the share of requests above it; the greatest, which none is above, is
    left out.
    """
    histogram = decoded(encoded.encode('ascii'))
    total = histogram.get_total_count()
    times: List[float] = []
    shares: List[float] = []
    for item in histogram.get_recorded_iterator():
        left = total - item.total_count_to_this_value
        if left > 0:
            times.append(item.value_iterated_to / 1e3)
            shares.append(left / total)
    return times, shares


def _label(row: Mapping[str, Any]) -> str:
    return ' '.join(str(row[name]) for name in ('class', 'tier')
                    if row[name] != NONE) or 'no class'


def _panel(axis: Any, rows: Sequence[Dict[str, Any]], labels: Sequence[str],
           style: str) -> None:
    for row in rows:
        label = _label(row)
        times, shares = curve(row['hdr'])
        axis.step(times, shares, where='post', linestyle=style,
                  color=plots.COLOURS[labels.index(label)
                                      % len(plots.COLOURS)],
                  label=label if style == _STYLES[0] else None)


def _dress(axis: Any, name: str) -> None:
    axis.set_xscale('log')
    axis.set_yscale('log')
    plots.plain_ticks(axis.xaxis)
    axis.set_xlabel('latency, ms')
    axis.set_title(name, loc='left')
    if axis.get_legend_handles_labels()[1]:
        axis.legend(loc='lower left', framealpha=0.9)
