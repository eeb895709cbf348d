"""How full a device's tiers are, as placement sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Pressure:
    """One device as the daemon last saw it.

    :param ssd_bytes: room that classes share on the SSD
    :param ssd_used_bytes: bytes of objects on the SSD
    :param high_bytes: eviction starts here
    :param lowest_rank: rank of the lowest class with something to evict,
        None if nothing can leave
    :param hdd_ready: the capacity tier is mounted and has room
    :param at: seconds since the epoch
    """

    ssd_bytes: int
    ssd_used_bytes: int
    high_bytes: int
    lowest_rank: Optional[int]
    hdd_ready: bool
    at: float
