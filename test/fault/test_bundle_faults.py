"""R24-R28, bundles: a few of the faults of ``bundle_faults.py``."""

from __future__ import annotations

import pytest
from fault import bundle_faults
from functional.s3_servers import VersityServer


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


def test_success_that_is_a_lie_at_every_call_of_up_and_back(
        server, tmp_path):
    found = bundle_faults.campaign(server, str(tmp_path), ['swallow'], True)
    assert not found.wrong
    assert found.lives > 4 and found.fired
    print('R24-R28 bundles: %d lives, %d faults fired, 0 wrong' % (
        found.lives, found.fired))


def test_a_bundle_that_is_not_proven_is_lost(server, tmp_path):
    found = bundle_faults.twin(server, str(tmp_path))
    assert found.fired and found.wrong
