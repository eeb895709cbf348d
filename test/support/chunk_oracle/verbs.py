"""The verbs of a chunk cache.

The words, verbs and numbers of ``dss_core.h`` in the kernel target: the
reference (:mod:`~support.chunk_oracle.ordered`) and the shared library built
from the target's own source (:mod:`~support.chunk_oracle.core_library`) MUST
give the same answers to the same calls. That header is the manual; here are
only the Python forms.

A *slot* is a place for a chunk on the SSD, an *oblock* the number of a
chunk on the origin. Broken preconditions are :class:`BrokenContract` in
the reference and an abort in the library: both are bugs of the caller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import List, Mapping, NamedTuple, Optional

from swift_dss.core.limits import UNCLASSIFIED
from swift_dss.strategy.eviction.chunks import (
    Bypass, ChunkRow, Evict, Inner, Mode)

OBLOCKS_MAX = 1 << 48
#: Marks that one miss takes at most.
SIEVE_LOOKS = 64


class BrokenContract(AssertionError):
    """A verb was called where its contract does not allow it."""


class Refused(ValueError):
    """The input was bad; nothing has changed.

    :param number: the errno that the core answers with
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number


class Kind(IntEnum):
    """Of a verdict."""

    BYPASS = 0
    FREE = 1
    VICTIM = 2


class State(IntFlag):
    """Of a slot."""

    FREE = 0
    USED = 1
    DIRTY = 2
    BUSY = 4
    AGAIN = 8
    STAGED = 16


def fallback(rows: Mapping[int, ChunkRow], class_id: int) -> ChunkRow:
    """How a class without a row is treated: like class 0, and that, if it
    has none, by the defaults, but by SIEVE instead of LRU."""
    if UNCLASSIFIED in rows:
        return rows[UNCLASSIFIED]
    return ChunkRow(inner=Inner.LRU if class_id != UNCLASSIFIED
                    else Inner.SIEVE)


class Verdict(NamedTuple):
    """The verdict on a miss.

    :param reason: :class:`Bypass` or, of a victim, :class:`Evict`
    :param slot: where the newcomer may go. With ``Bypass.DIRTY`` the
        oldest dirty slot in its way, if there is one
    :param victim: the chunk that is to leave ``slot``
    :param staged: the slot will be dirty by the stage
    :param want_clean: the class that was to give had only dirty or busy slots;
        clean some
    """

    kind: Kind
    class_id: int
    reason: int = 0
    slot: Optional[int] = None
    victim: Optional[int] = None
    victim_class: int = 0
    want_clean: bool = False
    staged: bool = False


class SlotState(NamedTuple):
    """The contents of a used slot."""

    state: State
    oblock: int
    class_id: int


def _no_bypass() -> List[int]:
    return [0] * len(Bypass)


def _no_evict() -> List[int]:
    return [0] * len(Evict)


@dataclass
class ChunkStats:
    """One class; ``struct dss_class_stats``."""

    read_hits: int = 0
    write_hits: int = 0
    misses: int = 0
    takes: int = 0
    bypass: List[int] = field(default_factory=_no_bypass)
    evicted: List[int] = field(default_factory=_no_evict)
    reclassed: int = 0
    cleaned: int = 0
    resident: int = 0
    dirty: int = 0
    busy: int = 0


class ChunkStrategy:
    """The verbs; ``dss_core.h`` has the contract of each."""

    # Life

    def set_table(self, rows: Mapping[int, ChunkRow]) -> None:
        """Load the class table, whole or not at all.

        :raises Refused: a row is not sound
        """
        raise NotImplementedError

    def set_mode(self, mode: Mode) -> None:
        """Set the order of eviction over classes.

        :raises Refused: to or from LRU while a slot is in use
        """
        raise NotImplementedError

    def set_watermarks(self, high_parts: int, low_parts: int) -> None:
        """Shares of dirty slots at which cleaning begins and ends.

        :raises Refused: not 0 <= low <= high <= 65536
        """
        raise NotImplementedError

    def set_stage(self, parts: int) -> None:
        """The share of slots that writes of any class may make dirty.

        :raises Refused: not 0 <= parts <= 65536
        """
        raise NotImplementedError

    def has_stage(self) -> bool:
        """Whether there is a stage."""
        raise NotImplementedError

    def stage_room(self) -> int:
        """How many further slots may become dirty by the stage."""
        raise NotImplementedError

    def set_limit(self, limit: int) -> None:
        """Give out no slot at or above ``limit``.

        :raises Refused: not in 1..slots
        """
        raise NotImplementedError

    def over_limit(self, start: int = 0) -> Optional[int]:
        """The next slot in use at or above the limit."""
        raise NotImplementedError

    def resize(self, slots: int) -> None:
        """More slots, or less; the limit is taken away.

        :raises Refused: a slot at or above ``slots`` is in use
        """
        raise NotImplementedError

    # The way of a request

    def lookup(self, oblock: int) -> Optional[int]:
        """The slot of a chunk; changes nothing."""
        raise NotImplementedError

    def touch(self, slot: int, class_id: int, write: bool) -> bool:
        """A request found its chunk; whether to give the slot up."""
        raise NotImplementedError

    def run(self, class_id: int, sector: int, sectors: int) -> bool:
        """Whether a request belongs to a run over the cutoff."""
        raise NotImplementedError

    def may_dirty(self, class_id: int) -> bool:
        """Whether a write may make a slot dirty that is not."""
        raise NotImplementedError

    def must_wait(self, class_id: int, sequential: bool = False,
                  dirty: bool = False) -> bool:
        """Whether a write has to wait for room in the stage.

        :param dirty: it is a miss; else a hit of a clean slot
        """
        raise NotImplementedError

    def miss(self, class_id: int, sequential: bool = False,
             dirty: bool = False) -> Verdict:
        """Judge a miss. Changes only counters, and the marks and hand of
        classes in order :attr:`Inner.SIEVE`.

        :param dirty: a write that the origin does not get
        """
        raise NotImplementedError

    def take(self, verdict: Verdict, oblock: int) -> int:
        """Follow a verdict; the slot is busy."""
        raise NotImplementedError

    def decline(self, verdict: Verdict) -> None:
        """Do not follow a verdict."""
        raise NotImplementedError

    def commit(self, slot: int, dirty: bool = False) -> None:
        """A taken slot is filled."""
        raise NotImplementedError

    def abort(self, slot: int) -> None:
        """A taken slot could not be filled."""
        raise NotImplementedError

    # States of a slot

    def slot_state(self, slot: int) -> Optional[SlotState]:
        """The contents of a slot; None if it is free."""
        raise NotImplementedError

    def set_dirty(self, slot: int) -> None:
        """Bytes of a slot differ from the origin's."""
        raise NotImplementedError

    def stage(self, slot: int) -> None:
        """A clean slot is about to become dirty by the stage."""
        raise NotImplementedError

    def set_clean(self, slot: int) -> None:
        """A slot equals the origin without the cleaner's work."""
        raise NotImplementedError

    def hold(self, slot: int) -> None:
        """Take a slot out of all lists."""
        raise NotImplementedError

    def let_go(self, slot: int) -> None:
        """Put a held slot back, as the youngest."""
        raise NotImplementedError

    def evict(self, slot: int, reason: Evict) -> None:
        """Forget the chunk of a slot."""
        raise NotImplementedError

    def reclass(self, slot: int, class_id: int) -> None:
        """Give the chunk of a slot another class."""
        raise NotImplementedError

    def age(self, slot: int) -> None:
        """Make a slot the oldest of its list."""
        raise NotImplementedError

    # Work that is pulled

    def cleaning_goal(self) -> int:
        """How many slots to clean now."""
        raise NotImplementedError

    def wants_clean(self, slot: int) -> bool:
        """Whether to clean a used slot now, if in any order; with a stage.
        """
        raise NotImplementedError

    def pull_dirty(self, most: int) -> List[int]:
        """The next slots to clean, made busy."""
        raise NotImplementedError

    def pull_beside(self, oblock: int) -> Optional[int]:
        """One chunk more, if it is dirty and idle."""
        raise NotImplementedError

    def cleaned(self, slot: int, written: bool = True) -> bool:
        """End the cleaning of a pulled slot; returns whether it is clean now.
        """
        raise NotImplementedError

    def reclaim(self) -> Optional[int]:
        """The next slot to evict of a class over its cap."""
        raise NotImplementedError

    # Restart, and looking inside

    def load(self, slot: int, oblock: int, class_id: int,
             dirty: bool) -> None:
        """A chunk that was there before the restart; oldest first.

        :raises Refused: out of range, in use, or a chunk twice
        """
        raise NotImplementedError

    def in_order(self, class_id: int, dirty: bool) -> List[int]:
        """Idle slots of a class, oldest first."""
        raise NotImplementedError

    def to_come(self, class_id: int, dirty: bool) -> List[int]:
        """The same slots as they would leave, the first one first."""
        raise NotImplementedError

    def stats(self, class_id: int) -> ChunkStats:
        """Counters of a class, as they are now."""
        raise NotImplementedError

    def free_slots(self) -> int:
        """Slots that a miss may take without a victim."""
        raise NotImplementedError

    def dirty_slots(self) -> int:
        """Dirty slots of all classes."""
        raise NotImplementedError
