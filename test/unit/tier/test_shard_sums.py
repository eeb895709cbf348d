"""What shards answer, added up."""

from __future__ import annotations

from swift_dss.tier.shards.sums import Progress, merged, status


def test_numbers_add_up_and_waits_do_not():
    assert merged([{'a': 1, 'b_seconds': 5.0, 'c': [1], 'd': 'x'},
                   {'a': 2, 'b_seconds': 3.0, 'c': [1, 2], 'e': None}]) == {
        'a': 3, 'b_seconds': 5.0, 'c': [1, 1, 2], 'd': 'x', 'e': None}


def test_lines_that_all_say_are_said_once():
    assert merged([{'warnings': ['a', 'b']}, {'warnings': ['b']}]) == {
        'warnings': ['a', 'b']}


def test_all_must_be_well():
    assert merged([{'settled': True}, {'settled': False}]) == {
        'settled': False}
    assert merged([{'rebuild_needed': False}, {'rebuild_needed': True}]) == {
        'rebuild_needed': True}
    assert merged([{'state': 'closed'}, {'state': 'open'}]) == {
        'state': 'open'}


def test_nothing_is_nothing():
    assert merged([]) is None
    assert merged([None, None]) is None
    assert merged([None, 3]) == 3


def test_devices_are_those_of_all_shards_in_order():
    said = status({1: {'devices': [{'name': 'sdb'}], 'pid': 7},
                   0: {'devices': [{'name': 'sdc'}, {'name': 'sda'}],
                       'pid': 8}}, [{'number': 0}], 9)
    assert [device['name'] for device in said['devices']] == ['sda', 'sdb',
                                                              'sdc']
    assert said['pid'] == 9 and said['shards'] == [{'number': 0}]


def test_progress_is_that_of_the_node():
    progress = Progress()
    assert progress.add(0, {'done': 3, 'of': 10}) == {'done': 3, 'of': 10}
    assert progress.add(1, {'done': 1, 'of': 5}) == {'done': 4, 'of': 15}
    assert progress.add(0, {'done': 4, 'of': 10}) == {'done': 5, 'of': 15}
    assert progress.add(1, {'rows': [1]}) == {'rows': [1]}
    assert progress.add(1, {'done': 2, 'of': None, 'device': 'sdb'}) == {
        'done': 6, 'of': 10, 'device': 'sdb'}
