"""What is written is cut into segments whose classes are those of bytes."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from swift_dss.client.fs.writing.segments import Cutter

WRITES = st.lists(st.tuples(st.binary(max_size=40),
                            st.sampled_from([None, 1, 2])), max_size=12)


@given(WRITES, st.integers(1, 50), st.integers(1, 5))
def test_each_byte_keeps_its_class_and_its_place(writes, size, ranges):
    cutter = Cutter(size, ranges)
    cut = [segment for data, class_id in writes
           for segment in cutter.add(memoryview(data), class_id)]
    cut.append(cutter.last)
    classes, at = [], 0
    for segment in cut:
        assert segment.offset == at
        at += len(segment)
        own = [None] * len(segment)
        for span in segment.ranges:
            own[span.offset:span.end] = [span.class_id] * span.length
        classes += own
        assert len(segment) <= size and len(segment.ranges) <= ranges
        assert segment.etag == hashlib.md5(bytes_of(segment)).hexdigest()
        assert all(span.end < next_span.offset
                   or span.class_id != next_span.class_id
                   for span, next_span in zip(segment.ranges,
                                              segment.ranges[1:]))
    assert b''.join(bytes_of(segment) for segment in cut) == b''.join(
        data for data, _ in writes)
    assert classes == [class_id for data, class_id in writes for _ in data]
    assert all(len(segment) for segment in cut[:-1])


def test_a_segment_is_handed_out_when_more_comes():
    cutter = Cutter(4, 10)
    assert list(cutter.add(memoryview(b'1234'), None)) == []
    assert [bytes_of(segment) for segment in
            cutter.add(memoryview(b'56789'), None)] == [b'1234', b'5678']
    assert bytes_of(cutter.last) == b'9'


def test_a_piece_after_the_first_is_begun():
    cutter = Cutter(5 << 20, 10)
    data = bytes(range(251)) * 14000
    assert list(cutter.add(memoryview(data), None)) == []
    assert bytes_of(cutter.last) == data
    assert {len(piece) for piece in cutter.last.pieces[:-1]} == {1 << 20}


def bytes_of(segment):
    """What a segment holds."""
    return b''.join(segment.pieces)
