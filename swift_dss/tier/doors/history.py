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
        one = Sample(
            at,
            {tier: sum(device['totals'][tier]
                       for device in status['devices'])
             for tier in ('ssd', 'hdd', 'remote')},
            {found['name']: found['ssd']
             for found in status['classes'].values()},
            sum(found['pending_bytes'] for found in backlogs),
            sum(found['budget_bytes'] for found in backlogs),
            int(gateway.get('uploads') or 0),
            float(gateway.get('oldest_upload_seconds') or 0.0),
            {name: {'measured': found['measured'],
                    'predicted': found['predicted'] or 0.0}
             for name, found in (status['link'] or {}).items()
             if isinstance(found, dict) and 'measured' in found})
        with self._lock:
            self._samples.append(one)

    def samples(self) -> List[Sample]:
        """Oldest first."""
        with self._lock:
            return list(self._samples)
