"""The .dss format, byte by byte and both ways."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as some

from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire.dssfile import (
    Decoder, Form, best_block_bytes, encode_section, section_length)

#: The examples of doc/source/reference/dss-format.rst.
BLOCK = bytes.fromhex('4453010100000008000000030000000019191a')
RANGE = bytes.fromhex(
    '44530201000000000000000000000000'
    '0000000203'
    '0000000000000000000000000000004019'
    '000000000000040000000000000000201a')
BLOCK_MAP = ClassMap((Span(0, 8192, 25),), 26)
RANGE_MAP = ClassMap((Span(0, 64, 25), Span(64, 960, 3),
                      Span(1024, 32, 26)), 3)


def decoded(raw, step=1, **told):
    decoder = Decoder(**told)
    data = b''.join(decoder.feed(raw[at:at + step])
                    for at in range(0, len(raw), step))
    decoder.finish()
    return decoder, data


def test_the_block_form_byte_by_byte():
    decoder, data = decoded(BLOCK + bytes(8193))
    assert data == bytes(8193)
    assert decoder.class_map == BLOCK_MAP
    assert decoder.section_bytes == 19
    assert decoder.header.form is Form.BLOCK
    assert decoder.header.block_bytes == 4096
    assert encode_section(BLOCK_MAP, 8193, 'block', 4096) == BLOCK


def test_the_range_form_byte_by_byte():
    decoder, data = decoded(RANGE + b'x' * 2000)
    assert data == b'x' * 2000
    assert decoder.class_map == RANGE_MAP
    assert decoder.section_bytes == 55
    assert decoder.header.form is Form.RANGE
    assert encode_section(RANGE_MAP, 2000, 'range') == RANGE


@pytest.mark.parametrize('class_bytes', [1, 2, 4])
def test_classes_of_one_two_and_four_bytes(class_bytes):
    raw = struct.pack('>2sBBIII', b'DS', 1, class_bytes, 1, 3, 0)
    for class_id in (25, 25, 26):
        raw += class_id.to_bytes(class_bytes, 'big')
    decoder, _ = decoded(raw + bytes(1536))
    assert decoder.class_map == ClassMap((Span(0, 1024, 25),), 26)


def test_data_come_out_as_soon_as_they_come_in():
    decoder = Decoder()
    assert decoder.feed(RANGE[:-1]) == b''
    assert decoder.class_map is None
    assert decoder.feed(RANGE[-1:] + b'ab') == b'ab'
    assert decoder.class_map == RANGE_MAP
    chunk = b'c' * 70000
    assert decoder.feed(chunk) is chunk


def test_a_known_length_gives_the_length_of_the_data():
    decoder = Decoder(content_length=len(RANGE) + 2000)
    assert decoder.data_length is None
    decoder.feed(RANGE)
    assert decoder.data_length == 2000


def test_a_table_that_does_not_fit_is_refused_before_the_first_data_byte():
    decoder = Decoder(content_length=len(RANGE) + 1055)
    with pytest.raises(BadClassInput, match='ends at byte 1056 of 1055'):
        decoder.feed(RANGE + b'first data')
    decoder = Decoder(content_length=len(BLOCK) + 4096)
    with pytest.raises(BadClassInput, match='NUM_BLKS is 3, but 4096'):
        decoder.feed(BLOCK + b'first data')


def test_a_section_without_data_classes_an_object_that_is_there():
    decoder, data = decoded(BLOCK, object_bytes=8193)
    assert data == b'' and decoder.class_map == BLOCK_MAP
    decoder, _ = decoded(RANGE, object_bytes=1056,
                         content_length=len(RANGE))
    assert decoder.class_map == RANGE_MAP


def test_the_form_of_an_empty_object():
    for form in ('range', 'auto'):
        section = encode_section(ClassMap.uniform(25), 0, form)
        assert decoded(section)[0].class_map == ClassMap.uniform(25)
    section = encode_section(ClassMap.uniform(25), 0, 'block')
    assert decoded(section)[0].class_map == ClassMap.uniform(0)


def test_auto_takes_the_shorter_form():
    assert encode_section(BLOCK_MAP, 8193) == BLOCK[:4] + bytes.fromhex(
        '000000100000000200000000191a')
    assert encode_section(RANGE_MAP, 2000) == RANGE
    many = ClassMap.from_spans(
        [Span(at * 512, 512, at % 2 + 1) for at in range(100)])
    assert encode_section(many, 51200)[2] == Form.BLOCK.value


def test_block_borders_decide_the_block_size():
    assert best_block_bytes(BLOCK_MAP, 8193) == 8192
    assert best_block_bytes(RANGE_MAP, 2000) is None
    assert best_block_bytes(ClassMap.uniform(1), 513) == 1024
    twelve = ClassMap.from_spans([Span(4096, 8192, 1), Span(24576, 512, 2)])
    assert best_block_bytes(twelve, 25088) == 4096


@pytest.mark.parametrize('block_bytes', [0, 511, 513, -512, 1 << 42])
def test_a_block_is_whole_sectors(block_bytes):
    with pytest.raises(BadClassInput, match='^block size'):
        encode_section(BLOCK_MAP, 8193, 'block', block_bytes)


def test_a_border_inside_a_block_has_no_block_form():
    with pytest.raises(BadClassInput, match='multiple of 512'):
        encode_section(RANGE_MAP, 2000, 'block')
    with pytest.raises(BadClassInput, match='at byte 8192, inside a block'):
        encode_section(BLOCK_MAP, 8193, 'block', 16384)
    with pytest.raises(ValueError, match='form'):
        encode_section(BLOCK_MAP, 8193, 'cubes')


def test_a_section_that_readers_would_refuse_is_not_written():
    huge = ClassMap.from_spans([Span(0, 512, 1)])
    with pytest.raises(BadClassInput, match='more than 4194304'):
        encode_section(huge, 512 * (1 << 22), 'block')


def test_limits_are_checked_from_the_counts_before_the_table_is_read():
    raw = struct.pack('>2sBBIII', b'DS', 1, 1, 1, 1000, 0)
    with pytest.raises(TooManySpans, match='1016 bytes, more than 1015'):
        Decoder(max_section_bytes=1015).feed(raw)
    Decoder(max_section_bytes=1016).feed(raw)
    with pytest.raises(TooManySpans, match='NUM_RANGES 2 is more than 1'):
        Decoder(max_spans=1).feed(RANGE[:21])


def test_spans_are_counted_after_neighbours_joined():
    alternating = bytes((1, 2) * 4)
    raw = struct.pack('>2sBBIII', b'DS', 1, 1, 1, 8, 0)
    decoder, _ = decoded(raw + alternating + bytes(4096), max_spans=7)
    assert len(decoder.class_map.spans) == 7
    with pytest.raises(TooManySpans, match='more than 6 spans'):
        decoded(raw + alternating[:-1] + b'\3' + bytes(4096), max_spans=6)
    with pytest.raises(TooManySpans, match='3 spans are more than 2'):
        decoded(RANGE + bytes(2000), max_spans=2)
    same = bytes((5,) * 8)
    assert decoded(raw + same + bytes(4096),
                   max_spans=0)[0].class_map == ClassMap.uniform(5)


def test_errors_name_the_body_of_the_request():
    with pytest.raises(BadClassInput,
                       match='^X-DSS-Object-File body at 0: MAGIC_SIG'):
        Decoder().feed(b'PK')
    with pytest.raises(BadClassInput, match='^film.dss at 0: '):
        Decoder(field='film.dss').feed(b'PK')


@some.composite
def cases(draw):
    """(map, size) whose borders lie on bytes, sectors or blocks."""
    unit = draw(some.sampled_from([1, 512, 4096]))
    lengths = draw(some.lists(some.integers(1, 9), max_size=10))
    spans, offset = [], 0
    for length in lengths:
        if draw(some.booleans()):
            spans.append(Span(offset, length * unit,
                              draw(some.integers(0, 31))))
        offset += length * unit
    size = max(0, offset + draw(some.integers(-600, 600)))
    rest = draw(some.integers(0, 31))
    return ClassMap.from_spans(spans, rest).clip(size), size


@given(cases(), some.data())
def test_any_map_survives_any_cutting_of_the_stream(case, data):
    class_map, size = case
    form = data.draw(some.sampled_from(['auto', 'range', 'block']))
    if form == 'block' and best_block_bytes(class_map, size) is None:
        return
    section = encode_section(class_map, size, form)
    assert len(section) == section_length(class_map, size, form)
    content = bytes(at % 251 for at in range(size))
    stream = section + content
    known = data.draw(some.sampled_from([None, len(stream)]))
    decoder = Decoder(content_length=known)
    cuts = data.draw(some.lists(
        some.integers(0, min(len(stream), len(section) + 2)), max_size=8))
    borders = [0] + sorted(cuts) + [len(stream)]
    out = b''.join(decoder.feed(stream[start:stop])
                   for start, stop in zip(borders, borders[1:]))
    decoder.finish()
    assert out == content
    assert decoder.section_bytes == len(section)
    assert (list(decoder.class_map.split(0, size))
            == list(class_map.split(0, size)))
    if form == 'range':
        assert decoder.class_map == class_map
