"""Choose the members of a bundle, and the bundles to rewrite.

Packing small objects saves requests (a PUT of 4 KiB costs 57 times a
month's storage of it: the packing study, HotCloud'18) and round trips; it
costs delay until an object is durable in S3, and bytes that are dead until a
bundle is rewritten. Both costs have a bound here: an age, a share.

An idle link waits while a bundle is packed. So if there is more than one
bundle to come, the first bundles are smaller than a full one, until a bundle
is ready behind the one on the link.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Callable, Iterable, List, Optional

#: With one on the link and one behind it, there is time for a full one.
ENOUGH_UNDER_WAY = 2
#: No part is smaller, but for bundles that are not larger themselves.
PART_BYTES = 8 << 20
_PART = 0.25


@dataclass(frozen=True)
class Waiting:
    """Versions that wait for a bundle of their own kind.

    :param group: account and classes; one bundle has one
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

    def is_full(self, waiting: Waiting) -> bool:
        """True if waiting longer makes no larger bundle."""
        return (waiting.length >= self.bundle_bytes
                or waiting.count >= self.members)

    @property
    def part(self) -> Batch:
        """The size of the first, smaller bundle for an idle link."""
        share = min(1.0, max(_PART, PART_BYTES / self.bundle_bytes))
        return replace(self, bundle_bytes=int(self.bundle_bytes * share),
                       members=math.ceil(self.members * share))


@dataclass(frozen=True)
class Kept:
    """A bundle in S3.

    :param dead_bytes: of members that were overwritten or deleted
    """

    key: str
    length: int
    dead_bytes: int


def saves(waiting: Waiting) -> bool:
    """True if one bundle of the waiting versions costs less than keys of their
    own.

    One member alone takes one PUT either way. Under its own key all
    replicas find it without an index.
    """
    return waiting.count > 1


def next_size(waiting: Waiting, batch: Batch, under_way: int,
              comes: bool) -> Batch:
    """How large the next bundle of a group is to be.

    :param under_way: bundles on the link, or on their way there
    :param comes: there is more for it that does not wait yet
    """
    part = batch.part
    if under_way < ENOUGH_UNDER_WAY and (
            comes or waiting.length >= batch.bundle_bytes + part.bundle_bytes
            or waiting.count >= batch.members + part.members):
        return part
    return batch


def due(waiting: Iterable[Waiting], size: Callable[[Waiting], Batch],
        now: float) -> List[Waiting]:
    """Groups to send now: full ones first, then the longest waiting.

    :param size: full batches, by group
    """
    ready = []
    for group in waiting:
        batch = size(group)
        full = batch.is_full(group)
        if group.count and (
                full or now - group.oldest_at >= batch.age_seconds):
            ready.append((not full, group.oldest_at, group.group, group))
    return [group for _, _, _, group in sorted(
        ready, key=lambda row: row[:3])]


def next_due(waiting: Iterable[Waiting], batch: Batch) -> Optional[float]:
    """When the first group becomes due by its age; None if none waits."""
    return min((group.oldest_at + batch.age_seconds for group in waiting
                if group.count), default=None)


def pays(freed_bytes: int, apart: int, put_bytes: int) -> bool:
    """True if members may get keys of their own, one PUT each, so that
    bytes of a bundle go.

    At list price (S3 Standard) a PUT costs $0.005 / 1,000 and a GB $0.023 a
    month, so a PUT costs as much as 5e-6 / 0.023 GB = 217 kB for a month, or
    18 kB for a year. Bytes stay until they are removed, so a year of them
    counts. Bytes over the link are not in it: into S3 they cost nothing, and
    :func:`rewrite` bounds them.

    :param freed_bytes: less those that are stored a second time
    :param apart: members that get keys of their own
    :param put_bytes: what a PUT costs, as bytes stored for a year
    """
    return freed_bytes >= apart * put_bytes


def rewrite(kept: Iterable[Kept], dead_share: float,
            limit: int) -> List[Kept]:
    """Bundles to rewrite: the emptiest first, ``limit`` at most.

    With a dead share of *s*, rewriting a bundle sends (1 - s) / s bytes for
    each byte that it frees: 2.3 at the default of 0.3.
    """
    worth = [bundle for bundle in kept if bundle.length
             and bundle.dead_bytes >= dead_share * bundle.length
             and bundle.dead_bytes]
    return sorted(worth, key=lambda bundle: (
        -bundle.dead_bytes / bundle.length, bundle.key))[:limit]
