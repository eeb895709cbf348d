"""The ranks of this node's copies, by the ring in force.

:mod:`swift_dss.strategy.eviction.warmth` says what a rank is for.
"""

from __future__ import annotations

import time
from typing import Dict, Optional

from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.ranks import NoRing, Ranks
from swift_dss.strategy.eviction.warmth import rank_of
from swift_dss.tier.devices import Devices
from swift_dss.tier.inforce import InForce

#: A policy without a ring is asked for again after this long.
_AGAIN_SECONDS = 60.0


class Copies:
    """Safe to use from any thread.

    :param ranks: None: there are no rings, and no copy has a rank
    """

    def __init__(self, in_force: InForce, devices: Devices,
                 ranks: Optional[Ranks]) -> None:
        self._in_force = in_force
        self._devices = devices
        self._ranks = ranks
        #: Policies without a ring, and until when that is believed.
        self._without: Dict[int, float] = {}

    def rank(self, version: VersionId) -> Optional[int]:
        """0 for the copy that is read first, after the last primary for a
        handoff; None for what has none: fragments, objects of a policy
        without a ring here, versions whose place the kernel decides, and
        all where no class has cold copies."""
        if self._ranks is None or version.frag_index is not None or \
                not self._in_force.table.has_cold_copies or \
                self._devices.get(version.device).is_block:
            return None
        if time.monotonic() < self._without.get(version.policy, 0.0):
            return None
        try:
            index, replicas = self._ranks.place(version)
        except NoRing:
            self._without[version.policy] = time.monotonic() + _AGAIN_SECONDS
            return None
        return index if index >= replicas else rank_of(
            version.object_hash, index, replicas)
