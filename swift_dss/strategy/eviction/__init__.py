"""Which bytes leave the SSD. One strategy, one file."""

from __future__ import annotations

from typing import Dict

from swift_dss.strategy.eviction.class_ordered import ClassOrdered
from swift_dss.strategy.eviction.lru import Lru
from swift_dss.strategy.eviction.verbs import EvictionStrategy

#: By the name that ``[tier] eviction`` gives them.
STRATEGIES: Dict[str, EvictionStrategy] = {
    strategy.name: strategy for strategy in (ClassOrdered(), Lru())}
