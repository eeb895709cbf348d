"""R02 in CI: a sample of what a power cut may leave of each operation."""

from __future__ import annotations

import pytest
import cut_the_power
from scenarios import SCENARIOS

SEED = 1


@pytest.mark.parametrize('scenario', SCENARIOS,
                         ids=lambda scenario: scenario.name)
def test_no_crash_state_loses_anything(tmp_path, scenario):
    outcome = cut_the_power.campaign(str(tmp_path), [scenario], 3, SEED)
    assert outcome.states > 1
    assert outcome.lost == []


def test_the_campaign_sees_a_missing_fsync(tmp_path):
    outcome = cut_the_power.campaign(str(tmp_path), SCENARIOS[1:2], 3, SEED,
                         with_syncs=False)
    assert outcome.lost
