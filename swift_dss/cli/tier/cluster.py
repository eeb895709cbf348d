"""``swift-dss tier status --cluster``: one table of all nodes."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from swift_dss.cli.ask import json_text
from swift_dss.cli.table import seconds, share, size, table
from swift_dss.core.config import NodeConf
from swift_dss.tier.doors import cluster
from swift_dss.tier.doors.cluster import Node
from swift_dss.wire.node.summary import Class, Summary


def run(conf: NodeConf, as_json: bool) -> int:
    """Print it; 1 if a node does not answer or has trouble, else 0."""
    nodes = cluster.nodes(conf.swift_dir)
    print(json_text(cluster.plain(nodes)) if as_json else text(nodes))
    return 0 if all(node.state == 'well' for node in nodes) else 1


def text(nodes: Sequence[Node]) -> str:
    """Nodes, classes, and what an operator should know."""
    known = [node.summary for node in nodes if node.summary]
    parts = [_nodes(nodes, known)]
    if known:
        parts.append(_classes(list(cluster.classes(known).values())))
    lines = [line for node in nodes for line in node.lines]
    return '\n\n'.join(parts + ['\n'.join(lines)] if lines else parts)


def _nodes(nodes: Sequence[Node], known: Sequence[Summary]) -> str:
    rows = [(node.address, node.state) + _row(
        [node.summary] if node.summary else None) for node in nodes]
    rows.append(('all', '%d of %d answer' % (
        sum(node.answers for node in nodes), len(nodes))) + _row(known))
    return table(('NODE', 'STATE', 'DEVICES>', 'ON SSD>', 'USED>', 'OF>',
                  'FULL>', 'ON HDD>', 'ON S3>', 'DIRTY>', 'OLDEST>',
                  'WAITS FOR S3>', 'OF>', 'HITS>', 'S3'), rows)


def _row(known: Optional[Sequence[Summary]]) -> Tuple[object, ...]:
    """The figures of a node, or of all."""
    if not known:
        return (None,) * 13
    sums = cluster.totals(known)
    return (
        sum(len(said.devices) for said in known),
        size(sums.ssd), size(sums.ssd_used), size(sums.ssd_room),
        share(sums.ssd_used, sums.ssd_room), size(sums.hdd),
        size(sums.remote), size(sums.dirty),
        seconds(sums.oldest_dirty) if sums.oldest_dirty else '-',
        size(sums.pending), size(sums.budget),
        share(*cluster.hits(known)),
        '; '.join(dict.fromkeys(said.remote or '-' for said in known)))


def _classes(classes: List[Class]) -> str:
    return table(
        ('CLASS', 'RANK', 'ON SSD>', 'ON HDD>', 'ON S3>', 'DIRTY>', 'READS',
         'HITS>', 'BYTE HITS>'),
        [(part.name, part.rank, size(part.ssd), size(part.hdd),
          size(part.remote), size(part.dirty), part.reads,
          share(part.hits, part.reads),
          share(part.hit_bytes, part.read_bytes)) for part in classes])
