"""Rounds of a keeper under random tables, orders, options and histories.

Whatever they are, no round fails, none fills the SSD above its high
watermark, and one that leaves it there says that room is short.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from support.nodes.sample_node import sample_bytes
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.classes import (
    Allocate, ClassSpec, ClassTable, RemoteMode)
from swift_dss.core.config import Admit
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.strategy.eviction import STRATEGIES
from swift_dss.tier.local.watch import Watcher
from swift_dss.wire import classmap
from swift_dss.wire.control import Event, EventKind

INNERS = ('lru', 'sieve', 'gdsf', 's3fifo', 'sarc')


def table_of(dice):
    """Up to six classes; some keep their floor, some are pinned."""
    specs = [ClassSpec(0, 'plain', 0, allocate=dice.choice(list(Allocate)))]
    for number, rank in enumerate(dice.sample(range(1, 100),
                                              dice.randint(1, 5))):
        floor = dice.choice((0, 0, 0.1, 0.3))
        specs.append(ClassSpec(
            number + 1, 'class%d' % number, rank,
            allocate=dice.choice([*Allocate, Allocate.ALWAYS,
                                  Allocate.ALWAYS]),
            floor=floor, cap=dice.choice((1.0, 1.0, max(floor, 0.2))),
            pin=dice.random() < 0.1, inner=dice.choice(INNERS),
            weight=dice.choice((1, 2, 5)),
            warm_copies=dice.choice((1, 2, 3)),
            remote=dice.choice((RemoteMode.BACK, RemoteMode.NEVER))))
    return ClassTable.of(specs)


class SomeStay(Watcher):
    """Keeps every other version."""

    def keeps(self, version):
        return int(version.object_hash, 16) % 2 == 0


class History:
    """One node and its users."""

    def __init__(self, root, dice):
        self.dice = dice
        self.rig = Rig(
            root, table=table_of(dice),
            eviction=dice.choice(sorted(STRATEGIES)),
            admit=dice.choice((Admit(), Admit(4))),
            clean_after_seconds=dice.choice((0.0, 30.0, 1e6)),
            min_demote_bytes=dice.choice((0, 4096)),
            pin_share=dice.choice((0.0, 0.0, 0.2)))
        self.stored = []

    def step(self):
        """Something happens, and rounds follow."""
        self.rig.now += self.dice.choice((1, 1, 40))
        happens = self.dice.choices(
            (self.put, self.read, self.change_table, self.change_order,
             self.change_room, self.change_watcher),
            (8, 6, 1, 1, 1, 1))[0]
        happens()
        for _ in range(self.dice.randint(1, 3)):
            self.round()

    def put(self):
        size = self.dice.randint(0, 150) * KIB // self.dice.choice((1, 4))
        class_ids = sorted(self.rig.table.specs)
        mapped = ClassMap.uniform(self.dice.choice(class_ids))
        if size > 16 * KIB and self.dice.random() < 0.3:
            mapped = ClassMap.from_spans([Span(
                0, 8 * KIB, self.dice.choice(class_ids))], mapped.rest)
        number = len(self.stored)
        self.stored.append((self.rig.put(
            'o%d' % number, sample_bytes(size, number), class_map=mapped),
            size, mapped))

    def read(self):
        for _ in range(self.dice.randint(1, 6) if self.stored else 0):
            place, size, mapped = self.dice.choice(self.stored)
            self.rig.now += 1
            self.rig.ledger.apply([Event(
                EventKind.READ, place.version, place.partition, size,
                classmap.encode(mapped), 0, size,
                int(self.dice.choice((Tier.HDD, Tier.SSD))), self.rig.now)])

    def change_table(self):
        self.rig.table = ClassTable.of([
            replace(spec, floor=0.0, cap=self.dice.choice((1.0, 0.4)),
                    allocate=self.dice.choice(list(Allocate)))
            for spec in self.rig.table.specs.values()])

    def change_order(self):
        self.set_option(eviction=self.dice.choice(sorted(STRATEGIES)))

    def change_room(self):
        self.set_option(ssd_bytes=KIB * self.dice.choice(
            (300, 600, 1000, 2000)))

    def change_watcher(self):
        self.rig.local.watcher = self.dice.choice((SomeStay(), Watcher()))

    def set_option(self, **options):
        conf = self.rig.conf
        self.rig.conf = replace(conf, tier=replace(conf.tier, **options))

    def round(self):
        """One, and what it must not do."""
        keeper = self.rig.keeper
        keeper.duties.begin()
        before = keeper.duties.levels(self.rig.conf)[1]
        keeper.round()
        room, used, _ = keeper.duties.levels(self.rig.conf)
        if used > room * self.rig.conf.tier.high_watermark:
            assert used <= before
            assert keeper.state.room_state == 'short'


@pytest.mark.parametrize('seed', range(40, 80))
def test_no_round_fails_or_fills_the_ssd(tmp_path, seed):
    history = History(tmp_path, random.Random(seed))
    for _ in range(40):
        history.step()
    said = history.rig.metrics.snapshot()
    assert not any(count for name, count in said.items()
                   if 'error' in name or 'damaged' in name), said
    history.rig.close()
