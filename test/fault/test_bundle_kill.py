"""R01, bundles: a few of the kills of ``bundle_kill.py``, and its twin."""

from __future__ import annotations

import pytest
from fault import bundle_kill
from functional.s3_servers import VersityServer


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


def test_kills_of_bundles_lose_nothing(server, tmp_path):
    found = bundle_kill.campaign(
        server, str(tmp_path), list(bundle_kill.VERBS), per_verb=3)
    assert not found.lost
    assert found.kills >= 6 and len(found.missed) <= 1, found.missed
    print('R01 bundles: %d kills at %d steps, %d lost, worst recovery '
          '%.1f s' % (found.kills, len(found.steps), len(found.lost),
                      found.worst_recovery_seconds))


def test_a_bundle_that_is_recorded_too_early_is_caught(server, tmp_path):
    found = bundle_kill.twin(server, str(tmp_path))
    assert any('the record says remote' in one for one in found.lost)
