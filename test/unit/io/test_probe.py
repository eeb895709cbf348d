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
    pieces = PageCache().read_ahead(Carrier(), fd, length, offset, 0)
    assert b''.join(pieces) == BODY[offset:offset + length]
    assert all(len(piece) == CHUNK_BYTES for piece in pieces[:-1])
    assert all(0 < len(piece) <= CHUNK_BYTES for piece in pieces)


def test_pieces_stay_as_they_are_when_more_is_read(fd):
    cache = PageCache()
    first = cache.read_ahead(Carrier(), fd, AHEAD_BYTES, 0, 0)
    cache.read_ahead(Carrier(), fd, AHEAD_BYTES, CHUNK_BYTES + 7, 0)
    assert b''.join(first) == BODY[:AHEAD_BYTES]


def test_the_class_is_set_once_a_read_and_taken_back(fd):
    carrier = Noting()
    PageCache().read_ahead(carrier, fd, AHEAD_BYTES, 0, 5)
    PageCache().read_ahead(carrier, fd, AHEAD_BYTES, 0, 0)
    assert carrier.given == [5, 0]


def test_what_is_not_there_is_nothing(fd, monkeypatch):
    def again(*_args):
        raise BlockingIOError

    monkeypatch.setattr(os, 'preadv', again)
    carrier = Noting()
    assert not PageCache().read_ahead(carrier, fd, 10, 0, 5)
    assert carrier.given == [5, 0]
