"""Which copies of an object are warm, and which is read first. Pure.

Each copy has a rank among the primaries of its object: it follows from the
object's hash and the order of the ring, so that proxies, object servers and
daemons come to the same one without a word, and a copy that replication or a
rebalance brings to a device has the rank of that place. Copies of the first
``warm_copies`` ranks of their class are warm: they have the share of the SSD
that the class rule gives them. The others are cold: they pass through the SSD
and are the first to leave it. A handoff is cold.

Readers go to the lowest rank, and to the next where that one is lost or slow.
If its bytes have left the SSD and its HDD is busy, they go to the copy with
the least busy HDD.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import List, NamedTuple, Optional, Sequence

from swift_dss.core.classes import (
    EVERY_COPY, Allocate, ClassSpec, ClassTable, Direct)
from swift_dss.core.spans import ClassMap, Span
from swift_dss.strategy.eviction.bytes.verbs import (
    EvictionStrategy, Occupancies)
from swift_dss.strategy.eviction.rule import Mode, Relief

#: A cold copy that is read twice within this long becomes warm: readers
#: come to it only where the warm one is lost, slow, far away or busy.
AGAIN_SECONDS = 3600.0
#: A reader goes to another copy if it waits so much less there: the detour
#: costs two questions between servers, and an idle HDD answers in 10 or 20.
DETOUR_MS = 50


class Warmth(IntEnum):
    """Of a copy's bytes of one class.

    ``HOT`` is cold by its rank, and warm because it is read.
    """

    WARM = 0
    COLD = 1
    HOT = 2

class Copy(NamedTuple):
    """A primary of an object, for a read.

    :param rank: of :func:`rank_of`
    :param group: nodes of a lower group go first, whatever their rank
    :param is_slow: others answer much faster
    :param backlog_ms: for how long its HDD is busy; None if that is not known
    """

    rank: int
    group: float = 0.0
    is_slow: bool = False
    backlog_ms: Optional[float] = None


class Detour(NamedTuple):
    """A read that may go past the first copy.

    :param order: positions of copies, the one to ask first in front
    :param limit_ms: a copy whose bytes lie on its HDD alone is to refuse
        them if that is busy for longer
    """

    order: List[int]
    limit_ms: int


def rank_of(object_hash: str, index: int, replicas: int) -> int:
    """The rank of a copy, 0 first.

    Not that of the ring: a drive might be the first primary of most of its
    partitions. The last digits of the hash say which primary is first; the
    partition comes of the first ones, so ranks stay when partitions are split.

    :param object_hash: Swift's, hexadecimal
    :param index: among the primaries, in the order of the ring
    :param replicas: primaries there are
    """
    return (index - int(object_hash[-8:], 16)) % replicas


def warmth(rank: Optional[int], spec: ClassSpec) -> Warmth:
    """Of the copy of a rank in a class.

    :param rank: None: there are no ranks, as of erasure-coded objects
    """
    is_warm = rank is None or spec.warm_copies >= EVERY_COPY or \
        rank < spec.warm_copies
    return Warmth.WARM if is_warm else Warmth.COLD


def staged_map(class_map: ClassMap, rank: Optional[int],
               table: ClassTable, writes: bool) -> ClassMap:
    """The classes under which the kernel's cache is to have a copy's bytes
    that no client asked for. Cold ones are written under
    :attr:`ClassTable.passing`, so that they wait no longer than warm ones,
    pass through the stage and leave first, and are read under
    :attr:`ClassTable.cold_class`. A client's read has the class of the object,
    and makes the copy warm.

    Bytes that are pinned, or have their disk by their class, stay as they are.

    :param writes: the map is of a write
    """
    cold = table.cold_class
    if rank is None or cold is None:
        return class_map
    passing = table.passing if writes else {}

    def carried(class_id: int) -> int:
        spec = table.spec(class_id)
        stays = spec.pin or spec.direct is not Direct.NONE or \
            spec.allocate is Allocate.NEVER or spec.rank <= cold.rank or \
            warmth(rank, spec) is Warmth.WARM
        return class_id if stays else passing.get(class_id, cold.class_id)

    if class_map.is_uniform:
        return ClassMap.uniform(carried(class_map.rest))
    return ClassMap.from_spans(
        [Span(span.offset, span.length, carried(span.class_id))
         for span in class_map.spans], carried(class_map.rest))


def kept(before: Warmth, now: Warmth, ssd_bytes: int) -> Warmth:
    """The warmth of a copy whose rank says ``now``: a hot copy stays hot
    until it has left the SSD."""
    if before is Warmth.HOT and now is Warmth.COLD and ssd_bytes:
        return before
    return now


def is_hot(put_at: float, last_read_at: float, read_at: float) -> bool:
    """Whether a read makes a cold copy a hot one: it was read before, and
    not long ago.

    :param last_read_at: ``put_at`` if it was never read
    """
    return put_at < last_read_at and \
        0 < read_at - last_read_at <= AGAIN_SECONDS


def cold_first(cold: Occupancies, table: ClassTable,
               need_bytes: int) -> Relief:
    """Which class's cold copies leave next: in the order of ranks alone.
    Shares, pins aside, are those of warm copies.

    :param cold: what cold copies have on the SSD
    """
    # Of no room every share is nothing, so all are alike but for their rank.
    return Relief(EvictionStrategy().accounts(cold, table, 0), need_bytes,
                  Mode.STRICT)


def reading_order(copies: Sequence[Copy]) -> List[int]:
    """Positions in ``copies``, the one to ask first in front."""
    return sorted(range(len(copies)), key=lambda at: (
        copies[at].group, copies[at].is_slow, copies[at].rank))


def least_busy_first(copies: Sequence[Copy]) -> List[int]:
    """The same for a read of bytes that no copy has on its SSD.

    Groups and slow copies stay where they are. A backlog that is not known
    counts for more than any: its server may be of an earlier release, and
    would get all such reads. Alike copies go by rank.
    """
    return sorted(range(len(copies)), key=lambda at: (
        copies[at].group, copies[at].is_slow,
        math.inf if copies[at].backlog_ms is None else copies[at].backlog_ms,
        copies[at].rank))


def detour(copies: Sequence[Copy]) -> Optional[Detour]:
    """Whether a read may go past its first copy, and then where to.

    The first is that of :func:`reading_order`, and is asked first: if it is
    warm, it gives the bytes however busy its HDD is. The others follow,
    least busy first. The reader MUST get the bytes from some copy, also if
    each refuses: it asks again without a limit, in the order of
    :func:`least_busy_first`.

    :returns: None if no copy of its group is known to be less busy than the
        first by ``DETOUR_MS``. Nothing is known of a server that says
        nothing, so a cluster of such servers reads as by
        :func:`reading_order`
    """
    if not copies:
        return None
    first = reading_order(copies)[0]
    mine = copies[first].backlog_ms
    least = min((copy.backlog_ms for at, copy in enumerate(copies)
                 if at != first and copy.group == copies[first].group
                 and not copy.is_slow and copy.backlog_ms is not None),
                default=math.inf)
    if mine is None or mine <= least + DETOUR_MS:
        return None
    return Detour([first] + [at for at in least_busy_first(copies)
                             if at != first], int(least) + DETOUR_MS)
