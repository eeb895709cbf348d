"""dm-dss does what its manual says, on a real kernel."""

from __future__ import annotations

import dss_lab
import pytest


def behaviour(name: str) -> dict:
    report = dss_lab.found('dss_behaviour.py', [name])
    assert isinstance(report, dict)
    return report


def test_clean_stop_keeps_classes_dirty_bytes_order_and_class_table():
    report = behaviour('warm')
    assert report['same'] and report['dirty_kept'] and report['rows']
    assert report['used'] == report['slots']
    assert report['younger_hit'] == 2
    assert report['oldest_missed'] == 1


def test_sieve_keeps_what_was_used_again_and_over_a_clean_stop():
    assert behaviour('sieved') == {
        'rows': True, 'stayed': [0, 4, 20, 22, 2000],
        'left': [5, 9, 10, 19, 21]}


def test_small_miss_of_a_large_chunk_moves_only_what_was_asked_for():
    report = behaviour('small_misses')
    # 8 KiB, and the grain around 512 bytes.
    assert report['hdd_read_sectors'] == 16 + 8
    assert report['ssd_read_sectors'] == 16 + 8
    assert report['hdd_write_sectors'] == 0


def test_what_a_miss_brings_behind_itself_is_in_nobodys_way():
    report = behaviour('fetched_after')
    # The HDD takes 2 ms, and was reading that grain.
    assert report['written'] < 0.001
    # It read those 128 KiB for nothing: the reader's own grain alone came.
    assert report['overtaken'] == 8
    assert report['read'] < 0.003
    # All but the grain that was written.
    assert report['all'] == 255 * 8
    assert report['right'] and report['read_again'] == 0


def test_window_over_many_chunks_takes_free_slots_and_is_read_at_once():
    assert behaviour('beside') == {
        # A window of 128 KiB: two misses, read together, and two rows
        # beside them.
        'used': 32, 'misses': 2, 'promoted': 256, 'hdd_reads': 3,
        'ssd_reads': 3, 'read_again': 0, 'right': True,
        'full': True, 'evicted': 1}


def test_class_flags_do_what_they_say():
    report = behaviour('flags')
    assert report['never'] == 0
    assert (report['evict_before'], report['evict_after_hit']) == (1, 0)
    assert report['no_allocate'] == {'12': [1, 0]}
    assert report['direct_hdd'] == 0
    assert report['sequential'] > 50
    assert report['around'] is None
    assert report['sticky'] == 1


def test_discarded_bytes_are_neither_kept_nor_cleaned():
    report = behaviour('discards')
    assert report['before'] - report['after'] == 4 * 8
    assert report['zero'] and report['kept']


def test_ssd_and_origin_grow_online_and_a_shorter_origin_is_refused():
    report = behaviour('resize')
    assert report['right'] and report['last'] and report['refused']
    assert report['kept'] == 40
    assert report['grown'] > 1.9 * report['small']
    assert report['full'] == report['used'] == report['grown']


def test_wrong_tables_messages_and_devices_are_refused_and_change_nothing():
    assert behaviour('refusals') == {
        'made': [], 'taken': [], 'unchanged': True}


def test_flush_waits_for_the_table_once():
    assert behaviour('flush_is_durable') == {'first': 1, 'again': 0}


def test_chunks_that_pass_the_ssd_are_one_request():
    assert behaviour('past') == {
        'alone': [1, 1], 'around': [4, 2], 'waited': True,
        'misses': [92, 92], 'right': True}


def test_chunks_that_miss_together_are_one_read():
    assert behaviour('missed') == {
        # Four chunks, whole, by one read; then five, of which two got a
        # slot, and once more the other three.
        'one': 1, 'promoted': 4 * 64, 'again': 0, 'free': 2, 'two': 2,
        'passed': [8, 6], 'right': True}


def test_chunks_that_both_devices_get_are_one_request():
    assert behaviour('doubled') == {
        'new': [1, 1], 'read': 0, 'again': 1, 'again_read': 0,
        'mixed': 1, 'mixed_read': 1, 'discards': 2, 'dirty': 0,
        'right': True}


def test_who_reads_the_hdd_has_its_turn_by_class():
    report = behaviour('turns')
    # Two were there before it; without classes all twelve are.
    assert report == {'strict': 2, 'lru': 12}


def test_flush_does_not_wait_for_what_others_gave_the_hdd():
    assert behaviour('flush_of_others') == {
        'first': 1, 'again': 0, 'flushes': 2, 'groups': 2, 'grouped': 2,
        'kept': 'bc'}


def test_write_that_is_cut_while_it_waits_ends_and_is_durable():
    # All of a group end together: a write that ends after its pieces cannot
    # be in a group with one of them.
    assert dss_lab.found('dss_cut.py', timeout=120.0) == [{
        'ended': [11, 13, 12], 'grouped': 2, 'right': True, 'kept': 'www'}] * 2


def test_memory_is_32_bytes_a_page_at_4_kib_and_one_at_256_kib():
    report = behaviour('memory')
    assert 10 < report['8'] <= 32
    assert report['512'] <= 1
    assert report['2048'] <= 1


@pytest.mark.parametrize('fault', ['dead', 'readable'])
def test_ssd_that_fails_with_nothing_dirty_is_left_out(fault):
    report = dss_lab.found('dss_ssd_failure.py', ['clean', fault])
    assert report['ssd_errors'] > 0
    assert report['health'] == report['health_after'] == 'given_up'
    for action in ('fill', 'write', 'write_again', 'clean_read',
                   'write_after', 'flush_after'):
        assert report[action] == 'ok', action
    assert report['clean_right']


def test_dead_ssd_with_dirty_bytes_refuses_writes_and_serves_clean_ones():
    report = dss_lab.found('dss_ssd_failure.py', ['dirty', 'dead'])
    assert report['health'] == report['health_after'] == 'refusing'
    assert report['clean_read'] == 'ok' and report['clean_right']
    for action in ('write_again', 'dirty_read', 'write_after',
                   'flush_after'):
        assert report[action] == 'errno 5', action
    assert report['hdd_has'] == 'o'


def test_dirty_bytes_of_an_ssd_that_still_reads_are_saved():
    report = dss_lab.found('dss_ssd_failure.py', ['dirty', 'readable'])
    assert report['health_after'] == 'given_up'
    assert report['write_after'] == report['flush_after'] == 'ok'
    assert report['hdd_has'] == 'n'


@pytest.mark.parametrize('chunk, grain', [
    (8, 8), (8, 1), (64, 8), (64, 1), (512, 8), (2048, 8)])
def test_every_reader_gets_the_right_bytes_whatever_is_switched(chunk, grain):
    report = dss_lab.found('dss_integrity.py', [chunk, chunk, grain, 3000])
    assert report['requests'] >= 3000
    assert report['disturbed'] >= 30
    assert report['io_errors'] == 0
    assert report['left_dirty'] == 0
    assert report['grown'] and report['slots'][1] > report['slots'][0]
