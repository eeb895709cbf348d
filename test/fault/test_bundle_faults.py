"""R24-R28, bundles: a few of the faults of ``bundle_faults.py``."""

from __future__ import annotations

import pytest
from fault import bundle_faults
from support.edges.faulty_s3 import FaultyS3
from support.edges.s3_servers import VersityServer


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


def test_success_that_is_a_lie_at_every_call_of_up_and_back(
        server, tmp_path):
    outcome = bundle_faults.campaign(server, str(tmp_path), ['swallow'], True)
    assert not outcome.wrong
    assert outcome.lives > 4 and outcome.fired
    print('R24-R28 bundles: %d lives, %d faults fired, 0 wrong' % (
        outcome.lives, outcome.fired))


def test_nothing_is_left_beside_a_bundle_that_goes(server, tmp_path):
    """A delete that was acknowledged and not done."""
    faulty = FaultyS3(server)
    try:
        armed = faulty.arm(
            'swallow', lambda request: request.method == 'DELETE'
            and request.target.split('?')[0].endswith('.since'), nth=2)
        bundle_faults.life(faulty, 'beside/', str(tmp_path), False)
        assert armed.fired
    finally:
        faulty.stop()
    assert not [key for key in server.list_keys()
                if key.startswith('beside/')]


def test_a_bundle_that_is_not_proven_is_lost(server, tmp_path):
    outcome = bundle_faults.twin(server, str(tmp_path))
    assert outcome.fired and outcome.wrong
