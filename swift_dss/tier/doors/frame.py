"""The frame of the daemon's pages: one HTML document, its colours, its tables.

No script and nothing from elsewhere: a page renews itself by a header, and its
colours follow the reader's light or dark.
"""

from __future__ import annotations

from html import escape
from typing import Any, Iterable, Sequence

REFRESH_SECONDS = 10

STYLE = '''
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5a6474;
 --line: #d9dee6; --card: #ffffff; --page: #f3f5f8; --bad: #b3261e;
 --good: #1f7a4d; --c0: #2a5db0; --c1: #d9822b; --c2: #2e8b7a;
 --c3: #a2459b; --c4: #8a8f2b; --c5: #c2475a; --c6: #5b4bb5;
 --c7: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef;
 --soft: #9aa5b5; --line: #333c49; --card: #1b212b; --page: #12161d;
 --bad: #ff8a80; --good: #6fd3a0; --c0: #7aa7f0; --c1: #f0a95c;
 --c2: #63c7b3; --c3: #dd8ad6; --c4: #c6cb63; --c5: #f08a9a;
 --c6: #a99cf5; --c7: #a3abb8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 16px 20px 40px;
 background: var(--page); color: var(--ink);
 font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 20px; margin: 0; } h2 { font-size: 15px; margin: 24px 0 8px; }
header { display: flex; flex-wrap: wrap; gap: 6px 16px;
 align-items: baseline; }
header p { margin: 0; color: var(--soft); } a { color: inherit; }
.badge { padding: 1px 8px; border-radius: 10px; border: 1px solid; }
.good { color: var(--good); } .bad { color: var(--bad); }
.warn { margin: 12px 0 0; padding: 8px 12px; background: var(--card);
 border: 1px solid var(--line); border-left: 4px solid var(--c1); }
.tiles, .charts { display: grid; gap: 12px; margin-top: 14px;
 grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); }
.charts { grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); }
.tile, figure, .table { background: var(--card); margin: 0;
 border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px; }
.tile span { color: var(--soft); display: block; }
.tile b { font-size: 20px; font-variant-numeric: tabular-nums; }
.tile small { color: var(--soft); display: block; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font-size: 11px; }
svg .end { text-anchor: end; } .grid { stroke: var(--line); fill: none; }
.line { fill: none; stroke-width: 2; stroke: currentColor; }
.area { fill: currentColor; fill-opacity: .8; stroke: var(--card);
 stroke-width: 1; }
.key { display: inline-block; width: 10px; height: 10px;
 background: currentColor; border-radius: 2px; margin-right: 5px; }
figure ul { list-style: none; margin: 4px 0 0; padding: 0;
 display: flex; flex-wrap: wrap; gap: 2px 16px; }
figure b { font-variant-numeric: tabular-nums; font-weight: 600; }
.none { color: var(--soft); height: 100px; }
.table { overflow-x: auto; } table { border-collapse: collapse;
 width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px 3px 0; text-align: left; white-space: nowrap; }
th { color: var(--soft); font-weight: 500; border-bottom:
 1px solid var(--line); } td.n, th.n { text-align: right; }
.s0 { color: var(--c0); } .s1 { color: var(--c1); } .s2 { color: var(--c2); }
.s3 { color: var(--c3); } .s4 { color: var(--c4); } .s5 { color: var(--c5); }
.s6 { color: var(--c6); } .s7 { color: var(--c7); }
'''


def document(title: str, parts: Iterable[str]) -> str:
    """The whole page of its parts, which are HTML."""
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            '<meta http-equiv="refresh" content="%d">'
            '<title>%s</title><style>%s</style></head><body>%s'
            '</body></html>\n' % (REFRESH_SECONDS, escape(title), STYLE,
                                  ''.join(parts)))


def table(title: str, heads: Sequence[str],
          rows: Iterable[Sequence[object]]) -> str:
    """A table under its title; all but the first column are numbers."""
    def cells(tag: str, row: Sequence[object]) -> str:
        return ''.join('<%s%s>%s</%s>' % (
            tag, ' class="n"' if number else '', escape(str(cell)), tag)
            for number, cell in enumerate(row))

    body = ''.join('<tr>%s</tr>' % cells('td', row) for row in rows)
    return '<h2>%s</h2><div class="table"><table><tr>%s</tr>%s</table>' \
        '</div>' % (escape(title), cells('th', heads), body)


def share(value: Any) -> str:
    """A share in percent; a dash for None."""
    if value is None:
        return '-'
    # Of samples of some bytes an error in percent means nothing.
    return '>999 %' if value > 9.99 else '%.1f %%' % (100.0 * value)


def seconds(value: float) -> str:
    """A time for people."""
    if value < 120:
        return '%.0f s' % value
    if value < 7200:
        return '%.0f min' % (value / 60)
    return '%.1f h' % (value / 3600)
