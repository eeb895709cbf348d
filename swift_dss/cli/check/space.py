"""Budgets against the disks that they are of."""

from __future__ import annotations

import os
from typing import Iterator, List

from swift_dss.cli.check.findings import Finding, Place, fine, warning
from swift_dss.cli.check.node import Node
from swift_dss.core.config import NodeConf
from swift_dss.tier import space
from swift_dss.tier.devices import device_names
from swift_dss.tier.space import Area


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    if node.conf is None:
        return
    areas = space.areas(node.conf, device_names(node.conf.devices))
    said = space.warnings(areas)
    for text in said:
        yield warning('space', text, Place(node.config))
    budgets_said = list(budgets(node.conf, areas, node.config))
    yield from budgets_said
    yield from room(areas)
    if not said and not budgets_said:
        yield fine('space', '%d folders have room for their budgets'
                   % len(areas))


def budgets(conf: NodeConf, areas: List[Area],
            path: str) -> Iterator[Finding]:
    """Budgets that no folder's own line has."""
    for area in areas:
        if area.kind != 'data':
            continue
        size = conf.tier.ssd_bytes or area.total_bytes
        name = os.path.basename(area.path)
        if conf.gateway.enabled and conf.gateway.dirty_bytes > \
                area.total_bytes:
            yield warning(
                'space', '%s has %d bytes in all: it is full before a write '
                'is refused' % (name, area.total_bytes),
                Place(path, '[gateway] dirty_bytes',
                      str(conf.gateway.dirty_bytes)),
                'write less than that')
        if conf.tier.pin_share and \
                conf.tier.pin_largest_bytes > conf.tier.pin_share * size:
            yield warning(
                'space', 'a single version would fill the pinned part of %s'
                % name, Place(path, '[tier] pin_largest_bytes',
                              str(conf.tier.pin_largest_bytes)),
                'write at most %d' % (conf.tier.pin_share * size))
    yield from _prefetch(conf, areas, path)


def _prefetch(conf: NodeConf, areas: List[Area],
              path: str) -> Iterator[Finding]:
    whole = sum(conf.tier.ssd_bytes or area.total_bytes
                for area in areas if area.kind == 'data')
    if conf.prefetch.strategy != 'none' and \
            0 < whole < conf.prefetch.budget_bytes:
        yield warning(
            'space', 'more than the room of all SSDs (%d)' % whole,
            Place(path, '[prefetch] budget_bytes',
                  str(conf.prefetch.budget_bytes)),
            'write a tenth of it')


def room(areas: List[Area]) -> Iterator[Finding]:
    """Folders of state whose file system is nearly full."""
    for area in areas:
        if area.kind in ('metadata', 'log') and \
                area.free_bytes * 50 < area.total_bytes:
            yield warning('space', 'less than 2 % of its file system is '
                          'free: the daemon stops when it is full',
                          Place(area.path), 'make room')
