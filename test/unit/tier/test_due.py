"""When the devices are walked, and what a walk that ends makes of it."""

from __future__ import annotations

import threading

import pytest
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.errors import TierUnavailable
from swift_dss.tier.index.due import Due
from swift_dss.tier.walk.survey import Found, Survey
from swift_dss.tier.walk.sweeper import Sweeper

YEAR = 3e7


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


def again(rig):
    """As the next daemon finds it."""
    return Due(rig.index, rig.metrics)


def test_a_new_index_wants_a_rebuild_until_all_was_walked(rig):
    assert rig.due.rebuild and rig.due.look(YEAR)
    assert again(rig).rebuild
    rig.due.walked()
    assert not rig.due.look(YEAR)
    assert rig.due.look(-1.0), 'the interval is over'
    assert not again(rig).rebuild
    rig.due.need_rebuild()
    assert rig.due.wake.is_set() and again(rig).rebuild


def test_only_a_stop_that_lost_nothing_is_clean(rig):
    rig.due.walked()
    for missed in (False, True, False):
        rig.due.begin()
        assert again(rig).unclean
        rig.due.missed = missed
        rig.due.end()
        assert again(rig).unclean is missed


def test_an_event_that_is_lost_during_a_walk_makes_the_next_one_due(rig):
    rig.due.walked()
    rig.due.missed = True
    assert rig.due.look(YEAR) and rig.due.unclean
    rig.due.failed(TierUnavailable('no disk'))
    rig.due.walked()
    assert rig.due.look(YEAR)
    rig.due.walked()
    assert not rig.due.look(YEAR)


def test_an_index_that_is_replaced_during_a_walk_is_walked_again(
        rig, monkeypatch):
    """What the walk had read before is lost with the old file."""
    rig.put('o', b'x' * KIB)
    stopping, paces = threading.Event(), []

    def walk(_survey, device, pace, _orphans, _progress):
        paces.append(pace)
        if len(paces) == 1:
            rig.due.replace_index(TierUnavailable('damaged'))
        else:
            stopping.set()
        rig.due.wake.set()
        return Found(device.name)

    monkeypatch.setattr(Survey, 'device', walk)
    sweeper = Sweeper(rig.local, rig.ledger, rig.keepers, rig.due, stopping,
                      rig.metrics)
    last = threading.Timer(20.0, lambda: (stopping.set(),
                                          rig.due.wake.set()))
    last.start()
    sweeper.run()
    last.cancel()
    assert paces == [0.0, 0.0]
