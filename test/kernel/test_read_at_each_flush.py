"""R07 in small: what is examined, and that nothing is lost there."""

from __future__ import annotations

import random

import dss_lab
import pytest
import dss_each_flush


def entry(flags, data=b''):
    return dss_each_flush.Entry(0, flags, data)


def test_half_of_the_points_are_first_flushes_after_an_intent():
    # The log has a write that is not FUA with the next flush: the table
    # that is written before it tells nothing of an intent.
    told = [entry(dss_each_flush.MARK, dss_each_flush.INTENT),
            entry(dss_each_flush.FUA), entry(0),
            entry(dss_each_flush.FLUSH)]
    log = (told + [entry(dss_each_flush.MARK, b'7')]
           + [entry(dss_each_flush.FLUSH)] * 8) * 20
    after_intent = {10 * number + 1 for number in range(20)}
    for seed in range(20):
        points = dss_each_flush.chosen(log, 20, random.Random(seed))
        assert len(points) == 20
        assert len(points & after_intent) >= 10
        assert points - after_intent
    everything = dss_each_flush.chosen(log, 1000, random.Random(1))
    assert everything == set(range(200))


@pytest.mark.parametrize('stage', [0, 20])
def test_starts_from_some_points_lose_nothing(stage):
    report = dss_lab.found('dss_each_flush.py', [77, 60, 6, stage])
    assert report['examined'] == 6
    assert report['intents'] and report['promises']
    assert bool(report['staged']) == bool(stage)
