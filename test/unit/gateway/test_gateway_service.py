"""The gateway's dispatcher: woken for what is due, and for nothing else."""

from __future__ import annotations

import logging
import os
import sys
import time
from types import SimpleNamespace

import pytest
from support import wait_until

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.service import Gateway

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir,
                                os.pardir, 'fault'))

from gateway_node import (
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
        self.gateway = Gateway(
            conf_for(NOWHERE, root, **options), ClassTable, self.local,
            logging.getLogger('gateway-test'), self.metrics,
            ranks=FixedRanks(), primaries=OnlyHere(self.local))
        self.count = 0
        self._inner = self.gateway.dispatcher.look
        self.gateway.dispatcher.look = self._look
        self.gateway.start()
        wait_until(lambda: self.count and self.gateway.jobs.due.is_awaited())

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
    found = looks(remote_after_seconds=3600.0)
    before = found.count
    found.gateway.enqueue_uploads(
        [Upload(found.put(number), '7') for number in range(20)])
    found.gateway.enqueue_upload(found.put(21), '7')
    assert found.gateway.status()['uploads'] == 21
    assert found.count == before


def test_an_upload_that_is_urgent_is_tried_at_once(looks):
    found = looks(remote_after_seconds=3600.0)
    found.gateway.enqueue_uploads([
        Upload(found.put(1), '7'), Upload(found.put(2), '7', True)])
    wait_until(lambda: found.gateway.status()['errors'], 5.0)


def test_an_upload_is_tried_when_it_is_due_and_not_before(looks):
    # Sooner than the dispatcher would look by itself.
    found = looks(remote_after_seconds=1.0)
    started = time.time()
    found.gateway.enqueue_upload(found.put(1), '7')
    assert not found.gateway.status()['errors']
    wait_until(lambda: found.gateway.status()['errors'], 8.0)
    assert time.time() - started >= 0.9


def test_deletes_are_noted_together_and_end_uploads(looks):
    found = looks(remote_after_seconds=3600.0, delete_delay_seconds=3600.0)
    versions = [found.put(number) for number in range(5)]
    found.gateway.enqueue_uploads(
        [Upload(version, '7') for version in versions])
    found.gateway.enqueue_deletes([(version, '7') for version
                                   in versions[:3]])
    status = found.gateway.status()
    assert (status['uploads'], status['deletes']) == (2, 3)


def fair_order(looks, monkeypatch, shares, slots):
    """Classes in the order in which their uploads are handed out, with a
    long backlog of class 0 and a short one of class 9."""
    found = looks(remote_after_seconds=3600.0)
    gateway, taken = found.gateway, []
    dispatcher = gateway.dispatcher
    table = ClassTable.of([ClassSpec(0, 'bulk', 0, wan_share=shares[0]),
                           ClassSpec(9, 'gold', 90, wan_share=shares[1])])
    monkeypatch.setattr(gateway.offers, 'table', lambda: table)
    monkeypatch.setattr(dispatcher, 'look', lambda: 3600.0)
    now = time.time()
    gateway._queue.add_uploads(
        [(found.put(number, 1000 - number), '7', number, 0)
         for number in range(40)], now)
    gateway._queue.add_uploads(
        [(found.put(number), '7', now - 1, 9) for number in (50, 51, 52)],
        now)
    monkeypatch.setattr(dispatcher, 'take', lambda job: taken.append(
        (job.class_id, job.not_before)) or True)
    assert dispatcher.submit_fairly(now, slots, 0) == 0
    found.now = now
    return found, taken


def test_a_long_backlog_does_not_hold_up_another_class(looks, monkeypatch):
    _, taken = fair_order(looks, monkeypatch, (1, 1), 6)
    assert sorted(one for one, _ in taken) == [0, 0, 0, 9, 9, 9]
    assert [due for one, due in taken if one == 0] == [0.0, 1.0, 2.0], \
        'a class goes by age'


def test_turns_go_by_the_shares_of_the_classes(looks, monkeypatch):
    _, taken = fair_order(looks, monkeypatch, (3, 1), 8)
    assert 2 <= [one for one, _ in taken].count(9) <= 3


def test_the_last_worker_is_kept_for_the_highest_class(looks, monkeypatch):
    found, taken = fair_order(looks, monkeypatch, (1, 1), 6)
    gateway = found.gateway
    for job in gateway._queue.due_uploads(found.now, 99, 9):
        gateway._queue.finish_upload(job.version)
    del taken[:]
    assert gateway.dispatcher.submit_fairly(found.now, 4, 0) == 1
    assert [one for one, _ in taken] == [0, 0, 0]
    gateway._queue.add_uploads([(found.put(60), '7', found.now, 9)],
                               found.now)
    monkeypatch.setattr(gateway.dispatcher, 'at_work', lambda: (3, 0))
    assert gateway.dispatcher.submit_fairly(found.now, 1, 3) == 0
    assert taken[-1][0] == 9
    # It has sent nothing for long: nobody keeps a worker for it.
    later = found.now + 1000.0
    for job in gateway._queue.due_uploads(later, 99, 9):
        gateway._queue.finish_upload(job.version)
    assert gateway.dispatcher.submit_fairly(later, 1, 3) == 0
    assert taken[-1][0] == 0


def test_after_an_outage_one_worker_works_for_all(looks, monkeypatch):
    found, taken = fair_order(looks, monkeypatch, (1, 1), 6)
    for job in found.gateway._queue.due_uploads(found.now, 99, 9):
        found.gateway._queue.finish_upload(job.version)
    assert found.gateway.dispatcher.submit_fairly(found.now, 1, 0) == 0
    assert taken[-1][0] == 0


def test_an_idle_link_takes_versions_early_if_it_may(looks, monkeypatch):
    found = looks(remote_after_seconds=3600.0, push_idle_after_seconds=10.0)
    gateway = found.gateway
    gateway.enqueue_upload(found.put(1, 5.0), '7')
    gateway.enqueue_upload(found.put(2, 60.0), '7')
    taken = []
    monkeypatch.setattr(gateway.dispatcher, 'take', taken.append)
    gateway.dispatcher.push_in_plenty(time.time(), 4, 3)
    assert taken == [], 'the link is at work'
    gateway.dispatcher.push_in_plenty(time.time(), 4, 0)
    assert len(taken) == 1, 'the other one is too young'
