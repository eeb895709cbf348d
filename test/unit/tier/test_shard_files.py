"""A device goes from one shard to another, whatever dies on the way."""

from __future__ import annotations

import logging
import os
from typing import Any, Dict, List, Set

import pytest
from support.queues import add_upload
from support.sqlite_files import rows_of

from swift_dss.core.config import Division, NodeConf, TierConf
from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book, Parked
from swift_dss.gateway.bundle.pack import book_path
from swift_dss.gateway.queue import Queue, queue_path
from swift_dss.io import steps
from swift_dss.tier.local.locks import lock_node
from swift_dss.tier.shards import files
from swift_dss.wire.node.shards import Layout

LOG = logging.getLogger('test.shards')
DEVICES = ('sda', 'sdb', 'sdc', 'sdd')
STEPS = ('shards.planned', 'handover.uploads', 'handover.deletes',
         'handover.renewals', 'handover.holders', 'shards.handed_over',
         'shards.settled', 'shards.published')


class Died(BaseException):
    """The parent is gone."""


class Node:
    """A node whose files know of four devices."""

    def __init__(self, root: str, devices: Any = DEVICES) -> None:
        for device in devices:
            os.makedirs(os.path.join(root, 'devices', device))
        os.makedirs(os.path.join(root, 'state'))
        self.conf = NodeConf(
            devices=os.path.join(root, 'devices'),
            run_dir=os.path.join(root, 'run'), allow_tmpfs=True,
            tier=TierConf(index_dir=os.path.join(root, 'state')))
        files.prepare(self.conf, LOG)

    def arrange(self, count: int, lists: Any = ()) -> Layout:
        conf = NodeConf(**dict(vars(self.conf), tier=TierConf(
            index_dir=self.conf.tier.index_dir,
            shards=Division(count if not lists else len(lists), lists))))
        layout = files.wanted(conf, count, files.read(conf))
        files.carry_out(conf, layout, LOG)
        return files.read(conf)

    def fill(self, number: int, devices: Any) -> None:
        """Work that a shard has still to do, of each of these devices."""
        conf = self.conf.of_shard(number)
        os.makedirs(conf.state_dir, exist_ok=True)
        queue = Queue(queue_path(conf))
        book = Book(book_path(conf.state_dir))
        for device in devices:
            stored = version(device)
            add_upload(queue, stored, '7', 1.0, 1.0)
            queue.add_delete('key-' + device, stored, '7', 1.0, 1.0)
            book.add_renewals([(stored, '7', 1.0)])
            book.park([Parked(stored, '7', 'g', 10, 'e')], 1.0)
        queue.close()
        book.close()

    def work(self) -> Dict[str, List[str]]:
        """Devices of all work that is written down, by its kind."""
        by_kind: Dict[str, List[str]] = {
            'uploads': [], 'deletes': [], 'renewals': [], 'parked': []}
        for number in range(4):
            conf = self.conf.of_shard(number)
            if not os.path.exists(queue_path(conf)):
                continue
            queue, book = queue_path(conf), book_path(conf.state_dir)
            for kind, path, table in (
                    ('uploads', queue, 'uploads'),
                    ('deletes', queue, 'deletes'),
                    ('renewals', book, 'renewals'),
                    ('parked', book, 'members')):
                by_kind[kind] += ['%d:%s' % (number, row[0])
                                  for row in rows_of(
                    path, 'SELECT device FROM ' + table)]
        return {kind: sorted(devices) for kind, devices in by_kind.items()}


def version(device: str) -> VersionId:
    return VersionId(device, 0, '%032x' % (ord(device[-1])),
                     '1700000000.00000')


def placed(layout: Layout) -> Set[str]:
    return {'%d:%s' % (number, name)
            for name, number in layout.devices.items()}


@pytest.fixture
def node(tmp_path: Any) -> Node:
    return Node(str(tmp_path))


def test_what_one_daemon_had_is_divided(node: Node) -> None:
    node.fill(0, DEVICES)
    open(os.path.join(node.conf.index_dir, 'index.db'), 'w').close()
    layout = node.arrange(2)
    assert sorted(layout.devices.values()) == [0, 0, 1, 1]
    assert not layout.moving
    work = node.work()
    for kind in ('uploads', 'deletes', 'renewals'):
        assert set(work[kind]) == placed(layout), kind
    # What waited for a bundle there waits no more; its row of the queue
    # has it wait again where it is now.
    assert set(work['parked']) == {
        entry for entry in placed(layout) if entry.startswith('0:')}


def test_a_new_node_has_nothing_to_move(node: Node) -> None:
    layout = files.wanted(node.conf, 2, files.read(node.conf))
    assert not layout.moving and len(set(layout.devices.values())) == 2


@pytest.mark.parametrize('step', STEPS)
def test_a_parent_that_dies_loses_nothing(node: Node, step: str) -> None:
    before = node.arrange(2)
    for number in (0, 1):
        node.fill(number, [name for name, shard in before.devices.items()
                           if shard == number])
    lists = (('sdb', 'sdd'), ('sdc',), ('sda',))
    died: List[str] = []

    def die(name: str) -> None:
        if name == step and not died:
            died.append(name)
            raise Died
    steps.listen(die)
    try:
        with pytest.raises(Died):
            node.arrange(3, lists)
    finally:
        steps.listen(None)
    work = node.work()
    for kind in ('uploads', 'deletes', 'renewals'):
        assert {entry[2:] for entry in work[kind]} == set(DEVICES), kind
    # The operator changes his mind, and the next parent goes on.
    last = node.arrange(3, (('sda', 'sdb'), ('sdd',), ('sdc',)))
    assert last == Layout({'sda': 0, 'sdb': 0, 'sdd': 1, 'sdc': 2})
    work = node.work()
    for kind in ('uploads', 'deletes', 'renewals'):
        assert work[kind] == sorted(placed(last)), kind


def test_a_device_that_is_away_keeps_its_shard(node: Node) -> None:
    before = node.arrange(2)
    away = os.path.join(node.conf.devices, 'sdb')
    os.rmdir(away)
    assert node.arrange(2) == before
    os.mkdir(away)
    os.mkdir(os.path.join(node.conf.devices, 'sde'))
    after = node.arrange(2)
    assert {name: after.devices[name] for name in DEVICES} == before.devices
    assert 'sde' in after.devices and not after.moving


def test_one_daemon_takes_all_back(node: Node) -> None:
    layout = node.arrange(3)
    for number in range(3):
        node.fill(number, [name for name, shard in layout.devices.items()
                           if shard == number])
    files.take_back(node.conf, LOG)
    work = node.work()
    for kind in ('uploads', 'deletes', 'renewals'):
        assert work[kind] == ['0:' + name for name in DEVICES], kind
    assert files.read(node.conf) == Layout({})
    assert not os.path.exists(os.path.join(node.conf.run_dir, 'shards.json'))
    files.take_back(node.conf, LOG)  # and again, where nothing is left


def test_a_shard_of_a_dead_parent_is_waited_for(
        node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    files.await_quiet(node.conf, LOG)
    folder = node.conf.of_shard(3).sockets_dir
    os.makedirs(folder)
    held = lock_node(folder)
    monkeypatch.setattr(files, '_QUIET_SECONDS', 0.2)
    with pytest.raises(TierUnavailable, match='shard 3 .* still runs'):
        files.await_quiet(node.conf, LOG)
    os.close(held)
    files.await_quiet(node.conf, LOG)


def test_a_damaged_layout_says_what_to_do(node: Node) -> None:
    node.arrange(2)
    path = os.path.join(node.conf.index_dir, 'shards.json')
    with open(path, 'w', encoding='ascii') as target:
        target.write('{')
    with pytest.raises(BadConfig, match='remove it and start the daemon'):
        files.read(node.conf)


def test_a_long_run_dir_is_refused(node: Node) -> None:
    conf = NodeConf(**dict(vars(node.conf), run_dir='/' + 'x' * 90))
    with pytest.raises(BadConfig, match='more than 86 bytes'):
        files.prepare(conf, LOG)
