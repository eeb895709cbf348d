"""A restore asks the other nodes, and S3 only for what belongs here."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest

from test_gateway_deletes import DAY, NEW, OLD, Cluster

from swift_dss.core.errors import (
    BadConfig, RemoteUnavailable, TierFull, TierUnavailable)
from swift_dss.gateway.collect.keys import Wish
from swift_dss.gateway.restore import run, places
from swift_dss.gateway.restore.catalog import Catalog
from swift_dss.gateway.restore.run import Restore
from swift_dss.gateway.restore.trust import Trust
from swift_dss.gateway.restore.write import Target
from swift_dss.gateway.ports import Upload


class Here:
    """What a restore writes to, remembered."""

    def __init__(self):
        self.written = []
        self.away = set()

    def named(self, held):
        return held

    def targets(self, held):
        return [Target('sda', 7, 0)]

    def write(self, held, target):
        if held.name in self.away:
            raise TierUnavailable('/srv/node/sdb is not mounted')
        self.written.append(held.name)
        return True

    def list_in_container(self, held):
        """Nothing to list in."""

    def require(self, held):
        """It is there."""


@pytest.fixture
def trio(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.stop()


def restored(trio, belongs_here=lambda version: True, state='', away=()):
    gateway, here = trio.gateways[0], Here()
    del trio.s3.asked[:]
    work = Restore(
        gateway.parts.conf, gateway.parts.client, here, here,
        SimpleNamespace(version=lambda *_: None, place=lambda *_: None),
        run.Cluster(belongs_here, trio.primaries), state)
    here.away.update(away)
    counts = work.run(Catalog(gateway.parts.conf, gateway.parts.client),
                      lambda now: None)
    assert len(work.problems) == len(away)
    return sorted(here.written), counts


def test_what_others_have_something_newer_of_does_not_come_back(trio):
    versions = [trio.put('o%d' % number) for number in range(5)]
    # The bucket has not heard of it, and this node's disk is new.
    trio.disks[0].unlink(versions[0])
    trio.disks[2].tombstone(versions[0], NEW)
    trio.disks[1].put('o1', b'newer', NEW)
    names, counts = restored(trio)
    assert names == ['/a/c/o2', '/a/c/o3', '/a/c/o4']
    assert (counts.obsolete, counts.versions) == (2, 3)


def test_many_are_asked_about_together(trio, monkeypatch):
    monkeypatch.setattr(run, '_ASKED_AT_ONCE', 4)
    monkeypatch.setattr(run, '_NOTED_EVERY', 1000)
    for number in range(10):
        trio.put('o%d' % number)
    trio.primaries.asked = 0
    assert len(restored(trio)[0]) == 10
    assert trio.primaries.asked == 3


def test_a_silent_node_holds_nothing_up(trio):
    version = trio.put('o')
    trio.disks[2].tombstone(version, NEW)
    trio.primaries.away = {0, 1, 2}
    assert restored(trio)[0] == ['/a/c/o']


def test_s3_is_asked_only_for_what_belongs_here(trio):
    mine = {trio.put('o%d' % number).object_hash for number in range(4)}
    others = {trio.put('x%d' % number).object_hash for number in range(30)}
    names, counts = restored(
        trio, lambda version: version.object_hash in mine)
    assert names == ['/a/c/o%d' % number for number in range(4)]
    assert [request[0] for request in trio.s3.asked].count('HEAD') == 4
    assert counts.keys == len(mine | others)


def test_that_it_has_begun_can_be_seen_until_it_has_ended(trio, tmp_path):
    trio.put('o')
    state = str(tmp_path / '0' / 'restore.json')
    seen = []

    def has_begun():
        return os.path.exists(trio.gateways[0].parts.restore_state)

    def looks(version):
        seen.append(has_begun())
        return True
    restored(trio, looks, state)
    assert seen == [True] and not has_begun()


@pytest.mark.parametrize('fails', [True, False])
def test_what_failed_is_tried_again(trio, tmp_path, monkeypatch, fails):
    """A restore that is broken off goes on behind what it is through with."""
    monkeypatch.setattr(run, '_NOTED_EVERY', 1)
    for number in range(6):
        trio.put('o%d' % number)
    gateway, here = trio.gateways[0], Here()
    state = str(tmp_path / '0' / 'restore.json')
    catalog = Catalog(gateway.parts.conf, gateway.parts.client)
    walk = catalog.walk

    def broken(after, wanted):
        for number, held in enumerate(walk(after, wanted)):
            if number == 4:
                raise RemoteUnavailable('away', 1)
            yield held

    def write(held, target):
        if fails and len(here.written) == 1:
            raise TierFull('no room')
        here.written.append(held.name)
        return True

    here.write = write
    catalog.walk = broken
    with pytest.raises(RemoteUnavailable):
        Restore(gateway.parts.conf, gateway.parts.client, here, here,
                SimpleNamespace(
            version=lambda *_: None, place=lambda *_: None), run.Cluster(
                lambda version: True, trio.primaries), state).run(
                    catalog, lambda now: None)
    with open(state) as source:
        after = json.load(source)['after']
    keys = sorted(key for key in trio.s3.keys if key.count('/') == 4)
    # The last one that it is through with, and has looked behind.
    assert after == ('' if fails else keys[2])


def test_a_place_that_was_planted_is_not_written(trio):
    gateway, here = trio.gateways[0], Here()
    here.write = lambda place: here.written.append(place.path)
    for path, key in (('/a', ''), ('/a/right', ''), ('/a/planted', 'x')):
        trio.s3.keys[places.key_of('p/', path) + key] = \
            places.encode(places.Place(path, {
                'x-backend-put-timestamp': OLD,
                'x-container-read': '.r:*'})), {}
    work = Restore(
        gateway.parts.conf, gateway.parts.client, here, here,
        Trust('p/', '', False, float(NEW)),
        run.Cluster(lambda version: True, trio.primaries))
    counts = work.run(Catalog(gateway.parts.conf, gateway.parts.client),
                      lambda now: None)
    assert here.written == ['/a', '/a/right']
    assert (counts.places, counts.refused) == (2, 1)


def test_what_could_not_be_restored_is_not_removed_as_absent(trio, tmp_path):
    versions = [trio.put('o%d' % number) for number in range(20)]
    for version in versions[:3]:
        for disk in trio.disks:
            disk.unlink(version)
    trio.now += 30 * DAY
    state = str(tmp_path / '0' / 'restore.json')
    lost = ['/a/c/o%d' % number for number in range(3)]
    assert restored(trio, state=state, away=lost)[1].failed == 3
    absent = Wish(everything=True, absent=True)
    with pytest.raises(BadConfig, match='not brought back all'):
        trio.gateways[0].collect(absent)
    # The drive is there again.
    assert set(lost) <= set(restored(trio, state=state)[0])
    for number in range(3):
        for disk in trio.disks:
            disk.put('o%d' % number, b'body', OLD)
    assert trio.gateways[0].collect(absent).removed == 0
    assert all(map(trio.has, versions))


@pytest.mark.parametrize('index', (1, 2, 10, 11))
def test_each_node_gets_its_fragment_of_twelve(tmp_path, index):
    solo = Cluster(tmp_path, 1)
    for number in range(12):
        version = solo.disks[0].put('o', b'fragment %d' % number, OLD,
                                    frag_index=number)
        solo.gateways[0].enqueue_uploads([Upload(version, '7', True)])
        solo.run(0)
        # Its side cars lie before the key of fragment 10.
        key, = (key for key in solo.s3.keys if key.endswith(version.key))
        solo.gateways[0].parts.bundles.renewer.write(
            key, solo.disks[0].describe(version, '7'), '7')
    gateway = solo.gateways[0]
    held = [member.record.version.frag_index for member in Catalog(
        gateway.parts.conf, gateway.parts.client).walk(
            wanted=lambda version: version.frag_index == index)]
    solo.stop()
    assert held == [index]
