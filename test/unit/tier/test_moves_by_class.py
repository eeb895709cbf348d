"""A move of one class leaves the other classes of an object in their place."""

from __future__ import annotations

import os
import threading
import types
from dataclasses import replace

import pytest
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.tier.doors.admin import AdminServer
from swift_dss.tier.walk.relocate import Relocator

HALF = 64 * KIB
SILVER, GOLD = 5, 9
MIXED = ClassMap.from_spans([Span(0, HALF, GOLD)], SILVER)
EVERYWHERE = Tier.SSD | Tier.HDD | Tier.REMOTE


class OneNode:
    """The parts that the verbs use, on a device with real files."""

    def __init__(self, rig):
        self.index, self.local = rig.index, rig.local
        self.in_force, self.metrics = rig.in_force, rig.metrics
        self.gateway, self.keepers = rig.gateway, self
        rig.gateway.require_ours = lambda: None
        rig.gateway.reading = lambda: (0, 0)
        rig.gateway.fetch = self.fetch
        self.fetched = []
        self.relocator = Relocator(rig.local, rig.gateway, rig.metrics,
                                   threading.Event())

    def kick(self, device=''):
        """Nobody to wake."""

    def fetch(self, request, sink):
        self.fetched.append((request.offset, request.length))
        return True


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


@pytest.fixture
def place(rig):
    """An object of two classes, on the SSD and the HDD and in S3."""
    made = rig.put('o', b'x' * 2 * HALF, class_map=MIXED)
    rig.local.clean(made.version, made.partition)
    rig.local.record_remote(made.version, made.partition,
                            RemoteCopy('s3', 'key', 'e', 1.0))
    return made


@pytest.fixture
def node(rig):
    return OneNode(rig)


@pytest.fixture
def asks(node):
    admin = AdminServer('/nowhere', node, None)
    return lambda **request: admin.answer(request, lambda said: None)


def tiers(rig, place):
    """Where the bytes of gold are, and those of silver."""
    residency = rig.local.describe(
        place.version, place.partition).residency
    gold, = residency.split(0, HALF)
    silver, = residency.split(HALF, HALF)
    return gold.tiers, silver.tiers


@pytest.mark.parametrize('to, left', [
    ('hdd', Tier.HDD | Tier.REMOTE), ('remote', Tier.REMOTE)])
@pytest.mark.parametrize('by_name', [True, False])
def test_bytes_of_the_other_class_stay_where_they_are(
        rig, place, asks, to, left, by_name):
    named = {'object': place.version.object_hash} if by_name else {}
    said = asks(verb='demote', to=to, **{'class': 'silver'}, **named)
    assert said['failed'] == []
    assert tiers(rig, place) == (EVERYWHERE, left)
    assert said['moved_bytes'] == HALF


def test_bytes_of_the_other_class_are_not_promoted(rig, place, asks):
    rig.local.demote(place.version, place.partition)
    said = asks(verb='promote', **{'class': 'gold'})
    assert said['failed'] == []
    assert tiers(rig, place) == (EVERYWHERE, Tier.HDD | Tier.REMOTE)


@pytest.mark.parametrize('verb', ['recall', 'promote'])
def test_bytes_of_the_other_class_are_not_paid_for(
        rig, place, node, asks, verb):
    for drop in (lambda *at: rig.local.demote(*at, to_hdd=False),
                 rig.local.drop_capacity):
        drop(place.version, place.partition)
    asks(verb=verb, **{'class': 'gold'})
    assert node.fetched == [(0, HALF)]


def test_bytes_of_the_other_class_are_not_relocated(rig, place, asks):
    planned = asks(verb='relocate', dry_run=True, **{'class': 'silver'})
    assert planned['freed_bytes'] == 2 * HALF
    said = asks(verb='relocate', seconds=5, **{'class': 'silver'})
    assert said['failed'] == []
    assert tiers(rig, place) == (EVERYWHERE, Tier.REMOTE)


def test_all_of_an_object_moves_where_no_class_is_named(rig, place, asks):
    said = asks(verb='demote', to='remote', device='sda')
    assert tiers(rig, place) == (Tier.REMOTE, Tier.REMOTE)
    assert said['moved_bytes'] == 2 * HALF


def test_a_tier_is_asked_for_bytes_of_the_class(rig, place, asks):
    rig.local.demote(place.version, place.partition, [SILVER])
    assert asks(verb='ls', tier='ssd', **{'class': 'silver'})['shown'] == 0
    assert asks(verb='ls', tier='ssd', **{'class': 'gold'})['shown'] == 1
    assert asks(verb='ls', tier='ssd')['shown'] == 1


@pytest.fixture
def nearly_full(monkeypatch):
    """Each file system is over its mark by less than the object."""
    monkeypatch.setattr(os, 'statvfs', lambda _path: types.SimpleNamespace(
        f_frsize=KIB, f_blocks=1 << 20, f_bavail=(1 << 19) - 1,
        f_files=0, f_favail=0))


def test_a_full_hdd_keeps_what_the_higher_class_has_on_it(
        rig, place, nearly_full):
    rig.local.demote(place.version, place.partition)
    rig.conf = replace(rig.conf, tier=replace(
        rig.conf.tier, hdd_high_watermark=0.5, hdd_low_watermark=0.5))
    rig.keeper.duties.look_at_hdd()
    rig.keeper.duties.relieve_hdd(rig.conf)
    assert tiers(rig, place) == (Tier.HDD | Tier.REMOTE, Tier.REMOTE)


def test_a_class_of_s3_takes_no_other_class_off_the_hdd(rig, place):
    rig.table = ClassTable.of([
        ClassSpec(SILVER, 'silver', 50, remote=RemoteMode.ONLY),
        ClassSpec(GOLD, 'gold', 90)])
    rig.keeper.duties.look_at_hdd()
    rig.keeper.duties.drop_remote_only()
    assert tiers(rig, place) == (EVERYWHERE, Tier.REMOTE)


def test_a_spill_leaves_what_may_not_leave(rig, place, node, nearly_full):
    rig.table = ClassTable.of([
        ClassSpec(SILVER, 'silver', 50),
        ClassSpec(GOLD, 'gold', 90, remote=RemoteMode.NEVER)])
    rig.conf = replace(rig.conf, gateway=replace(
        rig.conf.gateway, spill_at=0.25))
    node.relocator.spill(rig.local.devices.get('sda'))
    assert tiers(rig, place) == (EVERYWHERE, Tier.REMOTE)
