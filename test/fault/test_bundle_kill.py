"""R01, bundles: a few of the kills of ``bundle_kill.py``, and its twin."""

from __future__ import annotations

import pytest
from fault import bundle_kill
from support.edges.s3_servers import VersityServer


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


def test_kills_of_bundles_lose_nothing(server, tmp_path):
    outcome = bundle_kill.campaign(
        server, str(tmp_path), list(bundle_kill.VERBS), per_verb=3)
    assert not outcome.lost
    assert outcome.kills >= 6 and len(outcome.missed) <= 1, outcome.missed
    print('R01 bundles: %d kills at %d steps, %d lost, worst recovery '
          '%.1f s' % (outcome.kills, len(outcome.steps), len(outcome.lost),
                      outcome.worst_recovery_seconds))


def test_a_bundle_that_is_recorded_too_early_is_caught(server, tmp_path):
    outcome = bundle_kill.twin(server, str(tmp_path))
    assert any('the record says remote' in failure for failure in outcome.lost)
