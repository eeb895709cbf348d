"""Caches of whole objects by name: every order, blind or by class."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Type

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.objects.classes import ClassedCache
from swift_dss.strategy.eviction.objects.gdsf import GdsfOrder
from swift_dss.strategy.eviction.objects.lru import LruOrder
from swift_dss.strategy.eviction.objects.plain import PlainCache
from swift_dss.strategy.eviction.objects.s3fifo import S3FifoOrder
from swift_dss.strategy.eviction.objects.sarc import SarcOrder
from swift_dss.strategy.eviction.objects.sieve import SieveOrder
from swift_dss.strategy.eviction.objects.verbs import ObjectCache, Order
from swift_dss.strategy.eviction.rule import Mode

#: By the name that ``inner`` of a class, and a replay, gives them.
ORDERS: Dict[str, Type[Order]] = {
    order.name: order for order in (
        LruOrder, S3FifoOrder, SieveOrder, GdsfOrder, SarcOrder)}

#: Strategies of a replay: an order for all classes, or class order over an
#: order in each; ``class`` takes the one that the class's row names.
CLASS, WEIGHTED = 'class', 'weighted'


def names() -> List[str]:
    """Every strategy, the reference first."""
    return list(ORDERS) + [CLASS, WEIGHTED] + [
        '%s-%s' % (kind, order) for kind in (CLASS, WEIGHTED)
        for order in ORDERS]


def make(name: str, capacity_bytes: int, table: ClassTable,
         weights: Optional[Mapping[int, float]] = None,
         cost: Optional[Callable[[int, int], float]] = None) -> ObjectCache:
    """An empty cache of a strategy.

    :param name: one of :func:`names`
    :param weights: class id to weight, for ``weighted``
    :param cost: see :class:`ObjectCache`
    :raises KeyError: there is no such strategy
    """
    if name in ORDERS:
        return PlainCache(ORDERS[name](capacity_bytes), capacity_bytes,
                          cost)
    kind, _, inner = name.partition('-')
    mode = {CLASS: Mode.STRICT, WEIGHTED: Mode.WEIGHTED}[kind]
    if inner and inner not in ORDERS:
        raise KeyError(name)

    def make_order(class_id: int) -> Order:
        # No room is said: a class's share has no fixed size.
        return ORDERS[inner or table.spec(class_id).inner]()
    return ClassedCache(make_order, capacity_bytes, table, mode, weights,
                        cost)
