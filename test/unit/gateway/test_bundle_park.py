"""Small versions are parked by the hundred, and without S3."""

from __future__ import annotations

import logging
import os
import sys
import threading
from types import SimpleNamespace

import pytest
from support import wait_until

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.bundle.pack import batch_of
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.service import Gateway
from swift_dss.gateway.up import bundler as bundle_work
from swift_dss.strategy import bundling

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir,
                                os.pardir, 'fault'))

from gateway_node import (
    CountingMetrics, FixedRanks, FolderVersions, OnlyHere,
    conf_for)

NOWHERE = SimpleNamespace(url='http://127.0.0.1:9', access_key='a',
                          secret_key='s')
TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(1, 'small', 1, bundle=True),
    ClassSpec(2, 'home', 2, remote=RemoteMode.NEVER)])
SMALL = ClassMap.uniform(1)


class Node:
    """A gateway whose S3 is not there."""

    def __init__(self, root, ranks=None, begin=True, **conf):
        self.local = FolderVersions(root)
        self.metrics = CountingMetrics()
        self.gateway = Gateway(
            conf_for(NOWHERE, root, bundle_age_seconds=3600.0,
                     bundle_member_bytes=1000, **conf),
            lambda: TABLE, self.local, logging.getLogger('park-test'),
            self.metrics, ranks=FixedRanks(ranks or {}),
            primaries=OnlyHere(self.local))
        self.writes = 0
        queue = self.gateway._queue
        inner = queue._write

        def counted(durable, statements):
            self.writes += 1
            return inner(durable, statements)
        queue._write = counted
        if begin:
            self.gateway.start()

    def queue(self, versions):
        self.gateway.enqueue_uploads(
            [Upload(version, '7', True, 1) for version in versions])

    def bundles(self):
        return self.gateway.status()['bundles']


@pytest.fixture
def node(tmp_path):
    made = Node(str(tmp_path))
    yield made
    made.gateway.stop()


def test_a_backlog_is_parked_while_s3_is_down(node):
    versions = [node.local.put('o%d' % n, b'x' * 100, class_map=SMALL)
                for n in range(600)]
    before = node.writes
    node.queue(versions)
    wait_until(lambda: node.bundles()['waiting'] == 600, 60)
    # One transaction some hundred rows, not one each.
    assert node.writes - before < 60
    assert node.bundles()['waiting_bytes'] == 60000
    assert node.gateway.status()['uploads'] == 600


class Workers:
    """In place of the threads that send: what they were given."""

    def __init__(self):
        self.members = []

    def submit(self, work, claim):
        self.members.append(len(claim.members))

    def shutdown(self, wait):
        """There is nobody."""


def test_the_first_bundles_of_many_are_smaller(tmp_path, monkeypatch):
    monkeypatch.setattr(bundling, 'PART_BYTES', 1)
    node = Node(str(tmp_path), begin=False, bundle_bytes=20000)
    bundler = node.gateway._bundler
    given = bundler._workers = Workers()
    node.queue([node.local.put('o%d' % n, b'x' * 100, class_map=SMALL)
                for n in range(600)])
    node.gateway.start()
    try:
        wait_until(lambda: len(given.members) == bundle_work.SENDERS, 60)
    finally:
        node.gateway.stop()
    assert given.members == [50, 50, 200]


def test_the_bundler_hears_while_there_is_more_to_park(tmp_path):
    node = Node(str(tmp_path), begin=False)
    bundler, parker = node.gateway._bundler, node.gateway._parker
    node.queue([node.local.put('o%d' % n, b'x', class_map=SMALL)
                for n in range(300)])
    assert parker.park() == 256
    assert bundler.coming == {1}
    assert parker.park() == 44
    assert not bundler.coming
    node.gateway.stop()


def test_nothing_is_parked_while_the_link_waits_for_a_bundle(
        tmp_path, monkeypatch):
    monkeypatch.setattr(bundle_work, '_LATE_SECONDS', 60.0)
    node = Node(str(tmp_path), begin=False)
    bundler, parker = node.gateway._bundler, node.gateway._parker
    packer = bundler._packer
    node.queue([node.local.put('o', b'x', class_map=SMALL)])
    asked = []

    class Asked(type(packer)):
        @property
        def is_late(self):
            asked.append(super().is_late)
            return asked[-1]
    packer.__class__ = Asked
    thread = threading.Thread(target=parker.park, daemon=True)
    with packer._packing:
        thread.start()
        wait_until(lambda: len(asked) > 2, 60)
        assert all(asked)
        assert node.bundles()['waiting'] == 0
        with packer._turns.take():
            thread.join(60)
    assert not thread.is_alive()
    assert node.bundles()['waiting'] == 1
    node.gateway.stop()


def test_what_is_too_large_goes_alone(node):
    large = node.local.put('large', b'x' * 1001, class_map=SMALL)
    small = node.local.put('small', b'x' * 1000, class_map=SMALL)
    node.queue([large, small])
    # Its own upload was tried: S3 was asked, and is not there.
    wait_until(lambda: node.gateway.status()['errors'], 60)
    wait_until(lambda: node.bundles()['waiting'] == 1, 60)
    assert node.metrics.counters['gateway.upload.parked'] == 1


def test_what_may_not_leave_and_what_is_gone_leave_the_queue(node):
    stays = node.local.put('home', b'x', class_map=ClassMap.uniform(2))
    gone = node.local.put('gone', b'x', class_map=SMALL)
    node.local.unlink(gone)
    node.queue([stays, gone])
    wait_until(lambda: node.gateway.status()['uploads'] == 0, 60)
    assert node.bundles()['waiting'] == 0


def test_a_replica_of_this_node_is_no_second_member(node):
    here, there = (node.local.put('o', b'x', device=device,
                                  class_map=SMALL)
                   for device in ('sda', 'sdb'))
    node.queue([here, there])
    wait_until(lambda: node.metrics.counters.get(
        'gateway.upload.parked') == 2, 60)
    assert node.bundles()['waiting'] == 1
    book = node.gateway._bundler._book
    assert {version.device for version, _ in book.holders([
        SimpleNamespace(version=here)])[here.key]} == {'sda', 'sdb'}


def test_a_replica_whose_turn_it_is_not_waits(tmp_path):
    node = Node(str(tmp_path), {'sda': 1}, take_over_seconds=3600.0)
    try:
        node.queue([node.local.put('o', b'x', class_map=SMALL)])
        wait_until(lambda: node.metrics.counters.get(
            'gateway.upload.waiting'), 60)
        assert node.bundles()['waiting'] == 0
        assert node.gateway.status()['uploads'] == 1
    finally:
        node.gateway.stop()


def test_what_is_gone_when_it_is_packed_leaves_the_queue_at_once(node):
    gone = node.local.put('gone', b'x' * 10, class_map=SMALL)
    node.queue([gone])
    wait_until(lambda: node.bundles()['waiting'] == 1, 60)
    node.local.unlink(gone)
    bundler = node.gateway._bundler
    claim = bundler._packer.claim(
        bundler._book.waiting()[0], batch_of(bundler._conf))
    assert bundler._packer.flush(claim) == 0
    wait_until(lambda: node.gateway.status()['uploads'] == 0, 60)
