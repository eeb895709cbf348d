"""Cold copies on a device of engine block: under which class the disk has
them."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, List, Optional, Set

import pytest
from support.rigs.dss_disk import Disk

from swift_dss.core.spans import ClassMap, Span
from swift_dss.objserver.extents import AUDIT, CLIENT
from swift_dss.wire.control import EventKind

BODY = os.urandom(3 << 20)
#: The lowest class that may come to the SSD and leave it.
COLD, HIGH, HIGHER = 5, 8, 9
#: Of the cold copies of HIGHER and of HIGH.
PASSING_HIGHER, PASSING_HIGH = 31, 30


@pytest.fixture
def block(disk: Disk) -> Disk:
    """The device has engine block, and its table a lowest class."""
    disk.node.conf = dataclasses.replace(
        disk.node.conf, engines={'sda': 'block'},
        io=dataclasses.replace(disk.node.conf.io, stage_cold_copies=True))
    with open(os.path.join(disk.root, 'classes.conf'), 'w') as out:
        for class_id, rank in ((COLD, 1), (HIGH, 10), (HIGHER, 20)):
            out.write('[class:%d]\nname = n%d\nrank = %d\n' % (
                class_id, class_id, rank))
    return disk


def with_rank(disk: Disk, rank: Optional[int]) -> None:
    def ranked(policy: Any, device: str, partition: str,
               object_hash: str) -> Optional[int]:
        assert (int(policy), device, partition) == (0, 'sda', '7')
        assert len(object_hash) == 32
        return rank

    disk.ours.dss_copies.rank = ranked


def classes(disk: Disk, kind: str) -> Set[int]:
    moved: List[Any] = disk.carrier.moved
    found = {move.class_id for move in moved if move.kind == kind}
    disk.carrier.moved = []
    return found


@pytest.mark.parametrize('rank, class_id', [
    (None, HIGH), (0, HIGH), (1, PASSING_HIGH), (3, PASSING_HIGH)])
def test_a_cold_copy_is_written_under_a_class_of_its_own(
        block: Disk, rank: Optional[int], class_id: int) -> None:
    with_rank(block, rank)
    block.put('o', BODY, ClassMap.uniform(HIGH))
    assert classes(block, 'w') == {class_id}
    assert block.read('o') == BODY


def test_only_readers_give_a_cold_copy_its_class(block: Disk) -> None:
    with_rank(block, 2)
    block.put('o', BODY, ClassMap.uniform(HIGH))
    for purpose, class_id in ((AUDIT, COLD), (CLIENT, HIGH)):
        classes(block, 'r')
        disk_file = block.open_file('o')
        disk_file.dss_purpose = purpose
        with disk_file.open():
            reader = disk_file.reader()
        assert b''.join(reader) == BODY
        assert classes(block, 'r') == {class_id}


def test_spans_and_events_keep_the_classes_of_the_object(
        block: Disk) -> None:
    with_rank(block, 2)
    mixed = ClassMap.from_spans([Span(0, 1 << 20, HIGH)], rest=HIGHER)
    disk_file = block.put('o', BODY, mixed)
    assert classes(block, 'w') == {PASSING_HIGHER, PASSING_HIGH}
    assert disk_file.dss_written[2] == mixed
    assert EventKind.ROT not in {event.kind for event in block.told}


@pytest.mark.parametrize('change', ['engine', 'option'])
def test_other_devices_have_every_copy_under_its_class(
        block: Disk, change: str) -> None:
    conf = block.node.conf
    block.node.conf = dataclasses.replace(conf, engines={}) \
        if change == 'engine' else dataclasses.replace(
            conf, io=dataclasses.replace(conf.io, stage_cold_copies=False))
    with_rank(block, 2)
    block.put('o', BODY, ClassMap.uniform(HIGH))
    assert classes(block, 'w') == {HIGH}
