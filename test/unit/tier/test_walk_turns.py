"""Walks side by side: who goes alone, and who beside the others."""

from __future__ import annotations

import threading

import pytest

from swift_dss.gateway.link.turns import Baton
from swift_dss.tier.walk import turns


@pytest.fixture
def read(monkeypatch):
    """Sectors that all threads have had read."""
    made = [0]
    monkeypatch.setattr(turns, 'sectors_read', lambda: made[0])
    return made


def _goes_beside(baton, pieces):
    """Whether a walk reads a piece while another one is at it."""
    begun = threading.Event()

    def walk():
        with pieces.piece():
            begun.set()

    beside = threading.Thread(target=walk)
    with baton.hold():
        beside.start()
        was_beside = begun.wait(0.2)
    beside.join()
    return was_beside


def test_walks_of_cached_files_take_turns(read):
    baton = Baton()
    assert not _goes_beside(baton, turns.Pieces(baton))


def test_a_walk_that_waits_for_its_disk_goes_beside_the_others(read):
    baton = Baton()
    pieces = turns.Pieces(baton)
    with pieces.piece():
        read[0] += turns.VERSIONS
    assert _goes_beside(baton, pieces)
    # That piece was cached: it takes its turn again.
    assert not _goes_beside(baton, pieces)


def test_a_kernel_that_does_not_count_has_all_walks_side_by_side(
        read, monkeypatch):
    monkeypatch.setattr(turns.os.path, 'exists', lambda path: False)
    baton = Baton()
    pieces = turns.Pieces(baton)
    assert _goes_beside(baton, pieces) and _goes_beside(baton, pieces)


def test_what_a_piece_raises_gives_its_turn_back(read):
    baton = Baton()
    pieces = turns.Pieces(baton)
    with pytest.raises(OSError), pieces.piece():
        raise OSError
    assert not _goes_beside(baton, pieces)


def test_a_disk_that_hangs_in_its_turn_holds_up_no_other_walk(
        read, monkeypatch):
    asked = []

    class Asked(Baton):
        def take(self, seconds=-1):
            asked.append(seconds)
            return super().take(seconds)

    monkeypatch.setattr(turns, '_PATIENCE_SECONDS', 0.01)
    baton = Asked()
    pieces = turns.Pieces(baton)
    with baton.hold():
        del asked[:]
        for _ in range(3):
            with pieces.piece():
                pass
    # It waits once, and not again for each piece.
    assert asked == [0.01]
    assert baton.take(0), 'a turn that nobody had was given back'
