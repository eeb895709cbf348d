"""What could not be written down is asked for again by a sweep."""

from __future__ import annotations

import operator

import pytest
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.errors import TierUnavailable
from swift_dss.tier.index.file import IndexUnavailable


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize('part, verb, error', [
    ('index', 'add', IndexUnavailable),
    ('local.mover', 'row', TierUnavailable)])
def test_an_event_that_could_not_be_kept_makes_a_sweep_due(
        rig, monkeypatch, part, verb, error):
    def fail(*_args):
        raise error('no room')

    monkeypatch.setattr(operator.attrgetter(part)(rig), verb, fail)
    place = rig.put('o', b'x' * 100 * KIB)
    assert rig.due.missed
    assert rig.index.get(place.version) is None


def test_events_that_were_kept_do_not(rig):
    rig.put('o', b'x' * 100 * KIB)
    assert not rig.due.missed
