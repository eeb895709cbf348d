"""R07 in small: what is examined, and that nothing is lost there."""

from __future__ import annotations

import random

import dss_lab
import dss_r07


def entry(flags, data=b''):
    return dss_r07.Entry(0, flags, data)


def test_half_of_the_points_are_first_flushes_after_an_intent():
    # The log has a write that is not FUA with the next flush: the table
    # that is written before it tells nothing of an intent.
    told = [entry(dss_r07.MARK, dss_r07.INTENT), entry(dss_r07.FUA),
            entry(0), entry(dss_r07.FLUSH)]
    log = (told + [entry(dss_r07.MARK, b'7')]
           + [entry(dss_r07.FLUSH)] * 8) * 20
    after_intent = {10 * number + 1 for number in range(20)}
    for seed in range(20):
        points = dss_r07.chosen(log, 20, random.Random(seed))
        assert len(points) == 20
        assert len(points & after_intent) >= 10
        assert points - after_intent
    everything = dss_r07.chosen(log, 1000, random.Random(1))
    assert everything == set(range(200))


def test_starts_from_some_points_lose_nothing():
    found = dss_lab.found('dss_r07.py', [77, 60, 6])
    assert found['examined'] == 6
    assert found['intents'] and found['promises']
