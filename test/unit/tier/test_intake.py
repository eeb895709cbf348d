"""The intake: gathers, hurries when asked, loses nothing at its end."""

from __future__ import annotations

import logging
import os
import socket
import threading
import types

import pytest
from support import wait_until

from swift_dss.core.version import VersionId
from swift_dss.tier.hear import intake as intake_module
from swift_dss.tier.hear.intake import BATCH, Intake
from swift_dss.wire.control import (
    Event, EventKind, encode_event, urgent)


class Counters:
    """What was counted."""

    def __init__(self):
        self.found = {}
        self.logger = logging.getLogger('intake-test')

    def count(self, name, amount=1):
        self.found[name] = self.found.get(name, 0) + amount


class Heard:
    """An intake and what it handed over."""

    def __init__(self, path, devices=()):
        self.path = path
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()
        self.metrics = Counters()
        self.intake = Intake(path, types.SimpleNamespace(
            discover=lambda: devices), self, self.metrics)
        self.intake.start(self)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.connect(path)

    #: As of :class:`Due`.
    missed = False

    def hear(self, batch):
        self.gate.wait(60)
        self.batches.append([int(event.version.object_hash)
                             for event in batch])

    def send(self, *numbers, extra=b''):
        self._socket.send(b'\n'.join([encode_event(Event(
            EventKind.PUT, VersionId('sda', 0, str(number), '1.0'), '1'))
            for number in numbers]) + extra)

    def send_urgent(self, number):
        self._socket.send(urgent(encode_event(Event(
            EventKind.PUT, VersionId('sda', 0, str(number), '1.0'), '1'))))

    @property
    def numbers(self):
        return [number for batch in self.batches for number in batch]

    def await_events(self, count):
        wait_until(lambda: len(self.numbers) == count, 20)

    def close(self):
        self.gate.set()
        self.intake.stop()
        self._socket.close()


@pytest.fixture
def heard(tmp_path, monkeypatch):
    # Longer than any test waits: what comes sooner was hurried.
    monkeypatch.setattr(intake_module, 'GATHER_SECONDS', 3600.0)
    made = Heard(str(tmp_path / 'events.sock'))
    yield made
    made.close()


def test_events_gather_and_who_waits_gets_them_at_once(heard):
    for number in range(20):
        heard.send(number)
    wait_until(lambda: heard.intake.backlog == 20)
    assert heard.batches == []
    assert heard.intake.wait_until_idle(60)
    assert heard.batches == [list(range(20))]


def test_events_do_not_gather_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(intake_module, 'GATHER_SECONDS', 0.05)
    made = Heard(str(tmp_path / 'events.sock'))
    made.send(7)
    wait_until(lambda: made.numbers == [7])
    made.send(8)
    wait_until(lambda: made.numbers == [7, 8])
    made.close()


def test_a_look_at_empty_spools_loses_no_event_after_it(
        tmp_path, monkeypatch):
    """Nothing new is no reason to wake who waits for something new."""
    monkeypatch.setattr(intake_module, 'GATHER_SECONDS', 0.002)
    monkeypatch.setattr(intake_module, 'URGENT_SECONDS', 0.001)
    device = types.SimpleNamespace(name='sda', path=str(tmp_path))
    made = Heard(str(tmp_path / 'events.sock'), [device])
    try:
        for number in range(20):
            assert made.intake.wait_until_idle(60)
            assert made.intake.read_spools() == 0
            made.send(number)
            made.await_events(number + 1)
    finally:
        made.close()


def test_a_full_batch_does_not_wait(heard):
    for number in range(0, BATCH + 10, 10):
        heard.send(*range(number, number + 10))
    wait_until(lambda: len(heard.numbers) >= BATCH)
    assert heard.numbers == list(range(len(heard.numbers)))


def test_a_line_that_is_no_event_is_counted_and_harms_no_other(heard):
    heard.send(1, 2, extra=b'\nrubbish')
    heard.send(3)
    # Its senders do not wait, so nothing says that all has arrived.
    wait_until(lambda: heard.intake.backlog == 4)
    assert heard.intake.wait_until_idle(60)
    assert heard.numbers == [1, 2, 3]
    assert heard.metrics.found == {'tier.events_damaged': 1}


def test_what_is_urgent_does_not_gather_for_long(heard):
    heard.send(1)
    wait_until(lambda: heard.intake.backlog == 1)
    heard.send_urgent(2)
    wait_until(lambda: heard.numbers == [1, 2], 60)


def test_what_comes_after_it_gathers_again(heard, monkeypatch):
    monkeypatch.setattr(intake_module, 'URGENT_SECONDS', 0.001)
    for number in range(0, 20, 2):
        heard.send(number)
        wait_until(lambda: heard.intake.backlog == 1)
        heard.send_urgent(number + 1)
        heard.await_events(number + 2)
    assert heard.batches == [[number, number + 1]
                             for number in range(0, 20, 2)]


def test_a_call_comes_after_what_was_sent_before_it(heard, monkeypatch):
    """And at once, though events gather for an hour."""
    monkeypatch.setattr(intake_module, 'MARK_SECONDS', 60.0)
    seen = []
    for round in range(20):
        heard.send(2 * round, 2 * round + 1)
        heard.intake.in_order(lambda: seen.append(list(heard.numbers)))
    wait_until(lambda: len(seen) == 20, 60)
    for round, numbers in enumerate(seen):
        assert numbers == list(range(2 * round + 2))
    assert heard.intake.backlog == 0


def test_a_call_at_the_end_is_not_lost(tmp_path):
    made = Heard(str(tmp_path / 'events.sock'))
    made.close()
    seen = []
    made.intake.in_order(lambda: seen.append(1))
    assert seen == [1]


def test_a_mark_that_nobody_made_is_nothing(heard):
    heard.send(1)
    heard._socket.send(b'\x0012345')
    heard.send(2)
    wait_until(lambda: heard.intake.backlog == 2)
    assert heard.intake.wait_until_idle(60)
    assert heard.numbers == [1, 2]


def test_all_that_was_sent_before_the_end_is_applied(tmp_path, monkeypatch):
    monkeypatch.setattr(intake_module, 'GATHER_SECONDS', 3600.0)
    made = Heard(str(tmp_path / 'events.sock'))
    for number in range(200):
        made.send(number)
    made.close()
    assert made.numbers == list(range(200))
    assert not os.path.exists(made.path)


def test_a_full_queue_holds_senders_back_and_goes_on(heard, monkeypatch):
    monkeypatch.setattr(intake_module, 'MAX_WAITING', BATCH + 50)
    heard.gate.clear()
    sender = threading.Thread(target=lambda: [
        heard.send(number) for number in range(5 * BATCH)])
    sender.start()
    wait_until(lambda: heard.intake.backlog >= BATCH + 50)
    # Nobody who is held back would be slower than that.
    sender.join(0.5)
    assert sender.is_alive()
    assert heard.intake.backlog <= BATCH + 51
    heard.gate.set()
    sender.join(60)
    wait_until(lambda: heard.intake.wait_until_idle(1)
               and len(heard.numbers) == 5 * BATCH)
    assert heard.numbers == list(range(5 * BATCH))
