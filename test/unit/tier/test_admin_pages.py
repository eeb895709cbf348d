"""Verbs over many versions: page by page, whatever a filter names."""

from __future__ import annotations

import tracemalloc

import pytest
from support.nodes.tier_node import Rig

from swift_dss.core.errors import TierUnavailable
from swift_dss.core.version import VersionId
from swift_dss.tier.doors.admin import AdminServer
from swift_dss.tier.index.rows import SpanRow, VersionRow
from swift_dss.tier.walk.drain import Drainer

ROWS = 20000


class FakeNode:
    """The parts that the verbs that move versions use."""

    def __init__(self, rig):
        self.index, self.local = rig.index, rig.local
        self.in_force, self.metrics = rig.in_force, rig.metrics
        self.gateway = None
        self.relocator = self.keepers = self
        self.pages, self.planned = [], 0

    def kick(self, device=''):
        """Nobody to wake."""

    def plan(self, rows, into, class_ids):
        self.planned += len(rows)

    def relocate(self, rows, seconds, progress, class_ids):
        self.pages.append(len(rows))
        progress(len(rows), len(rows))
        return {row.version: 'no' for row in rows[:1]}


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    for start in range(0, ROWS, 500):
        made.index.add([VersionRow(
            VersionId('sda', 0, '%032x' % number, '1700000000.00000'), '7',
            100, '/a/c/a-rather-long-name-of-an-object-%d' % number,
            1.0, spans=[SpanRow(0, 100, 100)])
            for number in range(start, start + 500)])
    yield made
    made.close()


@pytest.fixture
def node(rig):
    return FakeNode(rig)


@pytest.fixture
def admin(node):
    return AdminServer('/nowhere', node, None)


def test_memory_does_not_grow_with_what_a_filter_names(
        admin, rig, monkeypatch):
    moved, last = [0], {}

    def pin(*_named):
        moved[0] += 1
        if moved[0] % 3 == 0:
            raise TierUnavailable('no')

    monkeypatch.setattr(rig.local, 'pin', pin)
    tracemalloc.start()
    try:
        answer = admin.answer({'verb': 'pin', 'container': 'a/c'},
                              last.update)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert moved[0] == ROWS and last == {'done': ROWS, 'of': ROWS}
    assert answer['moved'] == ROWS - ROWS // 3
    assert len(answer['rows']) == 1000
    assert answer['failed'][-1] == 'and %d more' % (ROWS // 3 - 1000)
    # All rows take 29 MB, what an answer names 2 MB.
    assert peak < 8 * 2 ** 20


def test_what_comes_meanwhile_is_not_moved(admin, rig, monkeypatch):
    """Or a verb whose versions come anew would never end."""
    moved = []

    def pin(version, _partition, _pinned):
        row = rig.index.get(version)
        moved.append(row.name)
        rig.index.remove(version)
        rig.index.add([row])

    monkeypatch.setattr(rig.local, 'pin', pin)
    # So that new ones have room on the last page.
    rig.index.remove(VersionId('sda', 0, '%032x' % 0, '1700000000.00000'))
    admin.answer({'verb': 'pin', 'device': 'sda'}, lambda said: None)
    assert len(moved) == len(set(moved)) == ROWS - 1


def test_a_relocation_goes_page_by_page(admin, node):
    answer = admin.answer({'verb': 'relocate', 'class': '0'},
                          lambda said: None)
    assert node.pages == [5000] * 4
    assert (answer['versions'], answer['relocated']) == (ROWS, ROWS - 4)
    assert len(answer['failed']) == 4


def test_a_dry_run_relocates_nothing(admin, node):
    said = []
    answer = admin.answer({'verb': 'relocate', 'class': '0',
                           'dry_run': True}, said.append)
    assert node.pages == [] and node.planned == ROWS
    assert (answer['versions'], answer['dry_run']) == (ROWS, True)
    assert said[-1] == {'done': ROWS, 'of': ROWS}


def test_an_object_without_bytes_has_none_to_wait_for(tmp_path):
    rig = Rig(tmp_path)
    for number, size in enumerate((0, 100)):
        rig.index.add([VersionRow(
            VersionId('sda', 0, '%032x' % number, '1700000000.00000'), '7',
            size, '/a/c/o%d' % size, 1.0, spans=[SpanRow(0, size, size)])])
    answer = AdminServer('/nowhere', FakeNode(rig), None).answer(
        {'verb': 'demote', 'to': 'remote', 'device': 'sda'},
        lambda said: None)
    rig.close()
    assert answer['moved'] == 1
    assert list(answer['failed']) == [
        '/a/c/o100 on sda: /a/c/o100 has no verified copy in S3 yet']


@pytest.mark.parametrize('verb', ['demote', 'promote', 'pin', 'unpin'])
def test_a_dry_run_counts_and_touches_nothing(admin, rig, monkeypatch,
                                               verb):
    def touched(*_named, **_options):
        raise AssertionError('a dry run did something')

    for name in ('pin', 'demote'):
        monkeypatch.setattr(rig.local, name, touched)
    monkeypatch.setattr(Drainer, 'promote', touched)
    monkeypatch.setattr(FakeNode, 'kick', touched)
    last = {}
    try:
        answer = admin.answer({'verb': verb, 'device': 'sda',
                               'dry_run': True}, last.update)
        assert answer['dry_run'] and not answer['failed']
        assert (answer['moved'], answer['moved_bytes'], answer['failures']
                ) == (ROWS, 100 * ROWS, 0)
        assert last == {'done': ROWS, 'of': ROWS}
    finally:
        monkeypatch.undo()


def test_a_dry_run_names_what_cannot_be_done(tmp_path):
    rig = Rig(tmp_path)
    rig.index.add([VersionRow(
        VersionId('sda', 0, '%032x' % 1, '1700000000.00000'), '7', 100,
        '/a/c/o', 1.0, spans=[SpanRow(0, 100, 100)])])
    answer = AdminServer('/nowhere', FakeNode(rig), None).answer(
        {'verb': 'demote', 'to': 'remote', 'device': 'sda',
         'dry_run': True}, lambda said: None)
    rig.close()
    assert (answer['moved'], answer['failures']) == (0, 1)
    assert 'no verified copy in S3' in answer['failed'][0]
