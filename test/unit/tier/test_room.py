"""The SSD stays within its room, whatever the order and whoever stays."""

from __future__ import annotations

import random

import pytest
from support.nodes.sample_node import sample_bytes
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.strategy.eviction import STRATEGIES
from swift_dss.tier.local.watch import Watcher
from swift_dss.wire import classmap
from swift_dss.wire.control import Event, EventKind


def read(rig, place, size):
    """A GET that the HDD served."""
    rig.now += 1
    rig.ledger.apply([Event(
        EventKind.READ, place.version, place.partition, size,
        classmap.encode(ClassMap.uniform(0)), 0, size, int(Tier.HDD),
        rig.now)])


def used_and_high(rig):
    room, used, _ = rig.keeper.duties.levels(rig.conf)
    return used, room * rig.conf.tier.high_watermark


@pytest.mark.parametrize('eviction', sorted(STRATEGIES))
def test_dirty_bytes_and_reads_stay_below_the_high_watermark(
        tmp_path, eviction):
    rig, dice, stored = Rig(tmp_path, eviction=eviction), random.Random(1), []
    # Of one class alone: the table's others have nothing here.
    for number in range(40):
        size = dice.randint(5, 120) * KIB
        stored.append((rig.put('o%d' % number, sample_bytes(size, number)),
                       size))
        rig.now += 1
        rig.keeper.round()
        used, high = used_and_high(rig)
        assert used <= high
    for _ in range(20):
        for _ in range(8):
            read(rig, *dice.choice(stored))
        rig.keeper.round()
        used, high = used_and_high(rig)
        assert used <= high
    assert rig.metrics.snapshot()['tier.promoted'] > 20
    rig.close()


def test_bytes_for_s3_alone_leave_with_a_byte_that_stays(tmp_path):
    """S3 never gets such a version, so the HDD has to."""
    table = ClassTable.of([
        ClassSpec(0, 'plain', 0),
        ClassSpec(5, 'far', 50, remote=RemoteMode.ONLY),
        ClassSpec(9, 'near', 90, remote=RemoteMode.NEVER)])
    rig = Rig(tmp_path, table=table, min_demote_bytes=0)
    for number in range(9):
        rig.put('o%d' % number, sample_bytes(100 * KIB, number),
                class_map=ClassMap.from_spans([Span(0, KIB, 9)], 5))
    pure = rig.put('pure', sample_bytes(10 * KIB, 50), 5)
    for _ in range(5):
        rig.now += 100
        rig.keeper.round()
    used, high = used_and_high(rig)
    assert used <= high
    assert rig.keeper.state.room_state == 'ready'
    # This one waits for S3, and is on no HDD meanwhile.
    assert rig.index.get(pure.version).spans[0].hdd_bytes == 0
    rig.close()


class Keeping(Watcher):
    """Keeps every version."""

    def keeps(self, version):
        return True


def test_nothing_comes_where_nothing_can_leave(tmp_path):
    rig = Rig(tmp_path)
    slow = rig.put('slow', sample_bytes(50 * KIB, 1))
    rig.local.demote(slow.version, slow.partition)
    for number in range(17):
        rig.put('fast%d' % number, sample_bytes(50 * KIB, 2 + number))
    rig.now += 100
    rig.keeper.round()
    used, high = used_and_high(rig)
    assert used <= high < used + 50 * KIB
    rig.local.watcher = Keeping()
    rig.now += 100
    read(rig, slow, 50 * KIB)
    rig.keeper.round()
    assert used_and_high(rig) == (used, high)
    said = rig.metrics.snapshot()
    assert 'tier.promoted' not in said
    assert said['tier.promotions_refused'] == 1
    rig.local.watcher = Watcher()
    read(rig, slow, 50 * KIB)
    rig.keeper.round()
    assert rig.metrics.snapshot()['tier.promoted'] == 1
    rig.close()
