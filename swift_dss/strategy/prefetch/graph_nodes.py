"""The probability graph: block ranges, and the reads that follow them.

A node is a range of one object as it was read. A read that overlaps nodes
in part splits them, so that nodes of an object never overlap, and a node is
always read as a whole. An edge counts how often another node was read soon
after; its weight is that count over the node's own. All of it is kept by
account, and an edge never leaves its account.

Bounded by bytes: the least recently used node leaves first, and edges to it
are dropped when a traversal meets them. A node keeps a few edges; the rarest
gives way. Counts are halved when they grow, so that recent reads weigh more
than old ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import Any, Dict, Hashable, Iterator, List, Optional, Tuple

#: Bytes of a node, an edge and an object with nodes, with their entries in
#: lists and dictionaries, measured on CPython 3.11.
NODE_BYTES = 800
EDGE_BYTES = 72
OBJECT_BYTES = 640
#: Edges of a node: more successors than these are not predictable.
MAX_EDGES = 8
#: Counts are halved at this.
DECAY_COUNT = 32
#: Nodes that one read may touch: the rest of a long read over many short
#: ranges is left out.
MAX_TOUCHED = 64

#: Account and object.
_Place = Tuple[str, Hashable]


class Trail:
    """The last reads of a client.

    :ivar nodes: their numbers, the last read at the end
    :ivar in_line: the last was foreseen by those before it
    :ivar steps: nodes that it came to so far
    """

    __slots__ = ('in_line', 'nodes', 'steps')

    def __init__(self) -> None:
        self.nodes: List[int] = []
        self.steps = 0
        self.in_line = False


class Node:
    """A range, its count of reads, and its successors.

    :ivar edges: node number to how often that was read soon after this
    :ivar degree: ``p`` of expansions that begin here; 0: none has yet
    :ivar trigger: ``g`` of them
    :ivar due: how many nodes its reader will have come to when it reads this,
        by the expansion that wanted it; 0 once it had its last chance
    :ivar reader: for whom it was wanted
    :ivar root: number of the node whose expansion wanted this; 0: none
    :ivar tag: a read of it asks for more
    :ivar via: number of the node that the expansion came to it from
    :ivar asked_turn: when an expansion wanted it, in reads of all
    :ivar read_turn: when it was read last
    :ivar first: it is the first of its expansion
    :ivar last: and the last
    :ivar state: where its bytes are, as far as we were told
    :ivar wrong: it was fetched in vain; not again until it is read
    """

    __slots__ = ('asked_turn', 'count', 'degree', 'due', 'edges', 'end',
                 'first', 'last', 'number', 'place', 'read_turn', 'reader',
                 'root', 'start', 'state', 'tag', 'trigger', 'via', 'wrong')

    #: Not here; asked for; here and not read yet; here and read.
    ABSENT, ASKED, UNREAD, READ = range(4)

    def __init__(self, number: int, place: _Place, start: int,
                 end: int) -> None:
        self.number = number
        self.place = place
        self.start = start
        self.end = end
        self.count = 0
        self.edges: Dict[int, int] = {}
        self.degree = self.trigger = self.root = 0
        self.via = self.asked_turn = self.read_turn = 0
        self.state = self.ABSENT
        self.first = self.last = self.tag = self.wrong = False
        self.due = 0
        self.reader: Optional[Trail] = None


class Nodes:
    """All nodes.

    :param limit_bytes: what they may take together
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._by_number: OrderedDict[int, Node] = OrderedDict()
        #: By place: where nodes start, and the nodes.
        self._ranges: Dict[_Place, Tuple[List[int], List[Node]]] = {}
        self._edges = 0
        self._next = 1

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._by_number.values())

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return self._edges

    @property
    def used_bytes(self) -> int:
        """Bytes of the whole graph, about."""
        return (len(self._by_number) * NODE_BYTES
                + self._edges * EDGE_BYTES
                + len(self._ranges) * OBJECT_BYTES)

    def get(self, number: int) -> Optional[Node]:
        """A node, unless it was forgotten."""
        return self._by_number.get(number)

    def overlapping(self, place: _Place, start: int,
                    end: int) -> List[Node]:
        """Nodes with bytes in the range, at most ``MAX_TOUCHED``."""
        entry = self._ranges.get(place)
        if entry is None:
            return []
        starts, nodes = entry
        at = bisect_right(starts, start) - 1
        if at < 0 or nodes[at].end <= start:
            at += 1
        touched: List[Node] = []
        while at < len(nodes) and nodes[at].start < end and \
                len(touched) < MAX_TOUCHED:
            touched.append(nodes[at])
            at += 1
        return touched

    def read(self, place: _Place, start: int, end: int) -> List[Node]:
        """The nodes that make up a range, made and split as needed."""
        nodes = self.overlapping(place, start, end)
        if len(nodes) == 1 and nodes[0].start == start and \
                nodes[0].end == end:
            self._by_number.move_to_end(nodes[0].number)
            return nodes
        if nodes and nodes[0].start < start:
            nodes[0] = self.split(nodes[0], start)
        if nodes and nodes[-1].end > end:
            self.split(nodes[-1], end)
        covering: List[Node] = []
        at = start
        for node in nodes:
            if node.start > at:
                covering.append(self._add(place, at, node.start))
            covering.append(node)
            at = node.end
        if at < end and len(nodes) < MAX_TOUCHED:
            covering.append(self._add(place, at, end))
        for node in covering:
            self._by_number.move_to_end(node.number)
        return covering

    def grow(self, node: Node, end: int) -> Node:
        """A stream that began with ``node`` was read up to ``end``: the
        node that ends there, or the nearest before it.

        A range without a node joins the last node, so a stream takes one node
        and not one for each of its reads.
        """
        starts, nodes = self._ranges[node.place]
        at = bisect_right(starts, node.start) - 1
        for _ in range(MAX_TOUCHED):
            after = nodes[at + 1] if at + 1 < len(nodes) else None
            if after is None or after.start >= end:
                node.end = max(node.end, end)
                break
            node.end = after.start
            self.follow(node, after)
            self.count(after)
            after.wrong = False
            node, at = after, at + 1
            if node.end >= end:
                break
        self._by_number.move_to_end(node.number)
        return node

    def split(self, node: Node, at: int) -> Node:
        """Cut a node in two. The first half keeps the number, so that edges to
        it hold; the second half gets its outgoing edges.

        :returns: the second half
        """
        second = self._add(node.place, at, node.end)
        node.end = at
        second.count = max(1, node.count)
        second.edges, node.edges = node.edges, {second.number: second.count}
        node.count = second.count
        self._edges += 1
        second.wrong, second.state = node.wrong, node.state
        second.root = node.root
        second.due, second.reader = node.due, node.reader
        second.via, second.asked_turn = node.via, node.asked_turn
        second.read_turn = node.read_turn
        second.tag, node.tag = node.tag, False
        second.last, node.last = node.last, False
        return second

    def follow(self, node: Node, after: Node) -> None:
        """``after`` was read soon after ``node``."""
        edges = node.edges
        if after.number in edges:
            edges[after.number] += 1
        elif after is not node:
            if len(edges) >= MAX_EDGES:
                del edges[min(edges, key=edges.__getitem__)]
                self._edges -= 1
            edges[after.number] = 1
            self._edges += 1

    def count(self, node: Node) -> None:
        """A node was read."""
        node.count += 1
        if node.count >= DECAY_COUNT:
            node.count //= 2
            before = len(node.edges)
            node.edges = {number: count // 2 for number, count
                          in node.edges.items() if count > 1}
            self._edges += len(node.edges) - before

    def forget_edge(self, node: Node, number: int) -> None:
        """An edge to a node that is no more."""
        if node.edges.pop(number, 0):
            self._edges -= 1

    def shrink(self) -> None:
        """Back within the bound."""
        while self.used_bytes > self._limit_bytes and self._by_number:
            self._forget(next(iter(self._by_number.values())))

    # -- to a file and back ----------------------------------------------

    def save(self) -> List[List[Any]]:
        """One row a node, the longest unused first."""
        return [[node.number, node.place[0], node.place[1], node.start,
                 node.end, node.count, node.degree, node.trigger,
                 int(node.wrong), [
                     [number, count] for number, count
                     in node.edges.items() if number in self._by_number]]
                for node in self._by_number.values()]

    def load(self, rows: List[List[Any]]) -> None:
        """Add what :meth:`save` gave.

        :raises ValueError: rows are not as they should be; what was added
            until then MUST be thrown away with this object
        """
        for row in rows:
            number, account, object_id, start, end, count, degree, \
                trigger, wrong, edges = row
            numbers = (number, start, end, count, degree, trigger)
            if not isinstance(account, str) or \
                    not isinstance(object_id, (str, int)) or \
                    any(type(value) is not int or value < 0
                        for value in numbers) or not 0 <= start < end or \
                    number in self._by_number or \
                    not 0 <= trigger <= degree or \
                    self.overlapping((account, object_id), start, end):
                raise ValueError('graph: node %r' % (number,))
            node = self._add((account, object_id), start, end, number)
            node.count, node.degree, node.trigger = count, degree, trigger
            node.wrong = bool(wrong)
            for target, weight in edges[:MAX_EDGES]:
                if type(target) is not int or type(weight) is not int or \
                        weight < 1:
                    raise ValueError('graph: edges of node %d' % number)
                node.edges[target] = weight
            self._edges += len(node.edges)
            self._next = max(self._next, number + 1)
        self._drop_strangers()

    # -- inside ----------------------------------------------------------

    def _drop_strangers(self) -> None:
        """A damaged file must not lead from one account to another."""
        for node in self:
            for number in list(node.edges):
                target = self._by_number.get(number)
                if target is None or target.place[0] != node.place[0]:
                    self.forget_edge(node, number)

    def _add(self, place: _Place, start: int, end: int,
             number: int = 0) -> Node:
        node = Node(number or self._next, place, start, end)
        self._next = max(self._next, node.number + 1)
        self._by_number[node.number] = node
        starts, nodes = self._ranges.setdefault(place, ([], []))
        at = bisect_right(starts, start)
        starts.insert(at, start)
        nodes.insert(at, node)
        return node

    def _forget(self, node: Node) -> None:
        del self._by_number[node.number]
        starts, nodes = self._ranges[node.place]
        at = bisect_right(starts, node.start) - 1
        del starts[at], nodes[at]
        if not starts:
            del self._ranges[node.place]
        self._edges -= len(node.edges)
