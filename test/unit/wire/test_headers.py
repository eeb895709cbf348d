"""X-DSS-Object-Class, X-DSS-Range-Class and X-DSS-Object-File."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from support.ranges import parse_range_class

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire import headers

TABLE = ClassTable.of([ClassSpec(0, 'unclassified', 0),
                       ClassSpec(25, 'gold', 900),
                       ClassSpec(26, 'extra-fast', 950)])


@pytest.mark.parametrize('text, class_id', [
    ('25', 25), ('0', 0), ('31', 31), (' 7 ', 7), ('gold', 25),
    ('GOLD', 25), ('unclassified', 0), ('extra-fast', 26), ('07', 7)])
def test_a_class_is_an_id_or_a_name(text, class_id):
    assert headers.parse_object_class(text, TABLE) == class_id


def test_an_id_without_a_row_in_the_table_is_legal():
    assert headers.parse_object_class('19', ClassTable()) == 19


@pytest.mark.parametrize('text', [
    '', ' ', '32', '255', '-1', '+5', '2 5', '1.0', '0x19', '²', '٢',
    'silver', 'gold,25', '9' * 5000, '\xff', 'None'])
def test_what_is_no_class_is_refused_by_name_of_the_header(text):
    with pytest.raises(BadClassInput) as caught:
        headers.parse_object_class(text, TABLE)
    assert caught.value.http_status == 400
    assert str(caught.value).startswith('X-DSS-Object-Class: ')
    assert len(str(caught.value)) < 300
    assert str(caught.value).isascii()


def test_an_unknown_name_lists_the_names_there_are():
    with pytest.raises(BadClassInput, match='extra-fast, gold, uncl'):
        headers.parse_object_class('silver', TABLE)


def test_the_example_of_the_paper():
    assert parse_range_class(
        '0-64-25,1024-32-26', TABLE, 0) == ClassMap((
            Span(0, 64, 25), Span(64, 960, 0), Span(1024, 32, 26)), 0)


def test_gaps_and_the_tail_take_the_class_of_the_object():
    class_map = parse_range_class('10-5-25', TABLE, 3)
    assert [class_map.class_at(at) for at in (9, 10, 14, 15)] == [
        3, 25, 25, 3]


@pytest.mark.parametrize('text', [
    ' 1024-32-26 ,\t0-64-gold', '1024-32-extra-fast,0-64-25',
    '0-64-25,1024-32-26', '0-32-25,32-32-25,01024-32-26'])
def test_spaces_names_order_and_pieces_do_not_matter(text):
    assert parse_range_class(
        text, TABLE, 0) == parse_range_class(
            '0-64-25,1024-32-26', TABLE, 0)


@pytest.mark.parametrize('text, entry, reason', [
    ('', 1, "'' is not <offset>"),
    ('0-64', 1, 'is not <offset>'),
    ('0-64-', 1, 'is not <offset>'),
    ('-64-25', 1, 'is not <offset>'),
    ('0-64-25,', 2, "'' is not <offset>"),
    ('0-64-25,,70-1-2', 2, "'' is not <offset>"),
    ('0-64-25-1', 1, "'25-1' is neither"),
    ('0-64-32', 1, "class id '32' is not in 0..31"),
    ('0-64-silver', 1, "'silver' is neither"),
    ('0-64-25,100-0-25', 2, 'is an empty range'),
    ('+0-64-25', 1, "offset '+0' is not a decimal number"),
    ('0-+64-25', 1, "length '+64' is not a decimal number"),
    ('--1-64-25', 1, 'is not <offset>'),
    ('0x10-64-25', 1, "offset '0x10'"),
    ('1_0-64-25', 1, "offset '1_0'"),
    ('٣-64-25', 1, 'is not a decimal number'),
    ('%s-1-25' % ('9' * 4000), 1, 'is more than 2^63 - 1'),
    ('9223372036854775807-1-25', 1, 'ends past 2^63 - 1'),
    ('1-9223372036854775807-25', 1, 'ends past 2^63 - 1'),
    ('9223372036854775808-1-25', 1, 'ends past 2^63 - 1'),
    ('0-64-25,63-1-26', 2, 'range 63-1 overlaps entry 1 (0-64)'),
    ('63-1-26,0-64-25', 1, 'range 63-1 overlaps entry 2 (0-64)'),
    ('0-64-25,0-64-25', 2, 'overlaps entry 1'),
    ('5-1-1,0-100-2,50-1-3', 1, 'overlaps entry 2'),
    ('0-64-25;1024-32-26', 1, 'is neither a class id'),
    ('bytes=0-64-25', 1, "offset 'bytes=0'"),
])
def test_a_bad_range_names_its_entry_and_why(text, entry, reason):
    with pytest.raises(BadClassInput) as caught:
        parse_range_class(text, TABLE, 0)
    assert caught.value.position == entry
    assert str(caught.value).startswith(
        'X-DSS-Range-Class at %d: ' % entry)
    assert reason in str(caught.value)


def test_a_range_may_reach_the_end_of_the_object_and_no_further():
    parse_range_class('0-64-25', TABLE, 0, size=64)
    with pytest.raises(BadClassInput, match='past the object\'s 63 bytes'):
        parse_range_class('0-64-25', TABLE, 0, size=63)


def test_the_largest_range_there_is():
    class_map = parse_range_class(
        '0-9223372036854775807-25', TABLE, 0)
    assert class_map.end == (1 << 63) - 1


def test_more_ranges_than_the_limit_are_413():
    text = ','.join('%d-1-25' % (at * 2) for at in range(5))
    parse_range_class(text, TABLE, 0, max_spans=9)
    with pytest.raises(TooManySpans, match='gaps included') as caught:
        parse_range_class(text, TABLE, 0, max_spans=8)
    assert caught.value.http_status == 413
    with pytest.raises(TooManySpans, match='5 ranges are more than 4'):
        parse_range_class(text, TABLE, 0, max_spans=4)


def test_a_value_over_the_limit_is_left_out_whole():
    class_map = ClassMap.from_spans([Span(0, 64, 25), Span(1024, 32, 26)])
    text = headers.format_range_class(class_map, 2048)
    assert text == '0-64-25,1024-32-26'
    assert headers.format_range_class(class_map, 2048, len(text)) == text
    assert headers.format_range_class(class_map, 2048, len(text) - 1) is None


def test_an_object_of_one_class_has_no_ranges():
    assert headers.format_range_class(ClassMap.uniform(25), 2048) is None


@some.composite
def maps(draw):
    lengths = draw(some.lists(some.integers(1, 1 << 40), max_size=12))
    classes = draw(some.lists(some.integers(0, 31), min_size=len(lengths),
                              max_size=len(lengths)))
    spans, offset = [], 0
    for length, class_id in zip(lengths, classes):
        spans.append(Span(offset, length, class_id))
        offset += length
    return ClassMap.from_spans(spans, draw(some.integers(0, 31)))


@given(maps(), some.integers(0, 1 << 42))
def test_what_is_printed_reads_back_the_same(class_map, size):
    text = headers.format_range_class(class_map, size)
    clipped = class_map.clip(size)
    if text is None:
        assert not clipped.spans
    else:
        assert parse_range_class(
            text, TABLE, class_map.rest, size) == clipped


@pytest.mark.parametrize('text, value', [
    ('True', True), ('true', True), (' TRUE ', True), ('False', False),
    ('false', False)])
def test_flags(text, value):
    assert headers.parse_flag('X-DSS-Object-File', text) is value


@pytest.mark.parametrize('text', ['', '1', 'yes', 'Truee', 'None', '\xff'])
def test_what_is_neither_true_nor_false_is_refused(text):
    with pytest.raises(BadClassInput, match='^X-DSS-Object-File: '):
        headers.parse_flag('X-DSS-Object-File', text)
