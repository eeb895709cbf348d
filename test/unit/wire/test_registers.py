"""Registers of POSTs: merges converge, names grow with knowledge."""

from __future__ import annotations

import itertools
from typing import Any, Dict, List

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swift.common.utils import Timestamp

from swift_dss.wire import names, registers
from swift_dss.wire.registers import Registers

DATA_AT = '0000000003.00000'


def at(number: int) -> str:
    return '%010d.00000' % number if number else ''


def state(meta: int, class_: int) -> Registers:
    return Registers(
        at(meta), {'X-Object-Meta-M': str(meta)}, at(class_),
        {names.TRANSIENT_MAP: str(class_)} if class_ else {})


STATES = [state(meta, class_) for meta in range(1, 6)
          for class_ in range(6)]


def knows(one: Registers) -> Any:
    return one.meta_at, one.class_at


def test_the_name_grows_with_what_is_known() -> None:
    for one, other in itertools.product(STATES, STATES):
        first, second = (Timestamp(registers.file_timestamp(found))
                         for found in (one, other))
        if knows(one) == knows(other):
            assert first == second
            continue
        assert first != second
        both = Timestamp(registers.file_timestamp(
            registers.join(one, other)))
        assert both >= max(first, second)
        if all(mine <= theirs for mine, theirs
               in zip(knows(one), knows(other))):
            assert first < second


def test_the_name_is_swifts_where_there_is_no_class() -> None:
    assert registers.file_timestamp(state(4, 0)) == at(4)
    assert registers.to_metadata(state(4, 0)) == {
        'X-Timestamp': at(4), 'X-Object-Meta-M': '4'}


@given(st.lists(st.sampled_from(STATES), min_size=1, max_size=6),
       st.randoms())
@settings(max_examples=200)
def test_any_order_gives_the_same(seen: List[Registers],
                                  random: Any) -> None:
    def all_of(found: List[Registers]) -> Registers:
        whole = found[0]
        for one in found[1:]:
            whole = registers.join(whole, one)
        return whole
    shuffled = list(seen)
    random.shuffle(shuffled)
    assert all_of(shuffled + seen) == all_of(seen)


@pytest.mark.parametrize('found', STATES)
def test_a_file_reads_back(found: Registers) -> None:
    assert registers.of_post(registers.to_metadata(found)) == found


def test_files_of_stock_swift_and_of_older_versions_read() -> None:
    found = registers.of_post({
        'X-Timestamp': at(4), 'X-Object-Meta-M': 'm', 'name': '/a/c/o',
        names.TRANSIENT_MAP + '-0': 'm1:x', names.MAP_AT: 'nonsense'})
    assert found == Registers(
        at(4), {'X-Object-Meta-M': 'm'}, at(4),
        {names.TRANSIENT_MAP + '-0': 'm1:x'})
    assert registers.of_post({'X-Timestamp': at(4)}).class_at == ''


def test_a_data_file_gives_what_a_post_would_replace() -> None:
    found = registers.of_data({
        'X-Timestamp': DATA_AT, 'name': '/a/c/o', 'Content-Length': '3',
        'ETag': 'e', 'Content-Type': 'a/b', 'X-Object-Meta-M': 'm',
        'X-Object-Sysmeta-Dss-Map': '5', 'X-Static-Large-Object': 'True',
        'Content-Disposition': 'd', 'X-Delete-At': '9'})
    assert found == Registers(DATA_AT, {
        'X-Object-Meta-M': 'm', 'Content-Disposition': 'd',
        'X-Delete-At': '9'})


@pytest.mark.parametrize('meta, class_, shown', [
    (4, 5, ('4', '5')), (5, 4, ('5', '4')), (2, 5, ('put', '5')),
    (5, 2, ('5', None)), (5, 0, ('5', None)), (3, 4, ('3', '4'))])
def test_what_is_older_than_the_data_does_not_count(
        meta: int, class_: int, shown: Any) -> None:
    data = {'X-Timestamp': DATA_AT, 'X-Object-Meta-M': 'put'}
    posted: Dict[str, str] = registers.to_metadata(state(meta, class_))
    found = registers.current(posted, data)
    assert (found['X-Object-Meta-M'],
            found.get(names.TRANSIENT_MAP)) == shown
    assert found['X-Timestamp'] == posted['X-Timestamp']
