"""What is read from the status of the caches, and what is told of it."""

import struct

import pytest

from swift_dss.bench.block import compare, bcache, chunks, targets
from swift_dss.core.errors import BadConfig


def test_a_status_of_dm_cache_is_read():
    told = targets.dm_cache_counters(
        '0 1052672 cache 8 11/4096 128 486/1024 508 1126 237 299 1 486 7 2 '
        'metadata2 writeback 2 migration_threshold 2048 smq 0 rw -')
    assert told == {'hits': 745, 'lookups': 2170, 'read_hits': 508,
                    'reads': 1634, 'promotions': 486, 'demotions': 1,
                    'dirty': 7}


def test_a_status_of_dm_writecache_is_read():
    told = targets.dm_writecache_counters(
        '0 1052672 writecache 0 16000 15000 2 100 40 90 5 6 10 69 0 1 0')
    assert told['read_hits'] == 40 and told['reads'] == 100
    assert told['hits'] == 40 + 90 - 10
    assert told['lookups'] == 190


def test_a_chunk_without_the_bytes_is_no_hit():
    told = targets.dss_counters(
        'class=3 read_hits=10 write_hits=5 misses=7 grain_misses=4\n'
        'class=0 read_hits=1 write_hits=0 misses=1 grain_misses=0\n'
        'commits=2 deferred=1\n')
    assert (told['hits'], told['lookups']) == (12, 24)
    assert told['classes']['3']['hits'] == 11
    assert told['commits'] == 2


@pytest.mark.parametrize('reader, text', [
    (targets.dm_cache_counters, '0 8 cache Fail'),
    (targets.dm_cache_counters, '0 8 linear ' + '1 ' * 20),
    (targets.dm_writecache_counters, '0 8 writecache 0 1'),
    (targets.dss_counters, '')])
def test_another_status_is_refused(reader, text):
    with pytest.raises(targets.TargetFailed, match='not '):
        reader(text)


def test_class_rows_are_those_of_the_target():
    assert targets.dss_rows({'11': 890, '12': 880}) == [
        '11,890,always,back,0,65536,1,0,-,65536,lru',
        '12,880,always,back,0,65536,1,0,-,65536,lru']
    assert targets.dss_rows({}) == []
    assert targets.dss_rows({}, 'sieve') == [
        '0,0,always,back,0,65536,1,0,-,65536,sieve']


def test_the_checksum_of_bcache_is_the_known_one():
    assert bcache.crc64(b'123456789') == 0x62ec59e3f1a4f00a


def test_superblocks_of_bcache_belong_together():
    cache, backing = bcache.superblocks(
        64 << 20, 64 << 10, b'a set of bcaches')
    for content in (cache, backing):
        assert struct.unpack('<Q', content[:8])[0] == bcache.crc64(
            content[8:])
        assert struct.unpack('<Q', content[8:16])[0] == 8
        assert content[56:72] == b'a set of bcaches'
        assert len(content) == 208
    assert struct.unpack('<QHH', cache[184:196]) == (1024, 1, 128)
    with pytest.raises(ValueError, match='127 buckets'):
        bcache.superblocks(127 << 16, 64 << 10, bytes(16))


def test_a_phase_is_what_it_added():
    def look(hits, lookups, reads):
        return {'counters': {
            'hits': hits, 'lookups': lookups, 'classes': {
                '3': {'hits': hits, 'lookups': lookups}}},
            'disks': {'hdd': {'reads': reads, 'busy_ms': 2 * reads}}}

    told = compare.deltas(look(10, 100, 7), look(40, 140, 17))
    assert told['hits'] == {'all': 0.75, '3': 0.75}
    assert told['disks'] == {'hdd': {'reads': 10, 'busy_ms': 20}}
    none = compare.deltas({'counters': {}, 'disks': {}},
                        {'counters': {}, 'disks': {}})
    assert none['hits'] == {}


def test_a_class_that_comes_later_counts_from_nothing():
    before = {'counters': {'hits': 0, 'lookups': 0, 'classes': {}},
              'disks': {}}
    after = {'counters': {'hits': 1, 'lookups': 4, 'classes': {
        '5': {'hits': 1, 'lookups': 4}}}, 'disks': {}}
    assert compare.deltas(before, after)['hits']['5'] == 0.25


def test_unknown_names_are_refused():
    with pytest.raises(BadConfig, match='--setups: zfs'):
        compare.compare(compare.Plan(setups=('zfs',)), print)
    with pytest.raises(BadConfig, match='--workloads: web'):
        compare.compare(compare.Plan(workloads=('web',)), print)


def test_a_missing_trace_is_left_out_and_said(tmp_path):
    said = []
    plan = compare.Plan(workloads=('oltp',), traces=str(tmp_path))
    assert compare.compare(plan, said.append)['workloads'] == []
    assert said == ['left out: %s/oltp.lis.zst: no such trace' % tmp_path]


def _row(setup, chunk, mode, first, second, most):
    return {'setup': setup, 'chunk_kib': chunk, 'mode': mode, 'phases': {
        name: {group: {'mean_us': mean, 'max_us': most}
               for group in ('all', 'read', 'write')}
        for name, mean in (('first', first), ('second', second))}}


def test_the_verdict_tells_means_of_reads_and_of_all_and_the_maximum():
    rows = [_row('no cache', 0, 'back', 1000.0, 1000.0, 2000.0),
            _row('dm-dss', 32, 'back', 400.0, 210.0, 2000.0),
            _row('dm-dss', 64, 'back', 400.0, 210.0, 2000.1),
            _row('dm-dss', 128, 'back', 401.0, 210.0, 1.0),
            _row('dm-dss', 256, 'back', 400.0, 211.0, 1.0),
            _row('dm-cache', 32, 'back', 1.0, 1.0, 1.0)]
    report = {'rows': rows, 'what': 'w', 'plan': {'origin': 'array'}}
    assert chunks.saved(rows[1], rows[0], 'first') == \
        pytest.approx(0.6)
    # Its reads are good enough, its writes are not.
    for phase in rows[3]['phases'].values():
        phase['read'] = dict(phase['read'], mean_us=1.0)
    reads, both, maxima = chunks.verdict(report).splitlines()
    assert reads.startswith('reads: ') and reads.endswith(
        '3 of 4 cells of dm-dss: 32 KiB back, 64 KiB back, 128 KiB back')
    assert both.endswith('2 of 4 cells of dm-dss: 32 KiB back, 64 KiB back')
    assert maxima.endswith(
        '3 of 4 cells of dm-dss: 32 KiB back, 128 KiB back, 256 KiB back')
    assert 'dm-dss 32 KiB, back' in chunks.text(report)


def test_the_table_shows_classes_and_what_is_not_known():
    def phase(hits, disks):
        group = {'requests': 10, 'mb_per_second': 2.0, 'mean_us': 1000.0,
                 'p50_us': 900.0, 'p99_us': 2000.0, 'p999_us': 3000.0,
                 'max_us': 4000.0}
        return {'all': group, 'classes': {'11': group, '12': group},
                'hits': hits, 'disks': disks}

    text = compare.text({'workloads': [{
        'workload': 'cacs', 'what': 'objects', 'names': {11: 'user1'},
        'setups': [
            {'setup': 'dm-dss', 'phases': {'run': phase(
                {'all': 0.5, '11': 0.75}, {'hdd': {
                    'reads': 3, 'writes': 2}})}},
            {'setup': 'ssd', 'phases': {'run': phase({}, {})}}]}]})
    lines = text.splitlines()
    assert lines[0] == 'cacs, run: objects'
    words = [line.split() for line in lines]
    assert ['dm-dss', '10', '50.0', '2.00', '1.000', '0.900', '2.000',
            '3.000', '4.000', '50.0'] in words
    assert any(row[:3] == ['user1', '10', '75.0'] for row in words)
    assert any(row[:3] == ['ssd', '10', '-'] and row[-1] == '-'
               for row in words)
