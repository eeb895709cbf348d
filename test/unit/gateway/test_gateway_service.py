"""The gateway's dispatcher: woken for what is due, and for nothing else."""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace

import pytest
from support import wait_until

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway

from support.nodes.gateway_node import (
    CountingMetrics, FixedRanks, FolderVersions, OnlyHere,
    conf_for)

#: Nobody listens there: an upload that is tried fails at once.
NOWHERE = SimpleNamespace(url='http://127.0.0.1:9', access_key='a',
                          secret_key='s')


class Looks:
    """A gateway that counts how often it looks for work."""

    def __init__(self, root, **options):
        self.local = FolderVersions(root)
        self.metrics = CountingMetrics()
        self.table = ClassTable()
        self.gateway = Gateway(
            conf_for(NOWHERE, root, **options), self._table, self.local,
            logging.getLogger('gateway-test'), self.metrics,
            outside=Outside(
                ranks=FixedRanks(), primaries=OnlyHere(self.local)))
        self.count = 0
        self._inner = self.gateway.parts.dispatcher.look
        self.gateway.parts.dispatcher.look = self._look
        self.gateway.start()
        wait_until(lambda: self.count
                   and self.gateway.parts.jobs.due.is_awaited())

    def _table(self):
        return self.table

    def _look(self):
        self.count += 1
        return self._inner()

    def put(self, number, age_seconds=0.0):
        return self.local.put('o%d' % number, b'x' * 100, '%016.5f' % (
            time.time() - age_seconds))


@pytest.fixture
def looks(tmp_path):
    made = []

    def make(**options):
        made.append(Looks(str(tmp_path), **options))
        return made[0]
    yield make
    made[0].gateway.stop()


def test_uploads_that_are_not_due_wake_nobody(looks):
    node = looks(remote_after_seconds=3600.0)
    before = node.count
    node.gateway.enqueue_uploads(
        [Upload(node.put(number), '7') for number in range(20)])
    node.gateway.enqueue_upload(node.put(21), '7')
    assert node.gateway.status()['uploads'] == 21
    assert node.count == before


def test_an_upload_that_is_urgent_is_tried_at_once(looks):
    node = looks(remote_after_seconds=3600.0)
    node.gateway.enqueue_uploads([
        Upload(node.put(1), '7'), Upload(node.put(2), '7', True)])
    wait_until(lambda: node.gateway.status()['errors'], 5.0)


def test_an_upload_is_tried_when_it_is_due_and_not_before(looks):
    # Sooner than the dispatcher would look by itself.
    node = looks(remote_after_seconds=1.0)
    started = time.time()
    node.gateway.enqueue_upload(node.put(1), '7')
    assert not node.gateway.status()['errors']
    wait_until(lambda: node.gateway.status()['errors'], 8.0)
    assert time.time() - started >= 0.9


def test_deletes_are_noted_together_and_end_uploads(looks):
    node = looks(remote_after_seconds=3600.0, delete_delay_seconds=3600.0)
    versions = [node.put(number) for number in range(5)]
    node.gateway.enqueue_uploads(
        [Upload(version, '7') for version in versions])
    node.gateway.enqueue_deletes([(version, '7') for version
                                  in versions[:3]])
    status = node.gateway.status()
    assert (status['uploads'], status['deletes']) == (2, 3)


def fair_order(looks, monkeypatch, shares, slots):
    """Classes in the order in which their uploads are handed out, with a
    long backlog of class 0 and a short one of class 9."""
    node = looks(remote_after_seconds=3600.0)
    gateway, taken = node.gateway, []
    dispatcher = gateway.parts.dispatcher
    node.table = ClassTable.of([
        ClassSpec(0, 'bulk', 0, wan_share=shares[0]),
        ClassSpec(9, 'gold', 90, wan_share=shares[1])])
    monkeypatch.setattr(dispatcher, 'look', lambda: 3600.0)
    now = time.time()
    gateway.parts.queue.add_uploads(
        [(node.put(number, 1000 - number), '7', number, 0)
         for number in range(40)], now)
    gateway.parts.queue.add_uploads(
        [(node.put(number), '7', now - 1, 9) for number in (50, 51, 52)],
        now)
    monkeypatch.setattr(dispatcher, 'take', lambda job: taken.append(
        (job.class_id, job.not_before)) or True)
    assert dispatcher.submit_fairly(now, slots, 0) == 0
    node.now = now
    return node, taken


def test_a_long_backlog_does_not_hold_up_another_class(looks, monkeypatch):
    _, taken = fair_order(looks, monkeypatch, (1, 1), 6)
    assert sorted(class_id for class_id, _ in taken) == [0, 0, 0, 9, 9, 9]
    assert [due for class_id, due in taken if class_id == 0] == [0.0, 1.0,
                                                                 2.0], \
        'a class goes by age'


def test_turns_go_by_the_shares_of_the_classes(looks, monkeypatch):
    _, taken = fair_order(looks, monkeypatch, (3, 1), 8)
    assert 2 <= [class_id for class_id, _ in taken].count(9) <= 3


def test_the_last_worker_is_kept_for_the_highest_class(looks, monkeypatch):
    node, taken = fair_order(looks, monkeypatch, (1, 1), 6)
    gateway = node.gateway
    for job in gateway.parts.queue.due_uploads(node.now, 99, 9):
        gateway.parts.queue.finish_uploads([job.version])
    del taken[:]
    assert gateway.parts.dispatcher.submit_fairly(node.now, 4, 0) == 1
    assert [class_id for class_id, _ in taken] == [0, 0, 0]
    gateway.parts.queue.add_uploads([(node.put(60), '7', node.now, 9)],
                                    node.now)
    monkeypatch.setattr(gateway.parts.uploads.crew, 'at_work',
                        lambda: (3, 0))
    assert gateway.parts.dispatcher.submit_fairly(node.now, 1, 3) == 0
    assert taken[-1][0] == 9
    # It has sent nothing for long: nobody keeps a worker for it.
    later = node.now + 1000.0
    for job in gateway.parts.queue.due_uploads(later, 99, 9):
        gateway.parts.queue.finish_uploads([job.version])
    assert gateway.parts.dispatcher.submit_fairly(later, 1, 3) == 0
    assert taken[-1][0] == 0


def test_after_an_outage_one_worker_works_for_all(looks, monkeypatch):
    node, taken = fair_order(looks, monkeypatch, (1, 1), 6)
    for job in node.gateway.parts.queue.due_uploads(node.now, 99, 9):
        node.gateway.parts.queue.finish_uploads([job.version])
    assert node.gateway.parts.dispatcher.submit_fairly(node.now, 1, 0) == 0
    assert taken[-1][0] == 0


def test_an_idle_link_takes_versions_early_if_it_may(looks, monkeypatch):
    node = looks(remote_after_seconds=3600.0, push_idle_after_seconds=10.0)
    gateway = node.gateway
    gateway.enqueue_upload(node.put(1, 5.0), '7')
    gateway.enqueue_upload(node.put(2, 60.0), '7')
    taken = []
    monkeypatch.setattr(gateway.parts.dispatcher, 'take', taken.append)
    gateway.parts.dispatcher.push_in_plenty(time.time(), 4, 3)
    assert taken == [], 'the link is at work'
    gateway.parts.dispatcher.push_in_plenty(time.time(), 4, 0)
    assert len(taken) == 1, 'the other one is too young'
