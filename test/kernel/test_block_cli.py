"""``swift-dss block`` on a real kernel, from create to remove."""

from __future__ import annotations

import json

import guests
import pytest

DEVICES = ('ssd=sata-ssd:64M', 'hdd=hdd:128M')


@pytest.fixture(scope='module')
def said():
    """What each step of ``block_cli.py`` gave in a guest."""
    return guests.found('block_cli.py', devices=DEVICES, memory='1G',
                        timeout=1800)


def parsed(step):
    code, out, err = step
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize('step, text', [
    ('ssd_has_ext4', 'SSD /dev/mapper/s carries ext4; --force writes over'),
    ('ssd_has_raid', 'carries isw_raid_member; --force'),
    ('ssd_is_mounted', 'is mounted on /run/m'),
    ('origin_has_swap', 'origin /dev/mapper/h carries swap; --adopt'),
    ('remove_in_use', 'fast is in use'),
    ('attach_empty', '/dev/mapper/s has no cache: "swift-dss block create"'),
    ('other_origin', 'is the cache of another origin than'),
    ('written_origin', 'does not have the bytes that it had'),
    ('format_dirty', 'dirty chunks')])
def test_what_might_cost_data_is_refused(said, step, text):
    code, _out, err = said[step]
    assert (code, text in err) == (1, True), err


@pytest.mark.parametrize('step, code, text', [
    ('one_device', 78, 'are one device'),
    ('create_again', 78, 'a device fast already'),
    ('bad_table', 78, "'2' is not a share"),
    ('bad_mode', 78, "no mode 'sideways'"),
    ('bad_raw', 71, 'Invalid argument'),
    ('shrink_too_far', 71, 'Invalid argument'),
    ('shrink_typo', 78, 'not a size'), ('in_use', 75, 'in use'),
    ('check_wiped', 8, 'no copy of the superblock'),
    ('attach_none', 69, 'no device x in /run/tab'),
    ('attach_again', 78, 'line 3: 1 words'),
    ('no_device', 69, 'no dm-dss device fast')])
def test_mistakes_are_named(said, step, code, text):
    exit_code, _out, err = said[step]
    assert (exit_code, text in err) == (code, True), err


def test_no_signature_is_left_on_an_ssd_that_was_written_over(said):
    assert parsed(said['forced'])['cache'] == 'new'
    # blkid knows nothing there.
    assert said['forced_signature'][:2] == [2, '']


def test_new_cache_is_empty(said):
    report = parsed(said['create'])
    assert (report['cache'], report['used_slots']) == ('new', 0)
    assert report['slots'] > 1000


def test_status_counts_by_class(said):
    device, = parsed(said['status'])
    assert (device['health'], device['mode'], device['chunk_bytes']) == \
        ('ok', 'writeback', 16384)
    user1, user7 = device['classes']['11'], device['classes']['17']
    assert (user1['name'], user7['name']) == ('user1', 'user7')
    assert (user1['read_hits'], user1['slots']) == (16, 16)
    assert user1['written_bytes'] == user1['read_bytes'] == 16 * 16384
    assert (user7['slots'], user7['written_bytes']) == (16, 16 * 4096)
    reads = user1['latency']['read']
    assert reads['count'] == 16 == sum(reads['buckets'])
    # An SSD that answers within a millisecond, whatever the machine does.
    assert 0 < reads['p50_us'] <= reads['p99.9_us'] <= 1024
    assert reads['p99.9_us'] <= max(reads['max_us'], 1)
    assert device['dirty_bytes'] == 16 * (16384 + 4096 + 4096)


def test_device_of_the_tab_is_attached_warm_and_as_it_says(said):
    code, out, err = said['attach']
    assert (code, out) == (0, '/dev/mapper/fast: attached\n'), err
    assert said['attach_again'][1] == '/dev/mapper/fast: there already\n'
    assert said['attached_differences'] == []
    assert 'high 61 low 31 idle_ms 0' in said['attached_table'][1]


def test_status_is_a_table_for_people(said):
    code, out, _err = said['status_text']
    assert code == 0
    assert 'user1' in out and 'P99.9<=' in out and 'DIRTY' in out


def test_class_table_is_loaded_live_and_whole(said):
    assert said['same_table'][1] == 'fast: was in force already\n'
    assert said['new_table'][1] == 'fast: loaded\n'
    assert '17,90,always,back,0,65536,1,0,-,65536' in said['rows'][1].split()
    assert '20,5,always,back,0,65536,7,512,no-allocate,65536' in \
        said['rows'][1].split()
    assert said['rows_after'] == said['rows']
    assert said['raw'][0] == 0 and 'class=11' in said['raw'][1]


def test_watch_brings_a_changed_file_and_leaves_what_the_kernel_says(said):
    assert '17,80,always,back,0,65536,1,0,-,65536' in \
        said['watched_80'][1].split()
    assert said['watched_90'] == said['watched_bad'] == said['rows']
    code, err = said['watch']
    assert code == 0
    assert err.count('stays as it was') == 1, err
    assert said['state']['classes']['11']['name'] == 'user1'


def test_both_devices_grow_under_the_class_table(said):
    report = parsed(said['resize'])
    assert report['sectors'] == 96 * 2048
    assert report['slots'] > report['slots_before'] + 500
    assert said['resized_differences'] == []
    assert said['resized_rows'] == said['rows']


def test_end_of_the_ssd_is_given_up(said):
    report = parsed(said['shrink'])
    # Eight of 48 MiB, to a whole number of regions.
    assert 400 < report['slots_before'] - report['slots'] < 800
    assert said['shrunk_differences'] == []


def test_clean_stop_is_sound_and_warm(said):
    parsed(said['stop'])
    verdict = parsed(said['check_clean'])
    assert (verdict['verdict'], verdict['clean'], verdict['findings']) == \
        ('note', True, [])
    dump = parsed(said['dump_clean'])
    assert dump['dirty_chunks'] == verdict['dirty_chunks'] > 0
    assert len(dump['segments']) == 2
    assert dump['class_rows']['17']['rank'] == 90
    assert {chunk['origin_sector'] for chunk in dump['chunk_list']
            if chunk['class'] == 11} >= {number * 128 for number in range(16)}
    warm = parsed(said['warm'])
    assert (warm['cache'], warm['used_slots']) == ('warm', dump['chunks'])
    assert said['warm_differences'] == []
    assert said['warm_rows'] == said['rows']


def test_crash_leaves_a_sound_and_warm_cache(said):
    verdict = parsed(said['check_crashed'])
    assert (verdict['exit_code'], verdict['clean'], verdict['starts']) == \
        (0, False, True)
    assert verdict['dirty_chunks'] >= 8
    warm = parsed(said['warm_crashed'])
    assert (warm['cache'], warm['used_slots']) == \
        ('warm', verdict['chunks'])
    assert said['crashed_differences'] == []
    assert said['crashed_rows'] == said['rows']


def test_damage_is_found_and_the_kernel_does_not_start_on_it(said):
    code, out, _err = said['check_damaged']
    verdict = json.loads(out)
    assert (code, verdict['verdict'], verdict['starts']) == \
        (1, 'known', False)
    assert 'one flipped bit' in verdict['findings'][0]['text']
    assert said['start_damaged'][0] == 71


def test_repair_mends_a_copy_and_then_the_ssd(said):
    code, out, _err = said['repair_dry']
    assert (code, json.loads(out)['done']) == (1, False)
    assert parsed(said['repair_copy'])['done']
    assert parsed(said['check_mended'])['verdict'] == 'note'
    assert said['check_original'][0] == 1
    assert parsed(said['repair'])['undo_file'] == '/run/undo.json'
    assert parsed(said['warm_repaired'])['cache'] == 'warm'
    assert said['repaired_differences'] == []


def test_remove_writes_every_byte_back(said):
    # The origin lacked some, or this would show nothing.
    assert len(said['differences_before']) >= 16 * 4
    assert parsed(said['remove'])['written_back'] >= 16
    assert said['origin_differences'] == []
    assert said['compared'] > 150
