"""Lists of classes as users write them."""

from __future__ import annotations

import pytest

from swift_dss.client import classlist
from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.spans import ClassMap, Span

TABLE = ClassTable.of([ClassSpec(25, 'gold', 10)])


@pytest.mark.parametrize('text, size', [
    ('4096', 4096), ('4k', 4096), (' 1 MiB ', 1 << 20), ('2GB', 2 << 30),
    ('1t', 1 << 40), ('0', 0)])
def test_sizes(text, size):
    assert classlist.parse_size(text) == size


@pytest.mark.parametrize('text', [
    '', '-1', '1.5k', 'k', '1x', '٣', '9' * 30, '9999999999t'])
def test_what_is_no_size(text):
    with pytest.raises(BadClassInput, match='^size: '):
        classlist.parse_size(text)


def test_ranges_files_have_comments_commas_and_lines():
    assert classlist.entries_of(
        '# all\n0-4k-gold, 8k-1-3 # tail\n\n 9k-1-4\n') == [
            '0-4k-gold', '8k-1-3', '9k-1-4']
    assert classlist.entries_of(
        '# as unpack writes it\nOffset, Length, Class\n0,5,25\n5, 1, 3\n'
    ) == ['0-5-25', '5-1-3']
    assert classlist.entries_of('') == []


def test_ranges_have_units_and_names():
    assert classlist.map_of_range_list(
        ['4k-1k-gold', '0 - 1k - 3'], TABLE, 7) == ClassMap((
            Span(0, 1024, 3), Span(1024, 3072, 7), Span(4096, 1024, 25)), 7)
    assert classlist.map_of_range_list([], TABLE, 7) == ClassMap.uniform(7)


def test_blocks_are_counted_and_joined():
    assert classlist.map_of_block_list(
        '3*2 3, gold\n# note\n7*1000000000', TABLE, 512) == (
            ClassMap((Span(0, 1536, 3), Span(1536, 512, 25)), 7),
            1000000004)
    assert classlist.map_of_block_list('', TABLE, 512) == (
        ClassMap.uniform(0), 0)


@pytest.mark.parametrize('text, entry', [
    ('1 2 silver', 3), ('1 2*0', 2), ('1*', 1), ('*5', 1), ('1 2*x', 2),
    ('32', 1), ('1*9999999999 2*9999999999', 1)])
def test_a_bad_block_is_named(text, entry):
    with pytest.raises(BadClassInput) as caught:
        classlist.map_of_block_list(text, TABLE, 1 << 30)
    assert caught.value.position == entry


def test_a_list_that_changes_too_often_is_refused_early():
    with pytest.raises(TooManySpans, match='more than 2048 times') as caught:
        classlist.map_of_block_list('1 2 ' * 5000, TABLE, 512)
    assert caught.value.position == 2050
