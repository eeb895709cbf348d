"""A device without room is still read from."""

from __future__ import annotations

import logging
import types

import pytest
from swift.common.error_limiter import ErrorLimiter

from swift_dss.core.errors import DamagedRecord
from swift_dss.proxy.admit.full_devices import FullDevices
from swift_dss.proxy.replicas import Placed
from swift_dss.proxy.target import Target

NODES = [{'ip': '10.0.0.%d' % number, 'port': 6200, 'device': 'sda'}
         for number in range(3)]
TARGET = Target('a', 'c', 'o')


class Logger(logging.Logger):
    """Counts what it is told to."""

    def __init__(self):
        super().__init__('full-devices-test')
        self.counts = []

    def increment(self, name):
        self.counts.append(name)


class Proxy:
    """Swift's own limiter, with all nodes on its list."""

    def __init__(self, rooms, pieces=1):
        self.limiter = ErrorLimiter(60, 10)
        for node in NODES:
            self.limiter.limit(node)
        self.rooms = rooms
        self.logger = Logger()
        self.said = []
        self.now = 1000.0
        self.asked = []
        self.spawned = []
        policy = types.SimpleNamespace(ec_ndata=pieces)
        self.made = FullDevices(
            types.SimpleNamespace(
                proxy=types.SimpleNamespace(error_limiter=self.limiter),
                of=lambda env, target: Placed(
                    policy, 7, NODES[:2], iter(NODES[2:]))),
            self.logger, self.ask,
            lambda *work: self.spawned.append(work), lambda: self.now)

    def ask(self, server):
        self.asked.append(server[0][-1])
        answer = self.rooms[server[0]]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def answer(self, status, size=1000):
        start = self.made.watching({}, TARGET, size, self.start)
        assert start(status, [('X', 'y')]) == 'write'
        return [node['ip'][-1] for node in NODES
                if self.limiter.is_limited(node)]

    def start(self, *said):
        self.said.append(said)
        return 'write'


def rooms(*answers):
    return {'10.0.0.%d' % number: answer
            for number, answer in enumerate(answers)}


def test_full_devices_are_read_again_and_broken_ones_are_not():
    proxy = Proxy(rooms({'sda': (500, 10000)}, OSError('refused'), {}))
    assert proxy.answer('503 Service Unavailable') == ['1', '2']
    assert proxy.logger.counts == ['dss.full_devices_readable']
    assert proxy.said == [('503 Service Unavailable', [('X', 'y')], None)]


@pytest.mark.parametrize('room, left', [
    (1000, []), (1199, []), (1200, []), (1201, ['0', '1', '2'])])
def test_only_what_has_no_room_counts_as_full(room, left):
    devices = {'sda': (room, 10000)}
    assert Proxy(rooms(devices, devices, devices)).answer('507 x') == left


def test_a_fragment_is_what_has_to_fit():
    devices = {'sda': (1000, 10000)}
    proxy = Proxy(rooms(devices, devices, devices), pieces=2)
    assert proxy.answer('503 x', size=1000) == ['0', '1', '2']
    proxy.now += 10
    assert proxy.answer('503 x', size=1700) == []


def test_who_was_served_does_not_wait_for_it():
    devices = {'sda': (0, 10000)}
    proxy = Proxy(rooms(devices, devices, devices))
    assert proxy.answer('201 Created') == ['0', '1', '2']
    (work,) = proxy.spawned
    work[0](*work[1:])
    assert proxy.answer('201 Created') == []
    assert len(proxy.spawned) == 1


def test_a_device_in_trouble_is_not_asked_about_all_the_time():
    proxy = Proxy(rooms(*[OSError('refused')] * 3))
    for _ in range(5):
        assert proxy.answer('503 x') == ['0', '1', '2']
    assert sorted(proxy.asked) == ['0', '1', '2']
    proxy.now += 10
    proxy.answer('503 x')
    assert len(proxy.asked) == 6


def test_nobody_is_asked_where_nobody_is_avoided():
    proxy = Proxy(rooms(*[AssertionError('asked')] * 3))
    proxy.limiter.stats.clear()
    assert proxy.answer('503 x') == []


def test_what_cannot_be_read_is_no_answer():
    proxy = Proxy(rooms(*[DamagedRecord('what')] * 3))
    assert proxy.answer('503 x') == ['0', '1', '2']


def test_a_pipeline_without_a_limiter_is_left_alone():
    made = FullDevices(types.SimpleNamespace(
        proxy=object(), of=lambda env, target: None), Logger())
    assert made.watching({}, TARGET, 1, lambda *said: said)(
        '503 x', []) == ('503 x', [], None)
