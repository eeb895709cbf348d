"""Weighted eviction of bytes: the class with most for its weight gives.

Shares without walls: classes that compete for room converge to the ratio of
their weights, and share the room that others leave unused. Floors, caps and
pins are those of class order; ranks do not count.
"""

from __future__ import annotations

from typing import Dict, List, Sequence

from swift_dss.strategy.eviction.bytes.class_ordered import ClassOrdered
from swift_dss.strategy.eviction.bytes.verbs import Take
from swift_dss.strategy.eviction.rule import Account, Mode

#: Halvings of the interval in which the common level is looked for: as
#: many as bytes on a device have bits.
_HALVINGS = 64


class ClassWeighted(ClassOrdered):
    """Most bytes per weight first, the class's own order inside it."""

    name = 'weighted'
    mode = Mode.WEIGHTED

    def _more(self, accounts: Sequence[Account],
              need_bytes: int) -> List[Take]:
        """Takes that leave the classes as level as may be."""
        some = sorted(accounts, key=lambda one: (
            -one.used / one.weight, one.class_ids))

        def above(level: float) -> Dict[Account, int]:
            return {one: max(0, min(one.above_floor, int(
                one.used - level * one.weight))) for one in some}

        low, high = 0.0, max((one.used / one.weight for one in some),
                             default=0.0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if sum(above(middle).values()) >= need_bytes:
                low = middle
            else:
                high = middle
        # Above ``high`` there is too little by some bytes; the heaviest give
        # these.
        first = above(high)
        missing = need_bytes - sum(first.values())
        rest = above(low)
        for one in some:
            more = max(0, min(missing, rest[one] - first[one]))
            first[one] += more
            missing -= more
        return [Take(one.class_ids, first[one]) for one in some
                if first[one] > 0]
