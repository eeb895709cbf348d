"""The status page as one HTML document, made for every request.

No script and nothing from elsewhere: it renews itself by a header, and its
colours follow the reader's light or dark. Every name on it came from a
configuration or a client and is escaped.
"""

from __future__ import annotations

import logging
from html import escape
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

from swift_dss.core.errors import BadConfig
from swift_dss.tier.doors.charts import areas, bytes_text, lines, rate_text
from swift_dss.tier.doors.history import History, Sample
from swift_dss.tier.doors.page import Page, html_view, json_view
from swift_dss.tier.metrics import CONTENT_TYPE

REFRESH_SECONDS = 10
ANSWERS = ('accept', 'throttle', 'retry', 'full')

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
header p { margin: 0; color: var(--soft); }
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


def node_page(port: int, status: Callable[[], Dict[str, Any]],
              history: History, metrics: Callable[[], bytes],
              logger: logging.Logger) -> Optional[Page]:
    """The page of a node, at work, if there is a port for it.

    :param port: of the loopback address; 0 is none
    :raises BadConfig: another process has the port
    """
    if not port:
        return None
    try:
        made = Page(port, {
            '/': html_view(lambda: page(status(), history.samples())),
            '/status.json': json_view(status),
            '/metrics': (CONTENT_TYPE, metrics)}, logger)
    except OSError as err:
        raise BadConfig('[tier] prometheus_port %d: %s' % (
            port, err.strerror)) from err
    made.start()
    return made


def page(status: Dict[str, Any], samples: List[Sample]) -> str:
    """The document."""
    body = [_head(status), _warnings(status), _tiles(status),
            _charts(samples, status), _classes(status), _devices(status),
            _shards(status)]
    if status['gateway']:
        body += [_operations(status), _bundles(status)]
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            '<meta http-equiv="refresh" content="%d">'
            '<title>swift-dss</title><style>%s</style></head><body>%s'
            '</body></html>\n' % (REFRESH_SECONDS, STYLE, ''.join(body)))


def _head(status: Dict[str, Any]) -> str:
    gateway = status['gateway']
    badge = '<p>no gateway</p>'
    if gateway:
        up = gateway['state'] == 'closed'
        badge = '<p class="badge %s">S3 %s</p>' % (
            'good' if up else 'bad', 'answers' if up else
            'does not answer: ' + escape(gateway['last_error'] or '?'))
    return '<header><h1>swift-dss tier daemon</h1>%s<p>up %s</p>' \
        '<p>engine %s, carrier %s</p></header>' % (
            badge, _seconds(status['up_seconds']), escape(status['engine']),
            escape(status['carrier']))


def _warnings(status: Dict[str, Any]) -> str:
    said = list(status['space']['warnings'])
    if status['rebuild_needed']:
        said.append('the index is being rebuilt: figures are not complete')
    gateway = status['gateway'] or {}
    said += list(gateway.get('errors') or ())
    return ''.join('<p class="warn">%s</p>' % escape(str(text))
                   for text in said)


def _tiles(status: Dict[str, Any]) -> str:
    gateway, link = status['gateway'], status['link']
    pending, budget = pending_of(status)
    dirty = sum(device['totals']['dirty'] for device in status['devices'])
    tiles = [('on one disk only', bytes_text(dirty), 'not on the HDD yet')]
    if gateway:
        up = link['up']
        tiles += [
            ('waiting for S3', bytes_text(pending),
             'of %s' % bytes_text(budget) if budget else ''),
            ('oldest of it', _seconds(gateway['oldest_upload_seconds'] or 0),
             'since it was written'),
            ('backlog', '%d' % gateway['uploads'],
             'uploads, and %d deletes' % gateway['deletes']),
            ('up, predicted', rate_text(up['predicted'] or 0),
             'measured %s; error %s' % (
                 rate_text(up['measured']), _share(up['mape']))),
            ('S3 so far', '$%.4f' % link['cost_dollars'],
             '%d requests, list price' % sum(
                 link['operations'].values()))]
    return '<div class="tiles">%s</div>' % ''.join(
        '<div class="tile"><span>%s</span><b>%s</b><small>%s</small></div>'
        % tuple(map(escape, tile)) for tile in tiles)


def pending_of(status: Dict[str, Any]) -> Sequence[int]:
    """(bytes that wait for S3, budget) of all devices."""
    backlogs = [device['pressure']['backlog'] for device in status['devices']
                if device['pressure'] and device['pressure']['backlog']]
    return (sum(backlog['pending_bytes'] for backlog in backlogs),
            sum(backlog['budget_bytes'] for backlog in backlogs))


def waiting_chart(samples: List[Sample]) -> str:
    """What waits for S3, and the budget where both fit one picture: a line
    at another height than its number would be a second truth."""
    pending = [float(sample.pending) for sample in samples]
    budget = [float(sample.budget) for sample in samples]
    shown = [('waiting', pending)] if samples else []
    if samples and max(budget) <= 2 * max(pending):
        shown.append(('budget', budget))
    return lines('Waiting for S3', [sample.at for sample in samples], shown)


def _charts(samples: List[Sample], status: Dict[str, Any]) -> str:
    times = [sample.at for sample in samples]
    names = [sample['name'] for sample in sorted(
        status['classes'].values(), key=lambda sample: sample['rank'])]
    charts = [
        areas('Where bytes are', times, [
            (tier.upper() if tier != 'remote' else 'S3',
             [float(sample.tiers[tier]) for sample in samples])
            for tier in ('ssd', 'hdd', 'remote')]),
        areas('Classes on the SSD', times, [
            (name, [float(sample.classes.get(name, 0)) for sample in samples])
            for name in names])]
    if status['gateway']:
        charts.append(waiting_chart(samples))
        for way, title in (('up', 'Bandwidth up'),
                           ('down', 'Bandwidth down'),
                           ('drain', 'Drain of the backlog')):
            charts.append(lines(title, times, [
                (kind, [sample.link.get(way, {}).get(kind, 0.0)
                        for sample in samples])
                for kind in ('measured', 'predicted')], rate_text))
    return '<h2>The last hour</h2><div class="charts">%s</div>' % \
        ''.join(charts)


def _classes(status: Dict[str, Any]) -> str:
    rows = []
    admitted = status['admissions']
    for class_id, part in sorted(status['classes'].items(), key=lambda item: (
            -item[1]['rank'], int(item[0]))):
        counts = admitted.get(int(class_id), {})
        reads = part.get('reads', 0)
        rows.append([
            part['name'], class_id, part['rank'], part['objects'],
            bytes_text(part['ssd']), bytes_text(part['hdd']),
            bytes_text(part['remote']), bytes_text(part['dirty']),
            _share(part['hits'] / reads if reads else None),
            *(counts.get(answer, 0) for answer in ANSWERS)])
    return _table('Classes and admissions', (
        'class', 'id', 'rank', 'spans', 'SSD', 'HDD', 'S3', 'dirty',
        'hits', 'accepted', 'slowed', 'told to retry', 'refused'), rows)


def _devices(status: Dict[str, Any]) -> str:
    rows = []
    for device in status['devices']:
        backlog = (device['pressure'] or {}).get('backlog') or {}
        rows.append([
            device['name'], device['ssd_state'], device['hdd_state'],
            device['room_state'], device['lacking'],
            bytes_text(device['totals']['ssd']),
            bytes_text(device['totals']['hdd']),
            bytes_text(backlog.get('pending_bytes', 0)),
            bytes_text(backlog.get('budget_bytes', 0)),
            bytes_text(backlog.get('room_bytes', 0)),
            _seconds(device['oldest_dirty_seconds'] or 0)])
    return _table('Devices', (
        'device', 'SSD', 'HDD', 'room', 'lacking', 'on SSD', 'on HDD',
        'waits for S3', 'budget', 'room left', 'oldest dirty'), rows)


def _shards(status: Dict[str, Any]) -> str:
    rows = [[shard['number'], shard['pid'] or '-', _seconds(
        shard['up_seconds'] or 0) if shard['answers'] else 'does not answer',
        shard['restarts'], ' '.join(shard['devices'])]
        for shard in status.get('shards', ())]
    return _table('Shards', ('number', 'process', 'up', 'started again',
                             'devices'), rows) if rows else ''


def _operations(status: Dict[str, Any]) -> str:
    from swift_dss.gateway.link.throughput import price
    rows = [[name.replace('_', ' '), count, '$%.5f' % (
        price(name) * count)] for name, count in sorted(
            status['link']['operations'].items())]
    return _table('S3 requests', ('request', 'number', 'list price'), rows)


def _bundles(status: Dict[str, Any]) -> str:
    bundles = status['gateway'].get('bundles')
    if not isinstance(bundles, dict):
        return ''
    rows = [[name.replace('_', ' '), bytes_text(value) if isinstance(
        value, (int, float)) and name.endswith('bytes') else
        '-' if value is None else value]
        for name, value in sorted(bundles.items())
        if not isinstance(value, (dict, list))]
    return _table('Bundles', ('', ''), rows)


def _table(title: str, heads: Sequence[str],
           rows: Iterable[Sequence[object]]) -> str:
    def cells(tag: str, row: Sequence[object]) -> str:
        return ''.join('<%s%s>%s</%s>' % (
            tag, ' class="n"' if number else '', escape(str(cell)), tag)
            for number, cell in enumerate(row))

    body = ''.join('<tr>%s</tr>' % cells('td', row) for row in rows)
    return '<h2>%s</h2><div class="table"><table><tr>%s</tr>%s</table>' \
        '</div>' % (escape(title), cells('th', heads), body)


def _share(value: Any) -> str:
    if value is None:
        return '-'
    # Of samples of some bytes an error in percent means nothing.
    return '>999 %' if value > 9.99 else '%.1f %%' % (100.0 * value)


def _seconds(value: float) -> str:
    if value < 120:
        return '%.0f s' % value
    if value < 7200:
        return '%.0f min' % (value / 60)
    return '%.1f h' % (value / 3600)
