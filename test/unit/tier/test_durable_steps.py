"""What is durable when a move reaches its next step, and who waits for it.

A power cut cannot be had in a unit test; that a file or a folder was synced
between two steps can be seen.
"""

from __future__ import annotations

import os
import threading

import pytest
from support.nodes.sample_node import (
    SampleNode, Vouching, read_version, sample_bytes)
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.errors import TierUnavailable
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.gateway.ports import Arrival, NotProven
from swift_dss.io import moves, quarantine, steps
from swift_dss.io.quarantine import Held
from swift_dss.io.switch import LiveVersion

DATA = sample_bytes(100 * KIB, 1)


class Said(list):
    """Steps by their names and syncs by their inodes, in their order."""

    def between(self, first, last):
        """Inodes that were synced between two steps."""
        return set(self[self.index(first) + 1:self.index(last)])


@pytest.fixture
def said(monkeypatch):
    log, fsync = Said(), os.fsync

    def synced(fd):
        fsync(fd)
        log.append(os.fstat(fd).st_ino)

    monkeypatch.setattr(os, 'fsync', synced)
    steps.listen(log.append)
    yield log
    steps.listen(None)


@pytest.fixture
def place(tmp_path):
    return SampleNode(str(tmp_path)).put('o', DATA)


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


def inode(path):
    return os.stat(path).st_ino


def tiers(place):
    with LiveVersion(place) as live:
        return live.residency.tiers


def test_a_new_inode_and_then_its_name_are_durable(place, said):
    moves.copy_to_capacity(place)
    moves.evict_ssd(place)
    assert inode(place.data_file()) in said.between(
        'evict.filled', 'evict.built')
    assert inode(place.hash_dir) in said.between(
        'evict.exchanged', 'evict.settled')


def test_a_copy_on_the_hdd_is_durable_before_a_record_names_it(
        place, said):
    named = []
    steps.listen(lambda name: (said.append(name), named.append(
        (name, tiers(place)))))
    moves.copy_to_capacity(place)
    path = place.capacity.file_path(place.version)
    assert inode(path) in said.between('clean.filled', 'clean.synced')
    folders = set()
    while len(path) > len(place.capacity.path):
        path = os.path.dirname(path)
        folders.add(inode(path))
    assert folders <= said.between('clean.synced', 'clean.published')
    assert inode(place.data_file()) in said.between(
        'clean.published', 'clean.marked')
    assert dict(named)['clean.published'] == Tier.SSD
    assert dict(named)['clean.marked'] == Tier.SSD | Tier.HDD


def test_a_record_lets_go_of_hdd_bytes_before_they_are_removed(
        place, said):
    moves.copy_to_capacity(place)
    path, there = place.capacity.file_path(place.version), []
    del said[:]
    steps.listen(lambda name: (said.append(name), there.append(
        (name, os.path.exists(path), tiers(place)))))
    moves.drop_capacity(place)
    assert there == [('drop.marked', True, Tier.SSD),
                     ('drop.unlinked', False, Tier.SSD)]
    assert said[:2] == [inode(place.data_file()), 'drop.marked']


def test_a_name_is_durable_before_that_in_quarantine_goes(place, said):
    target = os.path.join(place.device_path, 'quarantined', 'objects',
                          place.version.object_hash)
    os.makedirs(os.path.dirname(target))
    name = os.path.basename(place.data_file())
    os.rename(place.hash_dir, target)
    del said[:]
    quarantine.put_back(Held(place.version, os.path.join(target, name)),
                        place)
    assert read_version(place, {}) == DATA
    folder = place.hash_dir
    for _ in range(3):
        assert inode(folder) in said[:said.index('heal.linked')]
        folder = os.path.dirname(folder)


def test_records_of_what_arrived_are_durable(rig, said):
    """The last one of a device brings those before it along."""
    places = [rig.put('o%d' % number, b'x' * KIB) for number in range(3)]
    del said[:]
    rig.local.record_remotes([Arrival(
        place.version, place.partition, RemoteCopy('s3', 'k', 'e', 1.0), KIB)
        for place in places])
    assert said[-1] == inode(places[-1].data_file())


def test_a_move_waits_for_another_one_of_its_version(rig):
    place = rig.put('o', b'x' * 64 * KIB)
    order, threads = [], []

    def second():
        rig.local.promote(place.version, place.partition)
        order.append('second')

    def reached(name):
        order.append(name)
        if name == 'clean.published':
            threads.append(threading.Thread(target=second))
            threads[0].start()
            # Time enough for one that does not wait.
            threads[0].join(0.3)

    steps.listen(reached)
    try:
        rig.local.clean(place.version, place.partition)
        threads[0].join()
    finally:
        steps.listen(None)
    assert order.index('clean.marked') < order.index('second')


@pytest.mark.parametrize('leave', ['demote', 'drop_capacity'])
def test_the_last_local_bytes_leave_by_the_word_of_s3(
        rig, monkeypatch, leave):
    place = rig.put('o', b'x' * 64 * KIB)
    at = place.version, place.partition
    rig.local.record_remote(*at, RemoteCopy('s3', 'k', 'e', 1.0))
    if leave == 'drop_capacity':
        rig.local.demote(*at)

    def refuse(local):
        raise NotProven('nobody knows', 1)

    take = {'demote': lambda: rig.local.demote(*at, to_hdd=False),
            'drop_capacity': lambda: rig.local.drop_capacity(*at)}[leave]
    monkeypatch.setattr(rig.local, 'witness', Vouching())
    monkeypatch.setattr(rig.local.witness, 'proven', refuse)
    with pytest.raises(NotProven):
        take()
    assert rig.local.describe(*at).residency.is_local
    monkeypatch.undo()
    take()
    assert rig.local.describe(*at).residency.tiers == Tier.REMOTE


def test_a_fill_has_no_holes(rig):
    place = rig.put('o', b'x' * KIB)
    fill = rig.local.begin_fill(place.version, place.partition, 0, KIB, 0)
    try:
        fill.write(0, b'x' * 10)
        with pytest.raises(ValueError):
            fill.write(20, b'x' * 10)
    finally:
        fill.abort()


def test_what_is_not_mounted_is_not_empty(rig):
    place = rig.put('o', b'x' * KIB)
    os.rename(rig.node.device_path, rig.node.device_path + '.away')
    for ask in (rig.local.newest, rig.local.newest_record,
                rig.local.describe, rig.local.release):
        with pytest.raises(TierUnavailable):
            ask(place.version, place.partition)
