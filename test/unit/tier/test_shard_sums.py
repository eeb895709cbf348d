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


def test_s3_is_there_only_for_a_node_whose_shards_all_reach_it():
    gauges = [{'gateway.up': up, 'gateway.queued_uploads': 2.0}
              for up in (1.0, 0.0)]
    assert merged([{'metrics': fields} for fields in gauges]) == {
        'metrics': {'gateway.up': 0.0, 'gateway.queued_uploads': 4.0}}
    assert merged([gauges[0]] * 2)['gateway.up'] == 1.0


def test_the_largest_object_is_that_of_one_shard():
    assert merged([{'workload': {'largest_bytes': 5.0, 'ingest_rate': 2.0}},
                   {'workload': {'largest_bytes': 9.0, 'ingest_rate': 3.0}}
                   ]) == {'workload': {'largest_bytes': 9.0,
                                       'ingest_rate': 5.0}}


def test_figures_of_the_node_are_said_once():
    assert merged([{'tier.left_policies': 1.0, 'days': 30.0}] * 2) == {
        'tier.left_policies': 1.0, 'days': 30.0}
    # The shard that is furthest behind says how old the oldest answer is.
    assert merged([{'pass_began': 7.0}, {'pass_began': 3.0},
                   {'pass_began': None}]) == {'pass_began': 3.0}


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
