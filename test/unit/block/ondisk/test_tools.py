"""Check, dump and repair: every damage is found or harmless, and what can
be read is never dropped."""

import dataclasses
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.rigs import block_images as images

from swift_dss.block.ondisk.device import (
    SsdDevice, apply, copy_to, salvage, save_undo, undo)
from swift_dss.block.ondisk.findings import Chunk, Kind, NotACache
from swift_dss.block.ondisk.geometry import Geometry, plan_segment
from swift_dss.block.ondisk.reading import examine
from swift_dss.block.ondisk.repair import (
    DECISIONS, NeedsDecision, plan, rebuild)
from swift_dss.block.ondisk.superblock import SUPER_FAILED, build_super
from swift_dss.block.ondisk.table_block import Record, TableBlock, build_block
from swift_dss.core.errors import BadConfig

#: A block as a power cut or a bad disk leaves it.
NOISE = bytes(range(1, 255)) * 17

#: Blocks that were written, by sector: the metadata a bit may flip in.
REGION_BLOCKS = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)]


def of(ssd):
    return examine(ssd.read, ssd.sectors)


def contents(examined):
    return {oblock: chunk.record for oblock, chunk in examined.chunks.items()}


def wanted(records):
    return {record.oblock: record for record in records.values()}


def mend(ssd, examined, decision=''):
    made = plan(examined, ssd.read, decision)
    for place in made.writes:
        ssd.write(place.sector, place.wanted)
    return made


def metadata_sectors(superblock):
    return [0, 8] + [superblock.region_sector(region, copy)
                     for region, copy in REGION_BLOCKS]


@pytest.mark.parametrize('clean', [True, False])
def test_sound_cache(clean):
    ssd, superblock, records = images.used(clean)
    examined = of(ssd)
    assert (examined.exit_code, examined.refusals) == (0, [])
    assert examined.superblock == superblock
    assert contents(examined) == wanted(records)
    assert [bool(finding) for finding in examined.findings] == \
        [] if clean else [True]
    assert examined.exit_code == 0
    assert plan(examined, ssd.read).writes == []


def test_fresh_cache_is_sound_and_empty():
    ssd, superblock = images.Ssd(), images.fresh()
    ssd.write(superblock.sector, build_super(superblock))
    examined = of(ssd)
    assert (examined.exit_code, examined.chunks, examined.refusals) == (0, {},
                                                                        [])


@pytest.mark.parametrize('clean', [True, False])
@settings(max_examples=80, deadline=None,
          suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 6), st.integers(0, 32767))
def test_every_flipped_bit_is_found_and_put_right(clean, which, bit):
    ssd, superblock, records = images.used(clean)
    before = bytes(ssd.data)
    ssd.flip(metadata_sectors(superblock)[which], bit)
    examined = of(ssd)
    assert examined.exit_code == 1
    # What the cache has is known, whatever bit it was.
    assert contents(examined) == wanted(records)
    mend(ssd, examined)
    assert of(ssd).exit_code == 0
    assert bytes(ssd.data) == before


@pytest.mark.parametrize('clean', [True, False])
@settings(max_examples=80, deadline=None,
          suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.integers(0, 6), st.lists(
    st.integers(0, 32767), min_size=1, max_size=40), min_size=1,
    max_size=4), st.sampled_from(DECISIONS))
def test_no_damage_is_silent_and_no_sound_chunk_is_dropped(
        clean, damage, decision):
    ssd, superblock, records = images.used(clean)
    sectors = metadata_sectors(superblock)
    for which, bits in damage.items():
        for bit in bits:
            ssd.flip(sectors[which], bit)
    changed = [which for which in damage if ssd.read(
        sectors[which], 8) != images.used(clean)[0].read(
            sectors[which], 8)]
    try:
        examined = of(ssd)
    except NotACache:
        assert {0, 1} <= set(changed)
        return
    assert bool(examined.findings) >= bool(changed)
    if not changed:
        return
    try:
        made = mend(ssd, examined, decision)
    except NeedsDecision:
        assert examined.hopeless or decision == 'older'
        return
    after = of(ssd)
    assert after.refusals == []
    assert after.exit_code == 0
    current = {2: 0, 3: 0, 4: 1, 5: 1, 6: 2}
    hurt = {current[which] for which in changed if which >= 2}
    lost = set(range(3)) if examined.super_in_doubt and decision == 'drop' \
        else hurt
    per = superblock.geometry.per_region
    kept = {record.oblock: record for slot, record in records.items()
            if slot // per not in lost}
    left = contents(after)
    assert {oblock: left.get(oblock) for oblock in kept} == kept
    # Nothing dirty of what was known is gone without its bytes.
    salvaged = {chunk.record.oblock for chunk in made.salvage}
    assert set(examined.dirty) <= set(after.dirty) | salvaged


def test_older_copy_may_be_damaged_without_harm():
    ssd, superblock, records = images.used()
    ssd.write(superblock.region_sector(0, 0), NOISE[:4096])
    examined = of(ssd)
    assert (examined.worst, examined.refusals) == (Kind.SPARE, [])
    assert contents(examined) == wanted(records)
    mend(ssd, examined)
    assert of(ssd).exit_code == 0


def test_lost_copy_that_counted_is_in_doubt_after_a_clean_stop():
    ssd, superblock, _records = images.used()
    ssd.write(superblock.region_sector(0, 1), NOISE[:4096])
    examined = of(ssd)
    assert (examined.exit_code, examined.doubtful) == (4, [0])
    assert examined.refusals == ['a table block is older than the clean stop']
    with pytest.raises(NeedsDecision, match='may have been the one'):
        plan(examined, ssd.read)


def test_drop_forgets_what_is_in_doubt_and_salvages_its_dirty_bytes():
    ssd, superblock, records = images.used()
    ssd.write(superblock.region_sector(0, 1), NOISE[:4096])
    made = mend(ssd, of(ssd), 'drop')
    assert [(chunk.slot, chunk.record.oblock) for chunk in made.salvage] == \
        [(0, 40)]
    after = of(ssd)
    per = superblock.geometry.per_region
    assert contents(after) == wanted(
        {slot: record for slot, record in records.items() if slot >= per})
    assert after.exit_code == 0
    assert not after.superblock.is_clean


def test_commit_that_a_crash_cut_off_is_no_damage():
    ssd, superblock, records = images.used(clean=False)
    sector = superblock.region_sector(2, 0)
    torn = build_block(TableBlock(
        images.GENERATION, 8, 2,
        (Record(None),) * superblock.region_slots(2)[1]),
        superblock.geometry)
    ssd.write(sector, torn[:512] + NOISE[:4096 - 512])
    examined = of(ssd)
    assert (examined.exit_code, examined.refusals) == (0, [])
    assert contents(examined) == wanted(records)
    assert 'cut off' in examined.findings[-1].text


def test_lost_copy_of_an_earlier_commit_is_in_doubt_after_a_crash():
    ssd, superblock, _records = images.used(clean=False)
    sector = superblock.region_sector(1, 0)
    block = bytearray(ssd.read(sector, 8))
    block[100:200] = NOISE[:100]
    ssd.write(sector, bytes(block))
    examined = of(ssd)
    assert (examined.exit_code, examined.doubtful) == (4, [1])


def test_wrong_twin_that_trusts_the_older_copy_is_seen():
    """What a kernel that looks at checksums alone would serve."""
    ssd, superblock, records = images.used(clean=False)
    sector = superblock.region_sector(1, 0)
    block = bytearray(ssd.read(sector, 8))
    block[100:200] = NOISE[:100]
    ssd.write(sector, bytes(block))
    assert contents(of(ssd)) != wanted(records)


def test_block_that_went_back_in_time_is_in_doubt():
    ssd, superblock, _records = images.used()
    sector = superblock.region_sector(2, 1)
    images.commit(ssd, superblock, 2, 4, 1, {})
    assert ssd.read(sector, 8) != bytes(4096)
    examined = of(ssd)
    assert examined.exit_code == 4
    assert examined.doubtful == list(range(superblock.nr_regions))
    assert 'nothing says which' in examined.findings[0].text


def test_failed_ssd_is_emptied_and_never_trusted():
    ssd, superblock, records = images.used(clean=False)
    images.mark(ssd, superblock, SUPER_FAILED)
    examined = of(ssd)
    assert examined.exit_code == 4
    with pytest.raises(NeedsDecision, match='only "drop"'):
        plan(examined, ssd.read, 'older')
    made = mend(ssd, examined, 'drop')
    assert {chunk.record.oblock for chunk in made.salvage} == {
        record.oblock for record in records.values() if record.dirty}
    after = of(ssd)
    assert (after.exit_code, after.chunks) == (0, {})


def test_newer_of_two_records_of_a_chunk_counts():
    ssd, superblock, records = images.used(clean=False)
    per = superblock.geometry.per_region
    newer = Record(7, 11, 4, 1, 1)
    images.commit(ssd, superblock, 3, 8, 1, {3 * per: newer})
    examined = of(ssd)
    assert examined.exit_code == 0
    assert contents(examined) == {**wanted(records), 7: newer}
    assert examined.replaced == [0]


def test_chunk_twice_in_one_commit_is_in_doubt():
    ssd, superblock, _records = images.used(clean=False)
    per = superblock.geometry.per_region
    images.commit(ssd, superblock, 3, 7, 1, {3 * per: Record(7, 1, 4, 1, 1)})
    examined = of(ssd)
    assert examined.refusals == ['chunk 7 is in two slots']
    with pytest.raises(NeedsDecision):
        plan(examined, ssd.read, 'older')
    made = mend(ssd, examined, 'drop')
    assert 3 * per in {chunk.slot for chunk in made.salvage}
    assert of(ssd).refusals == []


def test_dirty_chunk_beyond_the_origin_has_no_repair():
    ssd, superblock, _records = images.used(clean=False)
    far = superblock.origin_sectors // superblock.chunk_sectors
    images.commit(ssd, superblock, 3, 8, 1, {
        3 * superblock.geometry.per_region: Record(far, 1, 4, 1, 1)})
    examined = of(ssd)
    assert examined.exit_code == 4
    for decision in DECISIONS:
        with pytest.raises(NeedsDecision, match='size'):
            plan(examined, ssd.read, decision)


def test_ssd_that_shrank_is_refused():
    ssd, _superblock, _records = images.used()
    examined = examine(ssd.read, images.SSD_SECTORS // 2)
    assert examined.exit_code == 4
    assert 'smaller' in examined.refusals[0]


def test_something_else_is_no_cache():
    ssd = images.Ssd()
    with pytest.raises(NotACache):
        of(ssd)
    ssd.write(0, NOISE)
    with pytest.raises(NotACache):
        of(ssd)
    with pytest.raises(NotACache):
        examine(lambda sector, count: b'', 0)


def test_superblocks_that_are_gone_are_rebuilt():
    ssd, superblock, records = images.used(clean=False)
    ssd.write(0, NOISE[:4096])
    ssd.write(8, NOISE[100:4196])
    examined = rebuild(
        ssd.read, ssd.sectors, images.GEOMETRY, images.ORIGIN_SECTORS)
    assert contents(examined) == wanted(records)
    with pytest.raises(NeedsDecision):
        plan(examined, ssd.read)
    mend(ssd, examined, 'older')
    after = of(ssd)
    assert (after.exit_code, after.refusals) == (0, [])
    assert contents(after) == wanted(records)


@pytest.mark.parametrize('geometry', [Geometry(512, 8), Geometry(2048, 8)])
def test_superblocks_are_not_rebuilt_with_wrong_sizes(geometry):
    ssd, _superblock, _records = images.used(clean=False)
    ssd.write(0, bytes(8192))
    with pytest.raises(NotACache):
        rebuild(ssd.read, ssd.sectors, geometry,
                             images.ORIGIN_SECTORS)


def test_plan_can_be_looked_at_before_it_is_carried_out():
    ssd, superblock, _records = images.used()
    ssd.flip(superblock.region_sector(0, 1), 777)
    before = bytes(ssd.data)
    made = plan(of(ssd), ssd.read)
    assert examine(made.over(ssd.read), ssd.sectors).exit_code == 0
    assert bytes(ssd.data) == before


# -- files -------------------------------------------------------------------

@pytest.fixture
def damaged_file(tmp_path):
    ssd, superblock, _records = images.used()
    ssd.flip(superblock.region_sector(0, 1), 777)
    path = tmp_path / 'ssd'
    path.write_bytes(ssd.data)
    return str(path)


def test_repair_in_place_can_be_undone(damaged_file, tmp_path):
    with open(damaged_file, 'rb') as source:
        before = source.read()
    kept = str(tmp_path / 'undo')
    with SsdDevice(damaged_file, write=True) as device:
        made = plan(examine(device.read, device.sectors), device.read)
        save_undo(kept, damaged_file, made.writes)
        apply(device, made.writes)
        assert examine(device.read, device.sectors).exit_code == 0
        assert undo(device, kept) == len(made.writes) == 1
    with open(damaged_file, 'rb') as source:
        assert source.read() == before


def test_undo_file_is_never_written_over(tmp_path):
    path = tmp_path / 'undo'
    path.write_text('mine')
    with pytest.raises(BadConfig, match='exists'):
        save_undo(str(path), 'ssd', [])
    assert path.read_text() == 'mine'


@pytest.mark.parametrize('text', ['', '{}', '{"blocks": [{"sector": 0}]}',
                                  '{"blocks": [{"sector": 0, "bytes": "*"}]}'])
def test_what_is_no_undo_file_changes_nothing(damaged_file, tmp_path, text):
    (tmp_path / 'undo').write_text(text)
    with SsdDevice(damaged_file, write=True) as device:
        with pytest.raises(BadConfig, match='not an undo file'):
            undo(device, str(tmp_path / 'undo'))


def test_copy_is_whole_and_mended(damaged_file, tmp_path):
    target = str(tmp_path / 'copy')
    with SsdDevice(damaged_file) as device:
        made = plan(examine(device.read, device.sectors), device.read)
        copy_to(device, target, made.writes)
    with open(damaged_file, 'rb') as source, open(target, 'rb') as copy:
        expected = bytearray(source.read())
        for place in made.writes:
            expected[place.sector * 512:
                     place.sector * 512 + 4096] = place.wanted
        assert copy.read() == expected
    with SsdDevice(target) as device:
        assert examine(device.read, device.sectors).exit_code == 0


def test_salvage_keeps_bytes_and_where_they_belong(tmp_path):
    ssd, superblock, records = images.used()
    body = bytes([7]) * (8 * 512)
    ssd.write(superblock.slot_sector(0), body)
    path = tmp_path / 'ssd'
    path.write_bytes(ssd.data)
    with SsdDevice(str(path)) as device:
        salvage(device, superblock, [
            Chunk(0, records[0])], str(tmp_path / 'kept'))
    index = json.loads((tmp_path / 'kept' / 'index.json').read_text())
    assert index == [{
        'file': 'chunk-7-slot-0', 'slot': 0, 'class': 11,
        'origin_sector': 7 * 8, 'sectors': 8, 'grain_sectors': 2,
        'valid': [0, 1, 2, 3], 'dirty': [0, 2]}]
    assert (tmp_path / 'kept' / 'chunk-7-slot-0').read_bytes() == body


def test_grown_ssd_has_two_segments_and_all_is_read():
    ssd = images.Ssd(2 * images.SSD_SECTORS)
    first = images.fresh().segments[0]
    geometry = images.GEOMETRY
    begin = -(-first.end(geometry) // 8) * 8
    second = plan_segment(geometry, begin, ssd.sectors, first)
    superblock = dataclasses.replace(
        images.fresh(), segments=(first, second), seq=4, flags=0)
    ssd.write(superblock.sector, build_super(superblock))
    slot = second.first_slot + 3
    images.commit(ssd, superblock, second.first_region, 9, 1,
                  {slot: Record(77, 1, 3, 0b11, 0b10)})
    examined = of(ssd)
    assert examined.exit_code == 0
    assert examined.chunks[77].slot == slot
    assert superblock.slot_sector(slot) == second.data_sector + 3 * 8
