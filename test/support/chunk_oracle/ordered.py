"""Class-ordered caching of chunks: the reference of the kernel target.

The class rule (:mod:`~swift_dss.strategy.eviction.rule`) on a table of slots:
on a miss of class *p* a free slot is taken; else the oldest chunk of the class
that gives leaves; if none gives, the miss stays on the origin, and it is said
why. An exchange of chunks leaves nothing over, so no class needs to claim its
floor. No-allocate and evict-on-hit after hStorage-DB (Luo et al., VLDB 2012).
Clean chunks of a class leave in the order of their use, or by SIEVE; see
:mod:`~support.chunk_oracle.line`.

``dss_core.h`` is the contract of every verb.
"""

# long: one table of slots, and every verb that changes it.

from __future__ import annotations

import errno
from collections import OrderedDict
from itertools import islice
from typing import Dict, Iterable, List, Mapping, Optional, Set

from support.chunk_oracle.line import Line
from support.chunk_oracle.streams import Streams
from support.chunk_oracle.verbs import (
    OBLOCKS_MAX, BrokenContract, ChunkStats, ChunkStrategy, Kind, Refused,
    SlotState, State, Verdict, fallback)
from swift_dss.core.classes import Allocate
from swift_dss.core.limits import UNCLASSIFIED
from swift_dss.strategy.eviction.chunks import (
    CLASSES, PARTS, Bypass, ChunkRow, Evict, Flag, Inner, Mode)
from swift_dss.strategy.eviction.rule import (
    Account, in_order, strict_giver, weighted_giver)

#: Of a class that may have all slots: it is never at its cap.
_NO_CAP = 1 << 32

_TAKEN, _PULLED, _HELD = 'taken', 'pulled', 'held'


class _Slot:
    """A slot in use; ``busy`` is why it is in no list, or None."""

    __slots__ = ('oblock', 'class_id', 'dirty', 'again', 'staged', 'busy')

    def __init__(self, oblock: int, class_id: int) -> None:
        self.oblock = oblock
        self.class_id = class_id
        self.dirty = False
        self.again = False
        self.staged = False
        self.busy: Optional[str] = None


class _Share(Account):
    """A class's share of the slots, and its use of them."""

    __slots__ = ('class_id', 'stats')

    def __init__(self, class_id: int, row: ChunkRow, floor: int,
                 cap: int, stats: ChunkStats) -> None:
        super().__init__((class_id,), _rank_here(row), floor, cap,
                         row.weight, row.allocate)
        self.class_id = class_id
        self.stats = stats

    @property
    def used(self) -> int:
        """See :class:`Account`."""
        return self.stats.resident

    @used.setter
    def used(self, amount: int) -> None:
        """The slots know it by themselves."""


class _Search:
    """The obstacles in a search for a victim."""

    __slots__ = ('newcomer', 'rank', 'dirty_class', 'held')

    def __init__(self, newcomer: int, row: ChunkRow, dirty: bool) -> None:
        self.newcomer = newcomer
        self.rank = row.rank if dirty else _rank_here(row)
        self.dirty_class: Optional[int] = None
        self.held = False


def _lines() -> List[Line]:
    return [Line() for _ in range(CLASSES)]


class ChunkOrdered(ChunkStrategy):
    """Slots by number, chunks by class and order of use.

    :param slots: how many chunks the SSD holds
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._limit = slots
        self._mode = Mode.STRICT
        self._marks = (PARTS // 2, PARTS // 4)
        self._cleaning = False
        self._pulled = 0
        self._dirty_slots = 0
        self._stage_parts = 0
        self._stage_dirty = 0
        self._staging = False
        self._unclean: Set[int] = set()
        self._used: Dict[int, _Slot] = {}
        self._where: Dict[int, int] = {}
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(
            range(slots))
        self._clean = _lines()
        self._dirty = _lines()
        self._marked: Set[int] = set()
        self._stats = [ChunkStats() for _ in range(CLASSES)]
        self._streams = Streams()
        self.set_table({})

    # Life

    def set_table(self, rows: Mapping[int, ChunkRow]) -> None:
        """See :meth:`ChunkStrategy.set_table`."""
        for class_id, row in rows.items():
            if row.fault() or not 0 <= class_id < CLASSES:
                raise Refused(errno.EINVAL, 'class %d: %s'
                              % (class_id, row.fault()))
        self._rows = [rows.get(class_id) or fallback(rows, class_id)
                      for class_id in range(CLASSES)]
        self._has_cutoff = any(row.cutoff_sectors for row in self._rows)
        self._share_out()

    def _share_out(self) -> None:
        self._shares = [
            _Share(class_id, row, self._share(row.floor_parts),
                   self._cap(row.cap_parts), self._stats[class_id])
            for class_id, row in enumerate(self._rows)]
        self._ranked = in_order(self._shares)
        self._stage = self._share(self._stage_parts)
        self._dirty_caps = [
            self._cap(row.dirty_cap_parts) for row in self._rows]

    def _cap(self, parts: int) -> int:
        return _NO_CAP if parts == PARTS else self._share(parts)

    def _share(self, parts: int) -> int:
        return parts * self._limit // PARTS

    def set_mode(self, mode: Mode) -> None:
        """See :meth:`ChunkStrategy.set_mode`."""
        if (mode is Mode.LRU) != (self._mode is Mode.LRU) and self._used:
            raise Refused(errno.EBUSY, 'only an empty cache changes to or '
                          'from LRU')
        self._mode = mode

    def set_watermarks(self, high_parts: int, low_parts: int) -> None:
        """See :meth:`ChunkStrategy.set_watermarks`."""
        if not 0 <= low_parts <= high_parts <= PARTS:
            raise Refused(errno.EINVAL, 'not 0 <= low %d <= high %d <= %d'
                          % (low_parts, high_parts, PARTS))
        self._marks = (high_parts, low_parts)

    def set_stage(self, parts: int) -> None:
        """See :meth:`ChunkStrategy.set_stage`."""
        if not 0 <= parts <= PARTS:
            raise Refused(errno.EINVAL, 'not 0 <= stage %d <= %d' % (
                parts, PARTS))
        self._stage_parts = parts
        self._share_out()

    def has_stage(self) -> bool:
        """See :meth:`ChunkStrategy.has_stage`."""
        return self._stage > 0

    def stage_room(self) -> int:
        """See :meth:`ChunkStrategy.stage_room`."""
        return max(0, self._stage - self._stage_dirty)

    def set_limit(self, limit: int) -> None:
        """See :meth:`ChunkStrategy.set_limit`."""
        if not 1 <= limit <= self._slots:
            raise Refused(errno.EINVAL, 'limit %d is not in 1..%d'
                          % (limit, self._slots))
        for slot in range(limit, self._limit):
            self._free.pop(slot, None)
        self._add_free(range(self._limit, limit))
        self._limit = limit
        self._share_out()

    def _add_free(self, slots: Iterable[int]) -> None:
        for slot in slots:
            if slot not in self._used:
                self._free[slot] = None

    def over_limit(self, start: int = 0) -> Optional[int]:
        """See :meth:`ChunkStrategy.over_limit`."""
        return min((slot for slot in self._used
                    if slot >= max(start, self._limit)), default=None)

    def resize(self, slots: int) -> None:
        """See :meth:`ChunkStrategy.resize`."""
        if slots < 1:
            raise Refused(errno.EINVAL, '%d slots' % slots)
        if any(slot >= slots for slot in self._used):
            raise Refused(errno.EBUSY, 'a slot at or above %d is in use'
                          % slots)
        self._slots = self._limit = slots
        self._free.clear()
        self._add_free(range(slots))
        self._share_out()

    # The way of a request

    def lookup(self, oblock: int) -> Optional[int]:
        """See :meth:`ChunkStrategy.lookup`."""
        return self._where.get(oblock)

    def touch(self, slot: int, class_id: int, write: bool) -> bool:
        """See :meth:`ChunkStrategy.touch`."""
        chunk = self._entry(slot)
        stats = self._stats[class_id]
        if write:
            stats.write_hits += 1
        else:
            stats.read_hits += 1
        if self._rows[class_id].flags & Flag.NO_ALLOCATE:
            return False
        home = chunk.class_id
        if class_id not in (UNCLASSIFIED, home) \
                and not self._at_cap(class_id):
            home = class_id
        give_up = chunk.busy is None and self._gives_up(
            home, class_id, write)
        self._marked.add(slot)
        if home == chunk.class_id and not (give_up or chunk.dirty) \
                and self._is_sieved(home):
            return False
        self._leave(slot, chunk)
        self._move(chunk, home)
        self._join(slot, chunk, oldest=give_up)
        return give_up

    def _is_sieved(self, class_id: int) -> bool:
        return self._mode is not Mode.LRU \
            and self._rows[class_id].inner is Inner.SIEVE

    def _gives_up(self, chunk_class: int, class_id: int,
                  write: bool) -> bool:
        flags = self._rows[chunk_class].flags
        if flags & Flag.PIN and self._mode is not Mode.LRU:
            return False
        if class_id != UNCLASSIFIED:
            flags |= self._rows[class_id].flags
        return bool(flags & Flag.DIRECT_HDD
                    or (flags & Flag.EVICT_ON_HIT and not write))

    def run(self, class_id: int, sector: int, sectors: int) -> bool:
        """See :meth:`ChunkStrategy.run`."""
        if not self._has_cutoff or not sectors:
            return False
        length = self._streams.note(sector, sectors)
        cutoff = self._rows[class_id].cutoff_sectors
        return bool(cutoff) and length >= cutoff

    def may_dirty(self, class_id: int) -> bool:
        """See :meth:`ChunkStrategy.may_dirty`."""
        if self._mode is Mode.LRU:
            return True
        rank = self._rows[class_id].rank
        return sum(stats.dirty for row, stats in zip(self._rows, self._stats)
                   if row.rank <= rank) < self._dirty_caps[class_id]

    def must_wait(self, class_id: int, sequential: bool = False,
                  dirty: bool = False) -> bool:
        """See :meth:`ChunkStrategy.must_wait`."""
        if not self._stage or self.stage_room() or _stays_out(
                self._rows[class_id], sequential) is not None:
            return False
        return self._passes(class_id) if dirty \
            else not self.may_dirty(class_id)

    def _passes(self, class_id: int) -> bool:
        """Whether a dirty miss, not of a run, has no slot by right."""
        row = self._rows[class_id]
        if not self.may_dirty(class_id):
            return True
        search = _Search(class_id, row, True)
        if self._at_cap(class_id):
            return row.allocate is not Allocate.ALWAYS \
                or not self._stats[class_id].resident \
                or not self._can_give(search, class_id)
        if self._free:
            return False
        return row.allocate is Allocate.ROOM \
            or self._giver(search) is None

    def _miss_staged(self, class_id: int) -> Optional[Verdict]:
        """A slot of the stage, whatever the class; None if there is none."""
        if not self.stage_room():
            return None
        if self._free:
            return Verdict(Kind.FREE, class_id, slot=next(iter(self._free)),
                           staged=True)
        search = _Search(class_id, self._rows[class_id], True)
        if self._mode is Mode.LRU:
            giver = self._giver(search)
        else:
            giver = next((account.class_ids[0] for account in self._ranked
                          if account.used and self._can_give(
                              search, account.class_ids[0])), None)
        if giver is None:
            return None
        return self._give(search, giver, cap=False)._replace(
            want_clean=False, staged=True)

    def miss(self, class_id: int, sequential: bool = False,
             dirty: bool = False) -> Verdict:
        """See :meth:`ChunkStrategy.miss`."""
        row = self._rows[class_id]
        search = _Search(class_id, row, dirty)
        self._stats[class_id].misses += 1
        reason = _stays_out(row, sequential)
        if reason is None and dirty and self._stage \
                and self._passes(class_id):
            staged = self._miss_staged(class_id)
            if staged:
                return staged
        if reason is None and dirty and not self.may_dirty(class_id):
            reason = Bypass.DIRTY_CAP
        if reason is not None:
            return self._bypass(search, reason)
        if self._at_cap(class_id):
            return self._miss_at_cap(search, row)
        if self._free:
            return Verdict(Kind.FREE, class_id,
                           slot=next(iter(self._free)))
        if row.allocate is Allocate.ROOM:
            return self._bypass(search, Bypass.ROOM)
        giver = self._giver(search)
        if giver is not None:
            return self._give(search, giver, cap=False)
        return self._bypass(
            search, Bypass.HELD if search.held else Bypass.RANK)

    def _miss_at_cap(self, search: _Search, row: ChunkRow) -> Verdict:
        class_id = search.newcomer
        if row.allocate is Allocate.ALWAYS \
                and self._stats[class_id].resident \
                and self._can_give(search, class_id):
            return self._give(search, class_id, cap=True)
        return self._bypass(search, Bypass.CAP)

    def _bypass(self, search: _Search, reason: Bypass) -> Verdict:
        """Dirt in the way comes before the other reasons."""
        slot, dirty = None, search.dirty_class is not None
        if search.dirty_class is not None:
            reason = Bypass.DIRTY
            slot = self._dirty[search.dirty_class].oldest()
        self._stats[search.newcomer].bypass[reason] += 1
        return Verdict(Kind.BYPASS, search.newcomer, reason, slot,
                       want_clean=dirty)

    def _give(self, search: _Search, list_class: int, cap: bool) -> Verdict:
        slot = self._first_out(list_class)
        chunk = self._used[slot]
        if cap:
            reason = Evict.CAP
        elif chunk.class_id == search.newcomer:
            reason = Evict.OWN
        elif _rank_here(self._rows[chunk.class_id]) < search.rank:
            reason = Evict.ABOVE
        else:
            reason = Evict.PEER
        return Verdict(Kind.VICTIM, search.newcomer, reason, slot,
                       chunk.oblock, chunk.class_id,
                       search.dirty_class is not None)

    def _first_out(self, list_class: int) -> int:
        line = self._clean[list_class]
        if self._is_sieved(list_class):
            return line.sieve(self._marked)
        return next(iter(line))

    def _giver(self, search: _Search) -> Optional[int]:
        if self._mode is Mode.LRU:
            if self._clean[UNCLASSIFIED]:
                return UNCLASSIFIED
            search.dirty_class = UNCLASSIFIED
            return None
        own = self._shares[search.newcomer]
        above = bool(self._rows[search.newcomer].flags & Flag.DIRECT_SSD)
        there = [account for account in self._ranked if account.used]

        def may(account: Account) -> bool:
            return self._can_give(search, account.class_ids[0])

        if self._mode is Mode.STRICT:
            own = Account((), search.rank, 0, 0)
            giver = strict_giver(there, own, may, above)
        else:
            giver = weighted_giver(there, own, 1, may, above)
        return giver.class_ids[0] if giver else None

    def _can_give(self, search: _Search, class_id: int) -> bool:
        share = self._shares[class_id]
        if self._rows[class_id].flags & Flag.PIN or (
                class_id != search.newcomer and share.used <= share.floor):
            search.held = True
            return False
        if not self._clean[class_id]:
            if search.dirty_class is None:
                search.dirty_class = class_id
            return False
        return True

    def take(self, verdict: Verdict, oblock: int) -> int:
        """See :meth:`ChunkStrategy.take`."""
        slot = verdict.slot
        if slot is None or verdict.kind is Kind.BYPASS:
            raise BrokenContract('a bypass is not taken')
        if oblock in self._where or not 0 <= oblock < OBLOCKS_MAX:
            raise BrokenContract('chunk %d is there or cannot be' % oblock)
        if verdict.kind is Kind.VICTIM:
            chunk = self._entry(slot)
            if chunk.busy or chunk.dirty or chunk.oblock != verdict.victim:
                raise BrokenContract('slot %d is no victim now' % slot)
            self._forget(slot, chunk, Evict(verdict.reason))
        chunk = self._occupy(slot, oblock, verdict.class_id)
        chunk.busy = _TAKEN
        chunk.staged = verdict.staged
        stats = self._stats[verdict.class_id]
        stats.busy += 1
        stats.takes += 1
        return slot

    def decline(self, verdict: Verdict) -> None:
        """See :meth:`ChunkStrategy.decline`."""
        if verdict.kind is Kind.BYPASS:
            raise BrokenContract('a bypass is not declined')
        self._stats[verdict.class_id].bypass[Bypass.DECLINED] += 1
        if verdict.slot is not None and verdict.kind is Kind.VICTIM \
                and self._is_sieved(verdict.victim_class):
            self._marked.add(verdict.slot)

    def commit(self, slot: int, dirty: bool = False) -> None:
        """See :meth:`ChunkStrategy.commit`."""
        chunk = self._end_busy(slot, _TAKEN)
        if dirty and not chunk.dirty:
            self._mark_dirty(chunk, True)
        self._join(slot, chunk)

    def abort(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.abort`."""
        if self._entry(slot).dirty:
            raise BrokenContract('slot %d is dirty' % slot)
        chunk = self._end_busy(slot, _TAKEN)
        self._stats[chunk.class_id].bypass[Bypass.FAILED] += 1
        self._vacate(slot, chunk)

    # States of a slot

    def slot_state(self, slot: int) -> Optional[SlotState]:
        """See :meth:`ChunkStrategy.slot_state`."""
        chunk = self._used.get(slot)
        if chunk is None:
            return None
        state = State.USED
        for bit, there in ((State.DIRTY, chunk.dirty),
                           (State.BUSY, chunk.busy),
                           (State.AGAIN, chunk.again),
                           (State.STAGED, chunk.staged)):
            if there:
                state |= bit
        return SlotState(state, chunk.oblock, chunk.class_id)

    def set_dirty(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.set_dirty`."""
        chunk = self._entry(slot)
        if chunk.dirty:
            chunk.again = chunk.again or chunk.busy is _PULLED
            return
        self._leave(slot, chunk)
        self._mark_dirty(chunk, True)
        self._join(slot, chunk)

    def stage(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.stage`."""
        chunk = self._entry(slot)
        if not chunk.dirty:
            chunk.staged = True

    def set_clean(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.set_clean`."""
        chunk = self._entry(slot)
        if not chunk.dirty or chunk.busy:
            raise BrokenContract('slot %d is busy or clean' % slot)
        self._leave(slot, chunk)
        self._mark_dirty(chunk, False)
        self._join(slot, chunk)

    def hold(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.hold`."""
        self._make_busy(slot, _HELD)

    def let_go(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.let_go`."""
        self._join(slot, self._end_busy(slot, _HELD))

    def evict(self, slot: int, reason: Evict) -> None:
        """See :meth:`ChunkStrategy.evict`."""
        chunk = self._entry(slot)
        if chunk.dirty and reason is not Evict.DISCARD:
            raise BrokenContract('slot %d is dirty' % slot)
        self._forget(slot, chunk, reason)

    def reclass(self, slot: int, class_id: int) -> None:
        """See :meth:`ChunkStrategy.reclass`."""
        chunk = self._entry(slot)
        self._leave(slot, chunk)
        self._move(chunk, class_id)
        self._join(slot, chunk)

    def age(self, slot: int) -> None:
        """See :meth:`ChunkStrategy.age`."""
        chunk = self._entry(slot)
        if chunk.busy:
            raise BrokenContract('slot %d is busy' % slot)
        self._leave(slot, chunk)
        self._join(slot, chunk, oldest=True)

    # Work that is pulled

    def cleaning_goal(self) -> int:
        """See :meth:`ChunkStrategy.cleaning_goal`."""
        goal = self._marks_goal()
        self._unclean.clear()
        dirty = 0
        for account in self._ranked if self._stage else ():
            if dirty >= goal:
                break
            class_id = account.class_ids[0]
            dirty += self._stats[class_id].dirty
            self._unclean.add(class_id)
        return max(goal, self._stage_goal())

    def _stage_goal(self) -> int:
        if self._stage_dirty > self._stage // 2:
            self._staging = True
        if not self._stage_dirty:
            self._staging = False
        return self._stage_dirty if self._staging else 0

    def wants_clean(self, slot: int) -> bool:
        """See :meth:`ChunkStrategy.wants_clean`."""
        chunk = self._entry(slot)
        if not chunk.dirty or chunk.busy:
            return False
        if self._mode is Mode.LRU and self._unclean:
            return True
        return chunk.staged or chunk.class_id in self._unclean

    def _marks_goal(self) -> int:
        waiting = self._dirty_slots - self._pulled
        high, low = (self._share(mark) for mark in self._marks)
        if waiting > high:
            self._cleaning = True
        if waiting <= low:
            self._cleaning = False
        return waiting - low if self._cleaning else 0

    def pull_dirty(self, most: int) -> List[int]:
        """See :meth:`ChunkStrategy.pull_dirty`."""
        slots = list(islice(
            (slot for account in self._ranked
             for slot in self._dirty[account.class_ids[0]]), most))
        for slot in slots:
            self._make_busy(slot, _PULLED)
        self._pulled += len(slots)
        return slots

    def pull_beside(self, oblock: int) -> Optional[int]:
        """See :meth:`ChunkStrategy.pull_beside`."""
        slot = self._where.get(oblock)
        if slot is None or not self._used[slot].dirty \
                or self._used[slot].busy:
            return None
        self._make_busy(slot, _PULLED)
        self._pulled += 1
        return slot

    def cleaned(self, slot: int, written: bool = True) -> bool:
        """See :meth:`ChunkStrategy.cleaned`."""
        again = self._entry(slot).again
        chunk = self._end_busy(slot, _PULLED)
        self._pulled -= 1
        chunk.again = False
        clean = written and not again
        staged = chunk.staged
        if clean:
            self._mark_dirty(chunk, False)
            self._stats[chunk.class_id].cleaned += 1
        self._join(slot, chunk, oldest=clean and staged)
        return clean

    def reclaim(self) -> Optional[int]:
        """See :meth:`ChunkStrategy.reclaim`."""
        if self._mode is Mode.LRU:
            return None
        for account in self._ranked:
            class_id = account.class_ids[0]
            if account.used > account.cap and self._clean[class_id] \
                    and not self._rows[class_id].flags & Flag.PIN:
                return self._first_out(class_id)
        return None

    # Restart, and looking inside

    def load(self, slot: int, oblock: int, class_id: int,
             dirty: bool) -> None:
        """See :meth:`ChunkStrategy.load`."""
        if not (0 <= slot < self._limit and 0 <= oblock < OBLOCKS_MAX
                and 0 <= class_id < CLASSES):
            raise Refused(errno.ERANGE, 'slot %d, chunk %d or class %d is '
                          'out of range' % (slot, oblock, class_id))
        if slot in self._used:
            raise Refused(errno.EBUSY, 'slot %d is in use' % slot)
        if oblock in self._where:
            raise Refused(errno.EEXIST, 'chunk %d is there already'
                          % oblock)
        chunk = self._occupy(slot, oblock, class_id)
        if dirty:
            self._mark_dirty(chunk, True)
        self._join(slot, chunk)

    def in_order(self, class_id: int, dirty: bool) -> List[int]:
        """See :meth:`ChunkStrategy.in_order`."""
        return list((self._dirty if dirty else self._clean)[class_id])

    def to_come(self, class_id: int, dirty: bool) -> List[int]:
        """See :meth:`ChunkStrategy.to_come`."""
        if dirty or not self._is_sieved(class_id):
            return self.in_order(class_id, dirty)
        return self._clean[class_id].to_come(self._marked)

    def stats(self, class_id: int) -> ChunkStats:
        """See :meth:`ChunkStrategy.stats`."""
        counts = self._stats[class_id]
        return ChunkStats(**dict(vars(counts), bypass=list(counts.bypass),
                                 evicted=list(counts.evicted)))

    def free_slots(self) -> int:
        """See :meth:`ChunkStrategy.free_slots`."""
        return len(self._free)

    def dirty_slots(self) -> int:
        """See :meth:`ChunkStrategy.dirty_slots`."""
        return self._dirty_slots

    # Slots and lists

    def _entry(self, slot: int) -> _Slot:
        try:
            return self._used[slot]
        except KeyError:
            raise BrokenContract('slot %d is free' % slot) from None

    def _at_cap(self, class_id: int) -> bool:
        return self._mode is not Mode.LRU and \
            self._shares[class_id].used >= self._shares[class_id].cap

    def _line(self, chunk: _Slot) -> Line:
        class_id = UNCLASSIFIED if self._mode is Mode.LRU \
            else chunk.class_id
        return (self._dirty if chunk.dirty else self._clean)[class_id]

    def _leave(self, slot: int, chunk: _Slot) -> None:
        if chunk.busy is None:
            self._line(chunk).remove(slot)

    def _join(self, slot: int, chunk: _Slot, oldest: bool = False) -> None:
        if chunk.busy is not None:
            return
        if oldest:
            self._marked.discard(slot)
            self._line(chunk).add_oldest(slot)
        else:
            self._line(chunk).add_youngest(slot)

    def _mark_dirty(self, chunk: _Slot, dirty: bool) -> None:
        change = 1 if dirty else -1
        chunk.dirty = dirty
        if dirty and self._mode is not Mode.LRU \
                and self._rows[chunk.class_id].flags & Flag.PASSING:
            chunk.staged = True
        self._dirty_slots += change
        self._stats[chunk.class_id].dirty += change
        if chunk.staged:
            self._stage_dirty += change
            chunk.staged = dirty

    def _make_busy(self, slot: int, why: str) -> None:
        chunk = self._entry(slot)
        if chunk.busy:
            raise BrokenContract('slot %d is busy' % slot)
        self._leave(slot, chunk)
        chunk.busy = why
        self._stats[chunk.class_id].busy += 1

    def _end_busy(self, slot: int, why: str) -> _Slot:
        chunk = self._entry(slot)
        if chunk.busy != why:
            raise BrokenContract('slot %d is not %s' % (slot, why))
        chunk.busy = None
        self._stats[chunk.class_id].busy -= 1
        return chunk

    def _occupy(self, slot: int, oblock: int, class_id: int) -> _Slot:
        chunk = _Slot(oblock, class_id)
        if slot in self._used:
            raise BrokenContract('slot %d is in use' % slot)
        self._free.pop(slot, None)
        self._used[slot] = chunk
        self._where[oblock] = slot
        self._stats[class_id].resident += 1
        return chunk

    def _vacate(self, slot: int, chunk: _Slot) -> None:
        del self._used[slot], self._where[chunk.oblock]
        self._marked.discard(slot)
        self._stats[chunk.class_id].resident -= 1
        if slot < self._limit:
            self._free[slot] = None
            self._free.move_to_end(slot, last=False)

    def _forget(self, slot: int, chunk: _Slot, reason: Evict) -> None:
        if chunk.busy:
            self._end_busy(slot, _HELD)
        else:
            self._leave(slot, chunk)
        if chunk.dirty:
            self._mark_dirty(chunk, False)
        self._vacate(slot, chunk)
        self._stats[chunk.class_id].evicted[reason] += 1

    def _move(self, chunk: _Slot, class_id: int) -> None:
        if class_id == chunk.class_id:
            return
        source, target = self._stats[chunk.class_id], self._stats[class_id]
        for name, change in (('resident', 1), ('dirty', int(chunk.dirty)),
                             ('busy', int(chunk.busy is not None))):
            setattr(source, name, getattr(source, name) - change)
            setattr(target, name, getattr(target, name) + change)
        target.reclassed += 1
        chunk.class_id = class_id


def _rank_here(row: ChunkRow) -> int:
    """What chunks of a class rank as; those that pass through below all."""
    return -1 if row.flags & Flag.PASSING else row.rank


def _stays_out(row: ChunkRow, sequential: bool) -> Optional[Bypass]:
    """Whether a class keeps away from the SSD by itself, and why."""
    if row.flags & Flag.DIRECT_HDD:
        return Bypass.DIRECT
    if row.flags & Flag.NO_ALLOCATE or row.allocate is Allocate.NEVER:
        return Bypass.NEVER
    if sequential and not row.flags & Flag.DIRECT_SSD:
        return Bypass.SEQUENTIAL
    return None
