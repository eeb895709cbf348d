"""GRAPH: predict the next read from history, outside of streams.

After Yang and others, "Tombolo: Performance Enhancements for Cloud
Gateways", MSST'16. Each random read is a node of a probability graph
(``graph_nodes``); nodes that one client reads within a few reads of each
other are joined by edges. From a node that was missed, or that an earlier
prefetch tagged, the graph is traversed by *balanced expansion*: always the
most likely node next, by the product of the weights on the way to it, down
to a threshold. There are two thresholds: a reader waits for a miss anyway, so
a miss may bring more nodes; ahead of a hit only likelier nodes are fetched.

How many nodes an expansion brings (``p``) and how many of them are left
when the next begins (``g``) is adapted at its root as AMP adapts its
streams: ``p`` grows when the last of them is read and falls when one leaves
unread; ``g`` grows when a reader has to wait. A node that was fetched in vain
is not fetched again until a client reads it. A fetch was in vain if the node
that led to it was read and the fetched node was not; if the client left the
chain earlier, the rest of the chain is not judged.

Every byte costs money, whether it is read or not. Beside the paper, a read
therefore brings nothing where readers in its case mostly leave the graph
(:mod:`~swift_dss.strategy.prefetch.follows`): a read of a chain's place that
comes out of nowhere is one such case.

A read that continues an earlier one belongs to a stream and does not enter the
graph: it lengthens the first node of the stream. When the stream comes again,
its first read splits that node, and the rest of the node is the next read.

**Patents.** Vendors hold patents on prefetching by such graphs (US
9,471,497 and US 9,304,928 among others). No other part needs this strategy,
and it is off unless an operator who has checked the patents turns it on.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from typing import Any, Dict, Hashable, List, Optional, Tuple

from swift_dss.strategy.prefetch.base import (
    ITEM_BYTES, Access, Prefetch, Settings, Urgency, Want, clip)
from swift_dss.strategy.prefetch.follows import LIKELY, Follows
from swift_dss.strategy.prefetch.graph_nodes import Node, Nodes, Trail
from swift_dss.strategy.prefetch.seq import STREAM_READS, Stream, Streams

#: Reads of a client that a read is taken to follow.
WINDOW = 3
#: Clients whose last reads are kept, bytes for each.
CLIENT_BYTES = 512
#: Least probability on a miss, and ahead of a hit.
MISS_THRESHOLD = 0.2
AHEAD_THRESHOLD = 0.35
#: Nodes of a first expansion.
FIRST_DEGREE = 4
#: Accounts whose readers' ways are learnt.
FOLLOWED_ACCOUNTS = 256
#: Nodes that one expansion may look at.
EXPANSION_STEPS = 512
#: Shares of the state for streams and for clients; the rest is the graph's.
_SMALL_SHARE = 0.1
_VERSION = 1


class GraphStream(Stream):
    """A stream and the node that it lengthens.

    :ivar node: its number; 0 while it is not known
    """

    __slots__ = ('node',)

    def __init__(self) -> None:
        super().__init__()
        self.node = 0


class Graph(Prefetch):
    """See above; the contract is :class:`Prefetch`."""

    name = 'graph'

    def __init__(self, settings: Settings,
                 miss_threshold: float = MISS_THRESHOLD,
                 ahead_threshold: float = AHEAD_THRESHOLD,
                 window: int = WINDOW) -> None:
        small = int(settings.state_bytes * _SMALL_SHARE)
        self._max_degree = settings.max_degree
        self._longest_bytes = settings.max_degree * settings.unit_bytes
        self._miss_threshold = miss_threshold
        self._ahead_threshold = ahead_threshold
        self._window = window
        self.nodes = Nodes(settings.state_bytes - 2 * small)
        self._node_limit_bytes = settings.state_bytes - 2 * small
        self._streams = Streams(small // ITEM_BYTES, GraphStream)
        self._client_limit = max(1, small // CLIENT_BYTES)
        #: By account and client.
        self._trails: OrderedDict[Tuple[str, Hashable], Trail] = \
            OrderedDict()
        self._follows = Follows(
            min(FOLLOWED_ACCOUNTS, max(1, small // ITEM_BYTES)))
        #: The last read belonged to a stream.
        self.in_stream = False
        #: Reads so far.
        self._turn = 0

    # -- what it is told -------------------------------------------------

    def on_request(self, access: Access, room_bytes: int) -> List[Want]:
        """See :meth:`Prefetch.on_request`."""
        self._turn += 1
        stream = self._streams.follow(access)
        self.in_stream = stream.reads >= STREAM_READS
        assert isinstance(stream, GraphStream)
        wants: List[Want] = []
        if self.in_stream:
            nodes = self._go_on(stream, access)
            root = self._tagged(nodes, access)
        else:
            nodes = self._enter(access)
            stream.node = nodes[-1].number
            # A node that no expansion brought starts one, hit or not.
            begins = not access.hit or not nodes[-1].root
            root = self._tagged(nodes, access)
            if root is None and begins:
                root = nodes[-1]
        if root is not None and self._pays(access):
            wants = self._expand(nodes[-1], root, access, room_bytes)
        self.nodes.shrink()
        return wants

    def on_arrival(self, account: str, object_id: Hashable, offset: int,
                   length: int, waited: bool, now: float) -> None:
        """See :meth:`Prefetch.on_arrival`."""
        for node in self.nodes.overlapping((account, object_id), offset,
                                           offset + length):
            if node.state == Node.ASKED:
                node.state = Node.UNREAD

    def on_dropped(self, account: str, object_id: Hashable, offset: int,
                   length: int, now: float) -> None:
        """See :meth:`Prefetch.on_dropped`."""
        for node in self.nodes.overlapping((account, object_id), offset,
                                           offset + length):
            if node.state == Node.ASKED:
                self._settle(node, Node.ABSENT)

    def on_last_chance(self, account: str, object_id: Hashable, offset: int,
                       length: int, now: float) -> bool:
        """See :meth:`Prefetch.on_last_chance`."""
        spare = False
        for node in self.nodes.overlapping((account, object_id), offset,
                                           offset + length):
            if node.state != Node.UNREAD or not node.due:
                continue
            spare = spare or self._is_awaited(node)
            node.due = 0
            node.tag = False
            root = self.nodes.get(node.root)
            if root is not None and root.degree:
                root.degree = max(1, root.degree - 1)
                root.trigger = max(0, min(root.degree - 1,
                                          root.trigger - 1))
        return spare

    def on_evict(self, account: str, object_id: Hashable, offset: int,
                 length: int, used: bool, now: float) -> None:
        """See :meth:`Prefetch.on_evict`."""
        for node in self.nodes.overlapping((account, object_id), offset,
                                           offset + length):
            if not used and node.state == Node.UNREAD:
                if node.start < offset:
                    # The part that was read stays right.
                    node = self.nodes.split(node, offset)
                node.wrong = self._was_reached(node)
            self._settle(node, Node.ABSENT)
        self.nodes.shrink()

    def state_bytes(self) -> int:
        """See :meth:`Prefetch.state_bytes`."""
        return (self.nodes.used_bytes + len(self._streams) * ITEM_BYTES
                + len(self._trails) * CLIENT_BYTES)

    def counts(self) -> Dict[str, float]:
        """See :meth:`Prefetch.counts`."""
        return {'nodes': len(self.nodes), 'edges': self.nodes.edges}

    def save(self) -> Dict[str, Any]:
        """See :meth:`Prefetch.save`."""
        return {'version': _VERSION, 'nodes': self.nodes.save()}

    def load(self, saved: Dict[str, Any]) -> None:
        """See :meth:`Prefetch.load`."""
        if not isinstance(saved, dict) or saved.get('version') != _VERSION:
            raise ValueError('graph: not of version %d' % _VERSION)
        fresh = Nodes(self._node_limit_bytes)
        try:
            fresh.load(saved['nodes'])
        except (KeyError, TypeError) as err:
            raise ValueError('graph: %s' % err) from err
        fresh.shrink()
        self.nodes = fresh
        self._trails.clear()
        self._streams.clear()

    # -- inside ----------------------------------------------------------

    def _go_on(self, stream: GraphStream, access: Access) -> List[Node]:
        """A stream that was read on lengthens its node; the node that the
        read came to, if it came to another."""
        node = self.nodes.get(stream.node)
        end = access.offset + access.length
        if node is None or end <= node.end:
            return []
        came_to = self.nodes.grow(node, end)
        if came_to is node:
            return []
        stream.node = came_to.number
        trail = self._trails.get((access.account, access.client))
        if trail is not None:
            trail.nodes[-1] = came_to.number
            trail.steps += 1
            self._went(access.account, trail, True)
        return [came_to]

    def _went(self, account: str, trail: Trail, in_line: bool) -> None:
        """A client went on from a node that foresaw something."""
        self._follows.told(account, trail.in_line, in_line)
        trail.in_line = in_line

    def _enter(self, access: Access) -> List[Node]:
        """Note a random read; its nodes."""
        nodes = self.nodes.read(
            (access.account, access.object_id), access.offset,
            access.offset + access.length)
        who = (access.account, access.client)
        trail = self._trails.pop(who, None) or Trail()
        self._judge(access.account, trail, nodes[0])
        for number in trail.nodes:
            before = self.nodes.get(number)
            if before is not None:
                self.nodes.follow(before, nodes[0])
        for node, after in zip(nodes, nodes[1:]):
            self.nodes.follow(node, after)
        for node in nodes:
            self.nodes.count(node)
            node.wrong = False
        trail.nodes = [*trail.nodes, nodes[-1].number][-self._window:]
        trail.steps += 1
        self._trails[who] = trail
        if len(self._trails) > self._client_limit:
            self._trails.popitem(last=False)
        return nodes

    def _judge(self, account: str, trail: Trail, node: Node) -> None:
        """Note whether ``node``, which a client reads next, was foreseen."""
        before = [known for known in map(self.nodes.get, trail.nodes)
                  if known is not None]
        # The successors of these reads are not counted yet.
        in_line = any(
            known.edges.get(node.number, 0)
            >= self._miss_threshold * max(1, known.count - 1)
            for known in before)
        if before and before[-1].edges:
            self._went(account, trail, in_line)
        trail.in_line = in_line

    def _tagged(self, nodes: List[Node], access: Access) -> Optional[Node]:
        """Note that nodes were read; the root of the expansion that tagged
        one of them."""
        tagged = None
        for node in nodes:
            root = self.nodes.get(node.root)
            if node.tag:
                tagged = root or node
            if root is not None:
                self._adapt(root, node, node.state == Node.ASKED and
                            not access.hit)
            self._settle(node, Node.READ)
            node.read_turn = self._turn
        return tagged

    def _adapt(self, root: Node, node: Node, late: bool) -> None:
        """A node that the expansion of ``root`` wanted was read."""
        if node.last and node.due:
            root.degree = min(self._max_degree, root.degree + 1)
        if node.first and late:
            root.trigger = min(root.trigger + 1, self._max_degree - 1)
            root.degree = max(root.degree, root.trigger + 1)

    @staticmethod
    def _is_awaited(node: Node) -> bool:
        """True if the reader for whom ``node`` was fetched may still come to
        it; else it went elsewhere.
        """
        return node.reader is not None and node.reader.steps < node.due

    def _was_reached(self, node: Node) -> bool:
        """True if the node that led to ``node`` was read since ``node`` was
        requested.
        """
        via = self.nodes.get(node.via)
        return via is None or via.read_turn >= node.asked_turn

    @staticmethod
    def _settle(node: Node, state: int) -> None:
        """End an expansion's request for a node."""
        node.state = state
        node.first = node.last = node.tag = False
        node.root = node.due = 0
        node.reader = None

    def _expand(self, node: Node, root: Node, access: Access,
                room_bytes: int) -> List[Want]:
        """Balanced expansion from ``node``."""
        if not node.degree:
            node.degree = root.degree or FIRST_DEGREE
            node.trigger = root.trigger or FIRST_DEGREE // 2
        node.degree = max(node.degree, node.trigger + 1)
        likely_nodes = self._likely(node, access)
        reader = self._trails.get((access.account, access.client))
        wants = clip([Want(
            access.account, likely.place[1], likely.start,
            min(likely.end - likely.start, self._longest_bytes),
            Urgency.GUESS, weight, self.name)
            for weight, likely in likely_nodes], room_bytes)
        for place, (_, likely) in enumerate(likely_nodes[:len(wants)]):
            likely.root = node.number
            likely.asked_turn = self._turn
            likely.reader = reader
            likely.due += reader.steps if reader is not None else 0
            likely.state = Node.ASKED
            likely.first = place == 0
            likely.last = place == len(wants) - 1
            likely.tag = place == max(0, len(wants) - 1 - node.trigger)
        return wants

    def _pays(self, access: Access) -> bool:
        """True if more of the bytes will be read than come in vain."""
        trail = self._trails.get((access.account, access.client))
        return self._follows.chance(
            access.account, trail is not None and trail.in_line) >= LIKELY

    def _likely(self, node: Node,
                access: Access) -> List[Tuple[float, Node]]:
        """Up to ``p`` nodes to fetch, the most likely first; those that
        are there or on their way only lead on."""
        threshold = self._ahead_threshold if access.hit else \
            self._miss_threshold
        best_first: List[Tuple[float, Node]] = []
        seen = set()
        heap = [(-1.0, node.number)]
        #: The node nearest before it that leads to it.
        via = {node.number: 0}
        for _ in range(EXPANSION_STEPS):
            if not heap or len(best_first) >= node.degree:
                break
            weight, number = heapq.heappop(heap)
            current = self.nodes.get(number)
            if current is None or number in seen:
                continue
            seen.add(number)
            if current is not node and not current.wrong and \
                    current.state == Node.ABSENT:
                best_first.append((-weight, current))
                current.via = via[number]
                current.due = len(seen) - 1
            # The successors of this read are not counted yet.
            reads = max(1, current.count - (current is node))
            for after, count in list(current.edges.items()):
                if self.nodes.get(after) is None:
                    self.nodes.forget_edge(current, after)
                    continue
                likely = weight * min(1.0, count / reads)
                if -likely >= threshold and after not in seen:
                    via[after] = number
                    heapq.heappush(heap, (likely, after))
        return best_first
