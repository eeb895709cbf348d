"""The status page of a node, made for every request.

Every name on it came from a configuration or a client and is escaped.
"""

from __future__ import annotations

import logging
from html import escape
from typing import Any, Callable, Dict, List, Optional, Sequence

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.tier.doors.charts import areas, bytes_text, lines, rate_text
from swift_dss.tier.doors.cluster_html import cluster_page
from swift_dss.tier.doors.frame import document, seconds, share, table
from swift_dss.tier.doors.history import History, Sample
from swift_dss.tier.doors.page import Page, html_view, json_view
from swift_dss.tier.metrics import CONTENT_TYPE

ANSWERS = ('accept', 'throttle', 'retry', 'full')


def node_page(conf: NodeConf, status: Callable[[], Dict[str, Any]],
              history: History, metrics: Callable[[], bytes],
              logger: logging.Logger) -> Optional[Page]:
    """The page of a node, at work, if there is a port for it, and that of
    all nodes beside it.

    :raises BadConfig: another process has the port
    """
    port = conf.tier.prometheus_port
    if not port:
        return None
    try:
        made = Page(port, {
            '/': html_view(lambda: page(status(), history.samples())),
            '/cluster': html_view(lambda: cluster_page(conf.swift_dir)),
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
    return document('swift-dss', body)


def _head(status: Dict[str, Any]) -> str:
    gateway = status['gateway']
    badge = '<p>no gateway</p>'
    if gateway:
        up = gateway['state'] == 'closed'
        badge = '<p class="badge %s">S3 %s</p>' % (
            'good' if up else 'bad', 'answers' if up else
            'does not answer: ' + escape(gateway['last_error'] or '?'))
    return '<header><h1>swift-dss tier daemon</h1>%s<p>up %s</p>' \
        '<p>engine %s, carrier %s</p>' \
        '<p><a href="/cluster">all nodes</a></p></header>' % (
            badge, seconds(status['up_seconds']), escape(status['engine']),
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
            ('oldest of it', seconds(gateway['oldest_upload_seconds'] or 0),
             'since it was written'),
            ('backlog', '%d' % gateway['uploads'],
             'uploads, and %d deletes' % gateway['deletes']),
            ('up, predicted', rate_text(up['predicted'] or 0),
             'measured %s; error %s' % (
                 rate_text(up['measured']), share(up['mape']))),
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
            share(part['hits'] / reads if reads else None),
            *(counts.get(answer, 0) for answer in ANSWERS)])
    return table('Classes and admissions', (
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
            seconds(device['oldest_dirty_seconds'] or 0)])
    return table('Devices', (
        'device', 'SSD', 'HDD', 'room', 'lacking', 'on SSD', 'on HDD',
        'waits for S3', 'budget', 'room left', 'oldest dirty'), rows)


def _shards(status: Dict[str, Any]) -> str:
    rows = [[shard['number'], shard['pid'] or '-', seconds(
        shard['up_seconds'] or 0) if shard['answers'] else 'does not answer',
        shard['restarts'], ' '.join(shard['devices'])]
        for shard in status.get('shards', ())]
    return table('Shards', ('number', 'process', 'up', 'started again',
                             'devices'), rows) if rows else ''


def _operations(status: Dict[str, Any]) -> str:
    from swift_dss.gateway.link.throughput import price
    rows = [[name.replace('_', ' '), count, '$%.5f' % (
        price(name) * count)] for name, count in sorted(
            status['link']['operations'].items())]
    return table('S3 requests', ('request', 'number', 'list price'), rows)


def _bundles(status: Dict[str, Any]) -> str:
    bundles = status['gateway'].get('bundles')
    if not isinstance(bundles, dict):
        return ''
    rows = [[name.replace('_', ' '), bytes_text(value) if isinstance(
        value, (int, float)) and name.endswith('bytes') else
        '-' if value is None else value]
        for name, value in sorted(bundles.items())
        if not isinstance(value, (dict, list))]
    return table('Bundles', ('', ''), rows)
