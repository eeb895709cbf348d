"""The class map: sorted, gap-free, exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap, Span


@some.composite
def painted(draw, size=40):
    """(map, the class of each byte) by the slowest way there is."""
    rest = draw(some.integers(0, 3))
    classes = [rest] * size
    spans, cursor = [], 0
    for _ in range(draw(some.integers(0, 6))):
        start = cursor + draw(some.integers(0, 4))
        stop = start + draw(some.integers(1, 6))
        if stop > size:
            break
        class_id = draw(some.integers(0, 3))
        classes[start:stop] = [class_id] * (stop - start)
        spans.append(Span(start, stop - start, class_id))
        cursor = stop
    order = draw(some.permutations(spans))
    return ClassMap.from_spans(order, rest), classes


@given(painted())
def test_a_map_says_of_each_byte_what_its_spans_said(case):
    class_map, classes = case
    assert [class_map.class_at(at) for at in range(40)] == classes
    assert class_map.class_at(1 << 60) == class_map.rest


@given(painted(), some.integers(0, 50), some.integers(0, 50))
def test_bytes_of_each_class_are_counted(case, start, length):
    class_map = case[0]
    wanted = {}
    for span in class_map.split(start, length):
        wanted[span.class_id] = wanted.get(span.class_id, 0) + span.length
    assert class_map.bytes_by_class(start, length) == wanted


@given(painted())
def test_spans_touch_differ_and_start_at_zero(case):
    spans = case[0].spans
    assert all(span.length > 0 for span in spans)
    assert [span.offset for span in spans] == [0] * bool(spans) + [
        span.end for span in spans[:-1]]
    assert all(left.class_id != right.class_id
               for left, right in zip(spans, spans[1:]))
    assert not spans or spans[-1].class_id != case[0].rest


@given(painted(), some.integers(0, 45), some.integers(0, 45))
def test_split_covers_exactly_what_was_asked(case, offset, length):
    class_map, classes = case
    pieces = list(class_map.split(offset, length))
    covered = [(at, piece.class_id) for piece in pieces
               for at in range(piece.offset, piece.end)]
    assert covered == [
        (at, classes[at] if at < 40 else class_map.rest)
        for at in range(offset, offset + length)]
    assert all(piece.length for piece in pieces)


@given(painted(), some.integers(0, 45))
def test_clip_keeps_every_byte_and_says_nothing_past_the_end(case, size):
    class_map, _ = case
    clipped = class_map.clip(size)
    assert clipped.end <= size
    assert all(clipped.class_at(at) == class_map.class_at(at)
               for at in range(size))


@given(painted(), some.integers(0, 40))
def test_class_ids_are_those_of_the_bytes(case, size):
    class_map, classes = case
    assert class_map.class_ids(size) == (
        set(classes[:size]) or {class_map.rest})
    assert class_map.rest in class_map.class_ids()


@pytest.mark.parametrize('spans, said', [
    ([Span(0, 0, 1)], 'empty or negative'),
    ([Span(-1, 5, 1)], 'empty or negative'),
    ([Span(0, -5, 1)], 'empty or negative'),
    ([Span(0, 5, 32)], 'class id 32'), ([Span(0, 5, -1)], 'class id -1'),
    ([Span(0, 5, 1), Span(4, 1, 1)], 'overlaps'),
    ([Span(4, 1, 1), Span(0, 5, 1)], 'overlaps')])
def test_what_is_no_map_is_refused(spans, said):
    with pytest.raises(ValueError, match=said):
        ClassMap.from_spans(spans)


def test_the_map_of_unclassified_objects():
    assert UNCLASSIFIED_MAP.is_uniform and UNCLASSIFIED_MAP.rest == 0
    assert UNCLASSIFIED_MAP.class_ids(0) == {0}
    with pytest.raises(ValueError, match='class id 32'):
        ClassMap.from_spans([], 32)
