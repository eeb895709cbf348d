"""Writes are judged where they arrive, by what object servers say."""

from __future__ import annotations

import dataclasses
import logging
import types

import pytest
from swift.common import constraints
from swift.common.swob import Request, Response
from swift.common.wsgi import make_pre_authed_env

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.pressure import Backlog, Pressure
from swift_dss.core.rules import Rules
from swift_dss.core.spans import ClassMap
from swift_dss.proxy import filter as filter_module
from swift_dss.proxy import replicas as module
from swift_dss.proxy.admit import admission, unavailable
from swift_dss.proxy.admit.admission import Admission, Refused
from swift_dss.proxy.admit.pressures import STALE_SECONDS, Answer, Pressures
from swift_dss.proxy.admit.retry_after import RetryAfter, tell
from swift_dss.proxy.filter import pressures_of
from swift_dss.proxy.replicas import Replicas
from swift_dss.proxy.settings import FilterOptions, State
from swift_dss.proxy.target import Target
from swift_dss.wire import names
from swift_dss.wire.node import pressure as wire

TABLE = ClassTable.of([ClassSpec(0, 'plain', 0), ClassSpec(9, 'gold', 90)])
STATE = State(TABLE, Rules())
EMPTY = Backlog(0, 1000, 100, 10000, 100.0, True, 0.0, 0.75, 2.0)
MIB = 1 << 20
TARGET = Target('a', 'c', 'o')
#: Requests wait in green threads, or in threads.
pytestmark = pytest.mark.usefixtures('form')


class Logger(logging.Logger):
    """Counts what it is told to."""

    def __init__(self):
        super().__init__('admission-test')
        self.counts = []

    def increment(self, name):
        self.counts.append(name)


class Ring:
    """Three nodes of one device each."""

    def __init__(self, count=3):
        self.count = count

    def get_nodes(self, account, container, obj):
        return 7, [{'ip': '10.0.0.%d' % number, 'port': 6200,
                    'device': 'sda'} for number in range(self.count)]

    def get_more_nodes(self, partition):
        return iter(())


class Cluster:
    """Object servers whose backlogs a test sets."""

    def __init__(self, monkeypatch, count=3):
        self.now = 1000.0
        self.logger = Logger()
        self.slept = []
        self.asked = []
        self.age = 0.0
        self.spawn = lambda work, *args: work(*args)
        self.backlogs = {'10.0.0.%d' % number: EMPTY
                         for number in range(count)}
        monkeypatch.setattr(module, 'get_container_info',
                            lambda *args, **kwargs: {'storage_policy': '0'})
        monkeypatch.setattr(
            module.POLICIES, 'get_by_index',
            lambda index: types.SimpleNamespace(ec_ndata=1))
        self.pressures = Pressures(
            1.0, self.logger, self.ask,
            lambda work, *args: self.spawn(work, *args), lambda: self.now)
        self.admission = Admission(
            Replicas(types.SimpleNamespace(
                app=None, get_object_ring=lambda index: Ring(count))),
            self.logger,
            self.pressures, self.slept.append)

    def ask(self, server, tally):
        self.asked.append((server, tally))
        backlog = self.backlogs[server[0]]
        if backlog is None:
            raise OSError('gone')
        return Answer({'sda': (self.age, Pressure(
            1, 1, 1, None, True, 5.0, backlog))})

    def set(self, **changes):
        self.now += 5
        for name in self.backlogs:
            self.backlogs[name] = dataclasses.replace(EMPTY, **changes)

    def known(self):
        """(backlog, bytes that come on top of it) of each device."""
        return [self.pressures.backlog((name, 6200), 'sda')
                for name in self.backlogs]

    def put(self, class_id=0, size=10, env=None):
        environ = Request.blank('/v1/a/c/o').environ if env is None else env
        with self.admission.judged(environ, TARGET, STATE,
                                   ClassMap.uniform(class_id), size):
            return 201


@pytest.fixture
def servers(monkeypatch):
    return Cluster(monkeypatch)


def test_a_full_budget_is_503_with_the_time_it_takes(servers):
    servers.set(pending_bytes=1000)
    with pytest.raises(Refused) as caught:
        servers.put(size=250)
    assert caught.value.status_int == 503
    assert caught.value.headers['Retry-After'] == '3'
    assert b'plain' in caught.value.body
    assert servers.logger.counts[-1] == 'dss.admission.retry.plain'
    assert servers.put(9) == 201, 'the top class has a reserve'


@pytest.mark.parametrize('source', ['S3', 'OV'])
def test_what_can_never_fit_is_507_and_413_to_s3(servers, source):
    with pytest.raises(Refused) as caught:
        servers.put(size=5000)
    assert caught.value.status_int == 507
    with pytest.raises(Refused) as caught:
        servers.put(size=5000, env=dict(
            Request.blank('/v1/a/c/o').environ, **{'swift.source': source}))
    assert caught.value.status_int == 413


def test_what_is_too_large_for_swift_is_left_to_swift(servers):
    # It answers 413; after a 507 its clients would try again.
    assert servers.put(size=constraints.MAX_FILE_SIZE + 1) == 201
    assert not servers.asked
    with pytest.raises(Refused):
        servers.put(size=constraints.MAX_FILE_SIZE)


def test_one_full_replica_of_three_refuses_nothing_and_two_do(servers):
    full = dataclasses.replace(EMPTY, pending_bytes=1000)
    servers.backlogs['10.0.0.0'] = full
    assert servers.put() == 201
    servers.backlogs['10.0.0.1'] = full
    servers.now += 5
    with pytest.raises(Refused):
        servers.put()


def test_a_server_that_does_not_answer_is_taken_to_have_room(servers):
    servers.set(pending_bytes=1000)
    with pytest.raises(Refused):
        servers.put()
    servers.backlogs = dict.fromkeys(servers.backlogs)
    servers.now += STALE_SECONDS + 1
    assert servers.put() == 201
    assert 'dss.admission.unknown' in servers.logger.counts


def test_servers_are_asked_once_an_interval_however_many_writes(servers):
    for _ in range(50):
        servers.put(size=1)
    assert len(servers.asked) == 3
    servers.now += 1.5
    servers.put(size=1)
    assert len(servers.asked) == 6


def test_what_was_answered_is_told_to_the_first_server(servers):
    servers.put(9)
    servers.put(9)
    servers.now += 2
    servers.put(9)
    told = [wire.decode_tally(tally) for server, tally in servers.asked
            if server[0] == '10.0.0.0']
    assert told == [{}, {9: {'accept': 2}}]


def test_bytes_that_come_count_until_the_daemon_can_have_seen_them(servers):
    for _ in range(10):
        assert servers.put(size=100) == 201
    with pytest.raises(Refused):
        servers.put(size=100)
    # Long after their end the backlog, which is empty, is believed.
    servers.now += 10
    assert servers.put(size=100) == 201


def test_what_came_is_forgotten_also_where_nobody_answers(servers):
    servers.backlogs = dict.fromkeys(servers.backlogs)
    for _ in range(200):
        servers.put(size=100)
        servers.now += 1
    # Answers from before all uploads: all that is remembered counts.
    servers.age = 1000.0
    servers.set()
    servers.known()
    assert [coming for _, coming in servers.known()] == [
        100 * int(STALE_SECONDS)] * 3


def test_a_wrong_twin_that_forgets_what_comes_lets_too_much_in(
        servers, monkeypatch):
    monkeypatch.setattr(servers.pressures, 'coming', lambda devices:
                        types.SimpleNamespace(end=lambda: None))
    assert [servers.put(size=100) for _ in range(30)] == [201] * 30


def held_up(servers, size, **changes):
    """An upload that does not go on, and has taken its room."""
    held = servers.admission.judged(
        Request.blank('/v1/a/c/o').environ, TARGET, STATE,
        ClassMap.uniform(0), size)
    held.__enter__()
    servers.set(**changes)
    return held


def test_an_upload_that_took_its_room_counts_once(servers):
    room = {'room_bytes': 1000 * MIB, 'budget_bytes': 1000 * MIB,
            'reserve_bytes': 0}
    servers.set(**room)
    held = held_up(servers, 600 * MIB, room_bytes=400 * MIB,
                   budget_bytes=400 * MIB, reserve_bytes=0,
                   untracked_bytes=600 * MIB)
    assert servers.put(size=300 * MIB) == 201
    with pytest.raises(Refused):
        servers.put(size=401 * MIB)
    held.__exit__(None, None, None)
    servers.set(**room)
    assert servers.put(size=900 * MIB) == 201


def test_an_upload_that_took_no_room_counts_too(servers):
    servers.set(room_bytes=1000 * MIB, budget_bytes=1000 * MIB)
    held = held_up(servers, 600 * MIB, room_bytes=1000 * MIB,
                   budget_bytes=1000 * MIB, reserve_bytes=0)
    with pytest.raises(Refused):
        servers.put(size=401 * MIB)
    held.__exit__(None, None, None)
    servers.set()
    assert servers.known() == [(EMPTY, 0)] * 3


def test_an_upload_that_just_began_has_taken_nothing_yet(servers):
    servers.set(room_bytes=1000 * MIB, budget_bytes=1000 * MIB,
                untracked_bytes=600 * MIB)
    servers.put(size=10)
    with servers.admission.judged(
            Request.blank('/v1/a/c/o').environ, TARGET, STATE,
            ClassMap.uniform(0), 600 * MIB), pytest.raises(Refused):
        servers.put(size=401 * MIB)


def test_what_large_uploads_were_is_forgotten(servers):
    servers.set(room_bytes=1000 * MIB, budget_bytes=1000 * MIB,
                untracked_bytes=1000 * MIB)
    for _ in range(50):
        servers.put(size=20 * MIB)
        servers.now += 2
    servers.put(size=10)
    # Or their bytes would be taken for room.
    assert servers.known() == [(servers.backlogs['10.0.0.0'], 10)] * 3


def test_above_the_soft_limit_a_write_waits_a_little(servers):
    servers.set(pending_bytes=900, drain_rate=1.0)
    servers.put()
    assert 0 < servers.slept[0] <= 2.0


def test_not_more_than_a_bound_of_writes_wait(servers, monkeypatch):
    monkeypatch.setattr(admission, 'MAX_THROTTLED', 0)
    servers.set(pending_bytes=900, drain_rate=1.0)
    with pytest.raises(Refused) as caught:
        servers.put()
    assert caught.value.status_int == 503
    assert not servers.slept


def test_without_rings_or_with_admission_off_everything_comes_in():
    off = Admission(Replicas(types.SimpleNamespace()), Logger(), None)
    with off.judged({}, TARGET, STATE, ClassMap.uniform(0), 1 << 60):
        pass


def s3api_like(app, subrequest=dict):
    """What s3api makes of a refusal: its own 503, from a copied
    environment."""
    def call(env, start):
        Request(subrequest(env)).get_response(app)
        return Response(status=503, body='<Error/>')(env, start)
    return call


@pytest.mark.parametrize('subrequest', [
    dict,
    # Of object versioning, which makes a 503 of its own, too.
    lambda env: make_pre_authed_env(env, swift_source='OV')])
def test_s3_clients_get_retry_after_too(subrequest):
    def below(env, start):
        tell(env, '42')
        return Response(status=503, headers={'Retry-After': '42'})(
            env, start)

    answer = Request.blank('/b/o').get_response(
        RetryAfter(s3api_like(below, subrequest)))
    assert answer.headers['Retry-After'] == '42'


def test_s3_clients_get_it_for_reads_that_need_a_silent_s3_too():
    def silent(env, start):
        return Response(status=409, headers={
            names.BACKEND_UNAVAILABLE: '17'})(env, start)

    def filtered(env, start):
        return unavailable.call(silent, env, start,
                                lambda status, headers: headers)

    answer = Request.blank('/b/o').get_response(
        RetryAfter(s3api_like(filtered)))
    assert answer.headers['Retry-After'] == '17'


def test_without_the_filter_they_would_not():
    answer = Request.blank('/b/o').get_response(
        s3api_like(lambda env, start: Response(status=503)(env, start)))
    assert 'Retry-After' not in answer.headers


def test_other_answers_are_left_as_they_are():
    def fine(env, start):
        tell(env, '42')
        return Response(status=200)(env, start)

    assert 'Retry-After' not in Request.blank('/').get_response(
        RetryAfter(fine)).headers


def test_what_was_long_ago_is_no_reason_to_refuse(servers):
    """A proxy that saw no writes for a while knows old figures only."""
    at_once = servers.spawn
    servers.set(pending_bytes=1000)
    with pytest.raises(Refused):
        servers.put(size=250)
    servers.spawn = lambda work, *args: None    # asks too late
    servers.set(pending_bytes=0)
    asked = len(servers.asked)
    assert servers.put(size=250) == 201
    assert len(servers.asked) == asked + 3
    # What is known well enough is not asked for again.
    servers.spawn = at_once
    servers.set(pending_bytes=1000)
    for _ in range(3):
        with pytest.raises(Refused):
            servers.put(size=250)
    assert len(servers.asked) == asked + 6


class Nodes:
    """Nodes of many ports each; any port speaks for its node."""

    def __init__(self, ask_after=0.0, says_node=True):
        self.now = 1000.0
        self.asked = []
        self.ask_after = ask_after
        self.says_node = says_node
        self.dead = set()
        self.devices = {
            'd%d' % port: (0.0, Pressure(1, 1, 1, None, True, 5.0, EMPTY))
            for port in range(36)}
        self.logger = Logger()
        self.pressures = Pressures(
            1.0, self.logger, self.ask, lambda work, *args: work(*args),
            lambda: self.now)

    def ask(self, server, tally):
        self.asked.append((server, tally))
        if server in self.dead:
            raise OSError('gone')
        return Answer(self.devices, server[0] if self.says_node else '',
                      self.ask_after)

    def write(self, *ports, ip='10.0.0.1'):
        backlogs = []
        for port in ports:
            backlogs.append(self.pressures.backlog((ip, port),
                                                   'd%d' % port)[0])
            self.pressures.count((ip, port), 9, 'accept')
        return backlogs

    def questions(self, seconds, *ports):
        before = len(self.asked)
        for _ in range(seconds):
            self.now += 1.0
            assert None not in self.write(*ports)
        return len(self.asked) - before


def test_one_port_answers_for_its_node():
    nodes = Nodes()
    every = range(36)
    assert nodes.questions(1, *every) == 36, 'each has to say who it is'
    assert nodes.questions(10, *every) == 10
    told = [wire.decode_tally(tally) for _, tally in nodes.asked if tally]
    assert sum(call[9]['accept'] for call in told if call) == 36 * 10
    nodes.now += 600
    assert nodes.questions(1, *every) == 36


def test_servers_of_an_older_version_answer_each_for_themselves():
    nodes = Nodes(says_node=False)
    assert nodes.questions(10, *range(36)) == 360


def test_nodes_that_have_many_to_answer_are_asked_less_often():
    nodes = Nodes(ask_after=5.0)
    nodes.write(*range(36))
    assert nodes.questions(20, *range(36)) == 4


def test_a_port_that_is_dead_does_not_silence_its_node():
    nodes = Nodes()
    nodes.write(1, 2)
    nodes.dead.add(('10.0.0.1', 1))
    for _ in range(int(STALE_SECONDS) + 5):
        nodes.now += 1.0
        backlogs = nodes.write(2, 1)
    assert None not in backlogs


def test_ages_and_patience_come_from_the_answer(monkeypatch):
    from swift_dss.proxy.admit import pressures
    raw = wire.encode_node({'sda': Pressure(1, 1, 1, None, True, 7.0)}, 9.0,
                           {})
    said = {names.BACKEND_NODE: 'n', names.BACKEND_AGE: '0.25',
            names.BACKEND_ASK_AFTER: '4'}
    monkeypatch.setattr(pressures.waiting, 'fetch',
                        lambda *_args: (200, said, raw))
    answer = pressures.ask_server(('10.0.0.1', 1), '')
    assert answer.devices['sda'][0] == 2.25
    assert (answer.node, answer.ask_after) == ('n', 4.0)
    said.update({names.BACKEND_AGE: 'x', names.BACKEND_ASK_AFTER: '1e9'})
    answer = pressures.ask_server(('10.0.0.1', 1), '')
    assert answer.devices['sda'][0] == 2.0
    assert answer.ask_after < STALE_SECONDS
    monkeypatch.setattr(pressures.waiting, 'fetch',
                        lambda *_args: (404, said, raw))
    assert pressures.ask_server(('10.0.0.1', 1), '').devices == {}


def test_a_device_whose_figures_are_damaged_is_not_known():
    nodes = Nodes(says_node=False)
    nodes.devices = wire.Devices(b'{"devices": {"d1": {"age": 1}}}')
    assert nodes.write(1, 2) == [None, None]
    assert nodes.logger.counts == ['dss.admission.unknown']


@pytest.mark.parametrize('conf, folders', [
    ({}, ['/run/swift-dss']), ({'run_dir': '/x'}, ['/x']),
    ({'run_dir': ' '}, [])])
def test_workers_share_answers_where_the_filter_is_told_to(
        monkeypatch, conf, folders):
    shared = []
    monkeypatch.setattr(filter_module, 'Shared', lambda run_dir, logger:
                        shared.append(run_dir))
    pressures_of(FilterOptions.of(conf), Logger())
    assert shared == folders


def test_nothing_is_made_before_the_first_question(tmp_path):
    # The process that only reads the configuration may be another user's.
    pressures_of(FilterOptions.of({'run_dir': str(tmp_path)}), Logger())
    assert not list(tmp_path.iterdir())
