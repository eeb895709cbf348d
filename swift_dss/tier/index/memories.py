"""The memory of orders that live in rows, in ``order_state``.

A *group* has one order: a class, or all of a device where ``[tier] eviction``
is blind to classes. An exchange of the order begins a new *epoch*, and places
of an older epoch count no more.

Call with the index's lock held, and inside one of its transactions.
"""

from __future__ import annotations

import sqlite3
from typing import Dict, Optional, Set, Tuple

from swift_dss.strategy.eviction import STRATEGIES
from swift_dss.strategy.eviction.rows.order import Memory, RowOrder
from swift_dss.strategy.eviction.rows.orders import ROW_ORDERS
from swift_dss.tier.inforce import InForce

#: The group of all classes.
ALL = -1
LRU = 'lru'
#: Names of :class:`Memory` that are ours and no order's.
_KIND, EPOCH = '.kind', '.epoch'
_KINDS = (LRU,) + tuple(ROW_ORDERS)


def is_of(memory: Memory, name: str) -> bool:
    """Whether it is the memory of that order."""
    return memory.get(_KIND, 0.0) == _KINDS.index(name)


class Memories:
    """See the module.

    :param in_force: names ``[tier] eviction``, and the order of each class
    """

    def __init__(self, in_force: InForce) -> None:
        self._in_force = in_force
        self._memories: Dict[Tuple[int, int], Memory] = {}
        self._changed: Set[Tuple[int, int]] = set()

    def group(self, class_id: int) -> Tuple[int, str]:
        """(group, name of its order) of a class."""
        blind = STRATEGIES[self._in_force.conf.tier.eviction].order
        return (ALL, blind) if blind else (
            class_id, self._in_force.table.spec(class_id).inner)

    def load(self, db: sqlite3.Connection,
             key: Tuple[int, int]) -> Memory:
        """The memory of (device id, group), whatever order left it."""
        memory = self._memories.get(key)
        if memory is None:
            memory = self._memories[key] = dict(db.execute(
                'SELECT name, value FROM order_state WHERE device_id = ? '
                'AND class_group = ?', key).fetchall())
        return memory

    def of(self, db: sqlite3.Connection, device_id: int, class_id: int
           ) -> Tuple[int, Optional[RowOrder], Memory]:
        """(group, order, memory) of a class; None: the order is LRU.

        Exchange the order if another one is in force now.
        """
        group, name = self.group(class_id)
        key = (device_id, group)
        memory = self.load(db, key)
        if not is_of(memory, name):
            self._exchange(db, key, memory, float(_KINDS.index(name)))
        if name == LRU:
            return group, None, memory
        # It may change anything in it, and mostly does.
        self._changed.add(key)
        return group, ROW_ORDERS[name], memory

    def flush(self, db: sqlite3.Connection) -> None:
        """Write changed memories; before the transaction ends."""
        for key in self._changed:
            memory = self._memories[key]
            db.execute('DELETE FROM order_state WHERE device_id = ? AND '
                       'class_group = ?', key)
            db.executemany('INSERT INTO order_state VALUES (?, ?, ?, ?)', [
                key + item for item in memory.items()])
        self._changed.clear()

    def forget(self) -> None:
        """A transaction was taken back, or the file is another one."""
        self._memories.clear()
        self._changed.clear()

    def _exchange(self, db: sqlite3.Connection, key: Tuple[int, int],
                  memory: Memory, kind: float) -> None:
        """Another order from now on: no place that was given counts."""
        last, = db.execute('SELECT max(value) FROM order_state WHERE '
                           'device_id = ? AND name = ?',
                           (key[0], EPOCH)).fetchone()
        highest = max([last or 0.0] + [
            other.get(EPOCH, 0.0) for (device_id, _), other
            in self._memories.items() if device_id == key[0]])
        memory.clear()
        memory.update({_KIND: kind, EPOCH: highest + 1.0})
        self._changed.add(key)
