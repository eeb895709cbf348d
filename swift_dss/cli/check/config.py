"""``dss.conf``, the class table and the rules, and what they say together.

Their own errors are found while they are read (:mod:`.node`).
"""

from __future__ import annotations

from typing import Iterator, Optional

from swift_dss.cli.check.findings import (
    Finding, Place, error, fine, refused, warning)
from swift_dss.cli.check.node import Node, options_of
from swift_dss.core.classes import Allocate, ClassTable, RemoteMode
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.core.rules import Rules
from swift_dss.io.start.text import read_text
from swift_dss.strategy import pinning


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    if node.conf is not None:
        yield fine('dss.conf', '%s can be read' % node.config)
    if node.table is not None:
        yield fine('class table', '%d classes' % len(node.table.specs))
    if node.rules is not None:
        yield fine('rules', '%d rules' % len(node.rules.rules))
        yield from rules_together(node.rules, node.conf, node.config)
    if node.conf is not None:
        yield from gateway(node.conf, node.config)
        yield from same_tables(node, node.conf)
        if node.table is not None:
            yield from together(node.conf, node.table, node.config)


def together(conf: NodeConf, table: ClassTable,
             path: str) -> Iterator[Finding]:
    """Classes whose treatment this node cannot give."""
    try:
        pinning.rule_of(conf.tier, table)
    except BadConfig as err:
        yield refused('pins', BadConfig('%s: %s' % (path, err)))
    has_block = 'block' in (conf.tier.engine, *conf.engines.values())
    if conf.io.stage_cold_copies and not (has_block and table.cold_class):
        yield warning(
            'cold copies', 'each class of the table is pinned, or has '
            '"allocate = never", direct or no_allocate, so it does nothing'
            if has_block else
            'no device has engine block, so it does nothing',
            Place(path, '[io] stage_cold_copies', 'true'),
            'write "stage_cold_copies = false"')
    for spec in table.specs.values():
        where = '[class:%d]' % spec.class_id
        if spec.remote in (RemoteMode.ONLY, RemoteMode.THROUGH) and \
                not conf.gateway.enabled:
            yield warning(
                'class table', 'the gateway is off, so nothing goes to S3',
                Place(conf.class_table, where + ' remote',
                      spec.remote.value),
                'turn it on ([gateway] enabled of dss.conf), or write '
                '"remote = never"')
        if spec.allocate is Allocate.NEVER and not conf.capacity and \
                not has_block:
            yield warning(
                'class table', 'no device has an HDD, so the bytes go to '
                'the SSD', Place(conf.class_table, where + ' allocate',
                                 'never'),
                'name the capacity folders in [capacity] of dss.conf')


def gateway(conf: NodeConf, path: str) -> Iterator[Finding]:
    """Options of the gateway that undo one another."""
    gate = conf.gateway
    if not gate.enabled:
        if gate.bucket or gate.url:
            yield warning('gateway', 'S3 is configured and not used',
                          Place(path, '[gateway] enabled', 'false'),
                          'write "enabled = true"')
        return
    if gate.gc_interval_seconds >= gate.reclaim_age_seconds:
        yield warning(
            'gateway', 'keys that nothing needs are looked for too seldom: '
            'their tombstones are gone by then', Place(
                path, '[gateway] gc_interval_seconds',
                '%g' % gate.gc_interval_seconds),
            'write less than reclaim_age_seconds (%g)'
            % gate.reclaim_age_seconds)
    if conf.prefetch.strategy != 'none' and \
            conf.prefetch.workers * 2 > gate.fills:
        yield warning(
            'prefetch', 'more than half of [gateway] fills (%d): readers '
            'wait for what nobody asked for' % gate.fills,
            Place(path, '[prefetch] workers', str(conf.prefetch.workers)),
            'write at most %d' % (gate.fills // 2))


def rules_together(rules: Rules, conf: Optional[NodeConf],
                   path: str) -> Iterator[Finding]:
    """Rules that wait for a storage node that does not do its part."""
    waiting = [rule.name for rule in rules.rules
               if rule.auto_class is not None]
    if waiting and conf is not None and not conf.tier.classify:
        yield warning(
            'rules', '[rule:%s] says "classify = auto", and this node reads '
            'no uploads' % waiting[0],
            Place(path, '[tier] classify', 'false'),
            'write "classify = true"')


def same_tables(node: Node, conf: NodeConf) -> Iterator[Finding]:
    """Proxy and storage must mean the same by a class."""
    options = options_of(node.proxy)
    path = options.get('class_table', '').strip()
    if node.proxy is None or not options:
        return
    place = Place(node.proxy.path, '[filter:dss] class_table', path)
    if not path:
        yield warning(
            'class table', 'the proxy has none, so classes have ids and no '
            'names', place, 'write "class_table = %s"' % conf.class_table)
        return
    if path == conf.class_table:
        return
    try:
        text = read_text(path)
    except BadConfig as err:
        yield refused('class table', err, place, 'write "class_table = %s"'
                      % conf.class_table)
        return
    try:
        differ = text != read_text(conf.class_table)
    except BadConfig:
        return  # said before
    if differ:
        yield error('class table', 'it differs from %s, the one of dss.conf'
                    % conf.class_table, place,
                    'let both options name one file')
