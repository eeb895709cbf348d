"""SIEVE: one queue in order of arrival, and a hand that walks it.

Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is Simpler than LRU", NSDI
2024, section 3. A hit only marks its object. The hand walks from the oldest to
the youngest, clears marks, and evicts the first object without a mark. It then
stays there, so objects that came since the last round are sifted quickly. One
entry an object; a hit is O(1), an eviction O(1) amortised: each mark that it
clears was set by a hit.
"""

from __future__ import annotations

from typing import Dict, Optional, Tuple

from swift_dss.strategy.eviction.objects.verbs import UNIT_COST, MappedOrder


class _Node:
    """An object in the queue.

    :ivar younger: towards the newest arrival, None there
    :ivar older: towards the first arrival, None there
    """

    __slots__ = ('key', 'size', 'marked', 'younger', 'older')

    def __init__(self, key: int, size: int) -> None:
        self.key = key
        self.size = size
        self.marked = False
        self.younger: Optional[_Node] = None
        self.older: Optional[_Node] = None


class SieveOrder(MappedOrder):
    """See above; the contract is :class:`Order`."""

    name = 'sieve'

    def __init__(self, room_bytes: int = 0) -> None:
        self._nodes: Dict[int, _Node] = {}
        super().__init__(room_bytes, self._nodes)
        self._oldest: Optional[_Node] = None
        self._youngest: Optional[_Node] = None
        self._hand: Optional[_Node] = None

    def touch(self, key: int, sequential: bool = False) -> bool:
        """See :meth:`Order.touch`."""
        node = self._nodes.get(key)
        if node is None:
            return False
        node.marked = True
        return True

    def insert(self, key: int, size: int, cost: float = UNIT_COST,
               sequential: bool = False) -> None:
        """See :meth:`Order.insert`."""
        node = self._nodes[key] = _Node(key, size)
        node.older = self._youngest
        if self._youngest is None:
            self._oldest = node
        else:
            self._youngest.younger = node
        self._youngest = node
        self.used_bytes += size

    def evict(self) -> Tuple[int, int]:
        """See :meth:`Order.evict`."""
        node = self._hand or self._oldest
        assert node is not None
        while node.marked:
            node.marked = False
            node = node.younger or self._oldest
            assert node is not None
        self._hand = node.younger
        self._unlink(node)
        return node.key, node.size

    def remove(self, key: int) -> int:
        """See :meth:`Order.remove`."""
        node = self._nodes.get(key)
        if node is None:
            return 0
        if node is self._hand:
            self._hand = node.younger
        self._unlink(node)
        return node.size

    def _unlink(self, node: _Node) -> None:
        if node.older is None:
            self._oldest = node.younger
        else:
            node.older.younger = node.younger
        if node.younger is None:
            self._youngest = node.older
        else:
            node.younger.older = node.older
        del self._nodes[node.key]
        self.used_bytes -= node.size
