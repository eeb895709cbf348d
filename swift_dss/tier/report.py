"""The daemon's numbers: for status, for Prometheus, for recon."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import asdict
from typing import Any, Dict, Iterator, List, NamedTuple

from swift.common.utils import dump_recon_cache

from swift_dss.block import control_status
from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.core.limits import UNCLASSIFIED
from swift_dss.gateway.link.throughput import DIRECTIONS
from swift_dss.tier import admitted, space
from swift_dss.tier.doors.history import History
from swift_dss.tier.keep.keeper import Keeper
from swift_dss.tier.keep.state import replace_whole
from swift_dss.tier.metrics import Metrics, Sample
from swift_dss.tier.node import Node
from swift_dss.wire.node import summary
from swift_dss.wire.node.pressure import ANSWERS
from swift_dss.wire.node.summary import Summary

_BYTES = ('total', 'ssd', 'hdd', 'remote', 'dirty', 'evictable', 'objects',
          'cold')


def status(node: Node) -> Dict[str, Any]:
    """Plain values, as ``doc/source/explanation/tier-daemon.rst`` has them."""
    conf, table = node.in_force.conf, node.in_force.table
    hits = node.ledger.hits.snapshot()
    devices = [_device(node, keeper) for keeper in node.keepers]
    classes: Dict[int, Dict[str, Any]] = {}
    for device in devices:
        for class_id, sums in device['classes'].items():
            into = classes.setdefault(class_id, dict.fromkeys(_BYTES, 0))
            for name in _BYTES:
                into[name] += sums[name]
    for class_id, counts in hits.items():
        classes.setdefault(class_id, dict.fromkeys(_BYTES, 0)).update(counts)
    for class_id, into in classes.items():
        spec = table.spec(class_id)
        into.update(name=table.name_of(class_id), rank=spec.rank,
                    pinned=spec.pin, warm_copies=spec.warm_copies)
    return {
        'pid': os.getpid(), 'up_seconds': time.time() - node.started_at,
        'engine': conf.tier.engine, 'admit': str(conf.tier.admit),
        'eviction': node.in_force.configured[0].tier.eviction,
        'self_tuning': node.ledger.tuning.status(),
        'carrier': node.local.mover.io.name,
        'rebuild_needed': node.due.rebuild,
        'sweep_needed': node.due.unclean,
        'left_policies': [node.devices.policies.named(index)
                          for index in sorted(node.ours.left_policies())],
        'event_backlog': node.intake.backlog,
        'devices': devices, 'classes': classes,
        'gateway': node.gateway.status() if node.gateway else None,
        'prefetch': node.prefetcher.status(),
        'classify': node.classifier.status(),
        'link': node.gateway.throughput.status()
        if node.gateway else None,
        'admissions': admitted.tally(conf.run_dir),
        'workload': node.ledger.workload.numbers(),
        'space': {'warnings': node.space.warnings, 'areas': [
            asdict(area) for area in space.areas(
                conf, node.keepers.names)]},
        'metrics': node.metrics.snapshot(),
        'gauges': node.metrics.gauges()}


class Sinks(NamedTuple):
    """Where a status is published."""

    conf: NodeConf
    table: ClassTable
    metrics: Metrics
    history: History


def publish(status: Dict[str, Any], sinks: Sinks) -> None:
    """Refresh the labelled gauges, the history and the recon file.

    :param status: of :func:`status`, or the sum of those of shards
    """
    table = sinks.table
    samples: List[Sample] = []
    for device in status['devices']:
        for class_id, sums in device['classes'].items():
            labels = {'device': device['name'],
                      'class': table.name_of(int(class_id))}
            samples += [('tier.%s%s' % (
                name, '' if name == 'objects' else '_bytes'), labels,
                sums[name]) for name in _BYTES]
        samples += [(
            'tier.' + name, {'device': device['name']}, float(device[key]))
            for name, key in (('lacking_versions', 'lacking'),
                              ('failing', 'failing'))]
        if device['block']:
            samples += control_status.samples(
                device['block'], {'device': device['name']})
    samples += _reads({int(class_id): part for class_id, part
                       in status['classes'].items()}, table)
    samples += of_gateway(status, table)
    sinks.history.add(time.time(), status)
    sinks.metrics.label(samples)
    sinks.metrics.gauge('tier.event_backlog', status['event_backlog'])
    sinks.metrics.gauge('tier.left_policies', len(status['left_policies']))
    _recon(status, sinks)
    if sinks.conf.shard is None:
        replace_whole(os.path.join(sinks.conf.run_dir, summary.FILE),
                      summary.encode(summarized(status)))


def _reads(classes: Dict[int, Dict[str, Any]],
           table: ClassTable) -> Iterator[Sample]:
    """Of every class, from the start: a ratio is for who adds them up."""
    for class_id in sorted({UNCLASSIFIED, *table.specs, *classes}):
        counts, labels = classes.get(class_id, {}), {
            'class': table.name_of(class_id)}
        yield 'tier.read_bytes', labels, counts.get('bytes', 0)
        yield 'tier.hit_bytes', labels, counts.get('hit_bytes', 0)


def of_gateway(status: Dict[str, Any], table: ClassTable) -> List[Sample]:
    """The gateway's figures for the dashboard and the alert rules."""
    if status['gateway'] is None:
        return []
    samples: List[Sample] = []
    for device in status['devices']:
        backlog = (device['pressure'] or {}).get('backlog')
        if backlog:
            samples += [('gateway.' + name, {'device': device['name']},
                         float(backlog[name])) for name in (
                             'pending_bytes', 'budget_bytes',
                             'reserve_bytes', 'room_bytes')]
    link = status['link']
    for direction in DIRECTIONS:
        series = link[direction]
        labels = {'direction': direction}
        samples += [
            ('gateway.link_bytes', labels, series['bytes']),
            ('gateway.measured_bytes_per_second', labels,
             series['measured']),
            ('gateway.predicted_bytes_per_second', labels,
             series['predicted'] or 0.0)]
        if series['mape'] is not None:
            samples.append(('gateway.prediction_mape', labels,
                            series['mape']))
    samples += [('gateway.operations', {'operation': name}, count)
                for name, count in link['operations'].items()]
    samples.append(('gateway.cost_dollars', {}, link['cost_dollars']))
    samples.append(('gateway.oldest_upload_seconds', {},
                    status['gateway']['oldest_upload_seconds'] or 0.0))
    samples += _admissions({int(class_id): counts for class_id, counts
                            in status['admissions'].items()}, table)
    samples.append(('tier.space_warnings', {},
                    float(len(status['space']['warnings']))))
    return samples


def _admissions(told: Dict[int, Dict[str, int]],
                table: ClassTable) -> List[Sample]:
    """All answers for all classes: an alert does not see the first event of
    a series that begins with it."""
    classes = sorted({UNCLASSIFIED, *table.specs, *told})
    return [('gateway.admissions', {
        'class': table.name_of(class_id), 'answer': answer},
        float(told.get(class_id, {}).get(answer, 0)))
        for class_id in classes for answer in ANSWERS]


def _device(node: Node, keeper: Keeper) -> Dict[str, Any]:
    sums = node.index.occupancy(keeper.device.name)
    oldest = node.index.victims.oldest_dirty_at(keeper.device.name)
    state = asdict(keeper.state)
    if keeper.state.round_state == 'failing':
        # Of the last round that came so far.
        state['room_state'] = 'failing'
    return dict(
        state, name=keeper.device.name, engine=keeper.device.engine,
        block=node.block.gather(
            keeper.device.name, keeper.device.path, node.in_force.table)
        if keeper.device.is_block else None, wishes=len(keeper.duties.wishes),
        kept_out=len(keeper.duties.doorkeeper),
        admits=keeper.duties.doorkeeper.rule,
        lacking=keeper.duties.mender.lacking,
        failing=keeper.duties.checks.is_failing,
        oldest_dirty_seconds=None if oldest is None
        else max(0.0, time.time() - oldest),
        classes=sums, totals={
            name: sum(part[name] for part in sums.values())
            for name in _BYTES})


def _recon(status: Dict[str, Any], sinks: Sinks) -> None:
    """``dss.recon`` beside Swift's own, for collectors of recon files."""
    folder = sinks.conf.recon_cache_path
    if not os.path.isdir(folder):
        return
    dump_recon_cache({'dss_tier': {
        'time': time.time(), 'event_backlog': status['event_backlog'],
        'rebuild_needed': status['rebuild_needed'],
        'devices': {device['name']: dict(
            device['totals'], ssd_state=device['ssd_state'],
            hdd_state=device['hdd_state'], room_state=device['room_state'])
            for device in status['devices']}}},
        os.path.join(folder, 'dss.recon'), sinks.metrics.logger)


def summarized(status: Dict[str, Any]) -> Summary:
    """The node in short.

    :param status: of :func:`status`, or the sum of those of shards
    """
    gateway = status['gateway']
    return Summary(
        time.time(), socket.gethostname(), status['up_seconds'],
        summary.REMOTE_STATES.get(gateway['state'], gateway['state'])
        if gateway else '', not gateway or gateway['state'] == 'closed',
        gateway['uploads'] if gateway else 0, status['event_backlog'],
        tuple(_notes(status)),
        {device['name']: _device_in_short(device)
         for device in status['devices']},
        {int(class_id): summary.Class(
            part['name'], part['rank'], part['ssd'], part['hdd'],
            part['remote'], part['dirty'], part.get('reads', 0),
            part.get('hits', 0), part.get('bytes', 0),
            part.get('hit_bytes', 0))
         for class_id, part in status['classes'].items()})


def _notes(status: Dict[str, Any]) -> Iterator[str]:
    if status['rebuild_needed']:
        yield 'the index is being rebuilt: figures are not complete'
    yield from (
        '%s is not ours any more and was left as it is' % name
        for name in status['left_policies'])
    yield from ('shard %d does not answer' % shard['number']
                for shard in status.get('shards', ())
                if not shard['answers'])
    yield from status['space']['warnings']


def _device_in_short(device: Dict[str, Any]) -> summary.Device:
    totals, pressure = device['totals'], device['pressure'] or {}
    backlog = pressure.get('backlog') or {}
    return summary.Device(
        tuple('%s %s' % (label, device[state]) for label, state in (
            ('SSD', 'ssd_state'), ('HDD', 'hdd_state'),
            ('room', 'room_state'))
            if device[state] not in ('', 'ready', 'none')),
        totals['ssd'], pressure.get('ssd_used_bytes', 0),
        pressure.get('ssd_bytes', 0), totals['hdd'], totals['remote'],
        totals['dirty'], device['oldest_dirty_seconds'] or 0.0,
        device['lacking'], backlog.get('pending_bytes', 0),
        backlog.get('budget_bytes', 0))
