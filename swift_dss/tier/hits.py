"""Hit counts of the SSD, by class, since the start."""

from __future__ import annotations

import threading
from typing import Dict, List

from swift_dss.core.residency import Tier


class Hits:
    """Counts reads; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: class id -> [reads, reads only from the SSD, bytes, SSD bytes]
        self._counts: Dict[int, List[int]] = {}

    def count(self, class_id: int, tiers: Tier, length: int) -> None:
        """One read of ``length`` bytes of a class from ``tiers``."""
        hit = tiers == Tier.SSD
        with self._lock:
            sums = self._counts.setdefault(class_id, [0, 0, 0, 0])
            sums[0] += 1
            sums[1] += hit
            sums[2] += length
            sums[3] += length if hit else 0

    def snapshot(self) -> Dict[int, Dict[str, int]]:
        """By class: reads, hits, bytes, hit_bytes."""
        with self._lock:
            return {class_id: dict(zip(
                ('reads', 'hits', 'bytes', 'hit_bytes'), sums))
                for class_id, sums in sorted(self._counts.items())}
