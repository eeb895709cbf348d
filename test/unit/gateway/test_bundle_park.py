"""Small versions are parked by the hundred, and without S3."""

from __future__ import annotations

import logging
import threading
import time
from types import SimpleNamespace

import pytest
from support import wait_until
from support.edges.memory_s3 import MemoryS3
from support.sqlite_files import SqliteFiles

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.errors import DamagedRecord
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.bundle.pack import batch_of
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.queue import FILE as QUEUE_FILE
from swift_dss.gateway.service import Gateway
from swift_dss.gateway.up import parking, sending
from swift_dss.strategy import bundling

from support.nodes.gateway_node import (
    CountingMetrics, FixedRanks, FolderVersions, OnlyHere,
    conf_for)

NOWHERE = SimpleNamespace(url='http://127.0.0.1:9', access_key='a',
                          secret_key='s')
TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(1, 'small', 1, bundle=True),
    ClassSpec(2, 'home', 2, remote=RemoteMode.NEVER)])
SMALL = ClassMap.uniform(1)


class Node:
    """A gateway whose S3 is not there, unless it is given."""

    def __init__(self, root, ranks=None, begin=True, connect=None, **conf):
        self.local = FolderVersions(root)
        self.metrics = CountingMetrics()
        self.gateway = Gateway(
            conf_for(NOWHERE, root, bundle_age_seconds=3600.0,
                     bundle_member_bytes=1000, **conf),
            lambda: TABLE, self.local, logging.getLogger('park-test'),
            self.metrics,
            outside=Outside(
                ranks=FixedRanks(ranks or {}), primaries=OnlyHere(self.local),
                connect=connect))
        if begin:
            self.gateway.start()

    def queue(self, versions):
        self.gateway.enqueue_uploads(
            [Upload(version, '7', True, 1) for version in versions])

    def bundles(self):
        return self.gateway.status()['bundles']


@pytest.fixture
def files(monkeypatch):
    return SqliteFiles(monkeypatch)


@pytest.fixture
def node(files, tmp_path):
    made = Node(str(tmp_path))
    yield made
    made.gateway.stop()


def test_a_backlog_is_parked_while_s3_is_down(files, node):
    versions = [node.local.put('o%d' % n, b'x' * 100, class_map=SMALL)
                for n in range(600)]
    before = files.transactions(QUEUE_FILE)
    node.queue(versions)
    wait_until(lambda: node.bundles()['waiting'] == 600, 60)
    # One transaction some hundred rows, not one each.
    assert files.transactions(QUEUE_FILE) - before < 60
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
    node = Node(str(tmp_path), begin=False, connect=MemoryS3().connect,
                bundle_bytes=20000)
    given = Workers()
    node.gateway.parts.bundles.sending.workers = given
    node.queue([node.local.put('o%d' % n, b'x' * 100, class_map=SMALL)
                for n in range(600)])
    node.gateway.start()
    try:
        wait_until(lambda: len(given.members) == sending.SENDERS, 60)
    finally:
        node.gateway.stop()
    assert given.members == [50, 50, 200]


def test_what_comes_is_known_before_anything_of_it_waits(
        tmp_path, monkeypatch):
    seen, take_all = [], parking.Parking.take_all

    def watched(self, offers, table):
        seen.append((len(offers), set(self.coming)))
        return take_all(self, offers, table)
    monkeypatch.setattr(parking.Parking, 'take_all', watched)
    node = Node(str(tmp_path), begin=False)
    node.queue([node.local.put('o%d' % n, b'x' * 100, class_map=SMALL)
                for n in range(300)])
    while node.gateway.parts.uploads.parker.park():
        pass
    assert seen == [(256, {1}), (44, set())]


@pytest.mark.parametrize('err', (DamagedRecord('bad'), ValueError('worse')))
def test_records_that_cannot_be_written_are_counted(
        tmp_path, monkeypatch, err):
    node = Node(str(tmp_path), begin=False, connect=MemoryS3().connect)
    parts = node.gateway.parts

    def fail(bundle_id):
        raise err
    monkeypatch.setattr(parts.bundles.packer, 'record', fail)
    node.queue([node.local.put('o%d' % n, b'x' * 100, class_map=SMALL)
                for n in range(20)])
    assert parts.uploads.parker.park() == 20
    parts.bundles.sending.send_due(
        time.time() + 7200.0, batch_of(parts.conf), ())
    wait_until(lambda: node.metrics.counters.get(
        'gateway.bundle_records_failed'), 60)
    wait_until(lambda: not parts.bundles.sending.under_way(), 60)
    assert node.metrics.counters['gateway.bundle_records_failed'] == 1
    node.gateway.stop()


def test_the_bundler_hears_while_there_is_more_to_park(tmp_path):
    node = Node(str(tmp_path), begin=False)
    parts = node.gateway.parts
    parker, bundler = parts.uploads.parker, parts.bundles.parking
    node.queue([node.local.put('o%d' % n, b'x', class_map=SMALL)
                for n in range(300)])
    assert parker.park() == 256
    assert bundler.coming == {1}
    assert parker.park() == 44
    assert not bundler.coming
    node.gateway.stop()


class Held:
    """A verb of a part that does not go on until it may."""

    def __init__(self, part, verb):
        self._inner = getattr(part, verb)
        self.is_asked, self.may_go = threading.Event(), threading.Event()
        setattr(part, verb, self._ask)

    def _ask(self, *args, **options):
        self.is_asked.set()
        assert self.may_go.wait(60)
        return self._inner(*args, **options)


def send_one(node, number):
    """A thread that packs and sends a bundle of one new version."""
    parts = node.gateway.parts
    packer = parts.bundles.packer
    node.queue([node.local.put('sent%d' % number, b'x', class_map=SMALL)])
    assert parts.uploads.parker.park() == 1
    claim = packer.claim(parts.book.waiting()[0], batch_of(parts.conf))
    thread = threading.Thread(target=packer.flush, args=(claim,),
                              daemon=True)
    thread.start()
    return thread


def test_nothing_is_parked_while_the_link_waits_for_a_bundle(
        tmp_path, monkeypatch):
    monkeypatch.setattr(parking, '_LATE_SECONDS', 60.0)
    s3 = MemoryS3()
    node = Node(str(tmp_path), begin=False, connect=s3.connect)
    parker = node.gateway.parts.uploads.parker
    packer = node.gateway.parts.bundles.packer
    put = Held(s3, 'put_object')
    read = Held(node.local, 'read_as_parked')
    threads = [send_one(node, 1)]
    assert read.is_asked.wait(60)
    node.queue([node.local.put('o', b'x', class_map=SMALL)])
    asked = []

    class Asked(type(packer)):
        @property
        def is_late(self):
            asked.append(super().is_late)
            return asked[-1]
    packer.__class__ = Asked
    threads.append(threading.Thread(target=parker.park, daemon=True))
    threads[-1].start()
    wait_until(lambda: len(asked) > 2, 60)
    assert all(asked)
    assert node.bundles()['waiting'] == 0
    # From here on the link has the bundle.
    read.may_go.set()
    assert put.is_asked.wait(60)
    wait_until(lambda: node.bundles()['waiting'] == 1, 60)
    put.may_go.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    node.gateway.stop()


def test_a_bundle_is_not_late_while_another_one_is_sent(tmp_path):
    s3 = MemoryS3()
    node = Node(str(tmp_path), begin=False, connect=s3.connect)
    packer = node.gateway.parts.bundles.packer
    put = Held(s3, 'put_object')
    threads = [send_one(node, 1)]
    assert put.is_asked.wait(60)
    read = Held(node.local, 'read_as_parked')
    threads.append(send_one(node, 2))
    assert read.is_asked.wait(60)
    assert not packer.is_late
    for held in (put, read):
        held.may_go.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
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
    book = node.gateway.parts.book
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
    parts = node.gateway.parts
    packer = parts.bundles.packer
    claim = packer.claim(parts.book.waiting()[0], batch_of(parts.conf))
    assert packer.flush(claim) == 0
    wait_until(lambda: node.gateway.status()['uploads'] == 0, 60)
