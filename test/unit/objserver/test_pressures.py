"""Object servers tell proxies how full they are, and keep their counts."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import time

import pytest
from swift.common.swob import Request

from swift_dss.core.config import NodeConf
from swift_dss.core.pressure import Backlog, Pressure
from swift_dss.objserver.figures import pressures as module
from swift_dss.objserver.settings import Node
from swift_dss.wire import names
from swift_dss.wire.node import pressure as wire

BACKLOG = Backlog(1, 2, 3, 4, 5.5, True, 0.0, 0.75, 2.0)


class Logger(logging.Logger):
    """A Swift logger's part of it."""

    def __init__(self):
        super().__init__('pressures-test')
        self.counts = []

    def increment(self, name):
        self.counts.append(name)


@pytest.fixture
def logger():
    return Logger()


@pytest.fixture
def served(tmp_path, monkeypatch, logger):
    return served_by(monkeypatch, logger, run_dir=str(tmp_path),
                     devices=str(tmp_path))


def served_by(monkeypatch, logger, **options):
    """The pressures of a node of such a configuration."""
    node = Node(NodeConf(**options), Logger())
    monkeypatch.setattr(module, 'node_for', lambda conf, logger: node)
    return module.Pressures({}, logger)


def ask(served, tally='', method='GET'):
    return Request.blank(names.PRESSURE_PATH, method=method, headers={
        names.BACKEND_ADMISSIONS: tally}).get_response(served)


def write(tmp_path, device, **changes):
    state = dataclasses.replace(Pressure(
        1, 1, 1, None, True, time.time() - 3, BACKLOG), **changes)
    os.makedirs(str(tmp_path / 'state'), exist_ok=True)
    (tmp_path / 'state' / (device + '.json')).write_bytes(
        wire.encode(state))
    return state


def test_every_device_is_told_of_with_its_age(served, tmp_path):
    state = write(tmp_path, 'sda')
    write(tmp_path, 'sdb', backlog=None)
    answer = ask(served)
    devices = dict(wire.Devices(answer.body))
    assert sorted(devices) == ['sda', 'sdb']
    age, pressure = devices['sda']
    assert 3 <= age < 60 and pressure == state


def test_a_mounted_device_says_how_much_may_still_be_written(
        tmp_path, monkeypatch):
    monkeypatch.setattr(module, 'node_for', lambda conf, logger: Node(
        NodeConf(run_dir=str(tmp_path), devices=str(tmp_path)), Logger()))
    os.mkdir(str(tmp_path / 'sda'))
    for device in ('sda', 'gone'):
        write(tmp_path, device)

    def rooms(**options):
        conf = dict({'devices': str(tmp_path), 'mount_check': 'false'},
                    **options)
        return wire.decode_rooms(ask(module.Pressures(conf, Logger())).body)
    stat = os.statvfs(str(tmp_path))
    size = stat.f_blocks * stat.f_frsize
    (name, (half, told)), = rooms(fallocate_reserve='50%').items()
    assert (name, told) == ('sda', size)
    whole = rooms(fallocate_reserve='0')['sda'][0]
    assert whole > 0 and half <= max(0, whole - size // 2) + (256 << 20)
    assert rooms(fallocate_reserve=str(size))['sda'][0] == 0
    assert rooms(mount_check='true') == {}
    assert wire.decode_rooms(b'{"devices": {}}') == {}


def test_old_and_missing_states_say_nothing(served, tmp_path):
    assert dict(wire.Devices(ask(served).body)) == {}
    write(tmp_path, 'sda', at=time.time() - 1000)
    assert dict(wire.Devices(ask(served).body)) == {}


def test_counts_of_proxies_are_added_up_for_the_daemon(served, tmp_path,
                                                       monkeypatch):
    monkeypatch.setattr(module, '_WRITE_SECONDS', 0.0)
    for _ in range(3):
        ask(served, wire.encode_tally({9: {'accept': 2, 'retry': 1}}))
    kept = (tmp_path / 'state' / 'admitted' / (
        '%d.json' % os.getpid())).read_text()
    assert wire.decode_tally(kept) == {9: {'accept': 6, 'retry': 3}}


@pytest.mark.parametrize('bad', [
    'x', '[]', '{"99": {"accept": 1}}', '{"1": 5}',
    '{"1": {"accept": -1}}', json.dumps({'../x': {'accept': 1}})])
def test_counts_that_are_none_are_refused_and_the_answer_comes(
        served, logger, tmp_path, bad):
    assert ask(served, bad).status_int == 200
    assert logger.counts == ['dss.errors.admissions']
    assert not (tmp_path / 'state' / 'admitted').exists()


def test_other_methods_are_not_ours(served):
    assert ask(served, method='PUT').status_int == 405


def test_an_answer_is_made_once_in_a_while_and_says_its_age(
        served, tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, 'monotonic', lambda: now[0])

    def told(answer):
        """The number of devices that an answer tells of."""
        return len(list(wire.Devices(answer.body)))
    for step in range(4):
        # A device more each time: only an answer made anew tells of it.
        write(tmp_path, 'sd%d' % step)
        answer = ask(served)
        assert told(answer) == 1
        assert float(answer.headers[names.BACKEND_AGE]) == \
            pytest.approx(0.1 * step)
        now[0] += 0.1
    now[0] += module._KEEP_SECONDS
    assert told(ask(served)) == 4
    write(tmp_path, 'sd4')
    assert told(ask(served)) == 4
    assert told(Request.blank(names.PRESSURE_PATH, headers={
        'Cache-Control': 'no-cache'}).get_response(served)) == 5


@pytest.mark.parametrize('workers', [1, 10, 40, 100, 150])
def test_many_workers_come_as_seldom_as_they_are_asked_to(
        served, monkeypatch, workers):
    now = [100.0]
    monkeypatch.setattr(module.time, 'monotonic', lambda: now[0])
    due = [100.0 + number / workers for number in range(workers)]
    times = []
    while now[0] < 200.0:
        first = min(range(workers), key=due.__getitem__)
        now[0] = due[first]
        after = float(ask(served).headers[names.BACKEND_ASK_AFTER])
        due[first] = now[0] + max(1.0, after)
        times.append(now[0])
    late = [at for at in times if at > 150.0]
    assert len(late) / 50.0 <= 1.5 * module._ASKS_PER_SECOND
    if workers <= 10:
        assert len(late) / 50.0 >= 0.9 * workers


def test_all_processes_of_a_node_have_one_name(
        served, logger, tmp_path, monkeypatch):
    def name(of):
        return ask(of).headers[names.BACKEND_NODE]
    expected = name(served)
    again, other = (name(served_by(
        monkeypatch, logger, run_dir=str(tmp_path) + suffix,
        devices=str(tmp_path))) for suffix in ('/.', '/x'))
    assert again == expected != other
