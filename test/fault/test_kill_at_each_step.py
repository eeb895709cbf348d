"""R01 in CI: every operation is killed, at a few of its steps."""

from __future__ import annotations

import pytest
import kill_at_each_step
from scenarios import SCENARIOS


@pytest.mark.parametrize('scenario', SCENARIOS,
                         ids=lambda scenario: scenario.name)
def test_a_killed_move_loses_nothing(tmp_path, scenario):
    outcome = kill_at_each_step.campaign(
        str(tmp_path), [scenario], per_scenario=4)
    assert outcome.kills
    assert outcome.lost == []


def test_the_campaign_sees_a_move_in_the_wrong_order(tmp_path):
    outcome = kill_at_each_step.campaign(
        str(tmp_path), [kill_at_each_step.WRONG_TWIN])
    assert outcome.lost
