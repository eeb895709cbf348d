"""Readers: every byte where it is asked for, and an end to reading."""

from __future__ import annotations

import io
import os

import pytest

from swift_dss.client.formats import readers
from swift_dss.client.formats.contract import BadFile
from swift_dss.client.formats.readers import (
    AsFile, Bounded, Cached, FileReader, Part)

DATA = os.urandom(3 << 20)


@pytest.fixture(params=['file', 'cached', 'part'])
def reader(request, tmp_path):
    path = tmp_path / 'f'
    path.write_bytes(b'front' + DATA if request.param == 'part' else DATA)
    with open(path, 'rb') as opened:
        if request.param == 'cached':
            yield Cached(len(DATA), lambda start, end: DATA[start:end])
        elif request.param == 'part':
            yield Part(FileReader(opened), 5, len(DATA))
        else:
            yield FileReader(opened)


@pytest.mark.parametrize('offset, length', [
    (0, 0), (0, 10), (100, 300000), (262140, 10), (len(DATA) - 5, 5),
    (len(DATA) - 5, 50), (len(DATA), 1), (len(DATA) + 9, 9),
    (7, len(DATA)), (262144, 262144)])
def test_bytes_are_those_of_the_file(reader, offset, length):
    assert reader.size == len(DATA)
    assert reader.read(offset, length) == DATA[offset:offset + length]


def test_far_bytes_are_asked_for_in_blocks():
    asked = []

    def get(start, end):
        asked.append((start, end))
        return DATA[start:end]
    reader = Cached(len(DATA), get)
    for at in range(0, 5000, 7):
        reader.read(at, 7)
    assert asked == [(0, 262144)]


@pytest.mark.parametrize('limit, times', [('_READS', 1), ('_READ_BYTES', 1)])
def test_reading_ends(monkeypatch, limit, times):
    monkeypatch.setattr(readers, limit, 100)
    reader = Bounded(Cached(1000, lambda start, end: bytes(end - start)))
    with pytest.raises(BadFile, match='more to be read'):
        for at in range(200):
            reader.read(at, 2)


def test_a_claim_past_the_end_names_field_and_offset():
    reader = Cached(100, lambda start, end: bytes(end - start))
    with pytest.raises(BadFile) as caught:
        reader.exact(90, 11, 'footer')
    assert str(caught.value) == (
        'footer at 90: claims 11 bytes, and the file has 100')


def test_as_a_file_it_notes_what_is_read():
    opened = AsFile(Cached(len(DATA), lambda start, end: DATA[start:end]))
    assert opened.read(10) == DATA[:10]
    assert io.BufferedReader(opened, 100).read(5) == DATA[10:15]
    opened.seek(-5, os.SEEK_END)
    assert opened.read() == DATA[-5:] and opened.read(1) == b''
    assert opened.ranges == [(0, 110), (len(DATA) - 5, 5)]
    with pytest.raises(ValueError):
        opened.seek(-1)


def test_a_library_may_not_read_all():
    opened = AsFile(Cached(1000, lambda start, end: bytes(end - start)), 50)
    with pytest.raises(BadFile, match='claims 1000 bytes, more than 50'):
        opened.read()
