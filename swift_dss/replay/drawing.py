"""Curves of hit ratios over cache sizes, CDFs of latencies, and dollars
against latencies, as PNG."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from swift_dss.bench import plots
from swift_dss.core.classes import ClassTable

_LINES = ('-', '--', ':', '-.')


def draw(report: Dict[str, Any], path: str, table: ClassTable) -> None:
    """Hits and bytes over cache sizes; the CDF of the largest cache; and
    a curve for each class where there are several."""
    plt = plots.pyplot()
    classes = list(report['classes']) \
        if len(report['classes']) > 1 else []
    figure, axes = plt.subplots(
        2 if classes else 1, 3, squeeze=False, layout='constrained',
        figsize=(14, 8.5 if classes else 4.5))
    groups = _groups(report['runs'])
    for axis, (field, title) in zip(axes[0], (
            ('hit_ratio', 'Reads that hit'),
            ('byte_hit_ratio', 'Bytes that hit'))):
        for at, (name, rows) in enumerate(groups.items()):
            axis.plot([100 * row['cache_share'] for row in rows],
                      [row[field] for row in rows],
                      **_style(at, len(groups)),
                      marker='o', markersize=3, label=' '.join(name))
        axis.set_title(title, loc='left')
        axis.set_xlabel('cache, % of all different bytes')
        axis.set_xscale('log')
        axis.set_ylim(0, 1)
        _plain_ticks(axis, report['runs'])
    if report.get('limits'):
        axes[0][0].plot(
            [100 * row['cache_share'] for row in report['limits']],
            [row['hit_ratio_at_most'] for row in report['limits']],
            'k:', label='limit of any order')
    _cdf(axes[0][2], groups)
    figure.legend(*axes[0][0].get_legend_handles_labels(), fontsize=7,
                  loc='outside lower center', ncols=8)
    if classes:
        _by_class(axes[1], groups, classes, table)
    figure.suptitle('Replay of %s: %d requests' % (
        report['trace'], report['requests']))
    plots.save(figure, path)


def draw_front(report: Dict[str, Any], path: str) -> None:
    """Dollars against the 99th percentile of all set-ups that were tried
    for a recommendation; those that none beats in both are joined."""
    plt = plots.pyplot()
    figure, axis = plt.subplots(layout='constrained', figsize=(9, 6))
    runs = report['runs']
    points = [(_dollars(run), run['p99_ms']) for run in runs]
    front = _front(points)
    axis.plot(*zip(*points), 'o', color='0.7', markersize=4,
              label='tried')
    axis.step(*zip(*(points[at] for at in front)), where='post',
              color=plots.COLOURS[0], marker='o', markersize=6,
              label='none is cheaper and faster')
    for at in front:
        axis.annotate('%s; room %.3g %%' % (
            runs[at]['set_up'], 100 * runs[at]['cache_share']), points[at],
            fontsize=8, xytext=(6, 6), textcoords='offset points')
    lru = next(at for at, run in enumerate(runs)
               if run['strategy'] == 'lru')
    axis.plot(*points[lru], 's', color=plots.COLOURS[1], markersize=8,
              label='LRU on the whole budget', fillstyle='none')
    axis.set_xlabel('dollars a month, room included' if 'month' in runs[lru]
                    else "dollars of the trace's requests and bytes")
    axis.set_ylabel('99th percentile of reads, ms')
    figure.legend(*axis.get_legend_handles_labels(), fontsize=8,
                  loc='outside lower center', ncols=3)
    figure.suptitle('Set-ups for %s: %d requests' % (
        report['trace'], report['requests']))
    plots.save(figure, path)


def _dollars(run: Dict[str, Any]) -> float:
    return float(run['month']['total'] if 'month' in run
                 else run['dollars'])


def _front(points: List[Tuple[float, float]]) -> List[int]:
    """The numbers of the points that no other beats, the cheapest first."""
    front: List[int] = []
    for at in sorted(range(len(points)), key=points.__getitem__):
        if not front or points[at][1] < points[front[-1]][1]:
            front.append(at)
    return front


def _groups(runs: List[Dict[str, Any]]
            ) -> Dict[Tuple[str, ...], List[Dict[str, Any]]]:
    """Curves by strategy, and by prefetcher where there are several."""
    several = len({run['prefetch'] for run in runs}) > 1
    groups: Dict[Tuple[str, ...], List[Dict[str, Any]]] = {}
    for run in sorted(runs, key=lambda run: float(run['cache_share'])):
        name = (run['strategy'], run['prefetch']) if several \
            else (run['strategy'],)
        groups.setdefault(name, []).append(run)
    return groups


def _style(at: int, count: int) -> Dict[str, Any]:
    """Of curve ``at`` of ``count``; each has a colour of its own."""
    if count <= len(plots.COLOURS):
        colour: Any = plots.COLOURS[at]
    else:
        colour = plots.pyplot().get_cmap('turbo')(at / (count - 1))
    return {'color': colour, 'linestyle': _LINES[at % len(_LINES)]
            if count > len(plots.COLOURS) else '-'}


def _plain_ticks(axis: Any, runs: List[Dict[str, Any]]) -> None:
    places = sorted({round(100 * run['cache_share'], 3) for run in runs})
    axis.set_xticks(places, ['%.3g' % place for place in places])
    axis.minorticks_off()


def _cdf(axis: Any, groups: Dict[Any, List[Dict[str, Any]]]) -> None:
    largest = 0.0
    for at, (name, rows) in enumerate(groups.items()):
        points = rows[-1]['cdf_ms']
        largest = 100 * rows[-1]['cache_share']
        axis.plot([ms for _, ms in points], [share for share, _ in points],
                  label=' '.join(name), **_style(at, len(groups)))
    axis.set_xscale('log')
    axis.set_xlabel('ms')
    axis.set_ylim(0, 1)
    axis.set_title('Share of reads done within, cache %.3g %%' % largest,
                   loc='left')


def _by_class(axes: Any, groups: Dict[
        Any, List[Dict[str, Any]]], classes: List[int],
        table: ClassTable) -> None:
    """A panel for each of the first three strategies, a line a class."""
    for axis, (name, rows) in zip(axes, list(groups.items())[:3]):
        for at, class_id in enumerate(sorted(
                classes, key=lambda class_id: -table.spec(class_id).rank)):
            axis.plot([100 * row['cache_share'] for row in rows],
                      [row['classes'][str(class_id)]['hit_ratio']
                       for row in rows], **_style(at, len(classes)),
                      marker='o',
                      markersize=3, label=table.name_of(class_id))
        axis.set_title('%s: hits by class, highest rank first'
                       % ' '.join(name), loc='left')
        axis.set_xlabel('cache, % of all different bytes')
        axis.set_xscale('log')
        axis.set_ylim(0, 1.02)
        _plain_ticks(axis, rows)
        axis.legend(fontsize=7)
    for axis in axes[len(groups):]:
        axis.set_visible(False)
