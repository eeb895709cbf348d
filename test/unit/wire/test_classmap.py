"""The encoded class map: what is written can always be read."""

from __future__ import annotations

import base64
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.limits import (
    DEFAULT_MAX_SPANS, MAP_CHUNK_BYTES, MAX_MAP_CHUNKS)
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire import classmap

NAME = 'X-Backend-Dss-Map'
maps = some.builds(
    lambda runs, rest: ClassMap.from_spans(_spans(runs), rest),
    some.lists(some.tuples(some.integers(1, 1 << 45),
                           some.integers(0, 31)), max_size=40),
    some.integers(0, 31))


def _spans(runs):
    offset = 0
    for length, class_id in runs:
        yield Span(offset, length, class_id)
        offset += length


def _packed(raw):
    return 'm1:' + base64.b64encode(zlib.compress(raw)).decode('ascii')


def scattered(count, seed=7):
    """As many spans as that, of lengths that pack badly."""
    rng = random.Random(seed)
    return ClassMap.from_spans(_spans(
        [(rng.randrange(1, 1 << 32), at % 2 + 1 + rng.randrange(15) * 2)
         for at in range(count)]), 0)


@given(maps)
def test_a_map_survives_text_and_headers(class_map):
    text = classmap.encode(class_map)
    assert text.isascii() and ' ' not in text
    assert classmap.decode(text) == class_map
    headers = classmap.to_headers(NAME, class_map)
    assert classmap.from_headers(NAME, headers) == class_map


def test_a_map_of_one_class_is_its_number():
    assert classmap.encode(ClassMap.uniform(25)) == '25'
    assert classmap.from_headers(NAME, {}) is None


def test_the_worst_map_within_the_limit_fits_its_header_lines():
    class_map = scattered(DEFAULT_MAX_SPANS)
    headers = classmap.to_headers(NAME, class_map)
    assert len(headers) <= MAX_MAP_CHUNKS
    assert all(len(value) <= MAP_CHUNK_BYTES for value in headers.values())
    assert sorted(headers) == ['%s-%d' % (NAME, at)
                               for at in range(len(headers))]
    assert classmap.from_headers(NAME, headers) == class_map


def test_too_many_spans_are_refused_however_well_they_pack():
    even = ClassMap.from_spans(_spans(
        [(512, at % 2 + 1) for at in range(DEFAULT_MAX_SPANS + 1)]))
    assert len(classmap.encode(even)) < MAP_CHUNK_BYTES
    for class_map in (even, scattered(DEFAULT_MAX_SPANS + 1)):
        with pytest.raises(TooManySpans):
            classmap.to_headers(NAME, class_map)


@pytest.mark.parametrize('text', [
    '', ' 5', '5 ', '32', '-1', '007', '٣', 'gold', 'm1', 'm1:', 'm1:!!!!',
    'm1:AAAA', 'm2:' + 'eJwDAAAAAAE='])
def test_what_is_no_map_is_refused(text):
    with pytest.raises(BadClassInput, match='^class map'):
        classmap.decode(text)


@pytest.mark.parametrize('raw, said', [
    (b'', 'bad run length'), (b'\x05', 'ends inside a run'),
    (b'\x05\x01', 'bad run length'), (b'\x05\x20\x00\x00', 'class id 32'),
    (b'\x00\x01\x00', 'bytes after the end'),
    (b'\x80' * 11 + b'\x01\x01\x00\x00', 'bad run length'),
    (b'\xff' * 9 + b'\x7f\x01\x00\x00', 'past 2^63'),
    (b'\x01\x01' * 2049 + b'\x00\x00', 'more than 2048 spans'),
    (b'\x01' * 30000, 'cut off or too long')])
def test_packed_runs_are_checked_one_by_one(raw, said):
    with pytest.raises(BadClassInput) as caught:
        classmap.decode(_packed(raw))
    assert said in str(caught.value)


def test_a_bomb_is_not_inflated():
    bomb = _packed(b'\x01\x02' * (1 << 20))
    assert len(bomb) < 8192
    with pytest.raises(BadClassInput, match='cut off or too long'):
        classmap.decode(bomb)


def test_a_lost_middle_line_is_an_error_and_no_other_map():
    headers = classmap.to_headers(NAME, scattered(DEFAULT_MAX_SPANS))
    for name in list(headers)[1:]:
        left = {key: value for key, value in headers.items()
                if key != name}
        with pytest.raises(BadClassInput):
            classmap.from_headers(NAME, left)
