"""The reference and the kernel's core decide the same, call by call."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.chunk_oracle import core_library
from support.chunk_oracle.core_library import ChunkLibrary, load
from support.chunk_oracle.ordered import ChunkOrdered
from support.chunk_oracle.verbs import SIEVE_LOOKS, Kind, State
from support.rigs import chunk_pair
from support.rigs.chunk_pair import (
    Different, Pair, drive, drive_seed, from_row)

from swift_dss.core.classes import Allocate
from swift_dss.strategy.eviction.chunks import (
    CLASSES, PARTS, Bypass, ChunkRow, Evict, Flag, Inner, Mode)

LIBRARY = load()
KINDS = {'reference': ChunkOrdered,
         'library': lambda slots: ChunkLibrary(slots, LIBRARY)}
EITHER = pytest.mark.parametrize('make', KINDS.values(), ids=list(KINDS))


@given(st.integers(1, 12),
       st.lists(st.integers(0, (1 << 16) - 1), max_size=600))
@settings(max_examples=150, deadline=None,
          suppress_health_check=[HealthCheck.too_slow])
def test_any_calls_get_the_same_answers(slots, row):
    library = ChunkLibrary(slots, LIBRARY)
    pair = Pair(ChunkOrdered(slots), library)
    drive(pair, from_row(row), slots, len(row) // 8)
    assert library.check() == 0


def test_seeded_calls_get_the_same_answers_and_reach_every_reason():
    bypass, evicted, verbs = set(), set(), set()
    for seed in range(1000, 1200):
        pair = drive_seed(seed, LIBRARY)
        verbs |= {name for name, _arguments in pair.calls}
        for class_id in chunk_pair.CLASS_IDS:
            stats = pair.both[0].stats(class_id)
            bypass |= {Bypass(at) for at, count in enumerate(stats.bypass)
                       if count}
            evicted |= {Evict(at) for at, count in
                        enumerate(stats.evicted) if count}
    assert bypass == set(Bypass)
    assert evicted == set(Evict) - {Evict.FAILED}
    assert verbs == {name for name in vars(core_library.ChunkStrategy)
                     if not name.startswith('_')}


#: File, what it says, and what a wrong twin says there.
TWINS = {
    'a dirty cap counts what ranks above, too': (
        'dss_dirty.c', '''		if (spec_of(core, other)->rank <= rank)
			dirty''', '''			dirty'''),
    'a floor is one too low': (
        'dss_verdict.c', 'resident <= row->floor', 'resident < row->floor'),
    'equal ranks displace nobody': (
        'dss_verdict.c', ') > search->rank', ') >= search->rank'),
    'a pin holds nothing': (
        'dss_verdict.c', 'row->spec.flags & DSS_PIN ||', ''),
    'a floor binds its own class': (
        'dss_verdict.c', '(class_id != search->newcomer &&\n\t     core',
        '(core'),
    'dirt is not told': (
        'dss_verdict.c', 'verdict->want_clean = search.dirty;', ''),
    'weights are ignored': (
        'dss_verdict.c', 'return more * other > slots * weight;',
        'return more > slots;'),
    'room evicts': (
        'dss_verdict.c', 'spec->allocate == DSS_ALLOCATE_ROOM) {',
        'false) {'),
    'a run is one request late': (
        'dss_run.c', '->sectors >= cutoff', '->sectors > cutoff'),
    'the youngest leaves': (
        'dss_verdict.c', 'return list->oldest;\n\tslot',
        'return list->youngest;\n\tslot'),
    'a hand leaves marks where they are': (
        'dss_verdict.c', 'bits &= ~BITS_MARKED', 'bits |= 0'),
    'a hand begins at the oldest each time': (
        'dss_verdict.c', 'list->hand = slot;', ''),
    'a hand stays behind a slot that leaves': (
        'dss_lists.h', 'list->hand = entry->younger;',
        'list->hand = entry->older;'),
    'a hit moves what is sieved': (
        'dss_core.c', '!(entry->bits & BITS_DIRTY) && is_sieved(core, home)',
        'false'),
    'what is to leave next keeps its mark': (
        'dss_lists.h', 'entry->bits &= ~BITS_MARKED;', ''),
    'who was declined is offered again': (
        'dss_verdict.c', 'is_sieved(core, verdict->victim_class)', 'false'),
    'what was used is numbered like what was not': (
        'dss_core.c', 'marked == !!(bits & BITS_MARKED)', '!marked'),
    'what nobody classified is in the order of a class': (
        'dss_table.c', 'spec.inner = DSS_INNER_SIEVE;', ';'),
    'one LRU is sieved': (
        'dss_core_impl.h', 'core->mode != DSS_MODE_LRU &&\n\t       spec',
        'spec'),
    'unclassified writeback takes the class away': (
        'dss_core.c', 'if (class_id != DSS_UNCLASSIFIED && class_id != entry',
        'if (class_id != entry'),
    'a hit passes a cap': (
        'dss_core.c', ' &&\n\t    !at_cap(core, class_id))', ')'),
    'what was dirtied again is clean': (
        'dss_dirty.c', 'written && !(entry->bits & BITS_AGAIN)', 'written'),
    'a hit is not remembered': (
        'dss_core.c', 'join_list(core, dss_from_slot(slot), give_up);',
        'join_list(core, dss_from_slot(slot), true);'),
    'what is clean is pulled': (
        'dss_dirty.c', '(BITS_DIRTY | BITS_BUSY)) != BITS_DIRTY)',
        'BITS_BUSY))'),
    'ranks are sorted the other way': (
        'dss_table.c', '- 1]) <= rank)', '- 1]) >= rank)'),
    'a share is rounded up': (
        'dss_table.c', 'core->limit >> 16)', 'core->limit + 0xffff >> 16)'),
    'the stage has a slot too many': (
        'dss_dirty.c', 'core->stage - core->nr_staged : 0',
        'core->stage + 1 - core->nr_staged : 0'),
    'the stage asks for rank': (
        'dss_verdict.c', '\t\tstage_giver(core, search);',
        '\t\tgivers[core->mode](core, search);'),
    'a staged chunk stays like any other': (
        'dss_dirty.c', 'clean && staged)', 'false)'),
    'the stage is never emptied': (
        'dss_table.c', 'if (!core->nr_staged)',
        'if (core->nr_staged <= core->stage / 2)'),
    'what passes through stays by the rank of its class': (
        'dss_core_impl.h', 'spec->flags & DSS_PASSING ? 0 :', ''),
    'what passes through comes below all': (
        'dss_core_impl.h', 'how & DSS_MISS_DIRTY ? 1', 'false ? 1'),
    'reads bring what passes through by its rank': (
        'dss_core_impl.h', 'how & DSS_MISS_DIRTY ? 1', 'true ? 1'),
    'what passes through is not cleaned with the stage': (
        'dss_lists.h', 'entry->bits |= BITS_STAGED;', ';'),
    'what passes through counts below all while it is dirty': (
        'dss_dirty.c', 'if (spec_of(core, other)->rank <= rank)',
        'if (rank_here(core, other) <= 1 + rank)'),
    'cleaning begins one slot early': (
        'dss_table.c', 'waiting > share', 'waiting >= share'),
}


def build_changed(tmp_path, name, before, after):
    """The library with one place changed."""
    for source in core_library.SOURCES + core_library.HEADERS:
        text = (core_library.SOURCE_DIR / source).read_text()
        if source == name:
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        (tmp_path / source).write_text(text)
    return core_library.build(('-O0', '-Wno-error'), tmp_path)


def hold_against_reference(path, *arguments):
    return subprocess.run(
        [sys.executable, chunk_pair.__file__, str(path), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
        cwd=str(pathlib.Path(__file__).parents[2]),
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))


@pytest.mark.twin
@pytest.mark.parametrize('twin', TWINS)
def test_a_core_that_is_wrong_in_one_place_is_found(
        twin, tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    path = build_changed(tmp_path, *TWINS[twin])
    done = hold_against_reference(path, '400')
    assert done.returncode == 3, done.stdout.decode()


def test_an_index_where_all_chunks_collide_decides_the_same(
        tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    path = build_changed(tmp_path, 'dss_lists.h', '0x9e3779b97f4a7c15ULL',
                         '0ULL')
    done = hold_against_reference(path)
    assert done.returncode == 0, done.stdout.decode()


def test_a_stream_clock_that_wraps_decides_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    path = build_changed(
        tmp_path, 'dss_life.c', 'core->seed = seed;',
        'core->seed = seed;\n\tcore->stream_clock = -20;')
    done = hold_against_reference(path)
    assert done.returncode == 0, done.stdout.decode()


def test_the_pair_sees_a_difference():
    pair = Pair(ChunkOrdered(2), ChunkLibrary(3, LIBRARY))
    with pytest.raises(Different, match='free_slots'):
        pair.free_slots()


# What each of them must keep, read from the header.


def ask(cache, oblock, class_id, write=False, dirty=False):
    """A whole request; 'hit', or what became of the miss."""
    slot = cache.lookup(oblock)
    if slot is not None:
        cache.touch(slot, class_id, write)
        return 'hit'
    verdict = cache.miss(class_id, False, dirty)
    if verdict.kind is Kind.BYPASS:
        return Bypass(verdict.reason)
    cache.commit(cache.take(verdict, oblock), dirty)
    return verdict.victim if verdict.kind is Kind.VICTIM else 'free'


def classes(**rows):
    """A table of ``c<id>=row``."""
    return {int(name[1:]): row for name, row in rows.items()}


LOW, HIGH = ChunkRow(rank=1), ChunkRow(rank=9)


@EITHER
def test_the_lowest_class_leaves_first_and_its_oldest_first(make):
    cache = make(4)
    cache.set_table(classes(c1=LOW, c2=HIGH))
    assert [ask(cache, n, 1 + n % 2) for n in range(4)] == ['free'] * 4
    ask(cache, 0, 1)
    assert ask(cache, 10, 2) == 2
    assert ask(cache, 11, 2) == 0
    assert ask(cache, 12, 1) is Bypass.RANK
    assert ask(cache, 13, 2) == 1
    assert cache.stats(2).evicted[Evict.OWN] == 1
    assert cache.stats(1).evicted[Evict.ABOVE] == 2


@EITHER
def test_a_floor_holds_against_others_and_not_against_itself(make):
    cache = make(4)
    cache.set_table(classes(
        c1=ChunkRow(rank=1, floor_parts=PARTS // 2), c2=HIGH))
    for oblock in range(4):
        ask(cache, oblock, 1)
    assert [ask(cache, 10 + n, 2) for n in range(3)] == [0, 1, 10]
    assert ask(cache, 20, 1) == 2
    assert cache.stats(1).resident == 2


@EITHER
def test_only_floors_in_the_way_are_held_and_only_ranks_are_rank(make):
    cache = make(2)
    cache.set_table(classes(c1=ChunkRow(rank=1, floor_parts=PARTS), c2=HIGH,
                            c3=ChunkRow(rank=0)))
    ask(cache, 0, 1)
    ask(cache, 1, 1)
    assert ask(cache, 2, 2) is Bypass.HELD
    assert ask(cache, 2, 3) is Bypass.RANK


@EITHER
def test_at_its_cap_a_class_evicts_itself_though_slots_are_free(make):
    cache = make(4)
    cache.set_table(classes(c1=ChunkRow(cap_parts=PARTS // 2)))
    assert [ask(cache, n, 1) for n in range(4)] == ['free', 'free', 0, 1]
    assert cache.free_slots() == 2
    assert cache.stats(1).evicted[Evict.CAP] == 2


@EITHER
def test_a_cap_that_was_lowered_is_reclaimed(make):
    cache = make(4)
    for oblock in range(4):
        ask(cache, oblock, 1)
    cache.set_table(classes(c1=ChunkRow(cap_parts=PARTS // 2)))
    gone = []
    while cache.reclaim() is not None:
        gone.append(cache.slot_state(cache.reclaim()).oblock)
        cache.evict(cache.reclaim(), Evict.CAP)
    assert gone == [0, 1]


@EITHER
def test_a_pinned_chunk_never_leaves_for_anybody(make):
    cache = make(1)
    cache.set_table(classes(c1=ChunkRow(flags=Flag.PIN), c2=HIGH))
    ask(cache, 0, 1)
    assert ask(cache, 1, 2) is Bypass.HELD
    assert ask(cache, 1, 1) is Bypass.HELD
    assert cache.lookup(0) is not None


@EITHER
def test_dirty_chunks_of_a_class_and_below_stop_at_its_dirty_cap(make):
    cache = make(8)
    cache.set_table(classes(
        c1=ChunkRow(rank=1, dirty_cap_parts=PARTS // 4), c2=ChunkRow(
            rank=5, dirty_cap_parts=PARTS // 2), c3=HIGH))
    assert [ask(cache, n, 1, True, True) for n in range(3)] == [
        'free', 'free', Bypass.DIRTY_CAP]
    assert [ask(cache, 10 + n, 2, True, True) for n in range(3)] == [
        'free', 'free', Bypass.DIRTY_CAP]
    # Whoever ranks above has a limit of his own, or none.
    assert [ask(cache, 20 + n, 3, True, True) for n in range(2)] == [
        'free', 'free']
    # What the origin gets too is no dirt.
    assert ask(cache, 30, 1, True) == 'free'
    assert cache.miss(1, False, True).want_clean is False
    assert (cache.may_dirty(1), cache.may_dirty(3)) == (False, True)
    cache.set_clean(cache.lookup(0))
    assert (cache.may_dirty(1), cache.may_dirty(2)) == (True, True)


@EITHER
def test_one_lru_has_no_dirty_caps(make):
    cache = make(2)
    cache.set_mode(Mode.LRU)
    cache.set_table(classes(c1=ChunkRow(rank=1, dirty_cap_parts=0)))
    assert ask(cache, 0, 1, True, True) == 'free'


@EITHER
def test_a_dirty_chunk_is_no_victim_and_the_cleaner_is_asked_for(make):
    cache = make(2)
    cache.set_table(classes(c1=LOW, c2=HIGH))
    ask(cache, 0, 1, write=True, dirty=True)
    ask(cache, 1, 2)
    verdict = cache.miss(2)
    assert (verdict.victim, verdict.want_clean) == (1, True)
    cache.decline(verdict)
    verdict = cache.miss(1)
    assert (verdict.reason, verdict.slot, verdict.want_clean) == (
        Bypass.DIRTY, cache.lookup(0), True)
    assert cache.pull_dirty(8) == [cache.lookup(0)]
    assert cache.miss(1).reason == Bypass.DIRTY
    assert cache.cleaned(cache.lookup(0))
    assert ask(cache, 2, 1) == 0


@EITHER
def test_what_is_dirtied_while_it_is_cleaned_stays_dirty(make):
    cache = make(1)
    ask(cache, 0, 1, dirty=True)
    slot, = cache.pull_dirty(1)
    cache.set_dirty(slot)
    assert not cache.cleaned(slot)
    assert cache.dirty_slots() == 1
    assert cache.pull_dirty(1) == [slot]
    assert cache.cleaned(slot)
    assert cache.dirty_slots() == 0


@EITHER
def test_the_cleaner_gets_the_lowest_class_first(make):
    cache = make(4)
    cache.set_table(classes(c1=HIGH, c2=LOW))
    for oblock in range(4):
        ask(cache, oblock, 1 + oblock % 2, dirty=True)
    assert [cache.slot_state(slot).oblock for slot in cache.pull_dirty(9)] \
        == [1, 3, 0, 2]


@EITHER
def test_a_dirty_neighbour_is_pulled_whatever_its_class(make):
    cache = make(4)
    cache.set_table(classes(c1=LOW, c2=HIGH))
    ask(cache, 5, 1, dirty=True)
    ask(cache, 6, 2, dirty=True)
    ask(cache, 7, 1)
    first, = cache.pull_dirty(1)
    assert cache.slot_state(first).oblock == 5
    # Busy, dirty, clean, not here.
    assert [cache.pull_beside(oblock) for oblock in (5, 6, 7, 8)] == [
        None, cache.lookup(6), None, None]
    assert cache.cleaned(cache.lookup(6))
    assert cache.stats(2).cleaned == 1


@EITHER
def test_cleaning_begins_above_high_and_ends_at_low(make):
    cache = make(8)
    cache.set_watermarks(PARTS // 2, PARTS // 4)
    for oblock in range(4):
        ask(cache, oblock, 1, dirty=True)
    assert cache.cleaning_goal() == 0
    ask(cache, 4, 1, dirty=True)
    assert cache.cleaning_goal() == 3
    cache.cleaned(cache.pull_dirty(1)[0])
    assert cache.cleaning_goal() == 2
    for slot in cache.pull_dirty(2):
        cache.cleaned(slot)
    assert cache.cleaning_goal() == 0


@EITHER
def test_an_unclassified_hit_leaves_the_class_and_another_gives_its(make):
    cache = make(2)
    ask(cache, 0, 5)
    ask(cache, 0, 0, write=True)
    slot = cache.lookup(0)
    assert cache.slot_state(slot).class_id == 5
    ask(cache, 0, 6)
    assert cache.slot_state(slot).class_id == 6
    assert cache.stats(6).reclassed == 1


@EITHER
def test_a_scan_neither_allocates_nor_touches(make):
    cache = make(2)
    cache.set_table(classes(c3=ChunkRow(flags=Flag.NO_ALLOCATE)))
    ask(cache, 0, 1)
    ask(cache, 1, 1)
    assert ask(cache, 0, 3) == 'hit'
    assert ask(cache, 2, 3) is Bypass.NEVER
    assert ask(cache, 3, 1) == 0


@EITHER
def test_a_chunk_that_is_read_once_is_given_up(make):
    cache = make(2)
    cache.set_table(classes(c3=ChunkRow(flags=Flag.EVICT_ON_HIT)))
    ask(cache, 0, 3)
    slot = cache.lookup(0)
    assert not cache.touch(slot, 3, True)
    assert cache.touch(slot, 3, False)
    cache.evict(slot, Evict.HIT)
    assert cache.lookup(0) is None


@EITHER
def test_direct_to_hdd_stays_out_and_gives_up_what_is_there(make):
    cache = make(2)
    ask(cache, 0, 3)
    cache.set_table(classes(c3=ChunkRow(flags=Flag.DIRECT_HDD)))
    assert ask(cache, 1, 3) is Bypass.DIRECT
    assert cache.touch(cache.lookup(0), 3, True)


@EITHER
def test_what_passes_through_comes_by_rank_and_is_the_first_to_leave(make):
    cache = make(2)
    cache.set_table(classes(c1=LOW, c2=HIGH, c3=ChunkRow(
        rank=HIGH.rank, flags=Flag.PASSING)))
    ask(cache, 0, 1)
    ask(cache, 1, 2)
    assert cache.miss(3).reason == Bypass.RANK
    verdict = cache.miss(3, dirty=True)
    assert (verdict.victim, verdict.reason) == (0, Evict.ABOVE)
    slot = cache.take(verdict, 2)
    cache.commit(slot, True)
    cache.set_dirty(cache.lookup(1))
    # It is the stage's, though it came by the rank of its class. It is cleaned
    # before the dirty chunk of that rank, and leaves first.
    assert cache.slot_state(slot).state & State.STAGED
    assert cache.wants_clean(slot)
    assert cache.pull_dirty(1) == [slot]
    assert cache.cleaned(slot)
    verdict = cache.miss(1)
    assert (verdict.victim, verdict.reason) == (2, Evict.ABOVE)


@EITHER
def test_what_passes_through_waits_only_where_its_class_would(make):
    cache = make(4)
    cache.set_table(classes(
        c1=ChunkRow(rank=1, dirty_cap_parts=PARTS // 4), c2=ChunkRow(
            rank=9, dirty_cap_parts=PARTS // 2), c3=ChunkRow(
            rank=9, dirty_cap_parts=PARTS // 2, flags=Flag.PASSING)))
    cache.set_stage(PARTS // 4)
    cache.commit(cache.take(cache.miss(3, dirty=True), 0), True)
    # The stage is full; the class has a right to more.
    assert cache.stage_room() == 0
    assert not cache.must_wait(3, dirty=True)
    # Nothing of it is in the way of a lower class.
    assert cache.may_dirty(1)
    cache.commit(cache.take(cache.miss(2, dirty=True), 1), True)
    assert not cache.may_dirty(2) and not cache.may_dirty(3)
    assert cache.must_wait(3, dirty=True) and cache.must_wait(2, dirty=True)


@EITHER
def test_direct_to_ssd_passes_runs_and_ranks(make):
    cache = make(2)
    cache.set_table(classes(
        c1=ChunkRow(rank=1, flags=Flag.DIRECT_SSD, cutoff_sectors=8),
        c2=HIGH))
    ask(cache, 0, 2)
    ask(cache, 1, 2)
    assert cache.run(1, 0, 8)
    verdict = cache.miss(1, True)
    assert (verdict.kind, verdict.victim) == (Kind.VICTIM, 0)


@EITHER
def test_allocate_room_and_never(make):
    cache = make(2)
    cache.set_table(classes(c1=ChunkRow(allocate=Allocate.ROOM),
                            c2=ChunkRow(allocate=Allocate.NEVER)))
    assert ask(cache, 0, 2) is Bypass.NEVER
    assert [ask(cache, n, 1) for n in range(3)] == [
        'free', 'free', Bypass.ROOM]


@EITHER
def test_a_run_stays_out_once_it_is_as_long_as_the_cutoff(make):
    cache = make(8)
    cache.set_table(classes(c1=ChunkRow(cutoff_sectors=24), c2=ChunkRow()))
    assert [cache.run(1, at, 8) for at in (0, 8, 16, 24, 100)] == [
        False, False, True, True, False]
    assert not cache.run(2, 32, 8)
    assert cache.miss(1, True).reason == Bypass.SEQUENTIAL


@EITHER
def test_33_streams_are_one_too_many(make):
    cache = make(8)
    cache.set_table(classes(c1=ChunkRow(cutoff_sectors=16)))
    starts = [1000 * n for n in range(1, 34)]
    for start in starts:
        cache.run(1, start, 8)
    assert not cache.run(1, starts[0] + 8, 8)
    assert cache.run(1, starts[2] + 8, 8)


@EITHER
def test_weights_share_the_slots_out(make):
    cache = make(100)
    cache.set_mode(Mode.WEIGHTED)
    cache.set_table(classes(c1=ChunkRow(weight=1), c2=ChunkRow(weight=3)))
    for oblock in range(100):
        ask(cache, oblock, 1)
    for oblock in range(1000, 2000):
        ask(cache, oblock, 2)
        ask(cache, 1000 + oblock, 1)
    assert [cache.stats(n).resident for n in (1, 2)] == [25, 75]


@EITHER
def test_plain_lru_knows_no_class(make):
    cache = make(2)
    cache.set_mode(Mode.LRU)
    cache.set_table(classes(
        c1=ChunkRow(rank=9, floor_parts=PARTS, flags=Flag.PIN), c2=LOW))
    ask(cache, 0, 1)
    ask(cache, 1, 2)
    assert [ask(cache, 2, 2), ask(cache, 3, 2)] == [0, 1]


SIEVED = ChunkRow(inner=Inner.SIEVE)


@EITHER
def test_a_sieve_keeps_what_was_used_again_and_moves_nothing(make):
    cache = make(4)
    cache.set_table(classes(c1=SIEVED))
    for oblock in range(4):
        ask(cache, oblock, 1)
    for oblock in (0, 1, 1):
        assert ask(cache, oblock, 1) == 'hit'
    assert cache.in_order(1, False) == [
        cache.lookup(oblock) for oblock in range(4)]
    # 0 and 1 lose their marks and stay; the hand goes on from 2.
    assert [ask(cache, n, 1) for n in (10, 11)] == [2, 3]
    # Behind the ones that stayed came 10 and 11, not used again.
    assert [ask(cache, n, 1) for n in (12, 13)] == [10, 11]
    ask(cache, 12, 1)
    # From the youngest the hand comes back to the oldest, whose marks it
    # has taken.
    assert [ask(cache, n, 1) for n in (14, 15, 16)] == [13, 0, 1]


@EITHER
@pytest.mark.parametrize('class_id,rows,sieved', [
    (0, {}, True), (1, {}, False), (1, {2: HIGH}, False),
    (0, {2: HIGH}, True), (0, {0: ChunkRow()}, False), (1, {0: SIEVED}, True)])
def test_without_a_row_the_unclassified_are_sieved_and_no_class_is(
        make, class_id, rows, sieved):
    cache = make(3)
    cache.set_table(rows)
    for oblock in (0, 1, 2, 0):
        ask(cache, oblock, class_id)
    # 0 was used again: the hand has passed it, and comes to 3 first.
    assert [ask(cache, oblock, class_id) for oblock in (3, 4, 5)] == [
        1, 2, 3 if sieved else 0]


@EITHER
def test_a_scan_leaves_a_sieve_before_what_is_used_again(make):
    cache = make(8)
    cache.set_table(classes(c1=SIEVED))
    for oblock in (0, 1, 2, 3, 0, 1, 2, 3):
        ask(cache, oblock, 1)
    for oblock in range(100, 130):
        ask(cache, oblock, 1)
        ask(cache, oblock % 4, 1)
    assert all(cache.lookup(oblock) is not None for oblock in range(4))


@EITHER
def test_one_miss_takes_so_many_marks_and_no_more(make):
    slots = 3 * SIEVE_LOOKS
    cache = make(slots)
    cache.set_table(classes(c1=SIEVED))
    for oblock in [*range(slots)] * 2:
        ask(cache, oblock, 1)
    assert [ask(cache, n, 1) for n in (1000, 1001)] == [
        SIEVE_LOOKS, 2 * SIEVE_LOOKS + 1]


@EITHER
def test_what_is_dirtied_and_cleaned_keeps_its_mark(make):
    cache = make(3)
    cache.set_table(classes(c1=SIEVED))
    ask(cache, 0, 1, dirty=True)
    ask(cache, 1, 1, dirty=True)
    ask(cache, 0, 1, write=True)
    ask(cache, 2, 1)
    for slot in cache.pull_dirty(2):
        cache.cleaned(slot)
    assert [ask(cache, n, 1) for n in (3, 4)] == [2, 1]


@EITHER
def test_a_class_changes_its_order_live(make):
    cache = make(3)
    cache.set_table(classes(c1=ChunkRow()))
    for oblock in (0, 1, 2, 0):
        ask(cache, oblock, 1)
    cache.set_table(classes(c1=SIEVED))
    assert ask(cache, 3, 1) == 1
    cache.set_table(classes(c1=ChunkRow()))
    assert ask(cache, 4, 1) == 2


@EITHER
def test_an_order_that_is_loaded_again_leaves_the_same(make):
    cache, again = make(6), make(6)
    for side in (cache, again):
        side.set_table(classes(c1=SIEVED))
    for oblock in (0, 1, 2, 3, 4, 5, 1, 4):
        ask(cache, oblock, 1)
    ask(cache, 6, 1)
    order = cache.to_come(1, False)
    for slot in order:
        again.load(slot, cache.slot_state(slot).oblock, 1, False)
    gone = [[ask(side, n, 1) for n in range(10, 14)]
            for side in (cache, again)]
    assert gone[0] == gone[1] == [2, 3, 5, 6]


@EITHER
def test_a_class_without_a_row_is_treated_like_class_0(make):
    cache = make(2)
    cache.set_table(classes(c0=ChunkRow(allocate=Allocate.NEVER),
                            c1=ChunkRow()))
    assert ask(cache, 0, 9) is Bypass.NEVER
    assert cache.stats(9).misses == 1
    cache.set_table({})
    assert ask(cache, 0, 9) == 'free'


@EITHER
def test_every_class_id_has_a_place(make):
    cache = make(CLASSES)
    cache.set_table({n: ChunkRow(rank=n) for n in range(CLASSES)})
    for class_id in reversed(range(CLASSES)):
        ask(cache, class_id, class_id)
    assert [ask(cache, 100 + n, 31) for n in range(CLASSES - 1)] == \
        list(range(CLASSES - 1))
