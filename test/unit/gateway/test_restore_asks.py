"""A restore asks the other nodes, and S3 only for what belongs here."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from test_gateway_deletes import NEW, Cluster

from swift_dss.gateway import restore
from swift_dss.gateway.restore import Restore
from swift_dss.gateway.restore_catalog import Catalog
from swift_dss.gateway.restore_write import Target


class Here:
    """What a restore writes to, remembered."""

    def __init__(self):
        self.written = []

    def named(self, held):
        return held

    def targets(self, held):
        return [Target('sda', 7, 0)]

    def write(self, held, target):
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


def restored(trio, belongs_here=lambda version: True, state=''):
    gateway, here = trio.gateways[0], Here()
    del trio.s3.asked[:]
    work = Restore(
        gateway._conf, gateway._client, here, here,
        SimpleNamespace(version=lambda *_: None, place=lambda *_: None),
        restore.Cluster(belongs_here, trio.primaries), state)
    found = work.run(Catalog(gateway._conf, gateway._client),
                     lambda now: None)
    assert not work.problems
    return sorted(here.written), found


def test_what_others_have_something_newer_of_does_not_come_back(trio):
    versions = [trio.put('o%d' % number) for number in range(5)]
    # The bucket has not heard of it, and this node's disk is new.
    trio.disks[0].unlink(versions[0])
    trio.disks[2].tombstone(versions[0], NEW)
    trio.disks[1].put('o1', b'newer', NEW)
    names, found = restored(trio)
    assert names == ['/a/c/o2', '/a/c/o3', '/a/c/o4']
    assert (found.obsolete, found.versions) == (2, 3)


def test_many_are_asked_about_together(trio, monkeypatch):
    monkeypatch.setattr(restore, '_ASKED_AT_ONCE', 4)
    monkeypatch.setattr(restore, '_NOTED_EVERY', 1000)
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
    names, found = restored(
        trio, lambda version: version.object_hash in mine)
    assert names == ['/a/c/o%d' % number for number in range(4)]
    assert [one[0] for one in trio.s3.asked].count('HEAD') == 4
    assert found.keys == len(mine | others)


def test_that_it_has_begun_can_be_seen_until_it_has_ended(trio, tmp_path):
    trio.put('o')
    state = str(tmp_path / '0' / 'restore.json')
    seen = []
    belongs = trio.gateways[0].collector._busy

    def looks(version):
        seen.append(belongs())
        return True
    restored(trio, looks, state)
    assert seen == [True] and not belongs()
