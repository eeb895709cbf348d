"""The orders that a tuner may choose among.

The kind of order is the operator's: where classes have ranks or weights, they
keep them, and only the order inside them is chosen (``inner`` of every class);
where one order has all classes, it is another one for all. SARC is chosen only
if it is configured: it wants reads in sequence, which a sample lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import List, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.limits import CLASS_ID_MAX
from swift_dss.strategy.eviction.objects import orders

#: Orders of :mod:`~swift_dss.strategy.eviction.objects.orders`.
TUNED = ('lru', 'sieve', 's3fifo', 'gdsf')
#: By the names of ``[tier] eviction``, the names in a replay.
_KINDS = {'class_ordered': orders.CLASS, 'weighted': orders.WEIGHTED}


@dataclass(frozen=True)
class Choice:
    """An order of eviction.

    :param kind: ``class``, ``weighted``, or '' where classes do not count
    :param order: '': as each class's row says
    """

    kind: str
    order: str

    @property
    def strategy(self) -> str:
        """As ``objects.orders.make`` wants it."""
        return '-'.join(part for part in (self.kind, self.order) if part)

    def apply(self, eviction: str,
              table: ClassTable) -> Tuple[str, ClassTable]:
        """``[tier] eviction`` and the table, with this choice in force."""
        if not self.kind:
            return self.order, table
        if not self.order:
            return eviction, table
        # Ids without a row take that of class 0.
        return eviction, replace(table, specs={
            class_id: replace(spec, inner=self.order)
            for class_id, spec in {0: table.spec(0), **table.specs}.items()})


def configured(eviction: str) -> Choice:
    """The operator's own.

    :param eviction: of ``[tier]``, or a strategy of a replay
    """
    kind, _, order = eviction.partition('-')
    kind = _KINDS.get(kind, kind)
    if kind in orders.ORDERS:
        return Choice('', kind)
    return Choice(kind, order)


def candidates(own: Choice, table: ClassTable) -> List[Choice]:
    """The configured one first, then all others that differ from it."""
    if own.order:
        there = {own.order}
    else:
        inner = {table.spec(class_id).inner
                 for class_id in range(CLASS_ID_MAX + 1)}
        there = inner if len(inner) == 1 else set()
    return [own] + [Choice(own.kind, order) for order in TUNED
                    if order not in there]
