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


def knows(state: Registers) -> Any:
    return state.meta_at, state.class_at


def test_the_name_grows_with_what_is_known() -> None:
    for first_state, second_state in itertools.product(STATES, STATES):
        first, second = (Timestamp(registers.file_timestamp(state))
                         for state in (first_state, second_state))
        if knows(first_state) == knows(second_state):
            assert first == second
            continue
        assert first != second
        both = Timestamp(registers.file_timestamp(
            registers.join(first_state, second_state)))
        assert both >= max(first, second)
        if all(mine <= theirs for mine, theirs
               in zip(knows(first_state), knows(second_state))):
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
    def all_of(states: List[Registers]) -> Registers:
        whole = states[0]
        for state in states[1:]:
            whole = registers.join(whole, state)
        return whole
    shuffled = list(seen)
    random.shuffle(shuffled)
    assert all_of(shuffled + seen) == all_of(seen)


@pytest.mark.parametrize('state', STATES)
def test_a_file_reads_back(state: Registers) -> None:
    assert registers.of_post(registers.to_metadata(state)) == state


def test_files_of_stock_swift_and_of_older_versions_read() -> None:
    state = registers.of_post({
        'X-Timestamp': at(4), 'X-Object-Meta-M': 'm', 'name': '/a/c/o',
        names.TRANSIENT_MAP + '-0': 'm1:x', names.MAP_AT: 'nonsense'})
    assert state == Registers(
        at(4), {'X-Object-Meta-M': 'm'}, at(4),
        {names.TRANSIENT_MAP + '-0': 'm1:x'})
    assert registers.of_post({'X-Timestamp': at(4)}).class_at == ''


def test_a_data_file_gives_what_a_post_would_replace() -> None:
    state = registers.of_data({
        'X-Timestamp': DATA_AT, 'name': '/a/c/o', 'Content-Length': '3',
        'ETag': 'e', 'Content-Type': 'a/b', 'X-Object-Meta-M': 'm',
        'X-Object-Sysmeta-Dss-Map': '5', 'X-Static-Large-Object': 'True',
        'Content-Disposition': 'd', 'X-Delete-At': '9'})
    assert state == Registers(DATA_AT, {
        'X-Object-Meta-M': 'm', 'Content-Disposition': 'd',
        'X-Delete-At': '9'})


@pytest.mark.parametrize('meta, class_, shown', [
    (4, 5, ('4', '5')), (5, 4, ('5', '4')), (2, 5, ('put', '5')),
    (5, 2, ('5', None)), (5, 0, ('5', None)), (3, 4, ('3', '4'))])
def test_what_is_older_than_the_data_does_not_count(
        meta: int, class_: int, shown: Any) -> None:
    data = {'X-Timestamp': DATA_AT, 'X-Object-Meta-M': 'put'}
    posted: Dict[str, str] = registers.to_metadata(state(meta, class_))
    metadata = registers.current(posted, data)
    assert (metadata['X-Object-Meta-M'],
            metadata.get(names.TRANSIENT_MAP)) == shown
    assert metadata['X-Timestamp'] == posted['X-Timestamp']


@pytest.mark.parametrize('class_', [0, 5])
@pytest.mark.parametrize('type_at, counts', [(2, False), (3, True), (5, True)])
def test_a_type_that_is_older_than_the_data_does_not_count(
        class_: int, type_at: int, counts: bool) -> None:
    """Swift leaves one in the file of a later POST."""
    posted = registers.to_metadata(state(4, class_)._replace(
        type_at=at(type_at), content_type='a/b'))
    metadata = registers.current(posted, {'X-Timestamp': DATA_AT})
    assert ('Content-Type' in metadata,
            'Content-Type-Timestamp' in metadata) == (
        counts, counts)
    assert metadata['X-Object-Meta-M'] == '4'
