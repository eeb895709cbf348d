"""Which bytes leave the SSD. One strategy, one file.

Holds the one class rule, and orders over objects, rows, bytes and chunks.
In: sums by class, the class table, room to make.
Never: a dirty or pinned byte as a victim.
"""

from __future__ import annotations

from typing import Dict

from swift_dss.strategy.eviction.bytes.class_blind import ClassBlind
from swift_dss.strategy.eviction.bytes.class_ordered import ClassOrdered
from swift_dss.strategy.eviction.bytes.class_weighted import ClassWeighted
from swift_dss.strategy.eviction.bytes.verbs import EvictionStrategy
from swift_dss.strategy.eviction.rows.orders import ROW_ORDERS

_STRATEGIES = [ClassOrdered(), ClassWeighted(), ClassBlind('lru')]

#: By the name that ``[tier] eviction`` gives them.
STRATEGIES: Dict[str, EvictionStrategy] = {
    strategy.name: strategy for strategy in _STRATEGIES + [
        ClassBlind(name) for name in ROW_ORDERS]}
