"""The examples and vectors of doc/source/reference/dss-format.rst are true."""

from __future__ import annotations

import pathlib
import re

import pytest

from swift_dss.core.errors import BadClassInput
from swift_dss.wire.dssfile import Decoder

PAGE = (pathlib.Path(__file__).resolve().parents[3] / 'doc' / 'source'
        / 'reference' / 'dss-format.rst').read_text()
TAKEN, REFUSED = PAGE.split('.. list-table::')[1:3]


def rows(table):
    """Cells of each row but the heading, lines joined."""
    for row in table.split('   * - ')[2:]:
        cells = row.split('\n     - ')
        yield [' '.join(cell.split('\n\n')[0].split()) for cell in cells]


def raw_of(cell):
    return bytes.fromhex(''.join(
        re.findall(r'``([0-9a-f]+)(?:\.\.\.)?``', cell)))


def classes_of(text, size):
    """What a cell like ``0-63: 25, 1024-1055: 26, else 3`` says."""
    classes = [None] * size
    for first, last, class_id in re.findall(
            r'(\d+)(?:-(\d+))?: (\d+)', text):
        stop = int(last or first) + 1
        classes[int(first):stop] = [int(class_id)] * (stop - int(first))
    rest = re.search(r'(?:else|all:) (\d+)', text)
    return [int(rest.group(1)) if class_id is None and rest else class_id
            for class_id in classes]


@pytest.mark.parametrize('cell, data, classes', list(rows(TAKEN)))
def test_a_vector_that_is_taken(cell, data, classes):
    size = 777 if data == 'any' else int(data)
    raw = raw_of(cell)
    decoder = Decoder(content_length=len(raw) + size)
    assert decoder.feed(raw + bytes(size)) == bytes(size)
    decoder.finish()
    assert [decoder.class_map.class_at(at)
            for at in range(size)] == classes_of(classes, size)


@pytest.mark.parametrize('cell, position, reason', list(rows(REFUSED)))
def test_a_vector_that_is_refused(cell, position, reason):
    raw = raw_of(cell)
    if cell.endswith('...``'):
        raw += bytes(16 - len(raw))
    else:
        match = re.search(r'and (\d+) bytes of data', cell)
        raw += bytes(int(match.group(1)) if match else 0)
    with pytest.raises(BadClassInput) as caught:
        decoder = Decoder()
        decoder.feed(raw)
        decoder.finish()
    assert caught.value.position == int(position)
    assert reason


def test_there_are_as_many_vectors_as_the_page_shows():
    assert len(list(rows(TAKEN))) == 5
    assert len(list(rows(REFUSED))) == 8


def test_the_hex_dumps_are_the_vectors():
    dumps = []
    for line in PAGE.splitlines():
        match = re.match(r'    ([0-9a-f]{8})  ((?:[0-9a-f]{2} ?\s?)+) *\|',
                         line)
        if match:
            if match.group(1) == '00000000':
                dumps.append('')
            dumps[-1] += match.group(2)
    vectors = [raw_of(cell) for cell, _, _ in rows(TAKEN)]
    assert [bytes.fromhex(dump) for dump in dumps] == [
        vectors[0], vectors[4]]
