"""Every malicious ``.dss`` is refused, at its position, in little memory."""

from __future__ import annotations

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import fuzz_campaign
import evil_dss
import naive_dss


@pytest.mark.parametrize('evil', evil_dss.EVILS, ids=lambda evil: evil.name)
@pytest.mark.parametrize('chunk_bytes', evil_dss.CHUNKINGS)
def test_an_evil_is_refused_at_its_position(evil, chunk_bytes):
    assert evil_dss.refusal(evil, chunk_bytes) == ('refused', evil.position)


def test_names_of_evils_are_unique_and_enough():
    names = [evil.name for evil in evil_dss.EVILS]
    assert len(set(names)) == len(names) >= 40


def test_every_truncation_is_refused_where_it_ends():
    cut = list(evil_dss.truncations())
    refused, wrong, peak = fuzz_campaign.judge_evils(cut)
    assert wrong == []
    assert refused == len(cut) > 100
    assert peak < fuzz_campaign.MAX_PEAK_BYTES


def test_the_good_streams_behind_the_evils_are_taken():
    for raw in (evil_dss.GOOD_BLOCK, evil_dss.GOOD_RANGE,
                evil_dss.GOOD_WIDE):
        for told in ({}, {'content_length': len(raw)}):
            good = evil_dss.Evil('good', raw, 0, told)
            assert evil_dss.refusal(good, 5) == ('taken', None)


def test_floods_of_a_legal_size_stay_in_bounded_memory():
    _, wrong, peak = fuzz_campaign.judge_floods()
    assert wrong == []
    assert peak < fuzz_campaign.MAX_PEAK_BYTES


def test_wrong_twin_lets_evils_in():
    refused, wrong, _ = fuzz_campaign.judge_evils(
        evil_dss.EVILS, naive_dss.NaiveDecoder)
    assert wrong
    assert refused < len(evil_dss.EVILS) // 2
