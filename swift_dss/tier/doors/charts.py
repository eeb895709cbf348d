"""Charts of the status page as SVG: lines and stacked areas, no script.

Every chart has its title, unit and newest values in text, so that nothing
is told by colour alone; colours come from the page's style sheet
(``s0`` ... ``s7``), which has a light and a dark set.
"""

from __future__ import annotations

from html import escape
from typing import List, Sequence, Tuple

WIDTH, HEIGHT = 560, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 8, 8, 20
#: Series beyond this many are added up as "other": more cannot be told
#: apart by eye.
MOST_SERIES = 8
#: (name, values), all of one length.
Series = Tuple[str, Sequence[float]]


def bytes_text(value: float) -> str:
    """Bytes for people."""
    for unit in ('B', 'KiB', 'MiB', 'GiB', 'TiB'):
        if abs(value) < 1024 or unit == 'TiB':
            return '%.0f %s' % (value, unit) if unit == 'B' or \
                value >= 100 else '%.1f %s' % (value, unit)
        value /= 1024.0
    return ''


def rate_text(value: float) -> str:
    """Bytes a second for people."""
    return bytes_text(value) + '/s'


def lines(title: str, times: Sequence[float], series: Sequence[Series],
          text: object = bytes_text) -> str:
    """Each series a line."""
    most = max([max(values, default=0.0) for _, values in series] or [0.0])
    paths = []
    for number, (_, values) in enumerate(series):
        points = ' '.join('%.1f,%.1f' % point for point in zip(
            _x(times), _y(values, most)))
        paths.append('<polyline class="line s%d" points="%s"/>'
                     % (number, points))
    return _chart(title, times, series, most, paths, text)


def areas(title: str, times: Sequence[float], series: Sequence[Series],
          text: object = bytes_text) -> str:
    """The series on top of one another."""
    series = _few(series)
    low = [0.0] * len(times)
    tops: List[Tuple[List[float], List[float]]] = []
    for _, values in series:
        high = [below + value for below, value in zip(low, values)]
        tops.append((low, high))
        low = high
    most = max(low, default=0.0)
    paths = []
    for number, (below, above) in enumerate(tops):
        upper = list(zip(_x(times), _y(above, most)))
        lower = list(zip(_x(times), _y(below, most)))[::-1]
        paths.append('<polygon class="area s%d" points="%s"/>' % (
            number, ' '.join('%.1f,%.1f' % point
                             for point in upper + lower)))
    return _chart(title, times, series, most, paths, text)


def _few(series: Sequence[Series]) -> List[Series]:
    if len(series) <= MOST_SERIES:
        return list(series)
    largest = sorted(series, key=lambda line: -sum(line[1]))
    kept = {name for name, _ in largest[:MOST_SERIES - 1]}
    rest = [line for line in series if line[0] not in kept]
    # The order stays, so that a colour does not change its meaning.
    return [line for line in series if line[0] in kept] + [
        ('%d others' % len(rest), [sum(column) for column in zip(
            *(values for _, values in rest))])]


def _chart(title: str, times: Sequence[float], series: Sequence[Series],
           most: float, paths: Sequence[str], text: object) -> str:
    assert callable(text)
    legend = ''.join(
        '<li><span class="key s%d"></span>%s <b>%s</b></li>' % (
            number, escape(name), text(values[-1]) if len(values) else '-')
        for number, (name, values) in enumerate(series))
    if len(times) < 2 or not most:
        drawing = '<p class="none">Nothing to draw yet.</p>'
    else:
        drawing = (
            '<svg viewBox="0 0 %d %d" role="img" aria-label="%s">'
            '<path class="grid" d="%s"/>%s'
            '<text x="%d" y="%d" class="end">%s</text>'
            '<text x="%d" y="%d" class="end">%s</text>'
            '<text x="%d" y="%d" class="end">0</text>'
            '<text x="%d" y="%d">%s ago</text>'
            '<text x="%d" y="%d" class="end">now</text></svg>' % (
                WIDTH, HEIGHT, escape(title), _grid(), ''.join(paths),
                _LEFT - 6, _TOP + 10, text(most),
                _LEFT - 6, (_TOP + HEIGHT - _BOTTOM) // 2 + 4,
                text(most / 2), _LEFT - 6, HEIGHT - _BOTTOM,
                _LEFT, HEIGHT - 5, _ago(times[-1] - times[0]),
                WIDTH - _RIGHT, HEIGHT - 5))
    return '<figure><figcaption>%s</figcaption>%s<ul>%s</ul></figure>' % (
        escape(title), drawing, legend)


def _grid() -> str:
    bottom = HEIGHT - _BOTTOM
    middle = (_TOP + bottom) // 2
    return ' '.join('M%d %d H%d' % (_LEFT, y, WIDTH - _RIGHT)
                    for y in (_TOP, middle, bottom))


def _ago(seconds: float) -> str:
    return '%.0f s' % seconds if seconds < 120 else '%.0f min' % (
        seconds / 60)


def _x(times: Sequence[float]) -> List[float]:
    span = (times[-1] - times[0]) or 1.0 if times else 1.0
    return [_LEFT + (at - times[0]) / span * (WIDTH - _LEFT - _RIGHT)
            for at in times]


def _y(values: Sequence[float], most: float) -> List[float]:
    height = HEIGHT - _TOP - _BOTTOM
    return [HEIGHT - _BOTTOM - (value / most if most else 0.0) * height
            for value in values]
