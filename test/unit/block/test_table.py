"""Lines of the kernel's, parsed: as the module prints them, or refused."""

import pathlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift_dss.block import control_classes, table
from swift_dss.block.table import BadLine, Latency, TargetTable
from swift_dss.core.classes import Allocate, ClassSpec, ClassTable
from swift_dss.strategy.eviction.chunks import ChunkRow, Flag, Inner

KMOD = pathlib.Path(table.__file__).parent / 'kmod'
STATUS = ('0 131072 dss 1 ok writeback strict 512 8 12/100 3 40 7 5 9 8 1 2 '
          '4 0 0 1:2:0 11:10:3')

rows = st.builds(
    ChunkRow, rank=st.integers(0, 1000000),
    floor_parts=st.integers(0, 30000), cap_parts=st.integers(30000, 65536),
    dirty_cap_parts=st.integers(0, 65536),
    weight=st.integers(1, 1000), cutoff_sectors=st.integers(0, 1 << 31),
    allocate=st.sampled_from([Allocate.ALWAYS, Allocate.ROOM]),
    write_mode=st.integers(0, 2),
    flags=st.sampled_from([Flag.NONE, Flag.EVICT_ON_HIT,
                           Flag.NO_ALLOCATE | Flag.DIRECT_HDD,
                           Flag.PASSING]),
    inner=st.sampled_from(list(Inner)))


def names_in_c(file, array):
    """The strings of an array of the module, in their order."""
    text = (KMOD / file).read_text()
    body = re.search(r'%s\[[A-Z_]*\] = \{(.*?)\};' % array, text,
                     re.S).group(1)
    return tuple(re.findall(r'"([^"]+)"', body))


@pytest.mark.parametrize('file, array, names', [
    ('dss_names.c', 'dss_mode_names', table.MODES),
    ('dss_names.c', 'dss_strategy_names', table.STRATEGIES),
    ('dss_names.c', 'dss_health_names', table.HEALTHS),
    ('dss_names.c', 'dss_bypass_names', table.BYPASS_NAMES),
    ('dss_names.c', 'dss_evict_names', table.EVICT_NAMES),
    ('dss_names.c', 'dss_flag_names', tuple(table.FLAG_NAMES.values())),
    ('dss_names.c', 'dss_write_names', tuple(
        table.WRITE_NAMES.values())),
    ('dss_names.c', 'dss_allocate_names', tuple(
        member.value for member in Allocate))])
def test_names_are_the_modules_own(file, array, names):
    assert names_in_c(file, array) == names


def test_number_of_buckets_is_the_modules_own():
    text = (KMOD / 'dss_state.h').read_text()
    assert '#define DSS_LATENCY_BUCKETS\t%d' % table.LATENCY_BUCKETS in text


def test_constructor_comes_back():
    made = TargetTable(2048, '8:1', '8:2', 512, 'writethrough', 'lru', 4,
                       255, 60, 30, 0)
    assert table.parse_table(made.line()) == made
    assert made.line() == (
        '0 2048 dss 8:1 8:2 512 12 writethrough lru grain 4 meta_class 255 '
        'high 60 low 30 idle_ms 0')


@pytest.mark.parametrize('line, word, text', [
    ('', 1, 'only 0 words'), ('0 9 linear 8:1 0 0 0', 3, 'dss'),
    ('0 9 dss 8:1 8:2 512 2 lru', 7, '2 feature words'),
    ('0 9 dss 8:1 8:2 512 1 sideways', 8, 'sideways'),
    ('0 9 dss 8:1 8:2 512 1 high', 9, 'None'),
    ('0 x dss 8:1 8:2 512 0', 2, "'x'")])
def test_bad_table_names_the_word(line, word, text):
    with pytest.raises(BadLine, match='word %d: .*%s' % (word, text)):
        table.parse_table(line)


def test_status():
    status = table.parse_status(STATUS)
    assert (status.health, status.used, status.slots, status.dirty) == \
        ('ok', 12, 100, 3)
    assert (status.read_hits, status.write_hits, status.misses) == (7, 5, 9)
    assert (status.promotions, status.bypasses, status.evictions,
            status.cleaned) == (8, 1, 2, 4)
    assert status.classes == {1: (2, 0), 11: (10, 3)}
    assert status.dirty_bytes == 40 * 4096


@pytest.mark.parametrize('old, new, word', [
    (' dss 1 ', ' dss 2 ', 1), (' ok ', ' fine ', 2), ('12/100', '12', 7),
    (' 9 ', ' -9 ', 12), ('11:10:3', '40:1:1', 20), ('11:10:3', '1:1', 20)])
def test_bad_status_names_the_word(old, new, word):
    with pytest.raises(BadLine, match='word %d:' % word):
        table.parse_status(STATUS.replace(old, new, 1))


@given(st.dictionaries(st.integers(0, 31), rows))
def test_class_rows_come_back(rows):
    message = table.classes_message(rows)
    assert message.split()[0] == 'classes'
    assert table.parse_rows('\n'.join(message.split()[1:])) == rows


@pytest.mark.parametrize('row', [
    '1,2', '1,1,room,back,0,65536,1,0,-',
    '40,1,room,back,0,65536,1,0,-,65536',
    '1,1,some,back,0,65536,1,0,-,65536', '1,1,room,back,9,8,1,0,-,65536',
    '1,1,room,back,0,65536,1,0,shiny,65536',
    '1,1,never,back,0,65536,1,0,pin,65536',
    '1,1,room,back,0,65536,1,0,-,65536,fifo',
    '1,1,room,back,0,65536,1,0,-,65536,lru,1',
    '1,1,room,back,0,65536,1,0,-,65537', '1,1,room,back,0,65536,1,0,-,x',
    'x,1,room,back,0,65536,1,0,-,65536'])
def test_bad_rows_are_refused(row):
    with pytest.raises(BadLine):
        table.parse_row(row)


def test_rows_of_a_class_table():
    rows = control_classes.rows_of(ClassTable.of([
        ClassSpec(0, 'unclassified', 0, Allocate.ROOM),
        ClassSpec(11, 'bronze', 100, inner='gdsf'),
        ClassSpec(12, 'silver', 200, inner='sieve'),
        ClassSpec(25, 'gold', 900, floor=0.1, pin=True, dirty_cap=0.5)]))
    assert table.classes_message(rows) == (
        'classes 0,0,room,back,0,65536,1,0,-,65536 '
        # What only the engine of files knows is lru here.
        '11,100,always,back,0,65536,1,0,-,65536 '
        '12,200,always,back,0,65536,1,0,-,65536,sieve '
        '25,900,always,back,6554,65536,1,0,pin,32768 '
        # Cold copies of silver; those of bronze are bronze.
        '31,200,always,back,0,65536,1,0,passing,65536')


def test_counters():
    counters = table.parse_stats('class=11 misses=3 bypass_room=2\n'
                                 'commits=4 intents=1\n')
    assert counters.classes == {11: {'misses': 3, 'bypass_room': 2}}
    assert counters.device == {'commits': 4, 'intents': 1}
    with pytest.raises(BadLine, match='word 2'):
        table.parse_stats('commits=4\ncommits\n')


def test_latency():
    latency, = table.parse_latency(
        'class=11 op=read count=100 total_us=5000 max_us=900 buckets=%s'
        % ','.join(['0'] * 6 + ['98', '0', '0', '0', '2'] + ['0'] * 15))
    assert (latency.class_id, latency.op, latency.mean_us) == (11, 'read', 50)
    assert latency.percentile_us(50) == 64
    assert latency.percentile_us(98) == 64
    # The bucket ends at 1,024 us, but nothing took longer than 900.
    assert latency.percentile_us(99) == 900
    for bad in ('class=1 op=swim', 'class=1 op=read count=1 total_us=1 '
                'max_us=1 buckets=1,x'):
        with pytest.raises(BadLine):
            table.parse_latency(bad)


@given(st.lists(st.integers(0, 1 << 26), min_size=1, max_size=200),
       st.floats(1, 100))
def test_percentile_is_never_below_the_true_one(times, percent):
    """And never more than twice of it, but for what is under 1 us."""
    buckets = [0] * table.LATENCY_BUCKETS
    for duration in times:
        buckets[min(duration.bit_length(), table.LATENCY_BUCKETS - 1)] += 1
    latency = Latency(1, 'read', len(times), sum(times), max(times),
                      tuple(buckets))
    ordered = sorted(times)
    rank = max(1, -(-len(times) * percent // 100))
    true = ordered[min(len(times), int(rank)) - 1]
    assert latency.percentile_us(percent) >= true
    if true < 1 << (table.LATENCY_BUCKETS - 2):
        assert latency.percentile_us(percent) <= max(1, 2 * true)
