"""Two chunk caches that are asked the same and must answer the same.

:class:`Pair` asks a reference and another; :class:`Driver` turns a row of
numbers into calls that keep to the contract, so that Hypothesis or a
seeded generator can write the row. ``python test/chunk_pair.py LIBRARY
[SEEDS]`` holds a library against the reference: exit status 3 and the call
where they differ.
"""

import random
import sys

from support.chunk_oracle import chunk_traces, enforcers
from support.chunk_oracle.core_library import ChunkLibrary, load
from support.chunk_oracle.ordered import ChunkOrdered
from support.chunk_oracle.verbs import Kind, Refused, State

from swift_dss.core.classes import Allocate
from swift_dss.strategy.eviction.chunks import (
    CLASSES, PARTS, ChunkRow, Evict, Flag, Inner, Mode)

#: Few enough classes to meet each other; 7 and 31 have no row.
CLASS_IDS = (0, 1, 2, 3, 4, 7, 31)
SHARES = (0, 0, 0, PARTS // 10, PARTS // 4, PARTS // 2)
CAPS = (PARTS, PARTS, PARTS, PARTS // 2, PARTS // 3, PARTS // 20, 0)
FLAGS = (Flag.NONE,) * 12 + tuple(
    flag for flag in Flag if flag is not Flag.NONE) + (
        Flag.EVICT_ON_HIT | Flag.NO_ALLOCATE,) + (Flag.PASSING,) * 3


class Different(AssertionError):
    """The two do not agree."""


class Pair:
    """Asks both; the answer, or the refusal, is one or there is an error."""

    def __init__(self, reference, other):
        self.both = (reference, other)
        self.calls = []

    def __getattr__(self, name):
        def ask(*arguments):
            self.calls.append((name, arguments))
            first, second = (self._ask(member, name, arguments)
                             for member in self.both)
            if first != second:
                raise Different('%s%r: %r is not %r' % (
                    name, arguments, first, second))
            refused, answer = first
            if refused:
                raise Refused(refused, 'both')
            return answer
        return ask

    @staticmethod
    def _ask(member, name, arguments):
        try:
            return 0, getattr(member, name)(*arguments)
        except Refused as err:
            return err.number, None

    def compare(self):
        """All that can be seen of them."""
        for class_id in CLASS_IDS:
            self.stats(class_id)
            self.in_order(class_id, False)
            self.in_order(class_id, True)
            self.to_come(class_id, False)
        self.free_slots()
        self.dirty_slots()
        self.has_stage()
        self.stage_room()
        self.reclaim()


class Driver:
    """Calls that keep to the contract, written by ``number(below)``."""

    def __init__(self, pair, number, slots):
        self.pair = pair
        self.number = number
        self.slots = slots
        self.limit = slots
        self.taken, self.pulled, self.held = [], [], []
        self.sector = 0

    def pick(self, choices):
        return choices[self.number(len(choices))]

    def row(self):
        """A row of the class table; now and then not a sound one."""
        floor = self.pick(SHARES)
        cap = self.pick(CAPS)
        return ChunkRow(
            rank=self.number(4), floor_parts=floor,
            cap_parts=cap if self.number(20) == 0 else max(floor, cap),
            weight=self.number(5) + (self.number(20) > 0),
            cutoff_sectors=self.pick((0, 0, 16, 64)),
            allocate=self.pick((Allocate.ALWAYS,) * 6 + tuple(Allocate)),
            flags=self.pick(FLAGS),
            dirty_cap_parts=self.pick(CAPS)
            if self.number(40) else PARTS + 1,
            inner=self.pick(tuple(Inner)))

    def table(self):
        rows = {class_id: self.row() for class_id in CLASS_IDS[:5]
                if self.number(6)}
        try:
            self.pair.set_table(rows)
        except Refused:
            sound = {class_id: row for class_id, row in rows.items()
                     if not row.fault()}
            self.pair.set_table(sound)

    def mode(self):
        try:
            self.pair.set_mode(self.pick(tuple(Mode)))
        except Refused:
            pass

    def watermarks(self):
        try:
            self.pair.set_watermarks(self.pick(CAPS), self.pick(SHARES))
        except Refused:
            pass

    def stage(self):
        try:
            self.pair.set_stage(self.pick(SHARES + (PARTS, PARTS + 1)))
        except Refused:
            pass

    def chunk(self):
        return self.number(self.slots * 3)

    def request(self):
        """What an I/O does, with all of its ends."""
        oblock, class_id = self.chunk(), self.pick(CLASS_IDS)
        write = self.number(3) == 0
        if self.number(3):
            self.sector = oblock * 8
        sequential = self.pair.run(class_id, self.sector, 8)
        self.sector += 8
        slot = self.pair.lookup(oblock)
        if slot is not None:
            return self.hit(slot, class_id, write)
        back = write and self.number(4) > 0
        if write:
            self.pair.must_wait(class_id, sequential, back)
        verdict = self.pair.miss(class_id, sequential, back)
        if verdict.kind is Kind.BYPASS:
            return None
        if self.number(12) == 0:
            return self.pair.decline(verdict)
        slot = self.pair.take(verdict, oblock)
        if self.number(8) == 0:
            return self.taken.append(slot)
        return self.filled(slot, back)

    def hit(self, slot, class_id, write):
        state = self.pair.slot_state(slot).state
        give_up = self.pair.touch(slot, class_id, write)
        if write and self.number(4) and (
                state & State.DIRTY or self.pair.may_dirty(class_id)):
            self.pair.set_dirty(slot)
        elif write and self.pair.stage_room() and self.number(4):
            self.pair.stage(slot)
            self.pair.set_dirty(slot)
        elif give_up and not state & State.DIRTY:
            self.pair.evict(slot, Evict.HIT)

    def filled(self, slot, write):
        dirty = self.pair.slot_state(slot).state & State.DIRTY
        if not dirty and self.number(8) == 0:
            return self.pair.abort(slot)
        return self.pair.commit(slot, write and self.number(2) == 1)

    def fill(self):
        if self.taken:
            self.filled(self.taken.pop(self.number(len(self.taken))),
                        self.number(2) == 1)

    def clean(self):
        goal = self.pair.cleaning_goal()
        for slot in range(self.slots):
            if self.pair.slot_state(slot):
                self.pair.wants_clean(slot)
        self.pulled += self.pair.pull_dirty(
            min(goal, 4) if self.number(2) else self.number(4))
        beside = self.pair.pull_beside(self.chunk())
        if beside is not None:
            self.pulled.append(beside)

    def cleaned(self):
        if self.pulled:
            self.pair.cleaned(
                self.pulled.pop(self.number(len(self.pulled))),
                self.number(5) > 0)

    def idle(self):
        """An idle slot, or None."""
        start = self.number(self.slots)
        for turn in range(self.slots):
            slot = (start + turn) % self.slots
            slot_state = self.pair.slot_state(slot)
            if slot_state and not slot_state.state & State.BUSY:
                return slot, slot_state
        return None, None

    def hold(self):
        slot, _found = self.idle()
        if slot is not None:
            self.pair.hold(slot)
            self.held.append(slot)

    def let_go(self):
        if self.held:
            slot = self.held.pop(self.number(len(self.held)))
            if self.number(3) == 0:
                self.pair.evict(slot, Evict.DISCARD)
            else:
                self.pair.let_go(slot)

    def leave(self):
        slot, slot_state = self.idle()
        if slot is None:
            return
        if not slot_state.state & State.DIRTY:
            self.pair.evict(slot, Evict.DEMOTE)
        elif self.number(2):
            self.pair.set_clean(slot)
        else:
            self.pair.evict(slot, Evict.DISCARD)

    def other(self):
        slot, _found = self.idle()
        if slot is not None and self.number(2):
            self.pair.age(slot)
        elif slot is not None:
            self.pair.reclass(slot, self.pick(CLASS_IDS))

    def reclaim(self):
        slot = self.pair.reclaim()
        if slot is not None:
            self.pair.evict(slot, Evict.CAP)

    def shrink(self):
        """To a limit, and to that size once nothing is above it."""
        if self.number(3) == 0:
            try:
                self.pair.set_limit(self.number(self.slots + 2))
            except Refused:
                pass
        slot = self.pair.over_limit()
        if slot is not None:
            slot_state = self.pair.slot_state(slot)
            if not slot_state.state & (State.DIRTY | State.BUSY):
                self.pair.evict(slot, Evict.SHRINK)

    def resize(self):
        slots = self.number(self.slots * 2) + self.number(3)
        try:
            self.pair.resize(slots)
        except Refused:
            return
        self.slots = slots

    def load(self):
        try:
            self.pair.load(self.number(self.slots + 2), self.chunk(),
                           self.number(CLASSES + 1), self.number(2) == 1)
        except Refused:
            pass

    def step(self):
        """One of the above; requests most of the time."""
        turn = self.number(64)
        rare = (self.table, self.mode, self.watermarks, self.fill,
                self.clean, self.clean, self.cleaned, self.cleaned,
                self.cleaned, self.hold, self.let_go, self.let_go,
                self.leave, self.other, self.reclaim, self.shrink,
                self.resize, self.load, self.fill, self.stage)
        (rare[turn] if turn < len(rare) else self.request)()


def from_row(row):
    """``number()`` out of a finite row; zeros behind its end."""
    left = iter(row)
    return lambda below: next(left, 0) % below


def seeded(seed):
    return random.Random(seed).randrange


def drive(pair, number, slots, steps):
    """A class table, then ``steps`` calls, compared as they go."""
    driver = Driver(pair, number, slots)
    driver.table()
    driver.mode()
    for _ in range(steps):
        driver.step()
        pair.compare()
    return driver


def drive_seed(seed, library, steps=60):
    """One seeded row against the reference; the pair, for its counters."""
    number = seeded(seed)
    slots = 1 + number(12)
    pair = Pair(ChunkOrdered(slots), ChunkLibrary(slots, library))
    try:
        drive(pair, number, slots, steps)
        damage = pair.both[1].check()
        if damage:
            raise Different('dss_check.c:%d' % damage)
    except Different as err:
        raise Different('seed %d, call %d: %s' % (
            seed, len(pair.calls), err)) from None
    return pair


def replay_both(library, requests=3000, slots=128):
    """A short trace in the library's own loop and call by call."""
    trace = chunk_traces.generated(requests)
    trace.slots = slots
    for scenario in enforcers.SCENARIOS.values():
        outcomes = [
            enforcers.replay(ChunkOrdered(slots), trace, scenario),
            enforcers.replay_in_c(ChunkLibrary(slots, library), trace,
                                  scenario)]
        if len({outcome.decisions for outcome in outcomes}) > 1:
            raise Different('replay, %s' % scenario.name)


def main(path, seeds='150'):
    library = load(path)
    try:
        for seed in range(int(seeds)):
            drive_seed(seed, library)
        replay_both(library)
    except Different as err:
        print(err)
        return 3
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
