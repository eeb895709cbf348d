"""One strategy, several enforcers: the same trace through each.

A :class:`Scenario` is a class table and a mode; :func:`replay` puts a
trace through anything with the verbs of
:class:`~support.chunk_oracle.verbs.ChunkStrategy` and
:func:`count` reads its counters, in the form of the golden file.
"""

from __future__ import annotations

import hashlib
import time
from array import array
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterable, List, Tuple

from support.chunk_oracle.chunk_traces import ChunkTrace
from support.chunk_oracle.core_library import ChunkLibrary
from support.chunk_oracle.verbs import ChunkStrategy, Kind, State
from swift_dss.strategy.eviction.chunks import (
    PARTS, Bypass, ChunkRow, Evict, Inner, Mode)

#: A chunk has at least this many sectors; for runs.
CHUNK_SECTORS = 8
#: Requests between two looks of the cleaner.
_CLEAN_EVERY = 64
#: The code of a hit in the row of decisions.
_HIT = 255

Rows = Dict[int, ChunkRow]


@dataclass(frozen=True)
class Scenario:
    """How a trace's classes are treated.

    :param change: from the trace's ranked rows to the ones to load
    :param write_back: writes make chunks dirty, and a cleaner that needs
        no time keeps them between the watermarks
    :param stage_parts: of the slots, that writes of any class may use
    """

    name: str
    mode: Mode = Mode.STRICT
    change: Callable[[Rows], Rows] = dict
    write_back: bool = False
    stage_parts: int = 0


def _by_rank(rows: Rows) -> List[int]:
    return sorted(rows, key=lambda class_id: rows[class_id].rank)


def _weighted(rows: Rows) -> Rows:
    """Each class twice the weight of the one below."""
    return {class_id: replace(rows[class_id], weight=1 << place)
            for place, class_id in enumerate(_by_rank(rows))}


def _shares(rows: Rows) -> Rows:
    """A floor for the lowest class, a cap for the next one."""
    lowest, second = _by_rank(rows)[:2]
    return {
        **rows,
        lowest: replace(rows[lowest], floor_parts=PARTS // 20),
        second: replace(rows[second], cap_parts=PARTS // 2)}


def _cutoff(rows: Rows) -> Rows:
    """Runs of the lowest class stay on the origin."""
    lowest = _by_rank(rows)[0]
    return {**rows, lowest: replace(
        rows[lowest], cutoff_sectors=32 * CHUNK_SECTORS)}


def _dirty_caps(rows: Rows) -> Rows:
    """The highest class may dirty everything, each below it a sixteenth
    of that."""
    return {class_id: replace(rows[class_id],
                              dirty_cap_parts=PARTS >> 4 * place)
            for place, class_id in enumerate(reversed(_by_rank(rows)))}


def _sieved(rows: Rows) -> Rows:
    """SIEVE inside each class."""
    return {class_id: replace(row, inner=Inner.SIEVE)
            for class_id, row in rows.items()}


SCENARIOS = {scenario.name: scenario for scenario in (
    Scenario('strict'),
    Scenario('lru', Mode.LRU),
    Scenario('weighted', Mode.WEIGHTED, _weighted),
    Scenario('shares', change=_shares),
    Scenario('cutoff', change=_cutoff),
    Scenario('write back', write_back=True),
    Scenario('dirty caps', change=_dirty_caps, write_back=True),
    Scenario('stage', change=_dirty_caps, write_back=True,
             stage_parts=PARTS // 10),
    Scenario('sieve', change=_sieved),
    Scenario('sieve back', change=_sieved, write_back=True))}


@dataclass(frozen=True)
class Outcome:
    """The result of an enforcer with a trace.

    :param counts: class -> counter -> count; see :func:`count`
    :param seconds: of processor time
    :param decisions: digest of every single decision; empty from an
        enforcer that shows only counters
    """

    counts: Dict[str, Dict[str, int]]
    decisions: str = ''
    seconds: float = 0.0

    def hit_ratio(self) -> float:
        """Of all requests."""
        hits, misses = (sum(
            counter.get(name, 0) for counter in self.counts.values())
            for name in ('hits', 'misses'))
        return hits / max(1, hits + misses)


class _Player:
    """Requests into one cache, and a note of each decision."""

    def __init__(self, cache: ChunkStrategy, write_back: bool) -> None:
        self.cache = cache
        self.write_back = write_back
        self.kinds = bytearray()
        self.victims = array('Q')

    def request(self, class_id: int, oblock: int, write: bool,
                sequential: bool) -> None:
        """A hit is touched; a miss that comes in is filled at once."""
        slot = self.cache.lookup(oblock)
        if slot is not None:
            self.kinds.append(_HIT)
            self._hit(slot, class_id, write)
            return
        verdict = self.cache.miss(class_id, sequential,
                                  write and self.write_back)
        self.kinds.append(verdict.kind << 4 | verdict.reason)
        if verdict.kind is not Kind.BYPASS:
            if verdict.victim is not None:
                self.victims.append(verdict.victim)
            self.cache.commit(self.cache.take(verdict, oblock),
                              write and self.write_back)

    def _hit(self, slot: int, class_id: int, write: bool) -> None:
        give_up = self.cache.touch(slot, class_id, write)
        if write and self.write_back:
            if self._may_dirty(slot, class_id):
                self.cache.set_dirty(slot)
            elif self.cache.stage_room():
                self.cache.stage(slot)
                self.cache.set_dirty(slot)
        if give_up:
            slot_state = self.cache.slot_state(slot)
            if slot_state and not slot_state.state & State.DIRTY:
                self.cache.evict(slot, Evict.HIT)

    def _may_dirty(self, slot: int, class_id: int) -> bool:
        """True if a write may stay dirty; otherwise write it through."""
        slot_state = self.cache.slot_state(slot)
        return bool(slot_state and slot_state.state & State.DIRTY) \
            or self.cache.may_dirty(class_id)

    def clean(self) -> None:
        """Clean as a cleaner that needs no time."""
        for slot in self.cache.pull_dirty(self.cache.cleaning_goal()):
            self.cache.cleaned(slot)


def replay(cache: ChunkStrategy, trace: ChunkTrace,
           scenario: Scenario) -> Outcome:
    """Put all of ``trace`` through a cache that was not used before."""
    runs = _has_runs(_prepare(cache, trace, scenario))
    player = _Player(cache, scenario.write_back)
    began = time.process_time()
    for at, (class_id, oblock, write) in enumerate(trace, 1):
        sequential = runs and cache.run(
            class_id, oblock * CHUNK_SECTORS, CHUNK_SECTORS)
        player.request(class_id, oblock, bool(write), sequential)
        if scenario.write_back and at % _CLEAN_EVERY == 0:
            player.clean()
    seconds = time.process_time() - began
    return Outcome(count(cache, trace),
                   _digest(bytes(player.kinds), player.victims), seconds)


def replay_in_c(cache: ChunkLibrary, trace: ChunkTrace,
                scenario: Scenario) -> Outcome:
    """The same, wholly in the library: the cost of a decision there."""
    rows = _prepare(cache, trace, scenario)
    began = time.process_time()
    kinds, victims = cache.replay(
        trace.class_ids, trace.oblocks, trace.writes,
        scenario.write_back,
        CHUNK_SECTORS if _has_runs(rows) else 0)
    seconds = time.process_time() - began
    return Outcome(count(cache, trace), _digest(kinds, victims), seconds)


def _prepare(cache: ChunkStrategy, trace: ChunkTrace,
             scenario: Scenario) -> Rows:
    cache.set_mode(scenario.mode)
    cache.set_stage(scenario.stage_parts)
    rows = scenario.change(trace.rows)
    cache.set_table(rows)
    return rows


def _has_runs(rows: Rows) -> bool:
    return any(row.cutoff_sectors for row in rows.values())


def _digest(kinds: bytes, victims: Iterable[int]) -> str:
    return hashlib.sha256(kinds + b''.join(
        victim.to_bytes(8, 'big') for victim in victims)).hexdigest()


def count(cache: Any, trace: ChunkTrace) -> Dict[str, Dict[str, int]]:
    """Counters that are not 0, by class; of the answer to ``stats``."""
    counts = {}
    for class_id in sorted(trace.rows):
        stats = cache.stats(class_id)
        named: List[Tuple[str, int]] = [
            ('hits', stats.read_hits + stats.write_hits),
            ('misses', stats.misses), ('takes', stats.takes),
            ('resident', stats.resident), ('dirty', stats.dirty)]
        named += [('bypass ' + reason.name.lower(), stats.bypass[reason])
                  for reason in Bypass]
        named += [('evicted ' + reason.name.lower(), stats.evicted[reason])
                  for reason in Evict]
        counts[str(class_id)] = {name: number for name, number in named
                                 if number}
    return counts
