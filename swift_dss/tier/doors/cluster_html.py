"""The page of all nodes, which every node has at ``/cluster``.

Its figures are asked of the nodes for each request: a node that does not
answer costs the reader a few seconds.
"""

from __future__ import annotations

from html import escape
from typing import Any, Iterator, List, Sequence

from swift_dss.core.errors import BadConfig
from swift_dss.tier.doors import cluster
from swift_dss.tier.doors.charts import bytes_text
from swift_dss.tier.doors.cluster import Node
from swift_dss.tier.doors.frame import document, seconds, share, table
from swift_dss.wire.node.summary import Summary

_TITLE = 'swift-dss cluster'


def cluster_page(swift_dir: str) -> str:
    """The document.

    :param swift_dir: folder of ``swift.conf`` and the rings
    """
    try:
        nodes = cluster.nodes(swift_dir)
    except BadConfig as err:
        return document(_TITLE, [_head('no nodes', False),
                                 _warning(str(err))])
    return document(_TITLE, _body(nodes))


def _body(nodes: Sequence[Node]) -> Iterator[str]:
    answering = sum(node.answers for node in nodes)
    yield _head('%d of %d nodes answer' % (answering, len(nodes)),
                answering == len(nodes))
    yield from (_warning(line) for node in nodes for line in node.lines)
    known = [node.summary for node in nodes if node.summary]
    yield table('Nodes', (
        'node', 'state', 'devices', 'on SSD', 'SSD in use', 'of', 'full',
        'on HDD', 'on S3', 'on one disk only', 'oldest of it',
        'waits for S3', 'budget', 'hits'),
        [[node.address, node.state] + (
            _row([node.summary]) if node.summary else ['-'] * 12)
         for node in nodes] + [['all', ''] + _row(known)])
    yield table('Classes', (
        'class', 'rank', 'on SSD', 'on HDD', 'on S3', 'on one disk only',
        'reads', 'hits', 'byte hits'),
        [[part.name, part.rank, bytes_text(part.ssd), bytes_text(part.hdd),
          bytes_text(part.remote), bytes_text(part.dirty), part.reads,
          share(_of(part.hits, part.reads)),
          share(_of(part.hit_bytes, part.read_bytes))]
         for part in cluster.classes(known).values()])


def _row(known: Sequence[Summary]) -> List[Any]:
    sums = cluster.totals(known)
    return [sum(len(said.devices) for said in known)] + [
        bytes_text(amount) for amount in (
            sums.ssd, sums.ssd_used, sums.ssd_room)] + [
        share(_of(sums.ssd_used, sums.ssd_room))] + [
        bytes_text(amount) for amount in (
            sums.hdd, sums.remote, sums.dirty)] + [
        seconds(sums.oldest_dirty), bytes_text(sums.pending),
        bytes_text(sums.budget), share(_of(*cluster.hits(known)))]


def _of(part: int, whole: int) -> object:
    return part / whole if whole else None


def _head(text: str, good: bool) -> str:
    return '<header><h1>%s</h1><p class="badge %s">%s</p>' \
        '<p><a href="/">this node</a></p></header>' % (
            _TITLE, 'good' if good else 'bad', escape(text))


def _warning(text: str) -> str:
    return '<p class="warn">%s</p>' % escape(text)
