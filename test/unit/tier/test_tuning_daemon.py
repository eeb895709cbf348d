"""A daemon that tunes itself: what it hears, chooses, keeps and gives back."""

from __future__ import annotations

import dataclasses
import json
import logging

import pytest
from support.nodes.sample_node import sample_bytes
from support.nodes.tier_node import KIB, LOGGER, Rig

from swift_dss.cli.tier import tables
from swift_dss.core.residency import Tier
from swift_dss.strategy.tuning import chooser
from swift_dss.strategy.tuning.shadows import Shadows
from swift_dss.tier.tune import tuning
from swift_dss.tier.tune.told import Told
from swift_dss.tier.tune.tuning import Tuning
from swift_dss.wire.control import Event, EventKind

SIZE = 10 * KIB
OPTIONS = {'self_tuning': True, 'ssd_bytes': 500 * KIB,
           'high_watermark': 0.9, 'low_watermark': 0.8}


class Tuned:
    """A rig whose objects are read in a loop that is larger than its SSD."""

    def __init__(self, root, **options):
        self.rig = Rig(root, **dict(OPTIONS, **options))
        self.places = []

    def fill(self, number):
        self.places = [
            self.rig.put('o%d' % key, sample_bytes(SIZE, key))
            for key in range(number)]
        self.rig.now += 100
        self.rig.keeper.round()
        self.tuning.look()

    @property
    def tuning(self):
        return self.rig.ledger.tuning

    @property
    def told(self):
        told, = self.tuning.status()
        return told

    def tier_of(self, place):
        row = self.rig.index.get(place.version)
        return Tier.SSD if row.spans[0].ssd_bytes else Tier.HDD

    def read(self, places, tier=None):
        """One after the other, heard of as one batch."""
        events = []
        for place in places:
            self.rig.now += 0.01
            events.append(Event(
                EventKind.READ, place.version, place.partition, SIZE, '', 0,
                SIZE, int(tier or self.tier_of(place)), self.rig.now))
        self.rig.ledger.apply(events)

    def loop(self, times, tier=None):
        """Until the first change; True if there was one."""
        before = self.told['in_force']
        for _ in range(times):
            self.read(self.places, tier)
            self.rig.keeper.round()
            if self.told['in_force'] != before:
                return True
        return False


@pytest.fixture
def tuned(tmp_path):
    made = Tuned(tmp_path)
    made.fill(60)
    yield made
    made.rig.close()


def inner(rig):
    return {spec.inner for spec in rig.in_force.table.specs.values()}


def test_an_order_that_serves_better_comes_into_force_and_says_why(
        tuned, caplog):
    with caplog.at_level(logging.INFO, LOGGER.name):
        assert tuned.loop(100)
    told = tuned.told
    order = told['in_force'].partition('-')[2]
    assert order in ('sieve', 's3fifo', 'gdsf')
    assert told['configured'] == 'class'
    assert inner(tuned.rig) == {order}
    assert tuned.rig.index.file.order.memories.group(0) == (0, order)
    line, = [record.getMessage() for record in caplog.records
             if 'self-tuning' in record.getMessage()]
    assert told['why'] in line and 'saves' in line and 'points' in line
    assert told['changes'][-1]['new'] == told['in_force']
    assert tuned.rig.metrics.snapshot()['tier.order_changes'] == 1
    text = tables.tuning(json.loads(json.dumps(told)))
    assert told['why'] in text and 'configured is class' in text


def test_the_shares_of_hits_are_told_by_order(tuned):
    tuned.loop(5)
    told = tuned.told
    assert set(told['hits']) == set(told['hit_bytes']) == set(told['saved'])
    # All objects are of one size.
    assert told['hits'] == pytest.approx(told['hit_bytes'])
    assert told['hits']['class'] < max(told['hits'].values()) <= 1
    assert 'OF BYTES' in tables.tuning(told)
    # A daemon of before does not tell them.
    del told['hits'], told['hit_bytes']
    assert 'WOULD SAVE' in tables.tuning(told)


def test_a_choice_goes_on_after_a_restart(tuned):
    tuned.loop(100)
    chosen, home = tuned.told['in_force'], tuned.told['lag_configured']
    tuned.tuning.look()
    rig = tuned.rig
    rig.in_force.take(*rig.in_force.configured)
    again = Tuning(rig.in_force, rig.index.file, rig.keepers, rig.metrics)
    assert inner(rig) == {chosen.partition('-')[2]}
    again.look()
    told, = again.status()
    assert (told['in_force'], told['lag_configured']) == (chosen, home)
    assert told['why'] == tuned.told['why']


def test_switched_off_the_configured_order_is_back_at_once(tuned):
    tuned.loop(100)
    rig = tuned.rig
    rig.in_force.take(dataclasses.replace(rig.conf, tier=dataclasses.replace(
        rig.conf.tier, self_tuning=False)), rig.in_force.configured[1])
    tuned.tuning.renew()
    assert inner(rig) == {'lru'}
    assert tuned.tuning.status() == []
    tuned.tuning.look()
    assert rig.index.file.get_state('self_tuning') == ''


def test_a_reload_keeps_the_choice_and_another_order_of_the_operator_ends_it(
        tuned):
    tuned.loop(100)
    rig, chosen = tuned.rig, tuned.told['in_force']
    rig.in_force.take(*rig.in_force.configured)
    tuned.tuning.renew()
    assert tuned.told['in_force'] == chosen
    rig.in_force.take(dataclasses.replace(rig.conf, tier=dataclasses.replace(
        rig.conf.tier, eviction='sieve')), rig.in_force.configured[1])
    tuned.tuning.renew()
    assert tuned.told['configured'] == tuned.told['in_force'] == 'sieve'
    assert rig.conf.tier.eviction == 'sieve'


def test_the_guard_brings_the_configured_order_back(tuned):
    tuned.loop(100)
    assert tuned.told['in_force'] != 'class'
    # The new order keeps nothing, whatever its shadow says.
    assert tuned.loop(100, Tier.HDD)
    told = tuned.told
    assert told['in_force'] == 'class' and told['is_held']
    assert 'again: with' in told['why']
    assert inner(tuned.rig) == {'lru'}


def again(tuned):
    """The tuner of the daemon's next life."""
    tuned.tuning.look()
    rig = tuned.rig
    made = Tuning(rig.in_force, rig.index.file, rig.keepers, rig.metrics)
    made.look()
    return made


def test_what_the_guard_keeps_it_keeps_after_a_restart(tuned):
    tuned.loop(100)
    tuned.loop(100, Tier.HDD)
    assert tuned.told['is_held']
    tuned.rig.ledger.tuning = again(tuned)
    assert tuned.told['is_held']
    assert not tuned.loop(100)


@pytest.mark.parametrize('hours, may_change', [(0, False), (25, True)])
def test_changes_of_the_day_count_after_a_restart(
        tuned, monkeypatch, hours, may_change):
    monkeypatch.setattr(tuning, 'CHANGES_A_DAY', 1)
    monkeypatch.setattr(chooser, 'HELD_BATCHES', 0)
    tuned.loop(100)
    tuned.loop(100, Tier.HDD)
    tuned.tuning.look()
    told = Told.of(tuned.rig.index.file.get_state('self_tuning'))
    told.left_at = [at - 3600 * hours for at in told.left_at]
    tuned.rig.index.file.set_state('self_tuning', told.text())
    tuned.rig.ledger.tuning = again(tuned)
    assert told.in_force == 'class' and len(told.left_at) == 1
    assert tuned.loop(150) is may_change


def test_off_nothing_is_heard(tmp_path):
    off = Tuned(tmp_path, self_tuning=False)
    off.fill(5)
    off.read(off.places, Tier.SSD)
    assert off.tuning.status() == []
    off.rig.close()


def test_deleted_objects_leave_the_shadows(tuned, monkeypatch):
    heard = []
    monkeypatch.setattr(
        Shadows, 'hear', lambda self, key, size, class_id, verb, is_hit:
        heard.append((key, class_id, verb)))
    place = tuned.places[0]
    tuned.read([place], Tier.SSD)
    tuned.tuning.heard({}, {}, [], [place.version])
    (key, _, _), *gone = heard
    assert (key, 0, 2) in gone and {verb for _, _, verb in gone} == {2}


@pytest.mark.parametrize('text', [
    '', 'no', '[]', '{}', '{"configured": 1}', '{"home": 3}'])
def test_a_choice_that_cannot_be_read_is_learnt_again(text):
    assert Told.of(text) == Told()


def test_what_is_told_is_read_again():
    told = Told()
    told.began('class', 'class', 3.0)
    told.changed('class', 'class-gdsf', 'so', 4.0, None)
    assert Told.of(told.text()) == told
