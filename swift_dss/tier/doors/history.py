"""The last hour, sample by sample: the data of the status page's plots."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Deque, Dict, List

#: Samples kept: an hour of one every ten seconds.
SAMPLES = 360


@dataclass(frozen=True)
class Sample:
    """One look at the node; bytes, and seconds since the epoch."""

    at: float
    tiers: Dict[str, int]
    classes: Dict[str, int]
    pending: int
    budget: int
    backlog: int
    oldest: float
    link: Dict[str, Dict[str, float]] = field(default_factory=dict)


class History:
    """Bounded and thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: Deque[Sample] = deque(maxlen=SAMPLES)

    def add(self, at: float, status: Dict[str, Any]) -> None:
        """Note the figures of a status."""
        gateway = status['gateway'] or {}
        backlogs = [device['pressure']['backlog']
                    for device in status['devices']
                    if device['pressure'] and device['pressure']['backlog']]
        sample = Sample(
            at,
            {tier: sum(device['totals'][tier]
                       for device in status['devices'])
             for tier in ('ssd', 'hdd', 'remote')},
            {row['name']: row['ssd']
             for row in status['classes'].values()},
            sum(row['pending_bytes'] for row in backlogs),
            sum(row['budget_bytes'] for row in backlogs),
            int(gateway.get('uploads') or 0),
            float(gateway.get('oldest_upload_seconds') or 0.0),
            {name: {'measured': row['measured'],
                    'predicted': row['predicted'] or 0.0}
             for name, row in (status['link'] or {}).items()
             if isinstance(row, dict) and 'measured' in row})
        with self._lock:
            self._samples.append(sample)

    def samples(self) -> List[Sample]:
        """Oldest first."""
        with self._lock:
            return list(self._samples)
