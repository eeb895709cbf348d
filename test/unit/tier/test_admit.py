"""The daemon with ``[tier] admit``: who comes to the SSD at a second read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.nodes.sample_node import sample_bytes
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.config import Admit
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.core.version import VersionId
from swift_dss.tier.hear.passes import Passes
from swift_dss.tier.keep import wishes
from swift_dss.tier.keep.keepers import Keepers
from swift_dss.tier.keep.wishes import Wish
from swift_dss.wire import classmap
from swift_dss.wire.control import Event, EventKind

SIZE = 50 * KIB
#: Of 1000 KiB, between the watermarks.
FULL = 16
SECOND = Admit(4)


class Node:
    """A rig whose SSD has no room below its low watermark."""

    def __init__(self, root, admit=SECOND, full=FULL, **tier):
        self.rig = Rig(root, admit=admit, **tier)
        self.slow = [self.rig.put('slow%d' % number,
                                  sample_bytes(SIZE, number))
                     for number in range(8)]
        for place in self.slow:
            self.rig.local.demote(place.version, place.partition)
        for number in range(full):
            self.rig.put('fast%d' % number, sample_bytes(SIZE, 50 + number))
        self.rig.now += 100
        self.rig.keeper.round()

    def read(self, place, offset=0, length=SIZE, class_map=None):
        """A GET that the HDD served."""
        self.rig.now += 10
        self.rig.ledger.apply([Event(
            EventKind.READ, place.version, place.partition, SIZE,
            classmap.encode(class_map or ClassMap.uniform(0)), offset, length,
            int(Tier.HDD), self.rig.now)])

    def is_fast(self, place):
        spans = self.rig.index.get(place.version).spans
        return all(span.ssd_bytes for span in spans)

    @property
    def promoted_bytes(self):
        return self.rig.metrics.snapshot()['tier.promoted_bytes']

    @property
    def kept_out(self):
        said = self.rig.metrics.snapshot()
        return (said['tier.promotions_kept_out'], said['tier.kept_out_bytes'])


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    yield made
    made.rig.close()


def test_what_is_read_once_is_never_written_to_the_ssd(node):
    assert node.kept_out == (0, 0)
    for place in node.slow:
        node.read(place)
        node.rig.keeper.round()
    assert node.promoted_bytes == 0
    assert node.kept_out == (8, 8 * SIZE)
    assert len(node.rig.keeper.duties.doorkeeper) == 8


def test_the_second_read_brings_it(node):
    for _ in range(2):
        node.read(node.slow[0])
        node.rig.keeper.round()
    assert node.is_fast(node.slow[0])
    assert node.promoted_bytes == SIZE


def test_two_reads_before_a_round_are_two(node):
    for place in node.slow[:2]:
        node.read(place)
    node.read(node.slow[0])
    node.rig.keeper.round()
    assert node.is_fast(node.slow[0])
    assert not node.is_fast(node.slow[1])


def test_gets_of_parts_are_one_read_and_a_part_again_another(node):
    parts = [(0, 10 * KIB), (30 * KIB, 20 * KIB), (10 * KIB, 20 * KIB)]
    for offset, length in parts:
        node.read(node.slow[0], offset, length)
        node.rig.keeper.round()
    assert node.promoted_bytes == 0
    node.read(node.slow[0], *parts[1])
    node.rig.keeper.round()
    assert node.is_fast(node.slow[0])


def test_below_the_low_watermark_there_is_room_for_all(tmp_path):
    node = Node(tmp_path, full=4)
    node.read(node.slow[0])
    node.rig.keeper.round()
    assert node.is_fast(node.slow[0])
    node.rig.close()


def test_by_default_all_come(tmp_path):
    node = Node(tmp_path, admit=Admit())
    node.read(node.slow[0])
    node.rig.keeper.round()
    assert node.is_fast(node.slow[0])
    assert node.kept_out == (0, 0)
    node.rig.close()


def test_a_first_read_is_forgotten_behind_a_window_of_others(tmp_path):
    node = Node(tmp_path, admit=Admit(1), ssd_bytes=200 * KIB, full=3)
    for place in node.slow:
        node.read(place)
        node.rig.keeper.round()
    node.read(node.slow[0])
    node.rig.keeper.round()
    assert node.promoted_bytes == 0
    assert len(node.rig.keeper.duties.doorkeeper) == 4
    node.rig.close()


def test_a_restart_forgets_and_harms_nothing(node):
    node.read(node.slow[0])
    node.rig.keeper.round()
    rig = node.rig
    again = Keepers(rig.local, rig.ledger.departures, rig.metrics,
                    rig.gateway).add(rig.local.devices.get('sda'))
    version, partition = node.slow[0].version, node.slow[0].partition
    for number in (7, 8):
        assert not node.is_fast(node.slow[0])
        again.duties.wishes.add(Wish(version, partition, (0,), (number,)))
        again.round()
    assert node.is_fast(node.slow[0])
    again.duties.stop()


def test_the_option_is_obeyed_at_once(node):
    rig = node.rig
    node.read(node.slow[0])
    rig.keeper.round()
    rig.conf = replace(rig.conf, tier=replace(rig.conf.tier, admit=Admit()))
    node.read(node.slow[1])
    rig.keeper.round()
    assert node.is_fast(node.slow[1])
    assert not len(rig.keeper.duties.doorkeeper)


def test_a_wish_that_no_reader_made_takes_free_room_alone(node, tmp_path):
    other = Node(tmp_path / 'other', full=4)
    for made, comes in ((node, False), (other, True)):
        for _ in range(2):
            made.rig.keeper.duties.wishes.add(Wish(
                made.slow[0].version, made.slow[0].partition, (0,)))
            made.rig.keeper.round()
        assert made.is_fast(made.slow[0]) == comes
    other.rig.close()


def test_each_class_of_a_version_has_its_own_first_read(tmp_path):
    node = Node(tmp_path)
    rig = node.rig
    rig.table = ClassTable.of([ClassSpec(0, 'plain', 0),
                               ClassSpec(9, 'gold', 90)])
    both = ClassMap.from_spans([Span(0, 10 * KIB, 9)], 0)
    place = rig.put('both', sample_bytes(SIZE, 99), class_map=both)
    rig.local.demote(place.version, place.partition)
    for offset, length in ((0, 10 * KIB), (10 * KIB, 40 * KIB),
                           (0, 5 * KIB)):
        node.read(place, offset, length, both)
        rig.keeper.round()
    fast = {span.class_id: span.ssd_bytes
            for span in rig.index.get(place.version).spans}
    assert fast == {9: 10 * KIB, 0: 0}
    rig.close()


def test_what_is_partly_there_is_completed(node):
    place = node.slow[0]
    for _ in range(2):
        node.read(place)
        node.rig.keeper.round()
    duties = node.rig.keeper.duties
    wish = Wish(place.version, place.partition, (0,))
    known, unknown = (wishes.Newcomer(wish, 0, SIZE, is_known)
                      for is_known in (True, False))
    assert duties.doorkeeper.lets_in(known, 1000 * KIB, 0)
    assert not duties.doorkeeper.lets_in(unknown, 1000 * KIB, 0)


def test_what_was_learned_is_obeyed_and_shown(tmp_path):
    """Hot objects, and others that are read once: these stay out."""
    node = Node(tmp_path, admit=Admit(learns=True), ssd_bytes=1000 * KIB)
    rig, doorkeeper = node.rig, node.rig.keeper.duties.doorkeeper
    node.read(node.slow[0])
    rig.keeper.round()
    assert node.is_fast(node.slow[0])
    assert doorkeeper.rule == 'all'
    once = [VersionId('sda', 0, '%032x' % number, '1.00000')
            for number in range(3000)]
    hot = [place.version for place in node.slow[:4]]
    for number, version in enumerate(once):
        doorkeeper.heard([
            wishes.Access(version, SIZE, [0], 1),
            wishes.Access(hot[number % 4], SIZE, [0], 1)], [], [])
    assert doorkeeper.rule != 'all'
    node.read(node.slow[1])
    rig.keeper.round()
    assert not node.is_fast(node.slow[1])
    node.read(node.slow[1])
    rig.keeper.round()
    assert node.is_fast(node.slow[1])
    rig.close()


def test_other_devices_and_versions_that_left_teach_nothing(tmp_path):
    node = Node(tmp_path, admit=Admit(learns=True))
    node.read(node.slow[0])
    node.rig.keeper.round()
    doorkeeper = node.rig.keeper.duties.doorkeeper
    for number in range(3000):
        version = VersionId('sdb', 0, '%032x' % number, '1.00000')
        doorkeeper.heard([wishes.Access(version, SIZE, [0], 1)], [],
                         [version])
    assert doorkeeper.rule == 'all'
    node.rig.close()


def read_event(version, offset, length):
    return Event(EventKind.READ, version, '1', 1000, '', offset, length,
                 int(Tier.HDD), 1.0)


def numbers(*ranges):
    passes, version = Passes(), VersionId('sda', 0, 'a' * 32, '1.00000')
    return [passes.hear(version, [read_event(version, *at)])
            for at in ranges]


def test_a_pass_ends_where_a_byte_is_asked_for_again():
    assert numbers((0, 10), (10, 10), (30, 10), (20, 10), (25, 1), (0, 10),
                   (5, 1)) == [
        (False, [1], 1), (True, [1], 0), (False, [1], 0), (False, [1], 0),
        (False, [2], 1), (False, [2], 0), (False, [3], 1)]


def test_a_pass_in_many_pieces_stays_small():
    ranges = [(100 * number, 10) for number in range(40)]
    assert {said[1][0] for said in numbers(*ranges)} == {1}
    # The nearest of its pieces have become one, holes and all.
    assert numbers(*ranges, (110, 10))[-1][1] == [2]


def test_passes_of_versions_that_were_forgotten_have_new_numbers():
    passes = Passes()
    seen = set()
    for number in list(range(20000)) + [0]:
        version = VersionId('sda', 0, '%032x' % number, '1.00000')
        seen.update(passes.hear(version, [read_event(version, 0, 10)])[1])
    assert len(seen) == 20001
