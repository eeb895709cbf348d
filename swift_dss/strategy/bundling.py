"""What to put into one S3 object, and which of those to write anew.

Packing small objects saves requests (a PUT of 4 KiB costs 57 times a
month's storage of it: the packing study, HotCloud'18) and round trips; it
costs delay until an object is durable in S3, and bytes that are dead until
a bundle is written anew. Both costs have a bound here: an age, a share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, List, Optional


@dataclass(frozen=True)
class Waiting:
    """Versions that wait for a bundle of their own kind.

    :param group: account, container and classes; one bundle has one
    :param oldest_at: when the first of them began to wait
    """

    group: str
    length: int
    count: int
    oldest_at: float


@dataclass(frozen=True)
class Batch:
    """When a bundle is full.

    :param bundle_bytes: of data
    :param members: at most
    :param age_seconds: that the first member waits at most
    """

    bundle_bytes: int
    members: int
    age_seconds: float

    def is_full(self, one: Waiting) -> bool:
        """True if waiting longer makes no larger bundle."""
        return (one.length >= self.bundle_bytes
                or one.count >= self.members)


@dataclass(frozen=True)
class Kept:
    """A bundle in S3.

    :param dead_bytes: of members that were overwritten or deleted
    """

    key: str
    length: int
    dead_bytes: int


def due(waiting: Iterable[Waiting], batch: Batch,
        now: float) -> List[Waiting]:
    """Groups to send now: full ones first, then the longest waiting."""
    found = [one for one in waiting if one.count and (
        batch.is_full(one) or now - one.oldest_at >= batch.age_seconds)]
    return sorted(found, key=lambda one: (
        not batch.is_full(one), one.oldest_at, one.group))


def next_due(waiting: Iterable[Waiting], batch: Batch) -> Optional[float]:
    """When the first group becomes due by its age; None if none waits."""
    return min((one.oldest_at + batch.age_seconds for one in waiting
                if one.count), default=None)


def rewrite(kept: Iterable[Kept], dead_share: float,
            limit: int) -> List[Kept]:
    """Bundles to write anew: the emptiest first, ``limit`` at most.

    With a share of *s* dead, writing one anew sends (1 - s) / s bytes for
    each byte that it frees: 2.3 at the default of 0.3.
    """
    found = [one for one in kept if one.length
             and one.dead_bytes >= dead_share * one.length
             and one.dead_bytes]
    return sorted(found, key=lambda one: (
        -one.dead_bytes / one.length, one.key))[:limit]
