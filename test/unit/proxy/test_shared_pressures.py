"""One worker of a machine asks object servers; the others read the answer."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import signal
import subprocess
import sys

import pytest

from swift_dss.core.pressure import Backlog, Pressure
from swift_dss.proxy.admit import heard as module
from swift_dss.proxy.admit.heard import Answer, Heard, Shared
from swift_dss.proxy.admit.pressures import STALE_SECONDS, Pressures
from swift_dss.wire.node import pressure as wire

GIB = 1 << 30
NEAR = Backlog(0, 1000, 100, 10000, 100.0, True, 0.0, 0.75, 2.0)
FAR = Backlog(0, 1000 * GIB, GIB, 2000 * GIB, 1e8, True, 0.0, 0.75, 2.0)
SERVER = ('10.0.0.1', 6200)
#: Requests wait in green threads, or in threads.
pytestmark = pytest.mark.usefixtures('form')
HANGS = """\
import sys
from swift_dss.proxy.admit.heard import Shared
with Shared(sys.argv[1], None).asking(('10.0.0.1', 6200)) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


class Logger(logging.Logger):
    """Keeps what it is told."""

    def __init__(self):
        super().__init__('shared-test')
        self.counts = []
        self.warnings = []

    def increment(self, name):
        self.counts.append(name)

    def warning(self, text, *args):
        self.warnings.append(text % args)


class Machine:
    """A proxy server of some workers, and all object servers."""

    def __init__(self, run_dir, workers=4, backlog=NEAR, shares=True):
        self.now = 1000.0
        self.backlog = backlog
        self.asked = []
        self.dead = set()
        self.stock = set()
        self.ports_name_node = False
        self.loggers = [Logger() for _ in range(workers)]
        self.shares = [Shared(str(run_dir), logger, lambda: self.now)
                       for logger in self.loggers]
        self.workers = [Pressures(
            1.0, Logger(), self.ask, lambda work, *args: work(*args),
            lambda: self.now, shared if shares else None,
            lambda seconds: self.pause(seconds)) for shared in self.shares]
        self.pause = self.go_on

    def go_on(self, seconds):
        self.now += seconds

    def ask(self, server, tally):
        self.asked.append((self.now, server, wire.decode_tally(tally)))
        if server in self.dead:
            raise OSError('gone')
        if server in self.stock:
            return Answer({})
        raw = wire.encode_node({'sda': Pressure(
            1, 1, 1, None, True, self.now, self.backlog)}, self.now, {})
        return Answer(wire.Devices(raw), server[0]
                      if self.ports_name_node else '', 0.0, raw)

    def write(self, worker, server=SERVER):
        pressures = self.workers[worker]
        backlog, _ = pressures.backlog(server, 'sda')
        # A class for each worker: what is told says whose it was.
        pressures.count(server, worker, 'accept')
        return backlog

    def told(self, worker):
        """The verdicts of a worker that object servers have heard of, by
        the question that told them."""
        return [tally[worker]['accept'] for _, _, tally in self.asked
                if worker in tally]

    def run(self, seconds, servers, seed=1):
        """Each worker writes to all servers, ten times a second."""
        dice = random.Random(seed)
        before = len(self.asked)
        turns = [(worker, server) for worker in range(len(self.workers))
                 for server in servers]
        for _ in range(int(seconds * 10)):
            self.now += 0.1
            dice.shuffle(turns)
            for worker, server in turns:
                self.write(worker, server)
        return len(self.asked) - before


def servers(number):
    return [('10.0.0.%d' % (place + 1), 6200) for place in range(number)]


@pytest.mark.parametrize('workers', [1, 4, 24])
def test_a_server_is_asked_once_an_interval_however_many_workers(
        tmp_path, workers):
    machine = Machine(tmp_path, workers)
    machine.run(2, servers(5))
    assert machine.run(20, servers(5)) <= 5 * 20
    assert all(machine.write(worker, server) == NEAR
               for worker in range(workers) for server in servers(5))


def test_workers_that_share_nothing_would_ask_each_for_itself(tmp_path):
    machine = Machine(tmp_path, shares=False)
    machine.run(2, servers(5))
    assert machine.run(20, servers(5)) > 4 * 5 * 17


@pytest.mark.parametrize('workers', [1, 4, 24])
def test_far_from_all_limits_a_server_is_asked_seldom(tmp_path, workers):
    machine = Machine(tmp_path, workers, FAR)
    machine.run(1, servers(5))
    assert machine.run(100, servers(5)) <= 5 * 10 + 5
    assert machine.write(0) == FAR


def test_who_is_not_written_to_is_not_asked(tmp_path):
    machine = Machine(tmp_path)
    machine.run(5, servers(2))
    machine.run(5, servers(1))
    last = [now for now, server, _ in machine.asked
            if server == servers(2)[1]]
    assert machine.now - last[-1] > 4.5


def test_a_device_that_nears_its_limit_is_asked_about_every_interval(
        tmp_path):
    machine = Machine(tmp_path, 2, FAR)
    machine.run(30, [SERVER])
    machine.backlog = NEAR
    machine.run(11, [SERVER])
    assert machine.run(10, [SERVER]) >= 9


def test_what_this_worker_lets_in_brings_the_next_question_nearer(tmp_path):
    machine = Machine(tmp_path, 1, FAR)
    machine.write(0)
    machine.workers[0].coming([((SERVER, 'sda'), 20 * GIB)])
    machine.now += 1.5
    machine.write(0)
    assert len(machine.asked) == 2


def test_all_ports_of_a_node_say_their_name_once_to_all_workers(tmp_path):
    machine = Machine(tmp_path, 8, FAR)
    machine.ports_name_node = True
    ports = [('10.0.0.1', port) for port in range(36)]
    machine.run(1, ports)
    assert len(machine.asked) == 36
    assert machine.run(100, ports) <= 11
    machine.now += 600
    assert machine.run(1, ports) <= 37


def test_verdicts_of_all_workers_are_told(tmp_path):
    machine = Machine(tmp_path, 4, FAR)
    machine.run(600, [SERVER])
    for worker in range(4):
        assert sum(machine.told(worker)) > 6000 - 320 * 10
    machine.now += 320
    for worker, pressures in enumerate(machine.workers):
        pressures.backlog(SERVER, 'sda')
        assert sum(machine.told(worker)) == 6000


def test_a_worker_that_has_no_turn_tells_its_verdicts_in_the_end(tmp_path):
    machine = Machine(tmp_path, 2)
    for _ in range(301):
        machine.write(0)
        machine.write(1)
        machine.now += 1
    assert [count for worker in (0, 1) for count in machine.told(worker)
            if count > 200] == [300]


def test_a_server_that_does_not_answer_is_tried_by_one_worker(tmp_path):
    machine = Machine(tmp_path, 4)
    machine.run(2, [SERVER])
    machine.dead.add(SERVER)
    assert machine.run(10, [SERVER]) <= 10
    assert machine.write(2) == NEAR, 'still known'
    machine.now += STALE_SECONDS
    assert [machine.write(worker) for worker in range(4)] == [None] * 4
    machine.dead.clear()
    machine.run(2, [SERVER])
    assert [machine.write(worker) for worker in range(4)] == [NEAR] * 4


def test_a_server_that_comes_back_is_asked_at_once_also_from_afar(tmp_path):
    machine = Machine(tmp_path, 2, FAR)
    machine.dead.add(SERVER)
    machine.run(5, [SERVER])
    machine.dead.clear()
    machine.run(2, [SERVER])
    assert machine.write(0) == machine.write(1) == FAR


def test_servers_without_classes_are_asked_seldom(tmp_path):
    machine = Machine(tmp_path, 4)
    machine.stock.add(SERVER)
    machine.run(1, [SERVER])
    assert machine.run(100, [SERVER]) <= 11
    # One of them is upgraded.
    machine.stock.clear()
    machine.run(11, [SERVER])
    assert machine.write(3) == NEAR


def test_several_proxies_ask_each_for_itself(tmp_path):
    machines = []
    for name in 'ab':
        os.mkdir(str(tmp_path / name))
        machines.append(Machine(tmp_path / name))
    assert all(machine.run(10, [SERVER]) >= 9 for machine in machines)


def test_a_refusal_looks_at_what_others_heard_before_it_asks(tmp_path):
    machine = Machine(tmp_path, 2)
    machine.write(0)
    machine.write(1)
    machine.now += 5
    machine.write(0)
    asked = len(machine.asked)
    assert machine.workers[1].renew([SERVER])
    assert len(machine.asked) == asked
    machine.now += 5
    assert machine.workers[1].renew([SERVER])
    assert len(machine.asked) == asked + 1


@contextlib.contextmanager
def asking_elsewhere(tmp_path):
    """Another process that has begun to ask, and does not go on."""
    other = subprocess.Popen(
        [sys.executable, '-c', HANGS, str(tmp_path)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == 'True\n'
        yield other
    finally:
        other.kill()
        other.communicate()


def test_a_worker_waits_for_the_answer_that_another_one_gets(tmp_path):
    machine = Machine(tmp_path, 2)
    with asking_elsewhere(tmp_path):
        def answer_comes(seconds):
            machine.now += seconds
            raw = wire.encode_node({'sda': Pressure(
                1, 1, 1, None, True, 5.0, NEAR)}, 5.0, {})
            machine.shares[1].write(SERVER, Heard(
                machine.now - 0.1, machine.now, Answer(
                    wire.Devices(raw), '', 0.0, raw)))

        machine.pause = answer_comes
        assert machine.write(0) == NEAR
        assert not machine.asked


def test_a_worker_that_dies_while_it_asks_holds_up_nobody(tmp_path):
    machine = Machine(tmp_path, 2)
    with asking_elsewhere(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        began = machine.now
        assert machine.write(0) == NEAR
        assert machine.now == began and len(machine.asked) == 1


def test_a_worker_that_hangs_while_it_asks_is_not_waited_for_long(tmp_path):
    machine = Machine(tmp_path, 2)
    with asking_elsewhere(tmp_path) as other:
        other.send_signal(signal.SIGSTOP)
        began = machine.now
        assert machine.write(0) == NEAR
        assert 1.9 < machine.now - began < 2.2 and len(machine.asked) == 1
        # The next one reads it, though the lock is not free.
        assert machine.write(1) == NEAR
        assert len(machine.asked) == 1


def path_of(tmp_path):
    return tmp_path / 'proxy' / 'server-10.0.0.1:6200'


def head(tmp_path, **changes):
    """Change what stands in the first line of the file."""
    first, _, body = path_of(tmp_path).read_bytes().partition(b'\n')
    values = dict(json.loads(first), **changes)
    path_of(tmp_path).write_bytes(
        json.dumps(values).encode() + b'\n' + body)


DAMAGE = {
    'empty': lambda tmp_path, raw: path_of(tmp_path).write_bytes(b''),
    'no JSON': lambda tmp_path, raw: path_of(tmp_path).write_bytes(b'x' * 99),
    'a list': lambda tmp_path, raw: path_of(tmp_path).write_bytes(b'[1]\n'),
    'a byte short': lambda tmp_path, raw:
        path_of(tmp_path).write_bytes(raw[:-1]),
    'half': lambda tmp_path, raw:
        path_of(tmp_path).write_bytes(raw[:len(raw) // 2]),
    'a byte more': lambda tmp_path, raw:
        path_of(tmp_path).write_bytes(raw + b' '),
    'a byte flipped': lambda tmp_path, raw: path_of(tmp_path).write_bytes(
        raw.replace(b'"room_bytes": 1', b'"room_bytes": 0')),
    'too large': lambda tmp_path, raw: path_of(tmp_path).write_bytes(
        raw + b' ' * module.MAX_ANSWER_BYTES),
    'no line end': lambda tmp_path, raw:
        path_of(tmp_path).write_bytes(raw.replace(b'\n', b' ')),
    'of another boot': lambda tmp_path, raw: head(tmp_path, boot='x'),
    'of another server': lambda tmp_path, raw:
        head(tmp_path, of='10.0.0.1:6201'),
    'of another version': lambda tmp_path, raw: head(tmp_path, version=2),
    'asked in the future': lambda tmp_path, raw:
        head(tmp_path, asked_at=1e9),
    'answered in the future': lambda tmp_path, raw:
        head(tmp_path, answered_at=1e9),
    'no number': lambda tmp_path, raw: head(tmp_path, answered_at='now'),
    'infinite': lambda tmp_path, raw:
        head(tmp_path, ask_after=float('inf')),
    'a node that is a list': lambda tmp_path, raw: head(tmp_path, node=[]),
}


@pytest.mark.parametrize('kind', sorted(DAMAGE))
def test_a_file_that_is_not_what_a_worker_wrote_counts_as_none(
        tmp_path, kind):
    machine = Machine(tmp_path, 2)
    machine.write(0)
    raw = path_of(tmp_path).read_bytes()
    DAMAGE[kind](tmp_path, raw)
    assert path_of(tmp_path).read_bytes() != raw, 'the damage was done'
    assert machine.shares[1].read(SERVER) is None
    assert machine.loggers[1].counts == [
        'dss.admission.shared_damaged']
    assert machine.write(1) == NEAR
    assert len(machine.asked) == 2
    assert machine.shares[0].read(SERVER).answer.devices['sda'][
        1].backlog == NEAR, 'and it is written anew'


def test_a_stale_file_is_read_and_its_age_counts(tmp_path):
    machine = Machine(tmp_path, 2)
    machine.write(0)
    machine.dead.add(SERVER)
    machine.now += STALE_SECONDS - 1
    assert machine.write(1) == NEAR
    machine.now += 2
    assert machine.write(1) is None


def test_one_file_in_the_place_of_another_is_not_believed(tmp_path):
    machine = Machine(tmp_path, 2)
    machine.write(0)
    os.rename(str(path_of(tmp_path)), str(
        tmp_path / 'proxy' / 'server-10.0.0.2:6200'))
    assert machine.shares[1].read(('10.0.0.2', 6200)) is None


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path):
    machine = Machine(tmp_path, 2)
    machine.write(0)
    secret = tmp_path / 'elsewhere'
    os.rename(str(path_of(tmp_path)), str(secret))
    before = secret.read_bytes()
    os.symlink(str(secret), str(path_of(tmp_path)))
    assert machine.shares[1].read(SERVER) is None
    assert machine.write(1) == NEAR
    assert secret.read_bytes() == before


def test_names_from_elsewhere_lead_nowhere_else(tmp_path):
    machine = Machine(tmp_path, 1)
    for key in ('../../x', 'a/b', '.', 'n' * 1000, 'ü\0'):
        machine.shares[0].write(key, Heard(1.0, 2.0, Answer({}, 'n')))
        assert machine.shares[0].read(key) == Heard(
            1.0, 2.0, Answer({}, 'n'))
    assert {os.path.dirname(str(path)) for path in tmp_path.rglob('*')} == {
        str(tmp_path), str(tmp_path / 'proxy')}


def test_nobody_else_may_enter(tmp_path):
    old = os.umask(0)
    try:
        machine = Machine(tmp_path, 1)
        machine.write(0)
    finally:
        os.umask(old)
    assert (tmp_path / 'proxy').stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777
             for path in (tmp_path / 'proxy').iterdir()}
    assert modes == {'server-10.0.0.1:6200': 0o600,
                     'server-10.0.0.1:6200.lock': 0o600}


def open_to_others(tmp_path, monkeypatch):
    (tmp_path / 'proxy').mkdir()
    (tmp_path / 'proxy').chmod(0o750)
    return 'has mode 0750; give it 0700'


def of_another_user(tmp_path, monkeypatch):
    (tmp_path / 'proxy').mkdir(mode=0o700)
    user = os.geteuid()
    monkeypatch.setattr(module.os, 'geteuid', lambda: user + 1)
    return 'belongs to user %d' % user


def a_link(tmp_path, monkeypatch):
    (tmp_path / 'other').mkdir(mode=0o700)
    os.symlink(str(tmp_path / 'other'), str(tmp_path / 'proxy'))
    return 'is not a folder'


def no_run_dir(tmp_path, monkeypatch):
    os.rmdir(str(tmp_path))
    return 'No such file or directory'


@pytest.mark.parametrize('way', [
    open_to_others, of_another_user, a_link, no_run_dir])
def test_without_a_folder_of_its_own_each_worker_asks_for_itself(
        tmp_path, monkeypatch, way):
    run_dir = tmp_path / 'run'
    run_dir.mkdir()
    why = way(run_dir, monkeypatch)
    machine = Machine(run_dir, 2)
    machine.run(100, [SERVER])
    assert len(machine.asked) > 180
    assert machine.write(0) == NEAR
    for logger in machine.loggers:
        (warning,) = logger.warnings
        assert why in warning
    assert not list(run_dir.glob('proxy/*'))


def test_a_folder_that_is_there_at_last_is_used(tmp_path):
    run_dir = tmp_path / 'run'
    machine = Machine(run_dir, 4)
    machine.run(5, [SERVER])
    run_dir.mkdir()
    machine.run(61, [SERVER])
    assert machine.run(10, [SERVER]) <= 10


def test_a_folder_that_is_taken_away_is_made_again(tmp_path):
    machine = Machine(tmp_path, 4)
    machine.run(5, [SERVER])
    for path in (tmp_path / 'proxy').iterdir():
        path.unlink()
    (tmp_path / 'proxy').rmdir()
    machine.run(62, [SERVER])
    assert machine.write(0) == NEAR
    assert machine.run(10, [SERVER]) <= 10
