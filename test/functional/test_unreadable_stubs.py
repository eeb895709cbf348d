"""Replication around versions whose bytes nobody can have just now."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Dict, Iterator, List

import pytest
from support import pattern
from support.nodes.moving_nodes import (
    fragment, make_ring, one_pass, put_fragment, running_nodes, send_to_s3,
    tagged_headers)
from support.nodes.object_node import ObjectNode

from swift_dss.core.spans import ClassMap
from swift_dss.wire import layout

#: Class 1 lies on the SSD, 2 on the HDD.
CLASSES = (1, 2)
COUNT = 12
SIZE = 70000


@pytest.fixture(scope='module')
def nodes() -> Iterator[List[ObjectNode]]:
    root = tempfile.mkdtemp(prefix='dss-move-', dir='/dev/shm')
    with running_nodes(root, [['sda', 'sde'], [
            'sdb', 'sdc', 'sdd']]) as made:
        yield made


@pytest.fixture
def stem(request: Any) -> str:
    return str(request.node.name)


def _fill(node: ObjectNode, stem: str, partition: int,
          device: str = 'sda') -> Dict[str, bytes]:
    """Objects on SSD and HDD, all in one partition."""
    made = {}
    for number in range(COUNT):
        name = '%s-%d' % (stem, number)
        made[name] = pattern(SIZE, name)
        answer = node.request(
            'PUT', name, made[name], tagged_headers(
                ClassMap.uniform(CLASSES[number % 2])),
            device=device, partition=partition)
        assert answer.status == 201
    return made


def _names(made: Dict[str, bytes], first: int, step: int) -> List[str]:
    return sorted(made, key=lambda name: int(name.rpartition('-')[2]))[
        first::step]


def _read(node: ObjectNode, names: Any, device: str,
          partition: int) -> Dict[str, bytes]:
    bodies = {}
    for name in names:
        answer = node.request('GET', name, device=device,
                              partition=partition)
        if answer.status == 200:
            bodies[name] = answer.body
    return bodies


def test_all_that_has_local_bytes_comes_back_in_one_pass(
        nodes: List[ObjectNode], stem: str) -> None:
    """One drive is new, S3 is away, a third of the objects is there only."""
    here, there = nodes
    make_ring(nodes, 2, [(here, 'sda', 1), (there, 'sdb', 1)])
    made = _fill(here, stem, 1)
    for name in _names(made, 0, 3):
        send_to_s3(here.data_file_in(name, 1))
    local = set(made) - set(_names(made, 0, 3))

    said = one_pass(here, 1)

    bodies = _read(there, made, 'sdb', 1)
    assert bodies == {name: made[name] for name in local}
    assert '4 failures to 8 successes' in said


def test_a_partition_stays_while_something_of_it_was_left_out(
        nodes: List[ObjectNode], stem: str) -> None:
    """A handoff: what could not be sent lies nowhere else."""
    here, there = nodes
    make_ring(nodes, 1, [(here, 'sda', 0), (there, 'sdb', 1)])
    made = _fill(here, stem, 2)
    away = _names(made, 0, 4)
    for name in away:
        send_to_s3(here.data_file_in(name, 2))

    one_pass(here, 2)

    assert set(_read(there, made, 'sdb', 2)) == set(made) - set(away)
    for name in away:
        assert os.path.exists(here.data_file_in(name, 2))


def test_an_hdd_that_is_away_holds_back_its_own_objects_only(
        nodes: List[ObjectNode], stem: str) -> None:
    here, there = nodes
    make_ring(nodes, 1, [(here, 'sda', 0), (there, 'sdb', 1)])
    made = _fill(here, stem, 3)
    on_hdd = _names(made, 1, 2)
    hdd = os.path.join(here.root, 'hdd', 'sda')
    os.rename(hdd, hdd + '.away')
    try:
        said = one_pass(here, 3)
    finally:
        os.rename(hdd + '.away', hdd)
    assert said.count('left for the next pass') == len(on_hdd)
    assert '1 failures to 6 successes' in said
    assert set(_read(there, made, 'sdb', 3)) == set(made) - set(on_hdd)
    for name in on_hdd:
        assert os.path.exists(here.data_file_in(name, 3))

    one_pass(here, 3)

    assert _read(there, made, 'sdb', 3) == made
    assert not os.path.exists(os.path.join(
        here.devices, 'sda', 'objects', '3'))


@pytest.mark.parametrize('how, partition', [('cut', 4), ('flipped', 7)])
def test_a_copy_that_cannot_be_read_blocks_no_other(
        nodes: List[ObjectNode], stem: str, how: str,
        partition: int) -> None:
    """An HDD file that ends early, or has another byte, would end the
    session with it."""
    here, there = nodes
    make_ring(nodes, 2, [(here, 'sda', 1), (there, 'sdb', 1)])
    made = _fill(here, stem, partition)
    broken = _names(made, 1, 2)[2]
    version = layout.version_of_path('sda', here.data_file_in(
        broken, partition))
    assert version is not None
    path = layout.capacity_file(os.path.join(here.root, 'hdd', 'sda'),
                                version)
    if how == 'cut':
        os.truncate(path, SIZE // 2)
    else:
        with open(path, 'r+b') as target:
            was = target.read(1)[0]
            target.seek(0)
            target.write(bytes([was ^ 1]))

    one_pass(here, partition)

    del made[broken]
    assert _read(there, made, 'sdb', partition) == made
    # Nobody else has it, so it stays.
    assert os.path.exists(here.data_file_in(broken, partition))


def _fragments(node: ObjectNode, stem: str, partition: int,
               places: Dict[int, str]) -> Dict[str, bytes]:
    """Fragment archives of objects, by index and device."""
    made = {}
    for number in range(COUNT):
        name = '%s-%d' % (stem, number)
        made[name] = pattern(SIZE, name)
        timestamp = node.timestamp()
        for index, device in places.items():
            put_fragment(node, name, made[name], index, device, partition,
                         timestamp, CLASSES[number % 2])
    return made


def _read_fragments(node: ObjectNode, names: Any, device: str,
                    partition: int) -> Dict[str, bytes]:
    bodies = {}
    for name in names:
        answer = node.request('GET', name, policy=1, device=device,
                              partition=partition)
        if answer.status == 200:
            bodies[name] = answer.body
    return bodies


def test_fragments_leave_one_by_one_where_some_cannot_be_read(
        nodes: List[ObjectNode], stem: str) -> None:
    """Fragment 1 on a device that is not its own."""
    here, there = nodes
    home = make_ring(nodes, 3, [
        (here, 'sda', 0), (there, 'sdb', 1), (there, 'sdc', 1),
        (there, 'sdd', 1)])[5][1]
    made = _fragments(here, stem, 5, {1: 'sda'})
    away = _names(made, 0, 4)
    for name in away:
        send_to_s3(here.data_file_in(name, 5, 1))

    one_pass(here, 5, 'object-reconstructor')

    assert _read_fragments(there, made, home, 5) == {
        name: fragment(made[name], 1) for name in made if name not in away}
    for name in away:
        assert os.path.exists(here.data_file_in(name, 5, 1))


def test_fragments_are_rebuilt_beside_some_that_cannot_be(
        nodes: List[ObjectNode], stem: str) -> None:
    """One drive is new; a third of the objects has one fragment left that
    can be read, which is one too few."""
    here, there = nodes
    homes = make_ring(nodes, 3, [
        (here, 'sda', 0), (there, 'sdb', 1), (there, 'sdc', 1),
        (there, 'sdd', 1)])[6]
    made = _fragments(there, stem, 6, {0: homes[0], 1: homes[1]})
    away = _names(made, 0, 3)
    for name in away:
        send_to_s3(there.data_file_in(name, 6, 1, homes[1]))

    one_pass(there, 6, 'object-reconstructor')

    assert _read_fragments(there, made, homes[2], 6) == {
        name: fragment(made[name], 2) for name in made if name not in away}
