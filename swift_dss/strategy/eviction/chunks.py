"""Words and numbers of the kernel's chunk cache: modes, reasons, class rows.

The numbers of ``dss_core.h`` in the kernel target, whose prose is the manual;
here are only the Python forms. The tests hold a reference in Python and a
library built from the target's own source against each other
(``test/support/chunk_oracle``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

from swift_dss.core.classes import Allocate, ClassSpec, Direct, WriteMode

CLASSES = 32
PARTS = 65536
RANK_MAX = 1000000
WEIGHT_MAX = 1000


class Mode(IntEnum):
    """The order of eviction over classes."""

    STRICT = 0
    WEIGHTED = 1
    LRU = 2


class Inner(IntEnum):
    """The order of eviction of a class's clean chunks."""

    LRU = 0
    SIEVE = 1


class Bypass(IntEnum):
    """Why a miss stayed on the origin."""

    DIRECT = 0
    NEVER = 1
    SEQUENTIAL = 2
    CAP = 3
    ROOM = 4
    RANK = 5
    HELD = 6
    DIRTY = 7
    DECLINED = 8
    FAILED = 9
    DIRTY_CAP = 10


class Evict(IntEnum):
    """Why a chunk left its slot."""

    ABOVE = 0
    OWN = 1
    PEER = 2
    CAP = 3
    HIT = 4
    DEMOTE = 5
    DISCARD = 6
    SHRINK = 7
    FAILED = 8


class Flag(IntFlag):
    """Treatment of a class beyond rank and allocation."""

    NONE = 0
    EVICT_ON_HIT = 1
    NO_ALLOCATE = 2
    DIRECT_HDD = 4
    DIRECT_SSD = 8
    PIN = 16
    PASSING = 32


#: The numbers of ``enum dss_allocate`` and ``enum dss_write_mode``.
ALLOCATE = {Allocate.ALWAYS: 0, Allocate.ROOM: 1, Allocate.NEVER: 2}
WRITE_BACK, WRITE_THROUGH, WRITE_AROUND = range(3)
WRITE = {WriteMode.BACK: WRITE_BACK, WriteMode.THROUGH: WRITE_THROUGH}

#: Orders of the class table that a chunk cache has too; it takes others
#: for ``lru``.
INNER = {'lru': Inner.LRU, 'sieve': Inner.SIEVE}

_DIRECT = {Direct.NONE: Flag.NONE, Direct.HDD: Flag.DIRECT_HDD,
           Direct.SSD: Flag.DIRECT_SSD}
_SECTORS_PER_KIB = 2
_AWAY = Flag.DIRECT_HDD | Flag.NO_ALLOCATE


def parts(share: float) -> int:
    """A share of 0..1 in parts of 65536, to the nearest."""
    return int(share * PARTS + 0.5)


@dataclass(frozen=True)
class ChunkRow:
    """How a class is treated; ``struct dss_class_spec``.

    :param floor_parts, cap_parts: shares; see :func:`parts`
    :param weight: for :attr:`Mode.WEIGHTED`
    :param cutoff_sectors: sequential runs this long stay on the origin; 0
        is no cutoff
    :param write_mode: kept for the caller
    :param dirty_cap_parts: share that dirty chunks of the class and of all
        below it may take before its writes stay on the origin
    :param inner: not asked in :attr:`Mode.LRU`
    """

    rank: int = 0
    floor_parts: int = 0
    cap_parts: int = PARTS
    weight: int = 1
    cutoff_sectors: int = 0
    allocate: Allocate = Allocate.ALWAYS
    write_mode: int = WRITE_BACK
    flags: Flag = Flag.NONE
    dirty_cap_parts: int = PARTS
    inner: Inner = Inner.LRU

    @classmethod
    def of(cls, spec: ClassSpec) -> ChunkRow:
        """The row for a class of the class table."""
        flags = _DIRECT[spec.direct]
        for flag, wanted in ((Flag.PIN, spec.pin),
                             (Flag.EVICT_ON_HIT, spec.evict_on_hit),
                             (Flag.NO_ALLOCATE, spec.no_allocate)):
            if wanted:
                flags |= flag
        return cls(spec.rank, parts(spec.floor), parts(spec.cap), spec.weight,
                   spec.cutoff_kib * _SECTORS_PER_KIB, spec.allocate,
                   WRITE[spec.write], flags, parts(spec.dirty_cap),
                   INNER.get(spec.inner, Inner.LRU))

    def fault(self) -> str:
        """The error in it, or an empty string."""
        if not 0 <= self.rank <= RANK_MAX:
            return 'rank %d is not in 0..%d' % (self.rank, RANK_MAX)
        if not 0 <= self.floor_parts <= self.cap_parts <= PARTS:
            return 'not 0 <= floor %d <= cap %d <= %d' % (
                self.floor_parts, self.cap_parts, PARTS)
        if not 0 <= self.dirty_cap_parts <= PARTS:
            return 'dirty cap %d is not in 0..%d' % (
                self.dirty_cap_parts, PARTS)
        if not 1 <= self.weight <= WEIGHT_MAX:
            return 'weight %d is not in 1..%d' % (self.weight, WEIGHT_MAX)
        stays_away = self.flags & _AWAY or self.allocate is Allocate.NEVER
        if self.flags & Flag.DIRECT_SSD and stays_away:
            return 'direct to SSD, and kept away from it'
        if self.flags & Flag.PIN and (
                stays_away or self.flags & Flag.EVICT_ON_HIT):
            return 'pinned, and kept away from the SSD or thrown off it'
        if self.flags & Flag.PASSING and (
                stays_away or self.flags != Flag.PASSING):
            return 'passing through, and with a rule for chunks that stay'
        return ''
