"""The shared library of the decision core: building it, and its corners."""

import ctypes
import errno
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.chunk_oracle import core_library
from support.chunk_oracle.core_library import ChunkLibrary, NoCompiler, load
from support.chunk_oracle.ordered import ChunkOrdered
from support.chunk_oracle.verbs import OBLOCKS_MAX, Kind, Refused, State
from support.rigs import chunk_pair

from swift_dss.core.classes import Allocate, ClassSpec, WriteMode
from swift_dss.core.errors import BadConfig
from swift_dss.strategy.eviction.chunks import (
    PARTS, RANK_MAX, WEIGHT_MAX, WRITE_THROUGH, Bypass, ChunkRow, Evict, Flag,
    Mode, parts)
from swift_dss.wire.settings import classtable

LIBRARY = load()
ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def core():
    return ChunkLibrary(8, LIBRARY)


def put(core, oblock, class_id=1, dirty=False):
    slot = core.take(core.miss(class_id), oblock)
    core.commit(slot, dirty)
    return slot


# Building


def test_it_is_built_once_and_again_when_a_source_changes(
        tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    sources = tmp_path / 'core'
    shutil.copytree(str(core_library.SOURCE_DIR), str(sources))
    first = core_library.build((), sources)
    stamp = first.stat().st_mtime_ns
    assert core_library.build((), sources) == first
    assert first.stat().st_mtime_ns == stamp
    with (sources / 'dss_core.c').open('a') as source:
        source.write('/* changed */\n')
    assert core_library.build((), sources) != first
    assert sorted(path.suffix for path in first.parent.iterdir()) == [
        '.so', '.so']


def test_without_a_compiler_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    monkeypatch.setenv('CC', 'no-such-compiler')
    with pytest.raises(NoCompiler, match="'no-such-compiler'.*install gcc"):
        core_library.build()
    assert not list(tmp_path.rglob('*.so'))


def test_what_the_compiler_says_is_passed_on(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    sources = tmp_path / 'core'
    shutil.copytree(str(core_library.SOURCE_DIR), str(sources))
    with (sources / 'dss_table.c').open('a') as source:
        source.write('#error broken on purpose\n')
    with pytest.raises(NoCompiler, match='broken on purpose'):
        core_library.build((), sources)
    assert not list(tmp_path.rglob('*.so'))


def test_the_makefile_builds_the_same_sources(tmp_path):
    out = tmp_path / 'core.so'
    subprocess.run(['make', '-s', '-C', str(core_library.SOURCE_DIR),
                    'OUT=%s' % out], check=True)
    assert ChunkLibrary(4, load(out)).check() == 0
    text = (core_library.SOURCE_DIR / 'Makefile').read_text()
    for name in core_library.SOURCES + core_library.HEADERS:
        assert name in text


def header_enum(name):
    """Names and numbers of an enum, as the header lists them."""
    text = re.sub(r'/\*.*?\*/', '', (
        core_library.SOURCE_DIR / 'dss_core.h').read_text(), flags=re.S)
    body = re.search(r'enum %s \{(.*?)\};' % name, text, re.S).group(1)
    return [name.strip() for name in body.split(',') if name.strip()]


@pytest.mark.parametrize('enum, ours', [
    ('dss_mode', Mode), ('dss_verdict_kind', Kind), ('dss_bypass', Bypass),
    ('dss_evict', Evict)])
def test_numbers_are_those_of_the_header(enum, ours):
    listed = header_enum(enum)
    assert 'NR_' in listed.pop()
    assert [name.split('_', 2)[2] for name in listed] == [
        member.name for member in ours]
    assert [int(member) for member in ours] == list(range(len(listed)))


# Sizes


def test_a_slot_costs_24_bytes_and_the_rest_is_fixed():
    fixed = LIBRARY.dss_core_bytes(1)
    assert LIBRARY.dss_core_bytes(1 + 1000) - fixed == 24 * 1000
    assert fixed < 12288


@pytest.mark.parametrize('slots', [0, 1 << 31, 1 << 40, (1 << 64) - 1])
def test_a_number_of_slots_that_cannot_be_has_no_size(slots):
    assert LIBRARY.dss_core_bytes(slots) == 0
    assert LIBRARY.dss_core_init(ctypes.create_string_buffer(64), 64,
                                 slots, 0) is None


def test_memory_that_is_one_byte_short_is_refused():
    needed = LIBRARY.dss_core_bytes(5)
    memory = ctypes.create_string_buffer(needed)
    assert LIBRARY.dss_core_init(memory, needed - 1, 5, 0) is None
    assert LIBRARY.dss_core_init(memory, needed, 5, 0)


# The class table


@pytest.mark.parametrize('row', [
    ChunkRow(rank=RANK_MAX + 1), ChunkRow(cap_parts=PARTS + 1),
    ChunkRow(floor_parts=2, cap_parts=1), ChunkRow(weight=0),
    ChunkRow(weight=WEIGHT_MAX + 1), ChunkRow(write_mode=3),
    ChunkRow(flags=Flag.DIRECT_SSD | Flag.DIRECT_HDD),
    ChunkRow(flags=Flag.DIRECT_SSD | Flag.NO_ALLOCATE),
    ChunkRow(flags=Flag.DIRECT_SSD, allocate=Allocate.NEVER),
    ChunkRow(flags=Flag.PIN, allocate=Allocate.NEVER),
    ChunkRow(flags=Flag.PIN | Flag.EVICT_ON_HIT),
    ChunkRow(flags=Flag.PIN | Flag.DIRECT_HDD),
    ChunkRow(flags=Flag.PASSING | Flag.EVICT_ON_HIT),
    ChunkRow(flags=Flag.PASSING, allocate=Allocate.NEVER)], ids=str)
def test_an_unsound_row_is_refused_and_nothing_of_its_table_is_loaded(
        core, row):
    core.set_table({1: ChunkRow(allocate=Allocate.NEVER)})
    for load_it in (lambda: core.set_row(2, row),
                    lambda: core.set_table({1: ChunkRow(), 2: row})):
        with pytest.raises(Refused) as caught:
            load_it()
        assert caught.value.number == errno.EINVAL
    assert core.miss(1).reason == Bypass.NEVER
    assert core.miss(2).kind is Kind.FREE


def test_flags_and_orders_that_nobody_knows_are_refused(core):
    spec = core_library.class_spec(ChunkRow())
    for field in ('flags', 'inner', 'allocate'):
        spec = core_library.class_spec(ChunkRow())
        setattr(spec, field, 0x40)
        assert LIBRARY.dss_core_set_class(
            core.core, 1, ctypes.byref(spec)) == -errno.EINVAL
    assert LIBRARY.dss_core_set_class(
        core.core, 32, ctypes.byref(core_library.class_spec(ChunkRow()))) \
        == -errno.EINVAL


def test_a_row_comes_and_goes_by_itself(core):
    core.set_row(0, ChunkRow(allocate=Allocate.NEVER))
    core.set_row(3, ChunkRow(write_mode=WRITE_THROUGH))
    spec = core_library._Spec()
    LIBRARY.dss_core_get_class(core.core, 3, ctypes.byref(spec))
    assert spec.write_mode == WRITE_THROUGH
    assert LIBRARY.dss_core_has_class(core.core, 3)
    core.set_row(3, None)
    assert not LIBRARY.dss_core_has_class(core.core, 3)
    assert core.miss(3).reason == Bypass.NEVER


@settings(max_examples=200, deadline=None)
@given(allocate=st.sampled_from(['always', 'room', 'never']),
       pin=st.booleans(), evict=st.booleans(), no_allocate=st.booleans(),
       direct=st.sampled_from(['none', 'hdd', 'ssd']),
       weight=st.integers(1, 1000), cutoff=st.integers(0, 1048576))
def test_file_takes_what_the_core_takes_and_nothing_else(
        allocate, pin, evict, no_allocate, direct, weight, cutoff):
    text = ('[class:3]\nname = a\nrank = 1\nallocate = %s\npin = %s\n'
            'evict_on_hit = %s\nno_allocate = %s\ndirect = %s\nweight = %d\n'
            'cutoff_kib = %d\n' % (allocate, pin, evict, no_allocate, direct,
                                  weight, cutoff))
    by_hand = Flag.NONE
    for flag, said in ((Flag.PIN, pin), (Flag.EVICT_ON_HIT, evict),
                       (Flag.NO_ALLOCATE, no_allocate),
                       (Flag.DIRECT_HDD, direct == 'hdd'),
                       (Flag.DIRECT_SSD, direct == 'ssd')):
        by_hand |= flag if said else Flag.NONE
    wanted = ChunkRow(1, weight=weight, cutoff_sectors=2 * cutoff,
                      allocate=Allocate(allocate), flags=by_hand)
    try:
        row = ChunkRow.of(classtable.parse(text).spec(3))
    except BadConfig:
        with pytest.raises(Refused):
            ChunkLibrary(4).set_row(3, wanted)
        return
    assert row == wanted
    ChunkLibrary(4).set_row(3, row)


def test_shares_of_the_class_table_become_parts():
    row = ChunkRow.of(ClassSpec(
        25, 'gold', 900, floor=0.1, cap=0.5, write=WriteMode.THROUGH,
        pin=True, dirty_cap=0.25))
    assert row == ChunkRow(rank=900, floor_parts=6554, cap_parts=32768,
                           write_mode=WRITE_THROUGH, flags=Flag.PIN,
                           dirty_cap_parts=16384)
    assert [parts(share) for share in (0.0, 1.0, 0.333333333)] == [
        0, PARTS, 21845]


def test_shares_are_rounded_down_to_whole_slots():
    """A tenth of 8 slots is none; a tenth of 10 (6553.6 parts) is rounded
    to 6554 parts first, and so is one slot."""
    for slots, floor in ((8, 0), (9, 0), (10, 1), (20, 2)):
        core = ChunkLibrary(slots, LIBRARY)
        core.set_table({1: ChunkRow(rank=1, floor_parts=parts(0.1)),
                        2: ChunkRow(rank=2)})
        for oblock in range(slots):
            put(core, oblock, 1)
        for oblock in range(slots, 3 * slots):
            put(core, oblock, 2)
        assert core.stats(1).resident == floor


# Full, empty, loaded, damaged


def test_a_full_table_of_busy_slots_has_nothing_to_give(core):
    for oblock in range(8):
        core.take(core.miss(1), oblock)
    verdict = core.miss(1)
    assert (verdict.kind, verdict.reason, verdict.slot) == (
        Kind.BYPASS, Bypass.DIRTY, None)
    assert core.check() == 0


def test_what_nobody_asked_for_takes_a_free_slot_and_pushes_nobody_out(core):
    core.set_table({1: ChunkRow(rank=1), 2: ChunkRow(cap_parts=parts(0.25)),
                    3: ChunkRow(allocate=Allocate.NEVER)})
    assert core.room(3) is None
    for oblock in range(2):
        core.commit(core.take(core.room(2), oblock))
    assert core.room(2) is None, 'it is at its cap'
    for oblock in range(2, 8):
        core.commit(core.take(core.room(1), oblock))
    # All are taken; one who asked would get one of the lower class.
    assert core.room(1) is None
    assert core.stats(1).misses == core.stats(2).misses == 0
    assert core.miss(1).kind is Kind.VICTIM
    assert core.check() == 0


class Foretold(ChunkLibrary):
    """Says before each miss whether it passes, and of each request whether
    it belongs to a run."""

    told = None

    def run(self, class_id, sector, sectors):
        foretold = self.would_run(class_id, sector, sectors)
        outcome = super().run(class_id, sector, sectors)
        assert foretold == outcome
        return outcome

    def miss(self, class_id, sequential=False, dirty=False):
        foretold = self.passes(class_id, sequential, dirty)
        verdict = super().miss(class_id, sequential, dirty)
        assert foretold == (verdict.kind is Kind.BYPASS), verdict
        self.told.append((verdict.kind, verdict.reason))
        return verdict


def test_what_will_pass_is_known_before_and_knowing_it_changes_nothing():
    told = []
    for seed in range(30):
        dice = random.Random(seed)
        slots = dice.randint(1, 12)
        core = Foretold(slots, LIBRARY)
        core.told = told
        # The reference is asked nothing beforehand.
        chunk_pair.drive(
            chunk_pair.Pair(ChunkOrdered(slots), core),
            lambda below, dice=dice: dice.randrange(below), slots, 120)
    assert {kind for kind, _reason in told} == set(Kind)
    assert {reason for kind, reason in told if kind is Kind.BYPASS} == \
        set(Bypass) - {Bypass.DECLINED, Bypass.FAILED}


def test_a_table_of_one_slot_works():
    core = ChunkLibrary(1, LIBRARY)
    for oblock in range(100):
        assert put(core, oblock) == 0
    assert core.lookup(99) == 0
    assert core.lookup(98) is None
    assert core.check() == 0


def test_chunk_numbers_may_differ_in_their_highest_bits_alone(core):
    far = [0, 1 << 32, 1 << 40, OBLOCKS_MAX - 1, 0xffffffff]
    slots = [put(core, oblock) for oblock in far]
    assert [core.lookup(oblock) for oblock in far] == slots
    assert [core.slot_state(slot).oblock for slot in slots] == far
    assert core.lookup(OBLOCKS_MAX) is None
    assert core.lookup((1 << 64) - 1) is None


@pytest.mark.parametrize('slot, oblock, class_id, number', [
    (8, 1, 1, errno.ERANGE), (0xffffffff, 1, 1, errno.ERANGE),
    (1, OBLOCKS_MAX, 1, errno.ERANGE), (1, (1 << 64) - 1, 1, errno.ERANGE),
    (1, 1, 32, errno.ERANGE), (1, 1, 0xffffffff, errno.ERANGE),
    (0, 1, 1, errno.EBUSY), (1, 77, 1, errno.EEXIST)])
def test_damaged_records_are_refused_and_change_nothing(
        core, slot, oblock, class_id, number):
    core.load(0, 77, 5, False)
    with pytest.raises(Refused) as caught:
        core.load(slot, oblock, class_id, True)
    assert caught.value.number == number
    assert core.check() == 0
    assert (core.free_slots(), core.dirty_slots()) == (7, 0)
    assert core.lookup(77) == 0


def test_what_was_saved_in_order_leaves_in_order_after_a_restart(core):
    core.set_table({1: ChunkRow(rank=1), 2: ChunkRow(rank=2)})
    for oblock in (5, 3, 9, 1):
        put(core, oblock, 1 + oblock % 2, dirty=oblock == 3)
    core.touch(core.lookup(5), 2, False)
    saved = [(slot, *core.slot_state(slot)[1:], dirty)
             for class_id in (1, 2) for dirty in (False, True)
             for slot in core.in_order(class_id, dirty)]
    again = ChunkLibrary(8, LIBRARY, seed=99)
    again.set_table({1: ChunkRow(rank=1), 2: ChunkRow(rank=2)})
    for slot, oblock, class_id, dirty in saved:
        again.load(slot, oblock, class_id, dirty)
    assert again.check() == 0
    for class_id in (1, 2):
        for dirty in (False, True):
            assert again.in_order(class_id, dirty) == core.in_order(
                class_id, dirty)
    assert again.dirty_slots() == 1
    assert again.stats(2).takes == 0


# Resizing


def test_a_larger_table_keeps_everything(core):
    for oblock in range(8):
        put(core, oblock, 1, dirty=oblock % 2 == 0)
    order = core.in_order(1, False)
    held, = core.pull_dirty(1)
    core.resize(1000)
    assert core.check() == 0
    assert core.in_order(1, False) == order
    assert [core.lookup(oblock) for oblock in range(8)] == list(range(8))
    assert core.slot_state(held).state & State.BUSY
    assert core.cleaned(held)
    assert core.free_slots() == 992


def test_a_smaller_table_must_be_emptied_above_its_end_first(core):
    for oblock in range(8):
        put(core, oblock)
    with pytest.raises(Refused) as caught:
        core.resize(3)
    assert caught.value.number == errno.EBUSY
    core.set_limit(3)
    gone = []
    slot = core.over_limit()
    while slot is not None:
        gone.append(slot)
        core.evict(slot, Evict.SHRINK)
        slot = core.over_limit(slot)
    assert gone == [3, 4, 5, 6, 7]
    assert core.free_slots() == 0
    core.resize(3)
    assert core.check() == 0
    assert put(core, 100) == 0


def test_a_limit_is_kept_and_taken_away(core):
    core.set_limit(2)
    assert [put(core, oblock) for oblock in range(3)] == [0, 1, 0]
    core.set_limit(8)
    assert sorted(put(core, 10 + n) for n in range(6)) == list(range(2, 8))
    for limit in (0, 9):
        with pytest.raises(Refused):
            core.set_limit(limit)
    assert core.check() == 0


# What the caller must not do


#: Each would hand out dirty bytes, or walk a list that is not one.
CONTRACT = {
    'evicts a dirty slot': 'c.evict(dirty, Evict.DEMOTE)',
    'evicts a slot that is being cleaned':
        'c.pull_dirty(1); c.evict(dirty, Evict.DISCARD)',
    'commits what was not taken': 'c.commit(clean)',
    'commits twice': 's = c.take(c.miss(1), 9); c.commit(s); c.commit(s)',
    'follows a stale verdict': 'v = full(c); c.hold(v.slot); c.take(v, 99)',
    'says that a slot was cleaned that nobody pulled': 'c.cleaned(dirty)',
    'holds twice': 'c.hold(clean); c.hold(clean)',
    'asks for a slot beyond the end':
        'LIBRARY.dss_core_set_dirty(c.core, 8)',
    'asks with a class beyond the end': 'c.miss(32)',
    'takes a chunk twice': 'LIBRARY.dss_core_take(c.core, '
        'core_library.ctypes.byref(core_library.raw_verdict(c.miss(1))), 1)',
}

PROGRAM = '''
import sys
from support.chunk_oracle import core_library
from support.chunk_oracle.core_library import *
LIBRARY = load()
c = ChunkLibrary(8, LIBRARY)
def put(oblock, dirty):
    slot = c.take(c.miss(1), oblock)
    c.commit(slot, dirty)
    return slot
def full(c):
    for n in range(6):
        put(20 + n, False)
    return c.miss(1)
clean, dirty = put(1, False), put(2, True)
print('so far', flush=True)
%s
'''


@pytest.mark.parametrize('sin', CONTRACT)
def test_a_caller_that_breaks_the_contract_is_stopped(sin):
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM % CONTRACT[sin]],
        capture_output=True, cwd=str(ROOT / 'test'), timeout=60)
    assert done.stdout == b'so far\n', done.stderr
    assert done.returncode == -6, (done.returncode, done.stderr)
    assert b'dss_core: ' in done.stderr


# Checkers of C


def sanitized(path, *arguments):
    """The drive of ``rigs.chunk_pair`` on a library that checks itself."""
    runtime = subprocess.run(
        ['cc', '-print-file-name=libasan.so'], check=True,
        stdout=subprocess.PIPE).stdout.decode().strip()
    if not os.path.isabs(runtime):
        pytest.skip('the compiler has no address sanitizer')
    return subprocess.run(
        [sys.executable, chunk_pair.__file__, str(path), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
        cwd=str(ROOT), env=dict(
            os.environ, LD_PRELOAD=runtime, PYTHONMALLOC='malloc',
            ASAN_OPTIONS='detect_leaks=0',
            PYTHONPATH=os.pathsep.join(sys.path)))


SANITIZE = ('-fsanitize=address,undefined', '-fno-sanitize-recover=all',
            '-O1')


def test_sanitizers_find_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    done = sanitized(core_library.build(SANITIZE), '25')
    assert done.returncode == 0, done.stdout.decode()[-3000:]


@pytest.mark.parametrize('name, before, after, report', [
    ('dss_life.c', 'align8(slots * sizeof(u32))', '0',
     'heap-buffer-overflow'),
    ('dss_lists.h', 'nr_slots >> 32', 'nr_slots >> 31',
     'heap-buffer-overflow')])
def test_sanitizers_find_a_table_that_is_too_small(
        tmp_path, monkeypatch, name, before, after, report):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    sources = tmp_path / 'core'
    shutil.copytree(str(core_library.SOURCE_DIR), str(sources))
    text = (sources / name).read_text()
    assert text.count(before) == 1
    (sources / name).write_text(text.replace(before, after))
    done = sanitized(core_library.build(SANITIZE, sources), '25')
    assert done.returncode != 0
    assert report in done.stdout.decode()


MIXED = '''
#include "dss_core.h"
int mixed(struct dss_core *core, dss_oblock_t oblock, dss_slot_t slot);
int mixed(struct dss_core *core, dss_oblock_t oblock, dss_slot_t slot)
{
	dss_core_touch(core, %s, 0, false);
	return dss_core_lookup(core, %s) == DSS_NO_SLOT;
}
'''


def sparse(path):
    if not shutil.which('sparse'):
        pytest.skip('sparse is not installed')
    done = subprocess.run(
        ['sparse', '-Wsparse-all', '-I', str(core_library.SOURCE_DIR),
         str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # The C library's headers are not ours.
    return [line for line in done.stdout.decode().splitlines()
            if not line.startswith('/usr/') and 'note: in incl' not in line]


@pytest.mark.parametrize('name', core_library.SOURCES)
def test_sparse_finds_nothing(name):
    assert sparse(core_library.SOURCE_DIR / name) == []


@pytest.mark.parametrize('first, second, complaints', [
    ('slot', 'oblock', 0), ('7', 'oblock', 1), ('slot', '7', 1)])
def test_sparse_refuses_numbers_of_the_wrong_kind(
        tmp_path, first, second, complaints):
    path = tmp_path / 'mixed.c'
    path.write_text(MIXED % (first, second))
    assert len([line for line in sparse(path)
                if 'incorrect type in argument' in line]) == complaints


def test_no_line_is_longer_than_the_kernel_has_them():
    for path in core_library.SOURCE_DIR.glob('*.[ch]'):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert len(line.expandtabs(8)) <= 80, (path.name, number)
