"""Which shard has which device: every one has one, and few ever move."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift_dss.core.config import Division
from swift_dss.core.errors import BadConfig, DamagedRecord
from swift_dss.strategy.sharding import assign, count
from swift_dss.wire.node import shards
from swift_dss.wire.settings import nodeconf
from swift_dss.wire.node.shards import Layout, parse

NAMES = st.sets(st.sampled_from(['sd%s' % letter
                                 for letter in 'abcdefghijklmn']))


@pytest.mark.parametrize('devices,processors,wanted', [
    (0, 8, 1), (3, 8, 1), (4, 8, 1), (7, 8, 1), (8, 8, 2), (36, 64, 9),
    (36, 2, 2), (36, 1, 1)])
def test_auto_is_one_for_each_four_devices(devices, processors, wanted):
    assert count(Division(), devices, processors) == wanted
    assert count(Division(5), devices, processors) == 5


@given(NAMES, st.integers(1, 6))
def test_every_device_has_one_shard_and_none_has_many_more(names, number):
    made = assign(Division(), number, names, {})
    assert set(made) == names
    load = [list(made.values()).count(shard) for shard in range(number)]
    assert max(load) - min(load) <= 1


@given(NAMES, NAMES, st.integers(1, 6))
def test_what_comes_and_goes_moves_nothing(names, others, number):
    before = assign(Division(), number, names, {})
    if len(set(before.values())) < number:
        return  # an empty shard gets its part
    after = assign(Division(), number, others, before)
    if len(set(after.values())) == number and len(others) >= number and all(
            any(before.get(name) == shard for name in others)
            for shard in range(number)):
        assert all(after[name] == before[name]
                   for name in others & names)


@given(NAMES, st.integers(1, 6), st.integers(1, 6))
def test_another_number_of_shards_moves_no_more_than_it_must(
        names, few, many):
    before = assign(Division(), few, names, {})
    after = assign(Division(), many, names, before)
    assert set(after) == names and all(
        0 <= number < many for number in after.values())
    moved = [name for name in names if before[name] != after[name]]
    if many >= few:
        assert len(moved) <= (many - few) * (len(names) // many + 1)
    else:
        assert {before[name] for name in moved} <= set(range(many, few))
    if len(names) >= many:
        assert set(after.values()) == set(range(many))


def test_an_operators_lists_count_and_the_rest_is_spread():
    wish = parse('sda sdb; sdc')
    assert wish == Division(2, (('sda', 'sdb'), ('sdc',)))
    made = assign(wish, 2, ['sda', 'sdb', 'sdc', 'sdd'],
                  {'sda': 1, 'sdc': 1})
    assert made == {'sda': 0, 'sdb': 0, 'sdc': 1, 'sdd': 1}


@pytest.mark.parametrize('text,said', [
    ('0', '1 to 64'), ('65', '1 to 64'), ('', 'list 1 names no device'),
    ('sda;', 'list 2 names no device'), ('sda sdb', 'one list is no'),
    ('sda; sdb sda', 'sda is in list 1 and in list 2'),
    ('../x; sda', 'cannot be the name'), ('\u0664', 'one list is no')])
def test_a_wrong_option_says_what_and_where(text, said):
    with pytest.raises(BadConfig, match=said):
        parse(text)
    with pytest.raises(BadConfig, match=r'\[tier\] shards: .*%s' % said):
        nodeconf.parse('[tier]\nshards = %s\n' % text)


def test_the_option_is_read_and_a_part_is_no_option():
    assert nodeconf.parse('[tier]\nshards = 3\n').tier.shards == Division(3)
    with pytest.raises(BadConfig, match='shard: no such option'):
        nodeconf.parse('[dss]\nshard = 1\n')


def test_the_file_says_what_was_written():
    layout = Layout({'sda': 0, 'sdb': 1}, {'sdb': (0, 2)})
    assert shards.decode(shards.encode(layout)) == layout


@pytest.mark.parametrize('raw', [
    b'', b'[]', b'{"version": 2, "devices": {}}', b'{"version": 1}',
    b'{"version": 1, "devices": {"a": -1}}',
    b'{"version": 1, "devices": {"a": true}}',
    b'{"version": 1, "devices": {"a": 64}}',
    b'{"version": 1, "devices": {}, "moving": {"a": 1}}',
    b'{"version": 1, "devices": {}, "moving": {"a": ["b"]}}'])
def test_a_damaged_file_is_no_layout(raw):
    with pytest.raises(DamagedRecord):
        shards.decode(raw)
