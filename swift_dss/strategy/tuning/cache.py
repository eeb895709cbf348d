"""A cache whose order a tuner chooses, for replays.

With a change, all that is there comes to the new order in the order of its
last use, as it does in the daemon's index: nothing is fetched again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import List, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.verbs import HIT, ObjectCache
from swift_dss.strategy.tuning.choices import Choice
from swift_dss.strategy.tuning.chooser import Verdict
from swift_dss.strategy.tuning.shadows import REMOVE, Penalty
from swift_dss.strategy.tuning.tuner import Tuner


class TunedCache(ObjectCache):
    """See the module.

    :param own: the configured choice
    :ivar changes: (number of the access, change), oldest first
    """

    def __init__(self, own: Choice, capacity_bytes: int, table: ClassTable,
                 penalty: Penalty) -> None:
        super().__init__(capacity_bytes, penalty)
        self.tuner = Tuner(own, capacity_bytes, table, penalty)
        self.changes: List[Tuple[int, Verdict]] = []
        self._table = table
        self._penalty = penalty
        self._accesses = 0
        #: Size and class, the longest unused first.
        self._there: OrderedDict[int, Tuple[int, int]] = OrderedDict()
        self._left: List[int] = []
        self._inner = self._made()

    def __len__(self) -> int:
        return len(self._there)

    def __contains__(self, key: int) -> bool:
        return key in self._there

    def access(self, key: int, size: int, class_id: int = 0,
               sequential: bool = False) -> int:
        """See :meth:`ObjectCache.access`."""
        result = self._inner.access(key, size, class_id, sequential)
        self._noted(key, size, class_id)
        self._accesses += 1
        change = self.tuner.hear(key, size, class_id, 0.0,
                                 is_hit=result == HIT)
        if change is not None:
            self.changes.append((self._accesses, change))
            self._exchange()
        return result

    def fill(self, key: int, size: int, class_id: int = 0,
             sequential: bool = False) -> bool:
        """See :meth:`ObjectCache.fill`."""
        filled = self._inner.fill(key, size, class_id, sequential)
        self._noted(key, size, class_id)
        return filled

    def bytes_of(self, class_id: int) -> int:
        """See :meth:`ObjectCache.bytes_of`."""
        return self._inner.bytes_of(class_id)

    def set_dirty(self, key: int) -> bool:
        """See :meth:`ObjectCache.set_dirty`."""
        return self._inner.set_dirty(key)

    def set_clean(self, key: int) -> bool:
        """See :meth:`ObjectCache.set_clean`."""
        return self._inner.set_clean(key)

    def pin(self, key: int) -> bool:
        """See :meth:`ObjectCache.pin`."""
        return self._inner.pin(key)

    def is_dirty(self, key: int) -> bool:
        """See :meth:`ObjectCache.is_dirty`."""
        return self._inner.is_dirty(key)

    def is_pinned(self, key: int) -> bool:
        """See :meth:`ObjectCache.is_pinned`."""
        return self._inner.is_pinned(key)

    def held_bytes(self) -> int:
        """See :meth:`ObjectCache.held_bytes`."""
        return self._inner.held_bytes()

    def remove(self, key: int) -> bool:
        """See :meth:`ObjectCache.remove`."""
        self.tuner.hear(key, 1, 0, 0.0, REMOVE)
        self._there.pop(key, None)
        removed = self._inner.remove(key)
        self.used_bytes = self._inner.used_bytes
        return removed

    # -- inside ----------------------------------------------------------

    def _made(self) -> ObjectCache:
        inner = orders.make(
            self.tuner.current.strategy, self.capacity_bytes, self._table,
            self._penalty.weights, self._penalty)
        inner.evicted = self._left
        inner.last_chance = lambda key: self.last_chance is not None and \
            self.last_chance(key)
        return inner

    def _noted(self, key: int, size: int, class_id: int) -> None:
        """After an access."""
        self._let_go()
        if key in self._inner:
            before = self._there.pop(key, None)
            self._there[key] = before or (size, class_id)

    def _let_go(self) -> None:
        """Forget, and tell, what left since the last time."""
        for gone in self._left:
            self._there.pop(gone, None)
            if self.evicted is not None:
                self.evicted.append(gone)
        self._left.clear()
        self.used_bytes = self._inner.used_bytes

    def _exchange(self) -> None:
        """The new order takes over all that is there."""
        before, self._inner = self._inner, self._made()
        for key, (size, class_id) in list(self._there.items()):
            self._inner.access(key, size, class_id)
            if before.is_dirty(key):
                self._inner.set_dirty(key)
            if before.is_pinned(key):
                self._inner.pin(key)
            if key not in self._inner:
                # A class has been at its cap since objects changed classes.
                self._left.append(key)
        self._let_go()
