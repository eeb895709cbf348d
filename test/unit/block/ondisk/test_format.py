"""Metadata of dm-dss: the same as the C's, and nothing read unchecked."""

import dataclasses
import pathlib
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rigs import block_images as images

from swift_dss import block as block_room
from swift_dss.block.ondisk.blocks import (
    BLOCK_BYTES, BLOCK_SECTORS, DamagedBlock, crc32c, flip, flipped_bit,
    is_sound, seal)
from swift_dss.block.ondisk.geometry import (
    CHUNK_MAX, CHUNK_MIN, DATA_ALIGN, GRAINS_MAX, HEAD, RECORD, SLOTS_MAX,
    Geometry, plan_segment)
from swift_dss.block.ondisk.superblock import (
    CLASS, NO_DIRTY, SAMPLE_FIRST, SAMPLE_SPREAD, SEGMENT, SEGMENTS, SUPER,
    SUPER_CLEAN, SUPER_FAILED, SUPER_LAST, SUPER_MAGIC, SUPER_ORIGIN_SUM,
    SUPER_SECTORS, SUPER_TAIL, VERSION, VERSION_MIN, build_super, fresh,
    parse_super)
from swift_dss.block.ondisk.table_block import (
    NO_OBLOCK, TABLE_MAGIC, Record, TableBlock, build_block, parse_block)
from swift_dss.core.errors import BadClassInput
from swift_dss.strategy.eviction.chunks import ChunkRow, Inner

KMOD = pathlib.Path(block_room.__file__).parent / 'kmod'
CONSTANTS = {
    'DSS_BLOCK_BYTES': BLOCK_BYTES,
    'DSS_BLOCK_SECTORS': BLOCK_SECTORS,
    'DSS_SUPER_SECTORS': SUPER_SECTORS,
    'DSS_DATA_ALIGN': DATA_ALIGN, 'DSS_SEGMENTS': SEGMENTS,
    'DSS_SUPER_MAGIC': SUPER_MAGIC,
    'DSS_TABLE_MAGIC': TABLE_MAGIC, 'DSS_VERSION': VERSION,
    'DSS_SUPER_CLEAN': SUPER_CLEAN,
    'DSS_SUPER_FAILED': SUPER_FAILED,
    'DSS_SUPER_ORIGIN_SUM': SUPER_ORIGIN_SUM,
    'DSS_VERSION_MIN': VERSION_MIN,
    'DSS_SAMPLE_FIRST': SAMPLE_FIRST,
    'DSS_SAMPLE_SPREAD': SAMPLE_SPREAD,
    'DSS_NO_OBLOCK': NO_OBLOCK}
TAIL = SUPER.size + SEGMENTS * SEGMENT.size
LAST = TAIL + SUPER_TAIL.size + 32 * CLASS.size
#: Structure, member: the offset at which Python reads it.
OFFSETS = {
    ('dss_super', 'version'): 4, ('dss_super', 'magic'): 8,
    ('dss_super', 'uuid'): 16, ('dss_super', 'generation'): 32,
    ('dss_super', 'seq'): 40, ('dss_super', 'commit_seq'): 48,
    ('dss_super', 'flags'): 56, ('dss_super', 'table_sum'): 60,
    ('dss_super', 'chunk_sectors'): 64, ('dss_super', 'grain_sectors'): 68,
    ('dss_super', 'record_bytes'): 72, ('dss_super', 'nr_segments'): 76,
    ('dss_super', 'origin_sectors'): 80,
    ('dss_super', 'segments'): SUPER.size,
    ('dss_super', 'meta_class'): TAIL, ('dss_super', 'strategy'): TAIL + 1,
    ('dss_super', 'mode'): TAIL + 2,
    ('dss_super', 'classes'): TAIL + SUPER_TAIL.size,
    ('dss_super', 'twin_seq'): LAST, ('dss_super', 'origin_id'): LAST + 8,
    ('dss_super', 'origin_sum'): LAST + 24,
    ('dss_super', 'no_dirty_parts'): LAST + SUPER_LAST.size,
    ('dss_disk_segment', 'table_sector'): 0,
    ('dss_disk_segment', 'data_sector'): 8,
    ('dss_disk_segment', 'first_slot'): 16,
    ('dss_disk_segment', 'nr_slots'): 20,
    ('dss_disk_segment', 'first_region'): 24,
    ('dss_disk_segment', 'nr_regions'): 28,
    ('dss_disk_class', 'rank'): 0, ('dss_disk_class', 'floor_parts'): 4,
    ('dss_disk_class', 'cap_parts'): 8, ('dss_disk_class', 'weight'): 12,
    ('dss_disk_class', 'cutoff_sectors'): 16,
    ('dss_disk_class', 'allocate'): 20,
    ('dss_disk_class', 'write_mode'): 21, ('dss_disk_class', 'flags'): 22,
    ('dss_disk_class', 'present'): 23,
    ('dss_table_head', 'magic'): 4, ('dss_table_head', 'generation'): 8,
    ('dss_table_head', 'seq'): 16, ('dss_table_head', 'region'): 24,
    ('dss_table_head', 'nr_records'): 28,
    ('dss_table_head', 'record_bytes'): 30,
    ('dss_record', 'oblock'): 0, ('dss_record', 'recency'): 8,
    ('dss_record', 'class_id'): 12, ('dss_record', 'flags'): 13,
    ('dss_record', 'head_check'): 14,
    ('dss_record', 'bits'): RECORD.size}
SIZES = {'dss_disk_segment': SEGMENT.size,
         'dss_disk_class': CLASS.size,
         'dss_table_head': HEAD.size,
         'dss_record': RECORD.size,
         'dss_super': LAST + SUPER_LAST.size + NO_DIRTY.size}


def asked_of_c(tmp_path, header, values):
    """What a C program that includes the header prints for expressions."""
    if not shutil.which('gcc'):
        pytest.skip('no C compiler')
    source = tmp_path / 'ask.c'
    source.write_text(
        '#include <stddef.h>\n#include <stdio.h>\n'
        '#define __packed __attribute__((packed))\n'
        '#include "%s"\nint main(void) {\n%s\nreturn 0; }\n' % (
            header, '\n'.join('printf("%%llu\\n", (unsigned long long)(%s));'
                              % value for value in values)))
    subprocess.run(['gcc', '-Wall', '-Werror', '-o', tmp_path / 'ask',
                    source], check=True)
    return [int(line) for line in subprocess.run(
        [tmp_path / 'ask'], check=True, stdout=subprocess.PIPE
    ).stdout.split()]


def test_header_and_python_agree(tmp_path):
    expressions = list(CONSTANTS) + [
        'offsetof(struct %s, %s)' % pair for pair in OFFSETS] + [
        'sizeof(struct %s)' % name for name in SIZES]
    expected = list(CONSTANTS.values()) + list(OFFSETS.values()) + list(
        SIZES.values())
    answers = asked_of_c(tmp_path, KMOD / 'dss_format.h', expressions)
    assert dict(zip(expressions, answers)) == dict(
        zip(expressions, expected))


def test_every_constant_and_member_of_the_header_is_compared():
    text = (KMOD / 'dss_format.h').read_text()
    names = set(re.findall(r'^#define (DSS_\w+)[ \t]+\S', text, re.M))
    assert names == set(CONSTANTS)
    for struct, body in re.findall(r'struct (\w+) \{(.*?)\} __packed',
                                   text, re.S):
        members = set(re.findall(
            r'^\s+(?:__\w+|struct \w+) (\w+)(?:\[\w*\])?;', body, re.M))
        compared = {member for name, member in OFFSETS if name == struct}
        assert members - compared <= {'csum', 'reserved'}, struct


def test_sizes_of_the_module_and_python_agree():
    text = (KMOD / 'dss_request.h').read_text() + (
        KMOD / 'core' / 'dss_core.h').read_text()
    sizes = dict(re.findall(r'^#define (DSS_\w+)\s+(0x[0-9a-f]+|[0-9]+)',
                            text, re.M))
    assert {name: int(sizes[name], 0) for name in (
        'DSS_CHUNK_MIN', 'DSS_CHUNK_MAX', 'DSS_GRAINS_MAX',
        'DSS_SLOTS_MAX')} == {
            'DSS_CHUNK_MIN': CHUNK_MIN,
            'DSS_CHUNK_MAX': CHUNK_MAX,
            'DSS_GRAINS_MAX': GRAINS_MAX,
            'DSS_SLOTS_MAX': SLOTS_MAX}


def test_checksum_is_crc32c():
    # The check value of CRC-32/ISCSI, whose end is inverted.
    assert crc32c(b'123456789'[:8]) ^ 0xffffffff == 0x6087809a


geometries = st.sampled_from([8, 16, 32, 64, 256, 512, 2048]).flatmap(
    lambda chunk: st.builds(
        Geometry, st.just(chunk), st.sampled_from(
            [grain for grain in (1, 2, 4, 8)
             if grain <= chunk and chunk // grain <= 256])))
rows = st.builds(
    ChunkRow, rank=st.integers(0, 1000000),
    floor_parts=st.integers(0, 30000), cap_parts=st.integers(30000, 65536),
    dirty_cap_parts=st.integers(0, 65536),
    weight=st.integers(1, 1000), cutoff_sectors=st.integers(0, 1 << 32 - 1),
    inner=st.sampled_from(list(Inner)))


def records(geometry):
    grains = st.integers(0, (1 << geometry.grains) - 1)
    return st.builds(
        lambda oblock, recency, class_id, valid, dirty: Record(
            oblock, recency, class_id, valid, valid & dirty),
        st.integers(0, (1 << 48) - 1), st.integers(0, (1 << 32) - 1),
        st.integers(0, 31), grains, grains) | st.just(Record(None))


@given(geometries, st.integers(8192, 1 << 24), st.dictionaries(
    st.integers(0, 31), rows), st.integers(1, (1 << 64) - 1))
def test_superblock_comes_back(geometry, sectors, classes, seq):
    made = dataclasses.replace(
        fresh(geometry, sectors, 1 << 20, bytes(range(16)), 7,
                     classes), seq=seq)
    block = build_super(made)
    assert len(block) == 4096
    assert parse_super(block) == made


@given(st.data())
def test_table_block_comes_back(data):
    geometry = data.draw(geometries)
    superblock = fresh(geometry, 1 << 18, 1 << 20, bytes(16), 9)
    count = superblock.region_slots(0)[1]
    rows_of_it = data.draw(st.lists(records(geometry), min_size=count,
                                    max_size=count)
                           if count < 8 else st.lists(
                               records(geometry), min_size=8, max_size=8))
    rows_of_it += [Record(None)] * (count - len(rows_of_it))
    made = TableBlock(9, 12, 0, tuple(rows_of_it))
    block = build_block(made, geometry)
    assert parse_block(block, superblock, 0) == made


@given(st.integers(0, 4095), st.integers(0, 7))
def test_one_flipped_bit_is_found_and_known(at, bit):
    block = build_super(images.fresh())
    damaged = flip(block, at * 8 + bit)
    with pytest.raises(DamagedBlock):
        parse_super(damaged)
    assert flipped_bit(damaged) == at * 8 + bit


@given(st.sets(st.integers(0, 32767), min_size=2, max_size=2))
def test_two_flipped_bits_are_never_taken_for_one(bits):
    block = build_super(images.fresh())
    for bit in bits:
        block = flip(block, bit)
    assert not is_sound(block)
    assert flipped_bit(block) is None


@given(st.binary(max_size=5000))
def test_noise_is_no_superblock(noise):
    with pytest.raises(DamagedBlock):
        parse_super(noise)


@given(st.integers(0, 4091), st.integers(0, 255))
def test_lies_under_a_right_checksum_are_refused_or_in_bounds(at, value):
    block = bytearray(build_super(images.fresh()))
    block[4 + at] = value
    try:
        superblock = parse_super(seal(bytes(block)))
    except DamagedBlock:
        return
    last = superblock.nr_regions - 1
    assert superblock.slot_sector(superblock.nr_slots - 1) + \
        superblock.chunk_sectors <= superblock.end
    assert superblock.region_sector(last,
                                    1) < superblock.segments[-1].data_sector
    assert not [row for row in superblock.classes.values() if row.fault()]


def test_block_of_another_region_is_refused():
    superblock = images.fresh()
    block = build_block(TableBlock(
        images.GENERATION, 3, 1, (Record(None),) * superblock.region_slots(
            1)[1]), superblock.geometry)
    parse_block(block, superblock, 1)
    with pytest.raises(DamagedBlock, match='region 0'):
        parse_block(block, superblock, 0)


@pytest.mark.parametrize('chunk, grain', [
    (0, 1), (4, 4), (24, 8), (4096, 8), (8, 3), (8, 16), (2048, 4)])
def test_sizes_that_cannot_be(chunk, grain):
    with pytest.raises(BadClassInput):
        Geometry(chunk, grain)


@given(geometries, st.integers(0, 1 << 22))
def test_segment_fills_what_it_is_given(geometry, end):
    segment = plan_segment(geometry, 16, end)
    if segment is None:
        assert end < DATA_ALIGN + geometry.chunk_sectors
        return
    assert segment.end(geometry) <= end
    assert segment.data_sector % DATA_ALIGN == 0
    assert segment.data_sector >= 16 + segment.nr_regions * 16
    # What is left over: less than one alignment of the slots, a chunk, and
    # what a table for slots that the table itself displaced would take.
    table = segment.nr_regions * 2 * BLOCK_SECTORS
    assert end - segment.end(geometry) < \
        DATA_ALIGN + geometry.chunk_sectors + table // 50


def test_segment_is_planned_as_the_module_plans_it(tmp_path):
    # The C function as it is in the source, over stand-ins for its types.
    text = (KMOD / 'dss_probe.c').read_text()
    body = re.search(r'static bool dss_plan_segment\(.*?\n}\n', text,
                     re.S).group(0)
    header = tmp_path / 'plan.h'
    header.write_text('''
#include <stdbool.h>
typedef unsigned long long u64; typedef unsigned int u32;
typedef u64 sector_t;
#define DIV_ROUND_UP_ULL(a, b) (((a) + (b) - 1) / (b))
#define round_up(a, b) (((a) + (b) - 1) / (b) * (b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define min_t(t, a, b) ((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define DSS_BLOCK_SECTORS 8
#define DSS_DATA_ALIGN 2048
#define DSS_SLOTS_MAX 0x7fffffffU
struct dss { unsigned chunk_shift, per_region, nr_slots, nr_regions; };
struct dss_segment { sector_t table_sector, data_sector;
  u32 first_slot, nr_slots, first_region, nr_regions; };
''' + body + '''
static u64 planned(unsigned shift, unsigned per, u64 end)
{
  struct dss d = { shift, per, 0, 0 };
  struct dss_segment s = { 0 };
  if (!dss_plan_segment(&d, 16, end, &s)) return 0;
  return s.data_sector * 1000003 + s.nr_slots * 101ULL + s.nr_regions;
}
''')
    cases = [(Geometry(chunk, grain), end)
             for chunk, grain in ((8, 8), (8, 1), (32, 8), (512, 8),
                                  (2048, 8))
             for end in (100, 2100, 4095, 4096, 9999, 65536, 1 << 20,
                         (1 << 31) + 12345)]
    answers = asked_of_c(tmp_path, header, [
        'planned(%d, %d, %dULL)' % (geometry.chunk_sectors.bit_length() - 1,
                                    geometry.per_region, end)
        for geometry, end in cases])
    expected = []
    for geometry, end in cases:
        segment = plan_segment(geometry, 16, end)
        expected.append(0 if segment is None else segment.data_sector * 1000003
                        + segment.nr_slots * 101 + segment.nr_regions)
    assert answers == expected
    assert any(expected)
