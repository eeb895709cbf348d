"""A busy HDD is in the way of its own requests alone."""

from __future__ import annotations

import dss_lab


def test_write_to_the_ssd_does_not_wait_for_a_place_at_the_hdd():
    report = dss_lab.found('dss_tags.py')
    assert report['right'] and report['intents'] == 1
    # It waits for a commit. The HDD takes 20 ms for each of thirty writes.
    assert report['seconds'] < 0.005
    assert report['all'] > 0.5
