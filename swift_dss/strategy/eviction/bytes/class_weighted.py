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
        ordered = sorted(accounts, key=lambda account: (
            -account.used / account.weight, account.class_ids))

        def above(level: float) -> Dict[Account, int]:
            return {account: max(0, min(account.above_floor, int(
                account.used - level * account.weight)))
                for account in ordered}

        low, high = 0.0, max(
            (account.used / account.weight for account in ordered),
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
        for account in ordered:
            more = max(0, min(missing, rest[account] - first[account]))
            first[account] += more
            missing -= more
        return [Take(account.class_ids, first[account]) for account in ordered
                if first[account] > 0]
