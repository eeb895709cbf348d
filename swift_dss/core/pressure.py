"""How full a device's tiers are, as placement sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, NamedTuple, Optional


class Link(NamedTuple):
    """S3 as the gateway sees it now.

    :param drain_rate: predicted bytes a second that leave; 0 if unknown
    :param up: S3 answers: readers may ask it
    :param probe_seconds: until S3 is asked again if it does not answer, or
        gets the next trial if it takes no uploads
    :param refuses: S3 answers, but does not keep uploads
    """

    drain_rate: float
    up: bool
    probe_seconds: float
    refuses: bool = False

    @property
    def drains(self) -> bool:
        """True if waiting bytes can leave for S3 now."""
        return self.up and not self.refuses


@dataclass(frozen=True)
class Backlog:
    """Bytes of one device that wait for S3, as admission sees them.

    :param pending_bytes: bytes that S3 lacks and is to have
    :param budget_bytes: the part of them that the lowest class may fill
    :param reserve_bytes: on top, more of it the higher the class
    :param room_bytes: new bytes that still fit
    :param drain_rate: predicted bytes a second that leave; 0 if unknown
    :param remote_up: S3 answers
    :param probe_seconds: until the next probe of an S3 that is away, or the
        next trial of one that refuses
    :param throttle_at: share of its limit where a class is slowed down
    :param throttle_seconds: longest wait of one write
    :param untracked_bytes: bytes on the tiers that the daemon does not know as
        objects, nearly all of uploads under way; ``room_bytes`` excludes them
    :param configured_bytes: the operator's budget; 0 is all there is
    :param reserve_share: the reserve as a share of a budget
    :param remote_refuses: S3 answers, but refuses or loses uploads
    """

    pending_bytes: int
    budget_bytes: int
    reserve_bytes: int
    room_bytes: int
    drain_rate: float
    remote_up: bool
    probe_seconds: float
    throttle_at: float
    throttle_seconds: float
    untracked_bytes: int = 0
    configured_bytes: int = 0
    reserve_share: float = 0.0
    remote_refuses: bool = False

    @property
    def drains(self) -> bool:
        """True if pending bytes can leave now."""
        return self.remote_up and not self.remote_refuses


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
    :param backlog: None where there is no remote tier
    :param claims: class id to the unused bytes of its floor, which it gets
        before classes of any rank
    """

    ssd_bytes: int
    ssd_used_bytes: int
    high_bytes: int
    lowest_rank: Optional[int]
    hdd_ready: bool
    at: float
    backlog: Optional[Backlog] = None
    claims: Mapping[int, int] = field(default_factory=dict)
