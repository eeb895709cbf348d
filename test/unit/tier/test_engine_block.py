"""Engine ``block``: what the daemon leaves to the kernel, and what not."""

import os

import pytest
from support.nodes.sample_node import Vouching

from support.nodes.tier_node import KIB, Rig
from swift_dss.core.classes import ClassSpec, ClassTable, WriteMode
from swift_dss.core.config import NodeConf, TierConf
from swift_dss.core.errors import (
    BadConfig, RemoteUnavailable, TierUnavailable)
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.ports import Arrival, NotProven
from swift_dss.objserver.settings import Node
from swift_dss.wire.settings import nodeconf

TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0, cap=0.001), ClassSpec(9, 'gold', 90, floor=0.9),
    ClassSpec(5, 'safe', 50, write=WriteMode.THROUGH)])


class Logger:
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path, table=TABLE, engine='block',
               clean_after_seconds=0.0, ssd_bytes=4 * KIB)
    yield made
    made.keeper.duties.stop()
    made.index.file.close()


def tiers(rig, version):
    return {span.class_id: (span.ssd_bytes, span.hdd_bytes)
            for span in rig.index.get(version).spans}


def test_nothing_is_copied_to_or_moved_to_an_hdd(rig):
    version = rig.put('o', b'x' * 64 * KIB).version
    rig.now += 1000
    rig.keeper.round()
    assert rig.keeper.state.hdd_state == 'none'
    assert rig.keeper.state.room_state == 'ready'
    assert tiers(rig, version) == {0: (64 * KIB, 0)}
    with pytest.raises(TierUnavailable, match='the kernel moves'):
        rig.local.demote(version, rig.index.get(version).partition)


def test_wrong_twin_engine_file_moves_the_same(tmp_path):
    rig = Rig(tmp_path, table=TABLE, clean_after_seconds=0.0,
              ssd_bytes=4 * KIB)
    version = rig.put('o', b'x' * 64 * KIB).version
    rig.now += 1000
    rig.keeper.round()
    assert tiers(rig, version)[0][1] == 64 * KIB
    rig.keeper.duties.stop()
    rig.index.file.close()


def test_room_is_the_file_system(rig):
    stat = os.statvfs(rig.node.devices)
    room, _used, _free = rig.keeper.duties.levels(rig.conf)
    assert room == stat.f_blocks * stat.f_frsize
    assert rig.keeper.duties.watermarks(
        NodeConf(tier=TierConf(hdd_high_watermark=0.7,
                               hdd_low_watermark=0.6))) == (0.7, 0.6)


def test_room_is_made_by_rank_of_what_s3_has(rig, monkeypatch):
    """A floor of 90 % of the SSD must not keep a full HDD full."""
    places = [rig.put('o%d' % number, b'x' * 10 * KIB, class_id)
              for class_id, count in ((9, 50), (0, 6))
              for number in range(100 * class_id, 100 * class_id + count)]
    rig.local.record_remotes([Arrival(
        place.version, place.partition, RemoteCopy('s3', 'k', 'e', 1.0),
        place.content_length) for place in places])
    monkeypatch.setattr(rig.keeper.duties, 'levels',
                        lambda conf: (1000 * KIB, 900 * KIB, 100 * KIB))
    rig.keeper.duties.begin()
    rig.keeper.duties.make_room(rig.conf)
    assert (rig.ssd(0), rig.ssd(9)) == (0, (500 - 90) * KIB)


def test_new_bytes_stay_in_the_file_system(tmp_path):
    conf = NodeConf(
        devices=str(tmp_path), run_dir=str(tmp_path),
        class_table=str(tmp_path / 'none'),
        capacity={'*': str(tmp_path / '%(device)s')},
        engines={'sda': 'block'})
    node = Node(conf, Logger())
    placed = node.plan('sda', ClassMap.uniform(5), 1 << 20)
    assert [extent.tiers for extent in placed] == [Tier.SSD]
    assert node.is_block('sda') and not node.is_block('sdb')


def test_engine_is_of_the_node_or_of_a_device():
    conf = nodeconf.parse('[tier]\nengine = block\n[engine]\nsdb = file\n')
    assert nodeconf.engine_of(conf, 'sda') == 'block'
    assert nodeconf.engine_of(conf, 'sdb') == 'file'
    with pytest.raises(BadConfig, match=r'\[engine\] sdb: .*tape'):
        nodeconf.parse('[engine]\nsdb = tape\n')


class Refusing(Vouching):
    def proven(self, local):
        super().proven(local)
        raise NotProven('it is sent again', 1)


def test_what_s3_does_not_confirm_stays_on_a_full_disk(rig, monkeypatch):
    places = [rig.put('o%d' % n, b'x' * 8 * KIB) for n in range(70)]
    rig.local.record_remotes([Arrival(
        place.version, place.partition, RemoteCopy('s3', 'k', 'e', 1.0),
        place.content_length) for place in places])
    monkeypatch.setattr(rig.keeper.duties, 'levels',
                        lambda conf: (1000 * KIB, 1000 * KIB, 0))
    before = rig.local.witness
    refusing = rig.local.witness = Refusing()
    rig.keeper.duties.begin()
    rig.keeper.duties.make_room(rig.conf)
    assert len({question.version for question in refusing.asked}) == 70, \
        'those that stay must not hide those behind them'
    assert all(tiers(rig, place.version) == {0: (8 * KIB, 0)}
               for place in places)
    assert rig.keeper.state.room_state == 'short'
    rig.local.witness = before
    rig.keeper.duties.begin()
    rig.keeper.duties.make_room(rig.conf)
    assert any(tiers(rig, place.version) == {0: (0, 0)} for place in places)


def test_a_silent_s3_is_asked_once_a_round(rig, monkeypatch):
    class Silent(Vouching):
        def proven(self, local):
            super().proven(local)
            raise RemoteUnavailable('timed out', 1)

    places = [rig.put('o%d' % n, b'x' * 8 * KIB) for n in range(200)]
    rig.local.record_remotes([Arrival(
        place.version, place.partition, RemoteCopy('s3', 'k', 'e', 1.0),
        place.content_length) for place in places])
    monkeypatch.setattr(rig.keeper.duties, 'levels',
                        lambda conf: (1000 * KIB, 1000 * KIB, 0))
    silent = rig.local.witness = Silent()
    rig.keeper.duties.begin()
    rig.keeper.duties.make_room(rig.conf)
    assert 0 < len(silent.asked) <= 64
    assert rig.keeper.state.room_state == 'short'
    assert 'timed out' in rig.keeper.state.room_why
