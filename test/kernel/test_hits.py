"""The measurement of a hit's cost measures hits, and both targets."""

from __future__ import annotations

import hits


def test_every_read_of_it_is_a_hit():
    times = hits.measure(chunk=64, rounds=3)
    assert set(times) == {'linear', 'dss'}
    assert all(len(all_of) == 3 and all_of[0] > 0
               for all_of in times.values())
