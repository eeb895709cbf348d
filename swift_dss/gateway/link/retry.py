"""How long to wait before trying again, with the dice passed in."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass
class Backoff:
    """Exponential backoff with full jitter (so that a thousand waiting
    jobs do not come back in the same second).

    :param base_seconds: the longest first wait
    :param cap_seconds: the longest wait ever
    """

    base_seconds: float
    cap_seconds: float
    dice: random.Random = field(default_factory=random.Random)

    def seconds(self, attempt: int) -> float:
        """Wait before attempt number ``attempt`` (from 1).

        Between half of the exponential step and all of it: never zero.
        """
        step = min(self.cap_seconds,
                   self.base_seconds * 2.0 ** min(attempt - 1, 32))
        return step * (0.5 + self.dice.random() / 2)
