"""What waits for S3, as the daemon publishes it, and what it measures."""

from __future__ import annotations

import dataclasses
import json
import os

import pytest
from support.nodes.tier_node import KIB, TABLE, Rig

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.config import GatewayConf, NodeConf, TierConf
from swift_dss.core.pressure import Link
from swift_dss.core.residency import RemoteCopy
from swift_dss.tier import admitted, space
from swift_dss.tier.keep import backlog
from swift_dss.tier.workload import Workload
from swift_dss.wire.node import pressure as wire
from swift_dss.wire.control import Event, EventKind

LINK = Link(1000.0, True, 0.0)


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path, with_hdd=False)
    made.conf = dataclasses.replace(made.conf, gateway=GatewayConf(
        dirty_bytes=400 * KIB, headroom=0.1))
    made.gateway.state = LINK
    yield made
    made.close()


def published(rig):
    rig.keeper.round()
    with open(os.path.join(rig.conf.run_dir, 'state', 'sda.json'),
              'rb') as source:
        return wire.decode(source.read()).backlog


def test_what_s3_lacks_is_pending_until_it_has_it(rig):
    place = rig.put('a', b'x' * 100 * KIB)
    pressure = published(rig)
    assert pressure.pending_bytes == 100 * KIB
    assert pressure.drain_rate == 1000.0 and pressure.remote_up
    assert pressure.budget_bytes == 400 * KIB
    assert pressure.reserve_bytes == 40 * KIB
    rig.local.record_remote(place.version, place.partition, RemoteCopy(
        's3', 'k', 'e', 1.0))
    rig.local.mover.retrack(place.version, place.partition)
    assert published(rig).pending_bytes == 0


def test_room_counts_what_may_leave_and_not_what_may_not(rig):
    place = rig.put('a', b'x' * 300 * KIB)
    before = published(rig).room_bytes
    assert before <= 1000 * KIB - 300 * KIB - 100 * KIB
    rig.local.record_remote(place.version, place.partition, RemoteCopy(
        's3', 'k', 'e', 1.0))
    rig.local.mover.retrack(place.version, place.partition)
    assert published(rig).room_bytes == before + 300 * KIB


def test_the_budget_never_promises_more_than_there_is_room(rig):
    rig.conf = dataclasses.replace(rig.conf, gateway=GatewayConf(
        dirty_bytes=1 << 40))
    pressure = published(rig)
    assert pressure.budget_bytes + pressure.reserve_bytes <= 1000 * KIB


def test_without_a_gateway_or_admission_nothing_is_said(rig):
    rig.gateway.state = None
    assert published(rig) is None
    rig.gateway.state = LINK
    rig.conf = dataclasses.replace(rig.conf, gateway=GatewayConf(
        admission=False))
    rig.now += 1000
    assert published(rig) is None


def test_classes_that_stay_do_not_wait():
    table = ClassTable.of([
        *TABLE.specs.values(),
        ClassSpec(7, 'here', 70, remote=RemoteMode.NEVER)])
    sums = {5: {'total': 10, 'remote': 4}, 7: {'total': 99, 'remote': 0}}
    assert backlog.pending_bytes(sums, table) == 6


def put(size):
    return Event(EventKind.PUT, None, '0', size)


class States(dict):
    """The index, as far as it has facts of itself."""

    def get_state(self, name):
        return self.get(name, '')

    set_state = dict.__setitem__


def test_the_busiest_minute_and_the_longest_outage_are_kept():
    index = States()
    load = Workload(index, 1000.0)
    load.heard([put(500), put(100)])
    load.look(1060.0, True)
    load.heard([put(60)])
    load.look(1120.0, True)
    for now, up in ((1130.0, False), (1190.0, False), (1191.0, True),
                    (1200.0, False), (1210.0, False)):
        load.look(now, up)
    assert load.numbers() == {
        'ingest_rate': 10.0, 'objects_rate': 2 / 60, 'largest_bytes': 500,
        'outage_seconds': 60.0}
    load.save()
    again = Workload(index, 5000.0)
    assert again.numbers() == load.numbers()


@pytest.mark.parametrize('text', ['x', '[]', '{"ingest_rate": "a"}',
                                  '{"ingest_rate": -5}'])
def test_a_damaged_memory_is_begun_anew(text):
    assert Workload(States(workload=text)).numbers()['ingest_rate'] == 0.0


def test_areas_on_one_disk_and_over_their_budget_are_warned_of(tmp_path):
    for name in ('devices/sda', 'index', 'queue'):
        os.makedirs(str(tmp_path / name))
    (tmp_path / 'index' / 'index.db').write_bytes(b'x' * 5000)
    conf = NodeConf(
        devices=str(tmp_path / 'devices'),
        tier=TierConf(index_dir=str(tmp_path / 'index'), index_bytes=4096),
        gateway=GatewayConf(enabled=True, queue_bytes=1 << 60,
                            queue_dir=str(tmp_path / 'queue')))
    said = space.warnings(space.areas(conf, ['sda', 'not-there']))
    assert len(said) == 3
    assert 'data and log and metadata share one file system' in said[0]
    assert 'more than its budget of 4096' in said[1]
    assert 'more than its file system has' in said[2]


def test_separate_disks_within_their_budgets_are_fine():
    areas = [space.Area(kind, '/' + kind, disk, 10, 100, 500, 1000)
             for disk, kind in enumerate(('data', 'metadata', 'log'))]
    assert space.warnings(areas) == []


def test_counts_of_all_living_servers_are_added_up(tmp_path):
    folder = tmp_path / 'state' / 'admitted'
    folder.mkdir(parents=True)
    alive = folder / ('%d.json' % os.getpid())
    alive.write_text('{"9": {"accept": 3}}')
    parent = folder / ('%d.json' % os.getppid())
    parent.write_text('{"9": {"accept": 4, "full": 1}}')
    dead = folder / '4194399.json'
    dead.write_text('{"9": {"accept": 100}}')
    (folder / 'x.json').write_text('{"9": {"accept": 100}}')
    assert admitted.tally(str(tmp_path)) == {9: {'accept': 7, 'full': 1}}
    assert not dead.exists() and alive.exists()
    alive.write_text(json.dumps(['no', 'counts']))
    assert admitted.tally(str(tmp_path)) == {9: {'accept': 4, 'full': 1}}
    assert admitted.tally(str(tmp_path / 'none')) == {}


def test_what_uploads_have_taken_is_told_apart(rig, monkeypatch):
    rig.put('a', b'x' * 100 * KIB)
    before = published(rig)
    assert (before.configured_bytes, before.reserve_share) == (
        rig.conf.gateway.dirty_bytes, rig.conf.gateway.dirty_reserve)
    assert before.untracked_bytes == 0
    levels = rig.keeper.duties.levels

    def beside_an_upload(conf):
        room, used, free = levels(conf)
        return room, used + 200 * KIB, free

    monkeypatch.setattr(rig.keeper.duties, 'levels', beside_an_upload)
    pressure = published(rig)
    assert pressure.untracked_bytes == 200 * KIB
    assert pressure.room_bytes == before.room_bytes - 200 * KIB
