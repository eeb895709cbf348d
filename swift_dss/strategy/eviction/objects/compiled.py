"""Caches in C (``fast.c``) by the names of :mod:`orders`, where there is a
compiler, and for the orders that C has."""

from __future__ import annotations

from typing import List, Mapping, Optional, Tuple

from swift_dss.core.classes import Allocate, ClassTable
from swift_dss.core.limits import CLASS_ID_MAX
from swift_dss.strategy.eviction.objects import orders

try:
    from swift_dss.strategy.eviction.objects import fast
except ImportError:  # There was no compiler.
    fast = None  # type: ignore[assignment]

#: By their numbers in C.
_KINDS = ('lru', 'sieve', 's3fifo', 'gdsf')
_ALLOCATE = (Allocate.ALWAYS, Allocate.ROOM, Allocate.NEVER)
#: C has products of bytes and weights as floating-point numbers, which are
#: exact up to here.
_MOST_WEIGHED = 1 << 53


def make(name: str, capacity_bytes: int, table: ClassTable,
         weights: Mapping[int, float], cost_us: float,
         bytes_per_second: float,
         window_bytes: int = 0) -> Optional[fast.Cache]:
    """An empty cache in C; None: this one has only a Python form.

    :param name: one of :func:`orders.names`
    :param weights: class id to weight, for weighted order and the cost
    :param cost_us: of a miss, for GDSF, without its bytes
    :param window_bytes: of a :class:`SecondTouch`; 0: there is none
    """
    kind, _, inner = name.partition('-')
    is_plain = kind in orders.ORDERS
    names = [kind if is_plain else inner or table.spec(class_id).inner
             for class_id in range(CLASS_ID_MAX + 1)]
    if fast is None or not set(names) <= set(_KINDS):
        return None
    rows: List[Tuple[int, int, int, int, float, int, int, float]] = []
    for class_id, order in enumerate(names):
        spec = table.spec(class_id)
        weight = float(weights.get(class_id, spec.weight))
        if weight * capacity_bytes > _MOST_WEIGHED:
            return None
        rows.append((
            _KINDS.index(order), 0 if is_plain else spec.rank,
            int(spec.floor * capacity_bytes),
            int(spec.cap * capacity_bytes), weight,
            0 if is_plain else _ALLOCATE.index(spec.allocate),
            int(spec.pin and not is_plain), weights.get(class_id, 1.0)))
    return fast.Cache(capacity_bytes, is_plain, kind == orders.WEIGHTED,
                      cost_us, bytes_per_second, tuple(rows), window_bytes)
