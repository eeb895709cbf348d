"""Which bytes leave the SSD. One strategy, one file."""

from __future__ import annotations

from typing import Dict

from swift_dss.strategy.eviction.class_blind import ClassBlind
from swift_dss.strategy.eviction.class_ordered import ClassOrdered
from swift_dss.strategy.eviction.class_weighted import ClassWeighted
from swift_dss.strategy.eviction.row_orders import ROW_ORDERS
from swift_dss.strategy.eviction.verbs import EvictionStrategy

_STRATEGIES = [ClassOrdered(), ClassWeighted(), ClassBlind('lru')]

#: By the name that ``[tier] eviction`` gives them.
STRATEGIES: Dict[str, EvictionStrategy] = {
    strategy.name: strategy for strategy in _STRATEGIES + [
        ClassBlind(name) for name in ROW_ORDERS]}
