"""Reads of the page cache: which bytes, and how often the class is set."""

from __future__ import annotations

import os

import pytest

from swift_dss.io import probe
from swift_dss.io.carriers import Carrier
from swift_dss.io.probe import AHEAD_BYTES, CHUNK_BYTES, PageCache

BODY = os.urandom(AHEAD_BYTES + CHUNK_BYTES + 77)


class Noting(Carrier):
    """Notes each class that a thread is given."""

    def __init__(self):
        self.given = []

    def enter(self, class_id):
        self.given.append(class_id)


@pytest.fixture
def fd(tmp_path, monkeypatch):
    # Not every file system says what it has without waiting.
    monkeypatch.setattr(probe, '_NOWAIT', 0)
    (tmp_path / 'file').write_bytes(BODY)
    opened = os.open(tmp_path / 'file', os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.mark.parametrize('length', [
    1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, AHEAD_BYTES - 1,
    AHEAD_BYTES])
@pytest.mark.parametrize('offset', [
    0, 5, AHEAD_BYTES, len(BODY) - 3, len(BODY)])
def test_pieces_are_the_bytes_of_the_range(fd, length, offset):
    cache = PageCache()
    there = cache.look(Carrier(), fd, length, offset, 0)
    assert there == len(BODY[offset:offset + length])
    for start, stop in ((0, there), (7, there), (0, there - 3),
                        (CHUNK_BYTES, there), (there - 9, there)):
        if not 0 <= start < stop:
            continue
        pieces = cache.taken(start, stop)
        assert b''.join(pieces) == BODY[offset + start:offset + stop]
        assert all(0 < len(piece) <= CHUNK_BYTES for piece in pieces)
        at = start
        for piece in pieces[:-1]:
            at += len(piece)
            assert at % CHUNK_BYTES == 0


def test_a_chunk_or_less_is_one_piece(fd):
    cache = PageCache()
    cache.look(Carrier(), fd, AHEAD_BYTES, 0, 0)
    assert cache.taken(5, CHUNK_BYTES + 5) == [BODY[5:CHUNK_BYTES + 5]]


def test_pieces_stay_as_they_are_when_more_is_read(fd):
    cache = PageCache()
    cache.look(Carrier(), fd, AHEAD_BYTES, 0, 0)
    first = cache.taken(0, AHEAD_BYTES)
    cache.look(Carrier(), fd, AHEAD_BYTES, CHUNK_BYTES + 7, 0)
    assert b''.join(first) == BODY[:AHEAD_BYTES]


def test_the_class_is_set_once_a_read_and_taken_back(fd):
    carrier = Noting()
    PageCache().look(carrier, fd, AHEAD_BYTES, 0, 5)
    PageCache().look(carrier, fd, AHEAD_BYTES, 0, 0)
    assert carrier.given == [5, 0]


def test_what_is_not_there_is_nothing(fd, monkeypatch):
    def again(*_args):
        raise BlockingIOError

    monkeypatch.setattr(os, 'preadv', again)
    carrier = Noting()
    assert not PageCache().look(carrier, fd, 10, 0, 5)
    assert carrier.given == [5, 0]
